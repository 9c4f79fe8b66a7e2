//! Tests of the control plane's own kinds on a real API server: it accepts them all, and refuses
//! what Crossplane's kinds refuse, in the same words.

use std::time::{Duration, Instant};

use biplane_devenv::ApiServer;
use biplane_model::Object;
use biplane_model::yaml::parse_documents;
use biplane_schema::{own_kinds, xcrd};
use biplane_testkit::Recording;
use serde_json::{Value, json};

use crate::http::Client;

const JSON: &str = "application/json";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Waits until the server answers as expected. It does not report when a kind is served.
fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Creates all kinds and waits until they are served.
fn install(client: &Client) {
    for crd in own_kinds::definitions() {
        let path = format!("{CRDS}?fieldValidation=Strict");
        let (status, answer) = client.ask("POST", &path, JSON, &crd.to_value().to_string());
        assert_eq!(status, 201, "{}: {answer}", crd.name());
    }
    for crd in own_kinds::definitions() {
        let path = format!("{CRDS}/{}", crd.name());
        wait(crd.name(), || {
            let stored = Object::from_value(client.ask("GET", &path, JSON, "").1).unwrap();
            biplane_schema::crd::is_established(&stored)
        });
        let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array).unwrap();
        for version in versions {
            let (group, plural) =
                (crd.str_at(&["spec", "group"]), crd.str_at(&["spec", "names", "plural"]));
            let path = format!("/apis/{group}/{}/{plural}", version["name"].as_str().unwrap());
            wait(&path, || client.ask("GET", &path, JSON, "").0 == 200);
        }
    }
}

/// The path of the objects of a kind.
fn collection(object: &Object) -> String {
    format!("/apis/{}/{}s", object.api_version(), object.kind().to_lowercase())
}

/// What `kubectl apply` does.
fn apply(client: &Client, object: &Object) -> (u16, Value) {
    let (path, body) = (collection(object), object.to_value().to_string());
    let created = client.ask("POST", &format!("{path}?fieldValidation=Strict"), JSON, &body);
    if created.0 != 409 {
        return created;
    }
    let path = format!("{path}/{}?fieldValidation=Strict", object.name());
    client.ask("PATCH", &path, "application/merge-patch+json", &body)
}

/// API-6, API-7, API-8
#[test]
fn the_server_accepts_all_kinds_and_refuses_what_is_recorded() {
    let server = ApiServer::start().unwrap();
    let client = Client::new(&server);
    install(&client);

    let case = Recording::load("definitions", "xrd-rejected");
    let (_, steps) = case.text("README.txt").unwrap().split_once("Steps:\n - ").unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for step in steps.split("\n - ") {
        if let Some(name) = step.strip_prefix("kubectl delete xrd ") {
            let name = name.split(' ').next().unwrap();
            let path = "/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions";
            assert_eq!(client.ask("DELETE", &format!("{path}/{name}"), JSON, "").0, 200);
            continue;
        }
        let Some(step) = step.strip_prefix("kubectl apply -f ") else { continue };
        let (file, outcome) = step.split_once(" -> rc ").unwrap();
        if file.ends_with("namespace.yaml") {
            continue;
        }
        let document = parse_documents(file, case.text(file).unwrap()).unwrap().remove(0);
        let (status, answer) = apply(&client, &Object::from_value(document.value).unwrap());
        if outcome.starts_with('0') {
            assert!(status < 300, "{file}: {answer}");
            accepted += 1;
            continue;
        }
        assert!((400..500).contains(&status), "{file}: {status} {answer}");
        let said = answer["message"].as_str().unwrap();
        let marks = ["is invalid: ", "strict decoding error: "];
        let (_, reasons) = marks.iter().find_map(|mark| outcome.split_once(mark)).unwrap();
        for reason in reasons.lines().map(|line| line.trim_start_matches("* ").trim()) {
            assert!(said.contains(reason), "{file}: {reason:?} is not in {said:?}");
        }
        refused += 1;
    }
    assert!(accepted >= 3 && refused >= 12, "{accepted} {refused}");

    keeps_the_scope_of_version_2(&client);
    keeps_what_users_write(&client);
}

/// API-3, API-7: what version 2 leaves out must not become the default of version 1.
fn keeps_the_scope_of_version_2(client: &Client) {
    let definition = json!({
        "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "scopeless.example.org"},
        "spec": {
            "group": "example.org", "names": {"kind": "Scopeless", "plural": "scopeless"},
            "versions": [{"name": "v1", "served": true, "referenceable": true}],
        },
    });
    let (status, answer) = apply(client, &Object::from_value(definition).unwrap());
    assert_eq!(status, 201, "{answer}");
    let path =
        "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions/scopeless.example.org";
    let (_, stored) = client.ask("GET", path, JSON, "");
    assert_eq!(stored["spec"]["scope"], "Namespaced");
    assert_eq!(stored["apiVersion"], "apiextensions.crossplane.io/v1");
}

