//! Tests the addresses at which containers are called. RT-8

use serde_json::{Value, json};

use super::*;
use crate::function::Function;

fn options(annotations: &[(&str, &str)]) -> Options {
    let annotations = annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    let (name, package) = ("fn".to_owned(), "fn:v1".to_owned());
    let annotations = annotations.collect();
    Options::of(&Function { name, package, annotations, build: None }).unwrap()
}

fn container(settings: &Value) -> ContainerInspectResponse {
    serde_json::from_value(json!({"Name": "/happy_name", "NetworkSettings": settings})).unwrap()
}

#[test]
fn a_container_is_called_where_it_is_published() {
    let published =
        |host: &str| json!({"Ports": {"9443/tcp": [{"HostIp": host, "HostPort": "32768"}]}});
    let target = [("render.crossplane.io/runtime-docker-target", "docker.example.org")];
    for (settings, annotations, want) in [
        (published("127.0.0.1"), &[][..], Ok("127.0.0.1:32768")),
        (published("::1"), &[], Ok("[::1]:32768")),
        (published("0.0.0.0"), &target, Ok("docker.example.org:32768")),
        (
            published(""),
            &[],
            Err(r#"container "happy_name" has port binding for 9443 but no host address"#),
        ),
        (
            json!({"Ports": {"9443/tcp": null}}),
            &[],
            Err(r#"container "happy_name" has no published binding for port 9443"#),
        ),
        (
            json!({}),
            &target,
            Err(r#"container "happy_name" has no published binding for port 9443"#),
        ),
    ] {
        let found = address(&container(&settings), &options(annotations), None);
        assert_eq!(found.map_err(|e| e.to_string()), want.map(Into::into).map_err(Into::into));
    }
}

#[test]
fn a_container_on_a_network_is_called_by_its_name_there() {
    let container = container(&json!({"Networks": {"mine": {}}}));
    let options = options(&[]);
    assert_eq!(address(&container, &options, Some("mine")).unwrap(), "happy_name:9443");
    let error = address(&container, &options, Some("other")).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"container "happy_name" is not connected to Docker network "other"; verify the "render.crossplane.io/runtime-docker-network" annotation value matches an existing network"#
    );
}

#[test]
fn only_names_that_docker_allows_reach_it() {
    for (name, good) in [
        ("function-a_1.b", true),
        ("", false),
        ("a", false),
        ("-a", false),
        ("a/../../images", false),
        ("a?force=1", false),
    ] {
        assert_eq!(is_container_name(name), good, "{name}");
    }
}
