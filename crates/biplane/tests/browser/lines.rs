//! Lines of a sidecar for what the example does not have: a call that failed, a call without an
//! answer, a warning, many resources, long texts, required resources, an Operation, and names and
//! values that would be scripts.

use serde_json::{Map, Value, json};

/// What a page must never run.
pub(crate) const EVIL: &str = "<img src=x onerror=\"window.evil=1\"><script>window.evil=1</script>";

/// A run of a composite resource: its trace, when it began, and its steps.
struct Run {
    trace: &'static str,
    minute: u32,
    kind: &'static str,
    name: String,
    steps: Vec<(String, Value, Answer)>,
}

enum Answer {
    Said(Value),
    Failed(&'static str),
    None,
}

/// All lines.
pub(crate) fn emissions() -> String {
    let runs = [
        south(1, 2, 10, 40),
        south(2, 3, 20, 41),
        warned(),
        failed(),
        unanswered(),
        evil(),
        operation(),
    ];
    printed(&runs)
}

/// Runs in which a function answers something else when it is given the same.
pub(crate) fn fickle() -> String {
    let answer = |size: u32| {
        let server = resource("Server", "west-server", &json!({"size": size}));
        Answer::Said(json!({"desired": {"resources": {"server": server}}}))
    };
    let first = one_step("c8000008-0000-4000-8000-000000000008", 40, "west", answer(1));
    let second = one_step("c9000009-0000-4000-8000-000000000009", 41, "west", answer(2));
    printed(&[first, second])
}

fn printed(runs: &[Run]) -> String {
    let mut text = String::new();
    for run in runs {
        for (index, (step, request, answer)) in run.steps.iter().enumerate() {
            let mut print = |half: &str, payload: &Value, error: &str| {
                let mut line =
                    json!({"meta": meta(run, step, index), "payload": payload, "type": half});
                if !error.is_empty() {
                    line["error"] = json!(error);
                }
                text.push_str(&line.to_string());
                text.push('\n');
            };
            print("REQUEST", request, "");
            match answer {
                Answer::Said(answer) => print("RESPONSE", answer, ""),
                Answer::Failed(error) => print("RESPONSE", &Value::Null, error),
                Answer::None => {}
            }
        }
    }
    text
}

fn meta(run: &Run, step: &str, index: usize) -> Value {
    let mut meta = json!({
        "functionName": format!("function-{step}"),
        "spanId": format!("{}-0000-4000-8000-00000000000{}", &run.trace[..8], index + 1),
        "stepIndex": index,
        "stepName": step,
        "timestamp": format!("2026-11-16T14:{:02}:0{index}.000Z", run.minute),
        "traceId": run.trace,
    });
    if run.kind == "Operation" {
        meta["operationMeta"] = json!({"operationName": run.name, "operationUid": "0b5c1f6e-0000-4000-8000-000000000009"});
    } else {
        meta["compositionMeta"] = json!({
            "compositeResourceApiVersion": "shop.example.org/v1",
            "compositeResourceKind": run.kind,
            "compositeResourceName": run.name,
            "compositeResourceNamespace": "team-b",
            "compositeResourceUid": format!("0b5c1f6e-0000-4000-8000-0000000000{:02}", run.name.len()),
            "compositionName": "stores",
        });
    }
    meta
}

fn composite(name: &str, size: u32) -> Value {
    json!({"composite": {"resource": {
        "apiVersion": "shop.example.org/v1", "kind": "Store",
        "metadata": {"name": name, "namespace": "team-b", "generation": size, "resourceVersion": format!("{size}00"),
            "uid": format!("0b5c1f6e-0000-4000-8000-0000000000{:02}", name.len())},
        "spec": {"size": size, "network": "vpc-0a1b2c3d", "owner": "orders"},
    }}})
}

fn resource(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"resource": {
        "apiVersion": "ec2.example.org/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "team-b"}, "spec": spec,
    }})
}

