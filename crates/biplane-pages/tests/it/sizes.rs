//! Pages stay small, however much was recorded.

use biplane_pages::http::Request;
use serde_json::{Value, json};

use crate::world::{World, addresses, ask, text};

const LARGEST: usize = 100 * 1024;

/// The lines of a run with one step.
fn lines(trace: &str, at: &str, request: &Value, response: &Value) -> String {
    let line = |kind: &str, payload: &Value| {
        let meta = json!({
            "traceId": trace, "spanId": format!("{trace}-s"), "stepIndex": 0, "iteration": 0,
            "functionName": "function-large", "stepName": "large", "timestamp": at,
            "compositionMeta": {
                "compositionName": "large", "compositeResourceName": "large",
                "compositeResourceNamespace": "team-a", "compositeResourceKind": "Large",
                "compositeResourceApiVersion": "shop.example.org/v1",
                "compositeResourceUid": "0b5c1f6e-4f3f-4a61-9f0e-000000000001",
            },
        });
        let line = json!({"type": kind, "meta": meta, "payload": payload});
        format!("{line}\n")
    };
    line("REQUEST", request) + &line("RESPONSE", response)
}

fn state(count: usize, size: usize, version: &str) -> Value {
    let resource = |at: usize| {
        let name = format!("resource-{at:04}");
        let body = json!({
            "apiVersion": "s3.example.org/v1", "kind": "Bucket",
            "metadata": {"name": name, "namespace": "team-a"},
            "spec": {"region": version, "text": "x".repeat(size)},
        });
        (name, json!({"resource": body}))
    };
    let resources: serde_json::Map<String, Value> = (0..count).map(resource).collect();
    json!({"composite": {"resource": {"kind": "Large", "spec": {"v": version}}}, "resources": resources})
}

async fn check(world: &World, targets: &[&str]) {
    let site = world.site();
    for target in targets {
        let response = ask(&site, Request::get(target)).await;
        let body = response.body_text();
        assert_eq!(response.status, 200, "{target}: {:.400}", text(body));
        assert!(body.len() <= LARGEST, "{target}: {} bytes", body.len());
        if *target == "/x" {
            let one = addresses(body).into_iter().find(|a| a.starts_with("/x/")).unwrap();
            for address in [format!("{one}?o=0"), format!("{one}?o=200")] {
                let response = ask(&site, Request::get(&address)).await;
                let length = response.body_text().len();
                assert!(response.status == 200 && length <= LARGEST, "{address}: {length}");
            }
        }
    }
}

#[tokio::test]
async fn a_thousand_resources_make_small_pages() {
    let world = World::empty();
    let (first, second) =
        ("11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002");
    let (old, new) = (state(1000, 200, "old"), state(1000, 200, "new"));
    let request =
        |observed: &Value| json!({"meta": {"tag": "t"}, "observed": observed, "desired": {}});
    let response =
        |desired: &Value| json!({"meta": {"tag": "t", "ttl": "60s"}, "desired": desired});
    world.import(&lines(first, "2026-11-16T14:00:00Z", &request(&json!({})), &response(&old)));
    world.import(&lines(second, "2026-11-16T14:01:00Z", &request(&old), &response(&new)));
    check(
        &world,
        &[
            "/runs",
            "/x",
            "/runs/22222222",
            "/runs/22222222/resources?o=200",
            "/runs/22222222/diff",
            "/runs/22222222/diff?o=250",
            "/runs/22222222/blame",
            "/runs/22222222/1",
            "/runs/22222222/1/request",
            "/runs/22222222/1/response",
            "/runs/22222222/1/raw",
            "/compare/11111111/22222222",
        ],
    )
    .await;
}

#[tokio::test]
async fn bodies_of_four_megabytes_make_small_pages() {
    let world = World::empty();
    let trace = "33333333-0000-4000-8000-000000000003";
    let large = state(1, 4_000_000, "one");
    let request = json!({"meta": {"tag": "t"}, "observed": {}, "desired": {}});
    let response = json!({"meta": {"tag": "t", "ttl": "60s"}, "desired": large});
    world.import(&lines(trace, "2026-11-16T14:00:00Z", &request, &response));
    check(
        &world,
        &[
            "/runs",
            "/runs/33333333",
            "/runs/33333333/diff",
            "/runs/33333333/blame",
            "/runs/33333333/1",
            "/runs/33333333/1/response",
            "/runs/33333333/1/raw",
        ],
    )
    .await;
}

#[tokio::test]
async fn what_is_too_large_to_read_is_said() {
    let world = World::empty();
    let trace = "44444444-0000-4000-8000-000000000004";
    // No two bodies are equal, so each counts.
    let resource = |at: usize| {
        let text = format!("{at} {}", "x".repeat(60_000));
        (format!("r{at}"), json!({"resource": {"kind": "A", "spec": {"text": text}}}))
    };
    let resources: serde_json::Map<String, Value> = (0..300).map(resource).collect();
    let request = json!({"meta": {"tag": "t"}, "desired": {}});
    let response = json!({"meta": {"tag": "t"}, "desired": {"resources": resources}});
    world.import(&lines(trace, "2026-11-16T14:00:00Z", &request, &response));
    let response = ask(&world.site(), Request::get("/runs/44444444")).await;
    assert_eq!(response.status, 503, "{}", text(response.body_text()));
    assert!(text(response.body_text()).contains("16 MiB"), "{}", text(response.body_text()));
}

#[tokio::test]
async fn a_run_that_changed_little_is_shown_however_much_it_desires() {
    let world = World::empty();
    // All of it would be too large to read.
    let state = |changed: &str| {
        let resource = |at: usize| {
            let text = format!("{at} {}", "x".repeat(60_000));
            let note = if at == 7 { changed } else { "" };
            let body = json!({"kind": "A", "spec": {"text": text, "note": note}});
            (format!("r{at:03}"), json!({"resource": body}))
        };
        let resources: serde_json::Map<String, Value> = (0..300).map(resource).collect();
        json!({"resources": resources})
    };
    for (trace, at, changed) in [
        ("55555555-0000-4000-8000-000000000005", "2026-11-16T14:00:00Z", "one"),
        ("66666666-0000-4000-8000-000000000006", "2026-11-16T14:01:00Z", "two"),
    ] {
        let request = json!({"meta": {"tag": changed}, "desired": {}});
        let response = json!({"meta": {"tag": changed}, "desired": state(changed)});
        world.import(&lines(trace, at, &request, &response));
    }
    let targets = ["/runs", "/runs/66666666", "/compare/55555555/66666666"];
    check(&world, &targets).await;
    check(&world, &["/runs/66666666/1/response", "/runs/66666666/1/raw"]).await;
    let site = world.site();
    let run = ask(&site, Request::get("/runs/66666666")).await;
    assert!(text(run.body_text()).contains("Changed r007 (1 field)."), "{}", text(run.body_text()));
}
