//! Tests the flags of functions: common ones, and those of a single function.

use biplane_functions::dummy::Dummy;
use biplane_proto::json;
use serde_json::{Value, json};

use super::*;

const AUTO_READY: &str = "function-auto-ready";

fn try_serve(own: &Registry, line: &[&str]) -> Result<Serve, clap::Error> {
    let command = with_own(Function::augment_subcommands(Command::new("function")), own);
    let line = ["function", "serve"].into_iter().chain(line.iter().copied());
    let Function::Serve(serve) = Function::from_arg_matches(&command.try_get_matches_from(line)?)?;
    Ok(serve)
}

fn serve(name: &str, arguments: &[&str]) -> Serve {
    try_serve(&Registry::default(), &[&[name], arguments].concat()).unwrap()
}

fn parse(arguments: &[&str]) -> Config {
    serve("function-dummy", arguments).flags.config()
}

/// The response of a function with these flags to a request.
async fn answer(name: &str, arguments: &[&str], request: Value) -> Value {
    let function = serve(name, arguments).choose(&Registry::default()).unwrap();
    let answer = function.run(json::from_value(request).unwrap()).await.unwrap();
    json::to_value(&answer).unwrap()
}

/// FN-D1, FN-D7
#[test]
fn defaults_are_those_of_every_function() {
    let config = parse(&["--tls-certs-dir="]);
    assert_eq!(config.address, ":9443");
    assert_eq!(config.network, Network::Tcp);
    assert_eq!(config.max_receive_size, 4_194_304);
    assert_eq!(config.metrics_address.as_deref(), Some(":8080"));
    assert_eq!(config.certs_dir, None);
    assert!(!config.insecure && !config.health);
}

/// FN-D7
#[test]
fn sizes_are_in_mebibytes_and_no_metrics_address_means_no_metrics() {
    let config = parse(&[
        "--insecure",
        "--network=unix",
        "--address=/run/fn.sock",
        "--max-recv-message-size=16",
        "--metrics-address=",
    ]);
    assert_eq!(config.max_receive_size, 16_777_216);
    assert_eq!(config.network, Network::Unix);
    assert_eq!(config.metrics_address, None);
    assert!(config.insecure);
}

/// CLI-10
#[test]
fn flags_of_every_function_stand_on_either_side_of_its_name() {
    let line = ["--address=:1", "-d", "auto-ready", "--insecure", "--ttl=1s", "--health"];
    let flags = try_serve(&Registry::default(), &line).unwrap().flags;
    assert!(flags.debug);
    let config = flags.config();
    assert_eq!(config.address, ":1");
    assert!(config.insecure && config.health);
}

/// FN-D8
#[test]
fn machines_get_json_unless_somebody_debugs() {
    let json = Log { level: LevelFilter::INFO, format: Format::Json };
    let text = Log { level: LevelFilter::DEBUG, format: Format::Text };
    assert_eq!(serve("dummy", &[]).log(false), json);
    assert_eq!(serve("dummy", &["-d"]).log(false), text);
    assert_eq!(serve("dummy", &[]).log(true), text);
}

/// Every built-in function has a description, and there are no other descriptions.
#[test]
fn help_says_what_each_function_does() {
    let serve = Serve::augment_args(Command::new("serve"));
    let abouts: Vec<_> =
        serve.get_subcommands().map(|function| function.get_about().unwrap().to_string()).collect();
    assert_eq!(abouts.len(), biplane_functions::registry().names().count());
    assert!(!abouts.contains(&"Serves a function of this program".to_owned()), "{abouts:?}");
}

#[tokio::test]
async fn functions_of_ones_own_are_served_too_and_come_first() {
    let own = Registry::default().with("mine", Dummy).with(AUTO_READY, Dummy);
    let input = json!({"response": {"results": [{"message": "mine"}]}});
    for name in ["mine", "auto-ready", AUTO_READY] {
        let function = try_serve(&own, &[name]).unwrap().choose(&own).unwrap();
        let request = json::from_value(json!({"input": input})).unwrap();
        assert_eq!(function.run(request).await.unwrap().results[0].message, "mine", "{name}");
    }
    // A function that replaces a built-in one does not have its flags.
    try_serve(&own, &[AUTO_READY, "--ttl=10m"]).unwrap_err();
    try_serve(&own, &["yours"]).unwrap_err();
}

