//! Tests renders inside a project, without a functions argument.

use crate::fixtures::project;
use crate::registry::Registry;
use crate::support::{Folder, Ran, run};

const XR: &str = "apiVersion: example.org/v1\nkind: XApp\nmetadata:\n  name: app\nspec: {}\n";
const PROJECT: &str = project!(
    "  dependencies:
  - type: xpkg
    xpkg:
      apiVersion: pkg.crossplane.io/v1
      kind: Function
      package: xpkg.crossplane.io/crossplane-contrib/function-auto-ready
      version: '>=v0.0.0'
  - type: xpkg
    xpkg:
      apiVersion: pkg.crossplane.io/v1
      kind: Function
      package: example.org/acme/function-exact
      version: v1.2.3
  - type: xpkg
    xpkg:
      apiVersion: pkg.crossplane.io/v1
      kind: Function
      package: example.org/acme/function-range
      version: ^1.2.0
  - type: xpkg
    xpkg:
      apiVersion: pkg.crossplane.io/v1
      kind: Provider
      package: example.org/acme/provider-thing
      version: '>=v0.0.0'
  - type: k8s
    k8s:
      version: v1.33.0
"
);
const RESOLVED: &str = "Resolving function dependencies...\n✓ Resolving function dependencies\n";
const UNRESOLVED: &str = "Resolving function dependencies...\n✗ Resolving function dependencies\n";

/// Renders a pipeline of the named functions in a project.
pub(crate) fn render(folder: &Folder, project: &str, functions: &[&str], flags: &[&str]) -> Ran {
    let line = line(folder, project, functions, flags);
    let mut ran = run(&line.iter().map(String::as_str).collect::<Vec<_>>());
    ran.stderr = ran.stderr.replace(folder.path().to_str().unwrap(), "DIR");
    ran
}

/// The same without a Docker engine.
fn render_without_docker(folder: &Folder, functions: &[&str]) -> (Option<i32>, String) {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_biplane"));
    program.args(line(folder, PROJECT, functions, &[])).env("DOCKER_HOST", "unix:///nowhere");
    let output = program.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// A command line and its files.
fn line(folder: &Folder, project: &str, functions: &[&str], flags: &[&str]) -> Vec<String> {
    let steps: Vec<_> = functions
        .iter()
        .enumerate()
        .map(|(i, name)| format!("  - step: s{i}\n    functionRef:\n      name: {name}\n"))
        .collect();
    let steps = steps.concat();
    let composition = format!(
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: apps\nspec:\n  compositeTypeRef:\n    apiVersion: example.org/v1\n    kind: XApp\n  mode: Pipeline\n  pipeline:\n{steps}"
    );
    let xr = folder.write("xr.yaml", XR);
    let composition = folder.write("composition.yaml", &composition);
    let project = folder.write("crossplane-project.yaml", project);
    let cache = format!("--cache-dir={}", folder.at("cache").display());
    let words = [&["render", &xr, &composition, "-f", &project, &cache], flags].concat();
    words.into_iter().map(ToOwned::to_owned).collect()
}

fn fails(project: &str, functions: &[&str], flags: &[&str], said: &str) {
    let ran = render(&Folder::new(), project, functions, flags);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert_eq!(ran.stderr, said);
}

/// RX-5, T-58
#[test]
fn functions_of_the_box_need_no_registry() {
    // One by its name in the project, one by its own name.
    for name in ["crossplane-contrib-function-auto-ready", "function-auto-ready"] {
        let ran = render(&Folder::new(), PROJECT, &[name], &[]);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, RESOLVED));
        assert!(ran.stdout.starts_with("---\napiVersion: example.org/v1\nkind: XApp\n"));
    }
}

/// RX-5
#[test]
fn the_newest_version_of_a_range_is_asked_for_at_the_registry() {
    let tags = &["latest", "v1.2.0", "v1.10.0", "v1.9.0", "v2.0.0", "v1.11.0-rc.1"];
    let registry = Registry::start(&[("acme/function-auto-ready", tags)]);
    let address = registry.address();
    let project = |package: &str, range: &str| {
        let project = PROJECT.replace("example.org/acme/function-range", package);
        project.replace("version: ^1.2.0", &format!("version: '{range}'"))
    };
    let known = format!("{address}/acme/function-auto-ready");
    let name = "acme-function-auto-ready";
    // The runtime does not matter here.
    let flags = ["--verbose", "-a=render.crossplane.io/runtime=InProcess"];
    for (range, newest) in [("^1.2.0", "v1.10.0"), (">=v0.0.0", "v2.0.0"), ("<1.10", "v1.9.0")] {
        let ran = render(&Folder::new(), &project(&known, range), &[name], &flags);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let said = format!(
            "\tDEBUG\tResolved function dependency\t{{\"function\":\"{name}\",\"package\":\"{known}:{newest}\"}}\n"
        );
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    }
    let failed =
        "biplane: error: cannot load project functions: cannot resolve function dependency";
    let none =
        format!("{UNRESOLVED}{failed} {known}:^3: cannot find version to satisfy constraint ^3\n");
    fails(&project(&known, "^3"), &[name], &[], &none);
    let unknown = format!("{address}/acme/function-other");
    let ran = render(&Folder::new(), &project(&unknown, "^1"), &["acme-function-other"], &[]);
    assert_eq!(ran.exit, 1);
    let said = format!("{UNRESOLVED}{failed} {unknown}:^1: cannot list versions for {unknown}: ");
    assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
}

