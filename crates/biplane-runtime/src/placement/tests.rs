//! Tests where Functions run, depending on their annotations and packages.

use super::*;
use crate::function::override_annotations;

fn function(package: &str, annotations: &[(&str, &str)]) -> Function {
    Function {
        name: "fn".into(),
        package: package.into(),
        annotations: annotations
            .iter()
            .map(|(key, value)| (format!("render.crossplane.io/{key}"), (*value).to_owned()))
            .collect(),
        build: None,
    }
}

fn docker(function: &Function) -> Placement {
    Placement::Docker(Box::new(docker::Options::of(function).unwrap()))
}

fn placement(function: &Function) -> Result<Placement, String> {
    function.placement(|name| name == "function-auto-ready", true).map_err(|e| format!("{e:#}"))
}

#[test]
fn packages_of_upstream_run_in_process_whatever_their_registry_and_version() {
    for (package, in_process) in [
        ("xpkg.crossplane.io/crossplane-contrib/function-auto-ready:v0.5.0", true),
        ("xpkg.upbound.io/crossplane/function-auto-ready", true),
        ("localhost:5000/crossplane-contrib/function-auto-ready@sha256:abc", true),
        ("localhost/crossplane-contrib/function-auto-ready", true),
        ("crossplane-contrib/function-auto-ready:v1", true),
        // A repository with a longer path may be from any publisher.
        ("registry.example.org/x/crossplane-contrib/function-auto-ready:v0.5.0", false),
        ("localhost:5000/mirror/crossplane-contrib/function-auto-ready@sha256:abc", false),
        ("x/crossplane-contrib/function-auto-ready:v1", false),
        ("xpkg.crossplane.io/crossplane/crossplane-contrib/function-auto-ready", false),
        ("crossplane/crossplane-contrib/function-auto-ready", false),
        ("xpkg.crossplane.io/somebody/function-auto-ready:v0.5.0", false),
        ("xpkg.crossplane.io/crossplane-contrib/function-other:v0.5.0", false),
        ("xpkg.crossplane.io/not-crossplane/function-auto-ready", false),
        ("", false),
    ] {
        let function = function(package, &[]);
        let want = if in_process {
            Placement::InProcess("function-auto-ready".into())
        } else {
            docker(&function)
        };
        assert_eq!(placement(&function).unwrap(), want, "{package}");
        assert_eq!(function.placement(|_| true, false).unwrap(), docker(&function), "{package}");
    }
}

#[test]
fn a_function_that_asks_for_it_runs_where_it_says() {
    let fork = "registry.example.org/team/function-auto-ready:v9";
    let target = ("runtime-development-target", "dns:///host:7443");
    for (package, annotations, want) in [
        (fork, vec![("runtime", "InProcess")], Placement::InProcess("function-auto-ready".into())),
        (fork, vec![("runtime", "Development")], Placement::Development("localhost:9443".into())),
        (
            fork,
            vec![("runtime", "Development"), target],
            Placement::Development("dns:///host:7443".into()),
        ),
        (
            "crossplane/function-auto-ready",
            vec![("runtime", "Docker")],
            docker(&function("crossplane/function-auto-ready", &[])),
        ),
        (
            fork,
            vec![("runtime", "Process"), ("runtime-process-command", r#"["go","run","."]"#)],
            Placement::Process(vec!["go".into(), "run".into(), ".".into()]),
        ),
    ] {
        assert_eq!(placement(&function(package, &annotations)).unwrap(), want);
    }
}

/// RT-2, T-11
#[test]
fn values_that_mean_nothing_are_refused() {
    for (key, value, want) in [
        (
            "runtime",
            "wrong",
            r#"unsupported "render.crossplane.io/runtime" annotation value "wrong" (unknown runtime)"#,
        ),
        (
            "runtime-docker-cleanup",
            "wrong",
            r#"cannot get cleanup policy for Function "fn": unsupported "render.crossplane.io/runtime-docker-cleanup" annotation value "wrong" (unknown cleanup policy)"#,
        ),
        (
            "runtime-docker-pull-policy",
            "wrong",
            r#"cannot get pull policy for Function "fn": unsupported "render.crossplane.io/runtime-docker-pull-policy" annotation value "wrong" (unknown pull policy)"#,
        ),
        ("runtime", "InProcess", r#"there is no function "other" in the box to run in process"#),
        (
            "runtime",
            "Process",
            r#"there is no "render.crossplane.io/runtime-process-command" annotation to say what to start"#,
        ),
    ] {
        assert_eq!(placement(&function("a/other:v1", &[(key, value)])).unwrap_err(), want);
    }
}

/// RX-6, T-9, T-10
#[test]
fn annotations_are_set_on_every_function() {
    let mut functions = [function("a", &[("runtime", "Docker")]), function("b", &[])];
    let entries = ["render.crossplane.io/runtime=Development".to_owned(), "x=a=b".to_owned()];
    override_annotations(&mut functions, &entries).unwrap();
    for function in &functions {
        assert_eq!(function.annotation(RUNTIME), "Development");
        assert_eq!(function.annotation("x"), "a=b");
    }
    let error = override_annotations(&mut functions, &["foo".to_owned()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"cannot apply function annotation overrides: invalid function annotation format "foo", expected key=value"#
    );
    assert!(override_annotations(&mut [], &["foo".to_owned()]).is_ok());
}
