//! Tests of what the v1 line had: Compositions of mode Resources, and environments.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::memory::{ApiServer, Entry};
use biplane_cluster::{Cluster, Part, Patch, Skipping, Source, Write};
use biplane_controlplane::composite::Settings;
use biplane_controlplane::{ControlPlane, Options, definitions};
use biplane_engine::sources::CountingIds;
use biplane_functions::registry;
use biplane_model::condition::conditions;
use biplane_model::{Object, ObjectId, Value};
use biplane_runner::InProcess;
use biplane_schema::own_kinds::{Features, definitions_with};
use serde_json::json;

use crate::world::{object, soon};

struct Modes {
    server: Arc<ApiServer>,
    plane: ControlPlane,
}

impl Modes {
    fn new() -> Self {
        let server = Arc::new(ApiServer::default());
        let features = Features { resources_mode: true, environments: true };
        for definition in definitions_with(features) {
            server.register(&definition).unwrap();
        }
        let composites =
            Settings { resources_mode: true, environments: true, ..Settings::default() };
        let options = Options {
            composites,
            skipping: Skipping::Verify,
            runner: Some(Arc::new(InProcess::new(registry()))),
            ids: Arc::new(CountingIds::default()),
            ..Options::default()
        };
        let mut plane = ControlPlane::new(server.clone(), server.clone(), options).unwrap();
        plane.add_definitions(&definitions::Options::default());
        Self { server, plane }
    }

    async fn create(&self, value: Value) -> ObjectId {
        let created = self.server.create(object(value), &Write::by("user"), soon()).await;
        created.unwrap().id()
    }

    async fn get(&self, id: &ObjectId) -> Object {
        self.server.get(id, Source::Live, soon()).await.unwrap()
    }

    async fn patch(&self, id: &ObjectId, patch: Value) {
        let how = Write::by("user");
        self.server.patch(id, Part::Main, &Patch::Merge(patch), &how, soon()).await.unwrap();
    }

    async fn run(&mut self, seconds: u64) {
        self.plane.run(tokio::time::sleep(Duration::from_secs(seconds))).await;
    }

    fn settings(&self) -> Vec<Object> {
        self.server.objects().into_iter().filter(|object| object.kind() == "ConfigMap").collect()
    }

    /// `Type=Status` of each condition.
    async fn conditions(&self, id: &ObjectId) -> Vec<String> {
        let all = conditions(&self.get(id).await);
        all.iter().map(|c| format!("{}={} {}", c.r#type, c.status, c.message)).collect()
    }
}

fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let status = json!({"type": "object", "properties": {"settings": {"type": "string"}}});
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xapps.example.org"},
        "spec": {
            "group": "example.org", "names": {"kind": "XApp", "plural": "xapps"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": any, "status": status},
            }}}],
        },
    })
}

fn environment_config(name: &str, version: &str, labels: &Value, data: &Value) -> Value {
    json!({
        "apiVersion": format!("apiextensions.crossplane.io/{version}"), "kind": "EnvironmentConfig",
        "metadata": {"name": name, "labels": labels}, "data": data,
    })
}

fn composition(spec: &Value) -> Value {
    let mut composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "app"},
        "spec": {"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XApp"}},
    });
    composition["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    composition
}

/// A template of a ConfigMap that is ready as soon as it exists.
fn template(name: &str, patches: &Value) -> Value {
    json!({
        "name": name,
        "base": {"apiVersion": "v1", "kind": "ConfigMap", "data": {}},
        "patches": patches,
        "readinessChecks": [{"type": "None"}],
    })
}

