//! Tests of the health checks, one table per kind.

use super::is_healthy;
use biplane_model::Object;
use serde_json::{Value, json};

fn check(api_version: &str, kind: &str, rest: &Value) -> bool {
    let mut object = Object::from_value(rest.clone()).unwrap();
    object.set_at_or_ignore(&["apiVersion"], api_version);
    object.set_at_or_ignore(&["kind"], kind);
    is_healthy(&object)
}

/// Checks healthy and unhealthy objects of a kind.
fn table(api_version: &str, kind: &str, healthy: &[Value], unhealthy: &[Value]) {
    for rest in healthy {
        assert!(check(api_version, kind, rest), "{kind} {rest} is healthy");
    }
    for rest in unhealthy {
        assert!(!check(api_version, kind, rest), "{kind} {rest} is not healthy");
    }
}

fn condition(name: &str, status: &str) -> Value {
    json!({"type": name, "status": status})
}

#[test]
fn some_kinds_only_have_to_exist() {
    for kind in ["ConfigMap", "Secret", "ServiceAccount", "Namespace"] {
        assert!(check("v1", kind, &json!({})));
        assert!(check("/v1", kind, &json!({"status": 5})));
        assert!(!check("v2", kind, &json!({})));
    }
    for api_version in ["", "/", "//v1", "v1/", "a/b/c"] {
        assert!(!check(api_version, "ConfigMap", &json!({})), "{api_version}");
    }
}

#[test]
fn a_service_needs_an_address_only_if_it_balances_load() {
    table(
        "v1",
        "Service",
        &[
            json!({}),
            json!({"spec": null}),
            json!({"spec": {"type": "NodePort"}}),
            json!({"spec": {"type": 5}}),
            json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
        ],
        &[
            json!({"spec": {"type": "LoadBalancer"}}),
            json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": []}}}),
            json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": {"a": 1}}}}),
        ],
    );
    table(
        "networking.k8s.io/v1",
        "Ingress",
        &[json!({"status": {"loadBalancer": {"ingress": [{"hostname": "a"}]}}})],
        &[json!({}), json!({"status": {"loadBalancer": null}})],
    );
}

#[test]
fn a_deployment_is_healthy_when_all_replicas_are_updated_and_available() {
    let available = condition("Available", "True");
    let counts = |replicas: Value, updated: Value, available_replicas: Value, conditions: Value| {
        json!({"spec": {"replicas": replicas}, "status": {"updatedReplicas": updated,
            "availableReplicas": available_replicas, "conditions": conditions}})
    };
    table(
        "apps/v1",
        "Deployment",
        &[
            counts(json!(3), json!(3), json!(3), json!([available])),
            counts(json!(null), json!(1), json!(1), json!(["odd", available])),
            counts(json!(3.9), json!(3), json!(3.1), json!([available])),
            counts(
                json!("3"),
                json!(1),
                json!(1),
                json!([condition("Available", "False"), available]),
            ),
        ],
        &[
            counts(json!(3), json!(2), json!(3), json!([available])),
            counts(json!(3), json!(3), json!(2), json!([available])),
            counts(json!(3), json!(3), json!(3), json!([condition("Available", "False")])),
            counts(json!(3), json!(3), json!(3), json!(null)),
            // AR-19: Kubernetes leaves out zero counters.
            json!({"spec": {"replicas": 0}, "status": {"conditions": [available]}}),
            json!({}),
        ],
    );
    assert!(!check(
        "apps/v1beta2",
        "Deployment",
        &counts(json!(1), json!(1), json!(1), json!([available]))
    ));
}

#[test]
fn a_stateful_set_is_healthy_when_all_replicas_run_the_current_revision() {
    let set = |ready: Value, current: Value, from: Value, to: Value| {
        json!({"spec": {"replicas": 3}, "status": {"readyReplicas": ready, "currentReplicas": current,
            "currentRevision": from, "updateRevision": to}})
    };
    table(
        "apps/v1",
        "StatefulSet",
        &[set(json!(3), json!(3), json!("a"), json!("a"))],
        &[
            set(json!(2), json!(3), json!("a"), json!("a")),
            set(json!(3), json!(2), json!("a"), json!("a")),
            set(json!(3), json!(3), json!("a"), json!("b")),
            set(json!(3), json!(3), json!(null), json!(null)),
            set(json!(3), json!(3), json!(1), json!(1)),
            json!({}),
        ],
    );
}

#[test]
fn a_daemon_set_is_healthy_when_all_four_counters_agree() {
    let set = |a: Value, b: Value, c: Value, d: Value| {
        json!({"status": {"desiredNumberScheduled": a, "numberReady": b,
            "updatedNumberScheduled": c, "numberAvailable": d}})
    };
    table(
        "apps/v1",
        "DaemonSet",
        &[set(json!(3), json!(3), json!(3), json!(3)), set(json!(0), json!(0), json!(0), json!(0))],
        &[
            set(json!(3), json!(2), json!(3), json!(3)),
            set(json!(3), json!(3), json!(2), json!(3)),
            set(json!(3), json!(3), json!(3), json!(null)),
            json!({"status": {}}),
        ],
    );
}