/// API-11, API-14, API-16: fields that must survive, and defaults that must appear.
fn keeps_what_users_write(client: &Client) {
    let config = json!({"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "EnvironmentConfig",
        "metadata": {"name": "e"}, "data": {"deep": {"list": [1, {"a": null}]}, "text": "t"}});
    let function = |package: &str| {
        json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
            "metadata": {"name": "f"}, "spec": {"package": package}})
    };
    let runtime = json!({"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
    "metadata": {"name": "r"}, "spec": {"deploymentTemplate": {"spec": {"selector": {}, "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{
            "name": "package-runtime",
            "args": ["--debug"],
            "ports": [{"containerPort": 8080}],
            "resources": {"limits": {"cpu": 2, "memory": "100Mi"}},
        }]},
    }}}}});
    let ask = |value: Value| apply(client, &Object::from_value(value).unwrap());

    let (status, stored) = ask(config.clone());
    assert_eq!(status, 201, "{stored}");
    assert_eq!(stored["data"], config["data"]);

    let (status, answer) = ask(function("localhost:5000/x:v1"));
    assert_eq!(status, 422, "{answer}");
    let said = answer["message"].as_str().unwrap();
    assert!(said.contains("must be a fully qualified image name"), "{said}");
    let (status, stored) = ask(function("127.0.0.1:5000/x:v1"));
    assert_eq!(status, 201, "{stored}");
    assert_eq!(
        stored["spec"]["runtimeConfigRef"],
        json!({
            "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig", "name": "default",
        })
    );
    assert_eq!(stored["spec"]["revisionHistoryLimit"], 1);

    let (status, stored) = ask(runtime);
    assert_eq!(status, 201, "{stored}");
    let container =
        &stored["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"], json!({"cpu": 2, "memory": "100Mi"}));
    assert_eq!(container["ports"], json!([{"containerPort": 8080, "protocol": "TCP"}]));
}

/// A definition whose schema has everything that a server could store in another form.
fn odd_definition() -> Object {
    let field = json!({
        "type": "object", "title": "t", "nullable": false, "unknown": 1,
        "properties": {
            "whole": {"type": "integer", "minimum": 1.0, "maximum": 1e3, "default": 5.0, "multipleOf": 1},
            "part": {"type": "number", "minimum": 0.5, "exclusiveMinimum": true, "default": 1.5e0},
            "text": {"type": "string", "pattern": "^a+$", "minLength": 0, "maxLength": 10.0, "enum": ["a", "aa"], "example": null},
            "any": {"x-kubernetes-preserve-unknown-fields": true, "nullable": true, "default": null},
            "either": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "map": {"type": "object", "additionalProperties": {"type": "string", "format": ""}, "default": {"k": "v"}},
            "free": {"type": "object", "maxProperties": 5},
            "list": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
                "maxItems": 3,
            },
            "rule": {"type": "string", "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "", "messageExpression": "'no'", "optionalOldSelf": false, "reason": "FieldValueForbidden"},
            ], "maxLength": 5},
        },
        "required": [], "externalDocs": {"url": "https://example.org"},
    });
    let mut columns = json!([{"name": "A", "type": "integer", "jsonPath": ".spec.odd.whole", "priority": 0, "description": ""}]);
    columns.as_array_mut().unwrap().push(json!({"name": "B", "type": "string", "jsonPath": ".spec.odd.text", "format": "byte", "priority": 2}));
    let version = json!({
        "name": "v1", "served": true, "referenceable": true, "deprecated": false,
        "additionalPrinterColumns": columns,
        "subresources": {"scale": {"specReplicasPath": ".spec.odd.whole", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"odd": field}},
            "status": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}},
        }}},
    });
    Object::from_value(json!({
        "apiVersion": xcrd::API_VERSION, "kind": xcrd::KIND,
        "metadata": {"name": "odds.example.org", "uid": "11111111-1111-4111-8111-111111111111"},
        "spec": {
            "group": "example.org",
            "names": {"kind": "Odd", "plural": "odds", "shortNames": [], "singular": ""},
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"name": "n", "namespace": "s"}},
            }},
            "versions": [version],
        },
    }))
    .unwrap()
}

/// CRD-4, CRD-5: a reconciler compares what it renders with what is stored. They must be equal, or
/// it would write for ever.
#[test]
fn a_server_stores_generated_crds_as_they_are_rendered() {
    let server = ApiServer::start().unwrap();
    let client = Client::new(&server);
    let mut generated = vec![xcrd::composite(&odd_definition()).unwrap()];
    for case in Recording::load_area("definitions") {
        let mut stages: Vec<_> =
            case.files.keys().filter_map(|file| file.strip_suffix("/xrd.yaml")).collect();
        stages.sort_unstable();
        let text = case.text(&format!("{}/xrd.yaml", stages[0])).unwrap();
        let document = parse_documents(&case.name, text).unwrap().remove(0);
        let definition = Object::from_value(document.value).unwrap();
        generated.push(xcrd::composite(&definition).unwrap());
        if xcrd::offers_claim(&definition) {
            generated.push(xcrd::claim(&definition).unwrap());
        }
    }
    assert!(generated.len() > 15);
    for mut crd in generated {
        let body = crd.to_value().to_string();
        let path = format!("{CRDS}?fieldValidation=Strict");
        let (status, stored) = client.ask("POST", &path, JSON, &body);
        assert_eq!(status, 201, "{}: {stored}", crd.name());
        biplane_schema::crd::default(&mut crd);
        let (rendered, stored) = (crd.get("spec").unwrap(), &stored["spec"]);
        let same = biplane_schema::value::equal(rendered, stored);
        assert!(same, "{}\n{rendered}\n{stored}", crd.name());
    }
}
