//! Health checks of built-in kinds.
//!
//! Some kinds are checked by single fields, whatever the rest of the object contains. For others
//! the whole object must decode first.

use std::sync::LazyLock;

use biplane_go::time;
use biplane_model::{Object, Value};

use biplane_go::types::{Decoder, KUBERNETES, META, Types, to_int64};

static TYPES: LazyLock<Types> = LazyLock::new(|| Types::read(&[META, KUBERNETES]));

/// Whether the object has a known kind and is healthy.
pub(super) fn is_healthy(object: &Object) -> bool {
    let api_version = object.api_version();
    // An empty group may be written explicitly.
    let core = api_version.strip_prefix('/').filter(|version| !version.contains('/'));
    match (core.unwrap_or(api_version), object.kind()) {
        ("v1", "ConfigMap" | "Secret" | "ServiceAccount" | "Namespace") => true,
        ("v1", "Service") => {
            object.str_at(&["spec", "type"]) != "LoadBalancer" || has_ingress(object)
        }
        ("v1", "PersistentVolumeClaim") => {
            decodes(object, "core.PersistentVolumeClaim") && {
                object.str_at(&["status", "phase"]) == "Bound"
            }
        }
        ("v1", "Pod") => decodes(object, "core.Pod") && pod(object),
        ("apps/v1", "Deployment") => deployment(object),
        ("apps/v1", "StatefulSet") => stateful_set(object),
        ("apps/v1", "DaemonSet") => daemon_set(object),
        ("apps/v1", "ReplicaSet") => decodes(object, "apps.ReplicaSet") && replica_set(object),
        ("batch/v1", "Job") => decodes(object, "batch.Job") && job(object),
        ("batch/v1", "CronJob") => decodes(object, "batch.CronJob") && cron_job(object),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => {
            decodes(object, "autoscaling.HorizontalPodAutoscaler") && autoscaler(object)
        }
        ("networking.k8s.io/v1", "Ingress") => has_ingress(object),
        _ => false,
    }
}

fn decodes(object: &Object, name: &str) -> bool {
    TYPES.check(object, name, Decoder::Converter).is_ok()
}

/// Returns an integer. A fraction is truncated.
fn int(object: &Object, path: &[&str]) -> Option<i64> {
    object.at(path)?.as_f64().map(to_int64)
}

/// Returns a 32-bit integer. Larger integers keep their lower half.
fn int32(object: &Object, path: &[&str]) -> Option<i32> {
    int(object, path).map(|number| number as i32)
}

fn has_ingress(object: &Object) -> bool {
    object
        .at(&["status", "loadBalancer", "ingress"])
        .and_then(Value::as_array)
        .is_some_and(|ingress| !ingress.is_empty())
}

/// Returns the types of the conditions that are `True`, in order.
fn true_conditions(object: &Object) -> impl Iterator<Item = &str> {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .filter(|condition| condition.get("status").and_then(Value::as_str) == Some("True"))
        .filter_map(|condition| condition.get("type").and_then(Value::as_str))
}

fn pod(object: &Object) -> bool {
    match object.str_at(&["status", "phase"]) {
        "Succeeded" => true,
        "Running" => {
            object.str_at(&["spec", "restartPolicy"]) == "Always"
                && true_conditions(object).any(|name| name == "Ready")
        }
        _ => false,
    }
}

fn deployment(object: &Object) -> bool {
    let want = Some(int(object, &["spec", "replicas"]).unwrap_or(1));
    int(object, &["status", "updatedReplicas"]) == want
        && int(object, &["status", "availableReplicas"]) == want
        && true_conditions(object).any(|name| name == "Available")
}

fn stateful_set(object: &Object) -> bool {
    let want = Some(int(object, &["spec", "replicas"]).unwrap_or(1));
    let revision = |key| object.at(&["status", key]).and_then(Value::as_str);
    int(object, &["status", "readyReplicas"]) == want
        && int(object, &["status", "currentReplicas"]) == want
        && revision("currentRevision").is_some()
        && revision("currentRevision") == revision("updateRevision")
}

fn daemon_set(object: &Object) -> bool {
    let want = int(object, &["status", "desiredNumberScheduled"]);
    want.is_some()
        && ["numberReady", "updatedNumberScheduled", "numberAvailable"]
            .iter()
            .all(|key| int(object, &["status", key]) == want)
}

fn replica_set(object: &Object) -> bool {
    let observed = int(object, &["status", "observedGeneration"]).unwrap_or(0);
    let available = int32(object, &["status", "availableReplicas"]).unwrap_or(0);
    observed >= int(object, &["metadata", "generation"]).unwrap_or(0)
        && !true_conditions(object).any(|name| name == "ReplicaFailure")
        && available >= int32(object, &["spec", "replicas"]).unwrap_or(1)
}

fn job(object: &Object) -> bool {
    true_conditions(object).find(|name| matches!(*name, "Failed" | "Suspended" | "Complete"))
        == Some("Complete")
}

fn cron_job(object: &Object) -> bool {
    if object.at(&["spec", "suspend"]) == Some(&Value::Bool(true)) {
        return true;
    }
    let at = |key| time::instant(object.at(&["status", key])?.as_str()?);
    let Some(scheduled) = at("lastScheduleTime") else { return false };
    let active = object.at(&["status", "active"]).and_then(Value::as_array);
    active.is_some_and(|jobs| !jobs.is_empty())
        || at("lastSuccessfulTime").is_some_and(|succeeded| succeeded >= scheduled)
}

fn autoscaler(object: &Object) -> bool {
    true_conditions(object)
        .find_map(|name| match name {
            "FailedGetScale"
            | "FailedUpdateScale"
            | "FailedGetResourceMetric"
            | "InvalidSelector" => Some(false),
            "ScalingActive" | "ScalingLimited" => Some(true),
            _ => None,
        })
        .unwrap_or(false)
}

#[cfg(test)]
mod tests;