#[test]
fn a_replica_set_is_healthy_when_enough_replicas_of_this_generation_are_available() {
    table(
        "apps/v1",
        "ReplicaSet",
        &[
            json!({"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": {"observedGeneration": 2, "availableReplicas": 3}}),
            json!({"status": {"availableReplicas": 1}}),
            json!({"spec": {"replicas": 0}, "status": {}}),
            // 2^32 + 1 keeps its lower half.
            json!({"spec": {"replicas": 4_294_967_297_u64}, "status": {"availableReplicas": 1}}),
        ],
        &[
            json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 2, "availableReplicas": 1}}),
            json!({"status": {"availableReplicas": 1, "conditions": [condition("ReplicaFailure", "True")]}}),
            json!({"spec": {"replicas": 3}, "status": {"availableReplicas": 2}}),
            json!({"spec": {"minReadySeconds": 0.5}, "status": {"availableReplicas": 1}}),
        ],
    );
}

#[test]
fn a_job_s_first_telling_condition_decides() {
    let job = |conditions: Value| json!({"status": {"conditions": conditions}});
    let (complete, failed) = (condition("Complete", "True"), condition("Failed", "True"));
    table(
        "batch/v1",
        "Job",
        &[
            job(json!([complete])),
            job(json!([complete, failed])),
            job(json!([condition("Failed", "False"), complete])),
        ],
        &[
            job(json!([failed, complete])),
            job(json!([condition("Suspended", "True"), complete])),
            job(json!([condition("Complete", "False")])),
            job(json!([complete, {"type": 5}])),
            json!({}),
        ],
    );
}

#[test]
fn a_cron_job_is_healthy_while_suspended_running_or_after_success() {
    let job = |status: Value| json!({"spec": {"suspend": false}, "status": status});
    let (early, late) = ("2031-05-01T10:00:00Z", "2031-05-01T10:05:00Z");
    table(
        "batch/v1",
        "CronJob",
        &[
            json!({"spec": {"suspend": true}}),
            job(json!({"lastScheduleTime": early, "lastSuccessfulTime": late})),
            job(
                json!({"lastScheduleTime": early, "lastSuccessfulTime": "2031-05-01T12:00:00+02:00"}),
            ),
            job(json!({"lastScheduleTime": early, "active": [{"name": "x"}]})),
        ],
        &[
            job(json!({"lastScheduleTime": late, "lastSuccessfulTime": early})),
            job(json!({"lastScheduleTime": early})),
            job(json!({"active": [{"name": "x"}]})),
            job(json!({})),
            json!({"spec": {"suspend": true}, "status": {"lastScheduleTime": "yesterday"}}),
            json!({"spec": {"suspend": "true"}}),
        ],
    );
}

#[test]
fn an_autoscaler_s_first_telling_condition_decides() {
    let scaler = |conditions: Value| json!({"status": {"conditions": conditions}});
    let (active, failed) =
        (condition("ScalingActive", "True"), condition("FailedGetScale", "True"));
    table(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        &[
            scaler(json!([active])),
            scaler(json!([condition("ScalingLimited", "True")])),
            scaler(json!([active, failed])),
        ],
        &[
            scaler(json!([failed, active])),
            scaler(json!([condition("AbleToScale", "True")])),
            json!({}),
        ],
    );
    assert!(!check("autoscaling/v1", "HorizontalPodAutoscaler", &scaler(json!([active]))));
}

#[test]
fn a_claim_must_be_bound_and_readable() {
    table(
        "v1",
        "PersistentVolumeClaim",
        &[
            json!({"spec": {"resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Bound"}}),
        ],
        &[
            json!({"spec": {"resources": {"requests": {"storage": "lots"}}}, "status": {"phase": "Bound"}}),
            json!({"status": {"phase": "Pending"}}),
            json!({}),
        ],
    );
}

#[test]
fn a_pod_succeeded_or_runs_for_good_and_is_ready() {
    let pod = |phase: &str, policy: Value, ready: &str| json!({"spec": {"restartPolicy": policy}, "status": {"phase": phase, "conditions": [condition("Ready", ready)]}});
    table(
        "v1",
        "Pod",
        &[json!({"status": {"phase": "Succeeded"}}), pod("Running", json!("Always"), "True")],
        &[
            pod("Running", json!("Always"), "False"),
            pod("Running", json!("Never"), "True"),
            pod("Running", json!(null), "True"),
            pod("Pending", json!("Always"), "True"),
            // AR-18: a wrong type anywhere in the object.
            json!({"status": {"phase": "Succeeded"}, "spec": {"containers": [{"ports": [{"containerPort": 80.5}]}]}}),
            json!({"status": {"phase": "Succeeded"}, "metadata": {"creationTimestamp": "now"}}),
            json!({"status": {"phase": "Succeeded"}, "metadata": "x"}),
        ],
    );
}