/// A name without the prefix may be that of another function.
#[tokio::test]
async fn names_that_differ_in_the_prefix_alone_are_told_apart() {
    let own = Registry::default().with("auto-ready", Dummy);
    let input = json!({"response": {"results": [{"message": "mine"}]}});
    for (name, is_mine) in [("auto-ready", true), (AUTO_READY, false)] {
        let function = try_serve(&own, &[name]).unwrap().choose(&own).unwrap();
        let request = json::from_value(json!({"input": input})).unwrap();
        let answer = function.run(request).await.unwrap();
        assert_eq!(answer.results[0].message == "mine", is_mine, "{name}");
    }
}

/// AR-1, AR-6
#[tokio::test]
async fn auto_ready_takes_its_ttl_from_the_flag_unless_the_input_has_one() {
    for name in ["auto-ready", AUTO_READY] {
        let ten = answer(name, &["--ttl=10m"], json!({})).await;
        assert_eq!(ten["meta"]["ttl"], "600s");
    }
    let five = answer("auto-ready", &["--ttl=10m"], json!({"input": {"ttl": "5m"}})).await;
    assert_eq!(five["meta"]["ttl"], "300s");
    assert_eq!(answer("auto-ready", &[], json!({})).await["meta"]["ttl"], "60s");
    assert_eq!(answer("auto-ready", &["--ttl", "-1s"], json!({})).await["meta"]["ttl"], "-1s");
    let wrong = try_serve(&Registry::default(), &["auto-ready", "--ttl=soon"]).unwrap_err();
    let text = wrong.to_string();
    assert!(text.contains("expected duration but got \"soon\": write it as 1m30s"), "{text}");
}

/// AR-2
#[tokio::test]
async fn auto_ready_asks_rules_only_where_the_gate_is_open() {
    let resource = json!({"resource": {"apiVersion": "example.org/v1", "kind": "Thing"}});
    let request = json!({
        "input": {"celHealthCheckCustomization": {"example.org_v1_Thing": "true"}},
        "observed": {"resources": {"thing": resource}},
        "desired": {"resources": {"thing": resource}},
    });
    for (flags, ready) in [
        (&["--feature-gates=CELHealthcheckCustomizations=true"] as &[&str], "READY_TRUE".into()),
        (&["--feature-gates=CELHealthcheckCustomizations=false"], Value::Null),
        (&["--feature-gates="], Value::Null),
        (&[], Value::Null),
    ] {
        let answer = answer("auto-ready", flags, request.clone()).await;
        assert_eq!(answer["desired"]["resources"]["thing"]["ready"], ready, "{flags:?}");
    }
    let wrong = serve("auto-ready", &["--feature-gates=Nope=true"]);
    let error = wrong.choose(&Registry::default()).err().unwrap();
    assert_eq!(format!("{error:#}"), "cannot set feature gates: unrecognized feature gate: Nope");
}

/// GT-F2
#[test]
fn the_size_of_messages_is_a_flag_of_every_function() {
    for line in [
        &["go-templating", "--max-recv-message-size=16"][..],
        &["--max-recv-message-size=16", "go-templating"],
        &["dummy", "--max-recv-message-size=16"],
    ] {
        let config = try_serve(&Registry::default(), line).unwrap().flags.config();
        assert_eq!(config.max_receive_size, 16_777_216, "{line:?}");
    }
    assert_eq!(serve("go-templating", &[]).flags.config().max_receive_size, 4_194_304);
}

/// GT-F2
#[tokio::test]
async fn go_templating_has_flags_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.yaml"), "# {{ .missing }}").unwrap();
    let root = format!("--template-root={}", folder.path().display());
    let ask = async |arguments: &[&str], input: Value| {
        answer("go-templating", arguments, json!({"input": input})).await
    };
    let set = ["--ttl=5m", "--default-source=/t.yaml", &root, "--default-options=missingkey=error"];
    let said = ask(&set, json!({})).await;
    assert_eq!(said["meta"]["ttl"], "300s");
    let message = said["results"][0]["message"].as_str().unwrap();
    assert!(message.ends_with("map has no entry for key \"missing\""), "{message}");
    // Time and random numbers are real.
    let template = "{{ now | date \"2006\" | fail }}";
    let clock = json!({"source": "Inline", "inline": {"template": template}});
    let said = ask(&[], clock).await;
    let message = said["results"][0]["message"].as_str().unwrap();
    assert!(!message.ends_with("2024"), "{message}");
}