/// RX-5
#[test]
fn exact_versions_run_wherever_they_are_said_to_run() {
    let flags = ["-a=render.crossplane.io/runtime=Nowhere"];
    let ran = render(&Folder::new(), PROJECT, &["acme-function-exact"], &flags);
    assert_eq!(ran.exit, 1);
    assert_eq!(
        ran.stderr,
        format!(
            "{RESOLVED}biplane: error: cannot start function runtimes: cannot get runtime for Function \"acme-function-exact\": unsupported \"render.crossplane.io/runtime\" annotation value \"Nowhere\" (unknown runtime)\n"
        )
    );
}

/// RX-5
#[test]
fn providers_are_no_functions() {
    let ran = render(&Folder::new(), PROJECT, &["acme-provider-thing"], &[]);
    assert_eq!(ran.exit, 1);
    let said = format!(
        "{RESOLVED}biplane: error: cannot load project functions: function \"acme-provider-thing\" is neither one of the project nor one of those that run in process ("
    );
    assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
}

/// RX-5, PJ-1
#[test]
fn project_files_that_cannot_be_used_are_named() {
    let functions = ["crossplane-contrib-function-auto-ready"];
    for (project, error) in [
        (
            PROJECT.replace("v1alpha1\n", "v9\n"),
            "unsupported project apiVersion \"dev.crossplane.io/v9\", expected \"dev.crossplane.io/v1alpha1\"",
        ),
        (
            PROJECT.replace("kind: Project", "kind: Prospect"),
            "unsupported project kind \"Prospect\", expected \"Project\"",
        ),
        (
            PROJECT.replace("  repository: example.org/acme/apps\n", ""),
            "invalid project file: repository must not be empty",
        ),
    ] {
        let said = format!(
            "biplane: error: cannot parse project file \"DIR/crossplane-project.yaml\": {error}\n"
        );
        fails(&project, &functions, &[], &said);
    }
}

/// RX-5, PJ-3
#[test]
fn functions_in_the_project_run_in_place_if_allowed() {
    let folder = Folder::new();
    folder.write("functions/compose/pyproject.toml", "");
    folder.write("functions/compose/function/main.py", "");
    // A fake interpreter that serves a built-in function at the given address.
    let interpreter = folder.write(
        "functions/compose/.venv/bin/python",
        &format!(
            "#!/bin/sh\n[ \"$1 $2\" = '-m function.main' ] && [ -e pyproject.toml ] || exit 9\nshift 2\nexec '{}' function serve auto-ready --metrics-address= \"$@\"\n",
            env!("CARGO_BIN_EXE_biplane")
        ),
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(interpreter, mode).unwrap();
    let ran = render(&folder, PROJECT, &["acme-appscompose"], &["--allow-process"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, RESOLVED));
    assert!(ran.stdout.starts_with("---\napiVersion: example.org/v1\nkind: XApp\n"));

    let nowhere =
        "Cannot connect to the Docker daemon at unix:///nowhere. Is the docker daemon running?";
    let (exit, stderr) = render_without_docker(&folder, &["acme-appscompose"]);
    assert_eq!(exit, Some(1));
    assert_eq!(
        stderr,
        format!(
            "{RESOLVED}biplane: error: cannot start function runtimes: cannot start Function \"acme-appscompose\": it is a program on this machine; pass --allow-process if you trust what the Functions file or the project runs\n                Or have it built and run in Docker, which cannot be reached: {nowhere}\n"
        )
    );

    folder.write("functions/model/kcl.mod", "");
    folder.write("functions/unknown/README.md", "");
    for (function, error) in
        [("model", nowhere), ("unknown", "failed to find a builder: no suitable builder found")]
    {
        let (_, stderr) = render_without_docker(&folder, &[&format!("acme-apps{function}")]);
        assert_eq!(
            stderr,
            format!(
                "{RESOLVED}biplane: error: cannot build embedded functions: failed to build function {function:?}: {error}\n"
            )
        );
    }
}
