//! Tests valid and invalid project files.

use super::*;

const HEAD: &str =
    "apiVersion: dev.crossplane.io/v1alpha1\nkind: Project\nmetadata: {name: p}\nspec:\n";

fn parse(spec: &str) -> Result<Project, String> {
    let spec = format!("  {}", spec.replace('\n', "\n  "));
    Project::parse("p.yaml", &format!("{HEAD}{spec}")).map_err(|error| format!("{error:#}"))
}

/// PJ-2, RX-5
#[test]
fn functions_that_run_are_told_from_other_dependencies() {
    let project = parse(
        "\
repository: example.org/acme/p
dependencies:
- type: xpkg
  xpkg: {apiVersion: pkg.crossplane.io/v1, kind: Function, package: example.org/a/f, version: v1.0.0}
- type: xpkg
  xpkg: {apiVersion: pkg.crossplane.io/v1, kind: Function, package: example.org/a/g, version: v1.0.0, apiOnly: true}
- type: xpkg
  xpkg: {apiVersion: pkg.crossplane.io/v1, kind: Provider, package: example.org/a/p, version: '>=v1'}
- type: k8s
  k8s: {version: v1.33.0}
- type: crd
  git: {repository: https://example.org/a}
- type: crd
  http: {url: https://example.org/crd.yaml}
",
    )
    .unwrap();
    let want = Project {
        repository: "example.org/acme/p".to_owned(),
        functions_path: "functions".to_owned(),
        schemas_path: "schemas".to_owned(),
        listed: None,
        packages: vec![Package {
            repository: "example.org/a/f".to_owned(),
            version: "v1.0.0".to_owned(),
        }],
        rewrites: Vec::new(),
    };
    assert_eq!(project, want);
}

/// PJ-2
#[test]
fn functions_may_be_listed() {
    let project = parse(
        "\
repository: r
paths: {functions: fns}
functions:
- {source: Directory, directory: {name: a}}
- {source: Tarball, tarball: {name: b, pathPrefix: out/b}}
",
    )
    .unwrap();
    let tarball = Listed::Tarball { name: "b".to_owned(), prefix: "out/b".to_owned() };
    let listed = [Listed::Directory("a".to_owned()), tarball];
    assert_eq!(project.listed, Some(listed.into()));
    assert_eq!(project.functions_path, "fns");
    assert_eq!(parse("repository: r\nfunctions: []\n").unwrap().listed, None);
}

/// PJ-1, PJ-2
#[test]
fn what_is_wrong_with_a_project_is_said() {
    for (spec, want) in [
        ("{}", "repository must not be empty"),
        (
            "repository: r\npaths: {apis: /a, schemas: /s}",
            "[apis path must be relative, schemas path must be relative]",
        ),
        ("repository: r\narchitectures: []", "architectures must not be empty"),
        (
            "repository: r\nschemas: {languages: []}",
            "schemas.languages must not be empty when specified",
        ),
        (
            "repository: r\nschemas: {languages: [go, cobol]}",
            "schemas.languages[1]: \"cobol\" is not a supported schema language; set it to one of [go json kcl python]",
        ),
        (
            "repository: r\ndependencies: [{type: xpkg}]",
            "dependency 0: exactly one source (xpkg, git, http, or k8s) must be specified",
        ),
        (
            "repository: r\ndependencies: [{type: xpkg, xpkg: {package: a, version: b}}]",
            "dependency 0: xpkg: [apiVersion must not be empty, kind must not be empty]",
        ),
        (
            "repository: r\ndependencies: [{k8s: {}}]",
            "dependency 0: [type must not be empty, k8s: version must not be empty]",
        ),
        (
            "repository: r\nfunctions: [{source: Directory}]",
            "function 0: [exactly one source (directory or tarball) must be specified, directory: source \"Directory\" requires the directory field to be set]",
        ),
        (
            "repository: r\nfunctions: [{source: Odd, directory: {name: a}}]",
            "function 0: source \"Odd\" is not supported, must be one of \"Directory\" or \"Tarball\"",
        ),
        (
            "repository: r\nfunctions: [{source: Tarball, tarball: {name: a, pathPrefix: /a}}]",
            "function 0: tarball: pathPrefix must be relative",
        ),
        (
            "repository: r\npaths: {functions: ../../home, schemas: s/../../t}",
            "[functions path must not lead out of the project: \"../../home\", schemas path must not lead out of the project: \"s/../../t\"]",
        ),
        (
            "repository: r\nfunctions: [{source: Directory, directory: {name: ../../etc}}]",
            "function 0: directory: name must not lead out of the project: \"../../etc\"",
        ),
        (
            "repository: r\nfunctions: [{source: Directory, directory: {name: /etc}}]",
            "function 0: directory: name must be relative",
        ),
        (
            "repository: r\nfunctions: [{source: Tarball, tarball: {name: a, pathPrefix: a/../../b}}]",
            "function 0: tarball: pathPrefix must not lead out of the project: \"a/../../b\"",
        ),
        (
            "repository: r\nfunctions: [{source: Directory, directory: {name: a}}, {source: Tarball, tarball: {name: a, pathPrefix: p}}]",
            "function 1: name \"a\" is already used by function 0",
        ),
    ] {
        assert_eq!(parse(spec).unwrap_err(), format!("invalid project file: {want}"));
    }
    let text = |text: &str| format!("{:#}", Project::parse("p.yaml", text).unwrap_err());
    assert_eq!(
        text("apiVersion: v1\nkind: Project\n"),
        "unsupported project apiVersion \"v1\", expected \"dev.crossplane.io/v1alpha1\""
    );
    assert_eq!(
        text("apiVersion: dev.crossplane.io/v1alpha1\nkind: Pod\n"),
        "unsupported project kind \"Pod\", expected \"Project\""
    );
    assert_eq!(
        text("apiVersion: dev.crossplane.io/v1alpha1\nkind: Project\nspec: {}\n"),
        "invalid project file: [name must not be empty, repository must not be empty]"
    );
    assert!(text("a: [").starts_with("failed to parse project file: "));
}