/// A store with many resources, whose size and policy change between its runs.
fn south(number: u32, size: u32, minute: u32, resources: u32) -> Run {
    let mut desired = Map::new();
    for at in 1..=resources {
        let subnet =
            json!({"cidr": format!("10.0.{at}.0/24"), "network": "vpc-0a1b2c3d", "zone": "a"});
        desired.insert(
            format!("subnet-{at:02}"),
            resource("Subnet", &format!("south-{at:02}"), &subnet),
        );
    }
    let statement =
        |action: &str| format!("{{\n  \"Effect\": \"Allow\",\n  \"Action\": \"{action}\"\n}}\n");
    let policy = format!(
        "{}{}{}",
        statement("s3:Get*").repeat(6),
        statement(if number == 1 { "s3:Put*" } else { "s3:*" }),
        statement("s3:List*").repeat(6)
    );
    let ports = if number == 1 { json!([80, 443, 8080]) } else { json!([443, 8080, 80, 9090]) };
    let server =
        json!({"size": size, "policy": policy, "ports": ports, "owner": "orders", "replicas": "3"});
    desired.insert("server".to_owned(), resource("Server", "south-server", &server));
    let network = json!([{"resource": {
        "apiVersion": "ec2.example.org/v1", "kind": "VPC",
        "metadata": {"name": "main", "resourceVersion": "77"},
        "status": {"arn": "arn:aws:ec2:vpc/vpc-0a1b2c3d"},
    }}]);
    let request = json!({
        "observed": composite("south", size),
        "desired": {},
        "context": {},
        "requiredResources": {"network": {"items": network}},
    });
    let mut context = Map::new();
    context.insert("apiextensions.crossplane.io/environment".to_owned(), json!({"zones": number}));
    let answer = json!({
        "desired": {"resources": desired},
        "context": context,
        "requirements": {"resources": {"network": {"apiVersion": "ec2.example.org/v1", "kind": "VPC", "matchName": "main"}}},
        "results": [{"severity": "SEVERITY_NORMAL", "message": "composed all subnets"}],
    });
    let second = json!({"observed": composite("south", size), "desired": answer["desired"], "context": answer["context"]});
    let said = json!({"desired": answer["desired"], "context": answer["context"],
        "conditions": [{"type": "NetworkReady", "status": "STATUS_CONDITION_FALSE", "reason": "Waiting", "message": "2 subnets are not ready"}]});
    Run {
        trace: if number == 1 {
            "a1000001-0000-4000-8000-000000000001"
        } else {
            "a2000002-0000-4000-8000-000000000002"
        },
        minute,
        kind: "Store",
        name: "south".to_owned(),
        steps: vec![
            ("network".to_owned(), request, Answer::Said(answer)),
            ("ready".to_owned(), second, Answer::Said(said)),
        ],
    }
}

fn one_step(trace: &'static str, minute: u32, name: &str, answer: Answer) -> Run {
    let request = json!({"observed": composite(name, 1), "desired": {}, "context": {}});
    let steps = vec![("network".to_owned(), request, answer)];
    Run { trace, minute, kind: "Store", name: name.to_owned(), steps }
}

fn warned() -> Run {
    let answer = json!({
        "desired": {"resources": {"server": resource("Server", "east-server", &json!({"size": 1}))}},
        "results": [{"severity": "SEVERITY_WARNING", "message": "zone b is deprecated; move to zone c"}],
    });
    one_step("b3000003-0000-4000-8000-000000000003", 30, "east-1", Answer::Said(answer))
}

fn failed() -> Run {
    let error = "rpc error: code = Unavailable desc = connection refused";
    one_step("b4000004-0000-4000-8000-000000000004", 31, "east-12", Answer::Failed(error))
}

fn unanswered() -> Run {
    one_step("b5000005-0000-4000-8000-000000000005", 32, "east-123", Answer::None)
}

/// Names and values that would be scripts if they were not text.
fn evil() -> Run {
    let spec = json!({"note": EVIL, (EVIL): "value", "list": [{"name": EVIL, "value": 1}]});
    let answer = json!({
        "desired": {"resources": {(EVIL): resource(EVIL, EVIL, &spec)}},
        "results": [{"severity": "SEVERITY_WARNING", "message": EVIL}],
        "conditions": [{"type": EVIL, "status": "STATUS_CONDITION_TRUE", "reason": EVIL, "message": EVIL}],
    });
    let mut run = one_step("e1000006-0000-4000-8000-000000000006", 33, EVIL, Answer::Said(answer));
    EVIL.clone_into(&mut run.steps[0].0);
    run
}

fn operation() -> Run {
    let request = json!({"desired": {}, "context": {}, "input": {"kind": "Backup", "keep": 7}});
    let answer = json!({
        "desired": {"resources": {"job": resource("Job", "backup-1", &json!({"keep": 7}))}},
        "output": {"result": "done"},
    });
    Run {
        trace: "0e000007-0000-4000-8000-000000000007",
        minute: 34,
        kind: "Operation",
        name: "backup".to_owned(),
        steps: vec![("backup".to_owned(), request, Answer::Said(answer))],
    }
}
