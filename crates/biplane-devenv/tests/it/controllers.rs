//! Tests that the controllers which need no nodes do their work.

use biplane_devenv::{ApiServer, Client, Part};
use serde_json::{Value, json};

use crate::{CONFIG_MAPS, CROSSPLANE, NOBODY, SERVER, config_map, eventually};

fn client() -> Client {
    SERVER.client(CROSSPLANE).unwrap()
}

/// Creates an object and returns it as the server stores it.
fn create(client: &Client, path: &str, object: &Value) -> Value {
    let answer = client.post(path, object).unwrap();
    assert_eq!(answer.code, 201, "{}", answer.body);
    answer.json()
}

/// Two ConfigMaps, the second of which the first one owns. It blocks the deletion of its owner.
fn owner_and_dependent(client: &Client, name: &str) -> (String, String) {
    let owner = create(client, CONFIG_MAPS, &config_map(name));
    let mut dependent = config_map(&format!("{name}-dependent"));
    dependent["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": name,
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }]);
    create(client, CONFIG_MAPS, &dependent);
    (format!("{CONFIG_MAPS}/{name}"), format!("{CONFIG_MAPS}/{name}-dependent"))
}

fn delete(client: &Client, path: &str, propagation: &str) {
    let answer = client.delete(&format!("{path}?propagationPolicy={propagation}")).unwrap();
    assert_eq!(answer.code, 200, "{}", answer.body);
}

fn is_gone(client: &Client, path: &str) -> bool {
    client.get(path).unwrap().code == 404
}

#[test]
fn dependents_go_with_their_owner() {
    let client = client();
    for propagation in ["Background", "Foreground"] {
        let name = format!("owner-{}", propagation.to_lowercase());
        let (owner, dependent) = owner_and_dependent(&client, &name);
        delete(&client, &owner, propagation);
        if propagation == "Background" {
            assert!(is_gone(&client, &owner));
        }
        eventually("the owner is deleted", || is_gone(&client, &owner));
        if propagation == "Foreground" {
            assert!(is_gone(&client, &dependent), "the owner went first");
        }
        eventually("the dependent is deleted", || is_gone(&client, &dependent));
    }
}

#[test]
fn orphans_stay() {
    let client = client();
    let (owner, dependent) = owner_and_dependent(&client, "owner-orphan");
    delete(&client, &owner, "Orphan");
    eventually("the owner is deleted", || is_gone(&client, &owner));
    let dependent = client.get(&dependent).unwrap();
    assert_eq!(dependent.code, 200);
    assert_eq!(dependent.json()["metadata"]["ownerReferences"], Value::Null);
}

#[test]
fn a_namespace_gets_its_service_account_and_is_emptied() {
    let client = client();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    create(&client, "/api/v1/namespaces", &namespace);
    let team = "/api/v1/namespaces/team";
    let account = format!("{team}/serviceaccounts/default");
    eventually("a service account is created", || client.get(&account).unwrap().code == 200);
    create(&client, &format!("{team}/configmaps"), &config_map("content"));

    // The token of a real service account is accepted.
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let token = create(&client, &format!("{account}/token"), &request);
    let token = token["status"]["token"].as_str().unwrap().to_owned();
    let whoami = SERVER
        .kubectl_as(NOBODY)
        .unwrap()
        .args(["auth", "whoami", "-o", "json", "--token", &token])
        .output()
        .unwrap();
    let whoami = String::from_utf8_lossy(&whoami.stdout).into_owned();
    assert!(whoami.contains("\"system:serviceaccount:team:default\""), "{whoami}");

    assert_eq!(client.delete(team).unwrap().code, 200);
    eventually("the namespace is deleted", || is_gone(&client, team));
}

/// A new kind is noticed when the controllers start.
#[test]
fn garbage_of_a_new_kind_is_collected_after_a_restart() {
    let server = ApiServer::options().controllers().start().unwrap();
    let client = server.client("admin").unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    create(&client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    let widgets = "/apis/example.org/v1/namespaces/default/widgets";
    eventually("the kind is served", || client.get(widgets).unwrap().code == 200);
    server.restart(Part::Controllers).unwrap();

    let owner =
        json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "owner"}});
    let owner = create(&client, widgets, &owner);
    let mut dependent = config_map("of-widget");
    dependent["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }]);
    create(&client, CONFIG_MAPS, &dependent);
    delete(&client, &format!("{widgets}/owner"), "Background");
    let dependent = format!("{CONFIG_MAPS}/of-widget");
    eventually("the dependent is deleted", || is_gone(&client, &dependent));
}
