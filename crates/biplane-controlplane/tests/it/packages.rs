//! Tests of Functions that run in this process: their revisions are made, and pipelines call them.

use biplane_controlplane::{Controller, definitions, functions};
use biplane_engine::in_process::Reconciler;
use biplane_functions::registry;
use biplane_model::Object;
use serde_json::json;

use crate::world::{Setup, World, definition_in, object};

const PACKAGES: &str = "pkg.crossplane.io/v1";

fn function(name: &str, annotation: &str) -> Object {
    object(json!({
        "apiVersion": PACKAGES, "kind": "Function",
        "metadata": {"name": name, "annotations": {"render.crossplane.io/runtime": annotation}},
        "spec": {"package": format!("xpkg.example.org/acme/{name}:v1")},
    }))
}

/// A control plane that runs the controller of Functions.
async fn world(version: &str) -> World {
    let options = functions::Options { built_in: registry(), ..functions::Options::default() };
    let mut world = World::new(Setup { functions: Some(options), ..Setup::default() }).await;
    for (kind, plural) in [("Function", "functions"), ("FunctionRevision", "functionrevisions")] {
        let definition = definition_in("pkg.crossplane.io", "Cluster", kind, plural);
        world.server.register(&definition).unwrap();
    }
    add(&mut world, version);
    world
}

fn add(world: &mut World, version: &str) {
    let controller = definitions::functions(Reconciler {
        context: world.plane.context().clone(),
        built_in: registry().names().map(str::to_owned).collect(),
        all: false,
        version: version.to_owned(),
    });
    let name = format!("packages/{version}");
    world.plane.add(Controller { name, ..controller });
}

fn revisions(world: &World) -> Vec<String> {
    let show = |r: &Object| {
        let at = |field| r.str_at(&["spec", field]).to_owned();
        let number = r.at(&["spec", "revision"]).map(ToString::to_string).unwrap_or_default();
        format!("{} {} {number}", r.label("pkg.crossplane.io/package"), at("desiredState"))
    };
    world.of_kind("FunctionRevision").iter().map(show).collect()
}

#[tokio::test(start_paused = true)]
async fn functions_of_the_box_run_and_have_revisions() {
    let mut world = world("1").await;
    world.create(function("function-patch-and-transform", "InProcess")).await;
    world.create(function("function-auto-ready", "InProcess")).await;
    world.create(function("function-other", "")).await;
    let id = world.create_thing("ns", "xr").await;
    world.run_seconds(20).await;
    assert!(world.is_ready(&id).await, "{:?}", world.conditions(&id).await);
    let mut all = revisions(&world);
    all.sort();
    assert_eq!(all, ["function-auto-ready Active 1", "function-patch-and-transform Active 1"]);
    let revision = &world.of_kind("FunctionRevision")[0];
    assert_eq!(
        revision.at(&["status", "capabilities"]),
        Some(&json!(["composition", "operation"]))
    );
    let told = world.conditions(&revision.id()).await;
    assert!(
        told.iter().any(|c| c.starts_with("RuntimeHealthy=True Runs in process: function-")),
        "{told:?}"
    );
    let function = &world.of_kind("Function")[0];
    assert_eq!(world.conditions(&function.id()).await, ["Installed=True", "Healthy=True"]);
    // And then nothing happens.
    world.writes();
    world.run_seconds(600).await;
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn another_version_of_the_program_is_another_revision() {
    let mut world = world("1").await;
    world.create(function("function-auto-ready", "InProcess")).await;
    world.run_seconds(5).await;
    world.plane.registry().stop("packages/1").await;
    add(&mut world, "2");
    world.run_seconds(5).await;
    let mut all = revisions(&world);
    all.sort();
    assert_eq!(all, ["function-auto-ready Active 2", "function-auto-ready Inactive 1"]);
}