fn patch(r#type: &str, from: &str, to: &str) -> Value {
    json!({"type": r#type, "fromFieldPath": from, "toFieldPath": to})
}

fn environment() -> Value {
    json!({
        "defaultData": {"size": "small"},
        "environmentConfigs": [
            {"type": "Reference", "ref": {"name": "base"}},
            {"type": "Selector", "selector": {"matchLabels": [
                {"key": "stage", "valueFromFieldPath": "spec.stage"},
            ]}},
        ],
        "patches": [patch("ToCompositeFieldPath", "tier", "spec.tier")],
    })
}

#[tokio::test(start_paused = true)]
async fn templates_and_environments_are_composed_and_then_rest() {
    let mut modes = Modes::new();
    modes.create(definition()).await;
    let base =
        modes.create(environment_config("base", "v1beta1", &json!({}), &json!({"region": "eu"})));
    let base = base.await;
    let stage = json!({"stage": "prod"});
    modes.create(environment_config("prod", "v1alpha1", &stage, &json!({"tier": "gold"}))).await;
    let namespace = json!({"type": "FromCompositeFieldPath", "fromFieldPath": "spec.namespace", "toFieldPath": "metadata.namespace"});
    let patches = json!([
        namespace,
        patch("FromEnvironmentFieldPath", "region", "data.region"),
        patch("FromEnvironmentFieldPath", "size", "data.size"),
        patch("FromCompositeFieldPath", "spec.tier", "data.tier"),
        patch("ToCompositeFieldPath", "metadata.name", "status.settings"),
    ]);
    let templates = json!([template("settings", &patches)]);
    let spec = json!({"mode": "Resources", "environment": environment(), "resources": templates});
    let composition = modes.create(composition(&spec)).await;
    modes.run(10).await;
    let xr = json!({
        "apiVersion": "example.org/v1", "kind": "XApp", "metadata": {"name": "shop"},
        "spec": {"stage": "prod", "namespace": "apps"},
    });
    let xr = modes.create(xr).await;
    modes.run(10).await;
    let told = modes.conditions(&xr).await;
    assert!(told.contains(&"Synced=True ".to_owned()), "{told:?}");
    assert!(told.contains(&"Ready=True ".to_owned()), "{told:?}");
    let shop = modes.get(&xr).await;
    let reference = |name: &str| json!({"apiVersion": "apiextensions.crossplane.io/v1alpha1", "kind": "EnvironmentConfig", "name": name});
    let references = json!([reference("base"), reference("prod")]);
    assert_eq!(shop.at(&["spec", "environmentConfigRefs"]), Some(&references));
    assert_eq!(shop.str_at(&["spec", "tier"]), "gold");
    let settings = modes.settings();
    assert_eq!(settings.len(), 1);
    let data = json!({"region": "eu", "size": "small", "tier": "gold"});
    assert_eq!(settings[0].get("data"), Some(&data));
    assert_eq!(shop.str_at(&["status", "settings"]), settings[0].name());

    // At rest, nothing happens.
    let before = modes.server.journal_len();
    modes.run(600).await;
    let since = modes.server.journal()[before..].to_vec();
    assert!(since.iter().all(|entry| matches!(entry, Entry::Event(_))), "{since:#?}");
    assert!(since.is_empty(), "{since:#?}");

    // The data of an EnvironmentConfig counts as soon as it changes.
    modes.patch(&base, json!({"data": {"region": "us"}})).await;
    modes.run(10).await;
    assert_eq!(modes.settings()[0].str_at(&["data", "region"]), "us");

    // The selection does not change by itself.
    modes.patch(&xr, json!({"spec": {"stage": "test"}})).await;
    modes.run(10).await;
    assert_eq!(modes.get(&xr).await.at(&["spec", "environmentConfigRefs"]), Some(&references));

    // What has no template any more goes, and a new template is composed.
    let other = json!([template("other", &json!([namespace]))]);
    modes.patch(&composition, json!({"spec": {"resources": other}})).await;
    modes.run(10).await;
    let settings = modes.settings();
    assert_eq!(settings.len(), 1);
    let name = settings[0].annotation("crossplane.io/composition-resource-name");
    assert_eq!(name, "other");
}

/// With `resolve: Always`, an EnvironmentConfig counts as soon as a selector selects it.
#[tokio::test(start_paused = true)]
async fn a_new_environment_config_is_noticed_if_selectors_always_select() {
    let mut modes = Modes::new();
    modes.create(definition()).await;
    let stage = json!({"stage": "prod"});
    let config = |name: &str, labels: &Value, data: &Value| {
        environment_config(name, "v1beta1", labels, data)
    };
    modes.create(config("a", &stage, &json!({"region": "eu"}))).await;
    let patches = json!([
        {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.namespace", "toFieldPath": "metadata.namespace"},
        patch("FromEnvironmentFieldPath", "region", "data.region"),
    ]);
    let selector = json!({"mode": "Multiple", "sortByFieldPath": "metadata.name", "matchLabels": [
        {"key": "stage", "valueFromFieldPath": "spec.stage"},
    ]});
    let environment = json!({
        "policy": {"resolve": "Always"},
        "environmentConfigs": [{"type": "Selector", "selector": selector}],
    });
    let templates = json!([template("settings", &patches)]);
    let spec = json!({"mode": "Resources", "environment": environment, "resources": templates});
    modes.create(composition(&spec)).await;
    modes.run(10).await;
    let xr = json!({
        "apiVersion": "example.org/v1", "kind": "XApp", "metadata": {"name": "shop"},
        "spec": {"stage": "prod", "namespace": "apps"},
    });
    modes.create(xr).await;
    modes.run(10).await;
    assert_eq!(modes.settings()[0].str_at(&["data", "region"]), "eu");

    modes.create(config("b", &stage, &json!({"region": "us"}))).await;
    modes.run(10).await;
    assert_eq!(modes.settings()[0].str_at(&["data", "region"]), "us");

    // One that gets the label later counts too.
    let other = json!({"stage": "test"});
    let late = modes.create(config("c", &other, &json!({"region": "ap"}))).await;
    modes.run(10).await;
    assert_eq!(modes.settings()[0].str_at(&["data", "region"]), "us");
    modes.patch(&late, json!({"metadata": {"labels": stage}})).await;
    modes.run(10).await;
    assert_eq!(modes.settings()[0].str_at(&["data", "region"]), "ap");
}

#[tokio::test(start_paused = true)]
async fn functions_see_the_environment_and_its_references_are_kept() {
    let mut modes = Modes::new();
    modes.create(definition()).await;
    modes.create(environment_config("base", "v1beta1", &json!({}), &json!({"region": "eu"}))).await;
    let resource = json!({
        "name": "settings",
        "base": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "apps"}},
        "patches": [patch("FromEnvironmentFieldPath", "region", "data.region")],
    });
    let spec = json!({
        "mode": "Pipeline",
        "environment": {"environmentConfigs": [{"type": "Reference", "reference": {"name": "base"}}]},
        "pipeline": [{
            "step": "maps", "functionRef": {"name": "function-patch-and-transform"},
            "input": {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": [resource]},
        }],
    });
    modes.create(composition(&spec)).await;
    modes.run(10).await;
    let xr = json!({"apiVersion": "example.org/v1", "kind": "XApp", "metadata": {"name": "shop"}, "spec": {}});
    let xr = modes.create(xr).await;
    modes.run(10).await;
    let told = modes.conditions(&xr).await;
    assert!(told.contains(&"Synced=True ".to_owned()), "{told:?}");
    assert_eq!(modes.settings()[0].str_at(&["data", "region"]), "eu");
    let shop = modes.get(&xr).await;
    let references = shop.at(&["spec", "environmentConfigRefs"]).and_then(Value::as_array).unwrap();
    assert_eq!(references.len(), 1);
    assert_eq!(references[0]["name"], "base");
}

#[tokio::test(start_paused = true)]
async fn a_composition_that_breaks_a_rule_is_not_used() {
    let mut modes = Modes::new();
    modes.create(definition()).await;
    let twice = json!([template("a", &json!([])), template("a", &json!([]))]);
    modes.create(composition(&json!({"mode": "Resources", "resources": twice}))).await;
    modes.run(10).await;
    let xr = json!({"apiVersion": "example.org/v1", "kind": "XApp", "metadata": {"name": "shop"}, "spec": {}});
    let xr = modes.create(xr).await;
    modes.run(10).await;
    let told = modes.conditions(&xr).await;
    let why = "Synced=False refusing to use invalid Composition: spec.resources[1].name: Duplicate value: \"a\"";
    assert!(told.contains(&why.to_owned()), "{told:?}");
    assert!(modes.settings().is_empty());
}
