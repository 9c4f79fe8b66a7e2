//! Templates of input files that many tests share.

/// A Composition for the kind that most tests render, with the given steps.
macro_rules! composition {
    ($steps:literal) => {
        concat!(
            "apiVersion: apiextensions.crossplane.io/v1\n",
            "kind: Composition\n",
            "metadata:\n",
            "  name: apps\n",
            "spec:\n",
            "  compositeTypeRef:\n",
            "    apiVersion: example.org/v1\n",
            "    kind: XApp\n",
            "  mode: Pipeline\n",
            "  pipeline:\n",
            $steps
        )
    };
}

/// A Function of upstream, at a version.
macro_rules! function {
    ($name:literal, $version:literal) => {
        concat!(
            "apiVersion: pkg.crossplane.io/v1\n",
            "kind: Function\n",
            "metadata:\n",
            "  name: ",
            $name,
            "\n",
            "spec:\n",
            "  package: xpkg.crossplane.io/crossplane-contrib/",
            $name,
            ":",
            $version,
            "\n"
        )
    };
}

/// A project, with more fields in its spec.
macro_rules! project {
    ($more:literal) => {
        concat!(
            "apiVersion: dev.crossplane.io/v1alpha1\n",
            "kind: Project\n",
            "metadata:\n",
            "  name: apps\n",
            "spec:\n",
            "  repository: example.org/acme/apps\n",
            $more
        )
    };
}

pub(crate) use {composition, function, project};

/// A Function that runs as a local process.
pub(crate) fn process(name: &str, command: &[&str]) -> String {
    let command = serde_json::json!(command);
    running(name, "Process", "process-command", &format!("'{command}'"))
}

/// A Function that is already running at a target.
pub(crate) fn development(name: &str, target: &str) -> String {
    running(name, "Development", "development-target", target)
}

/// A separate document, so that several can be concatenated.
fn running(name: &str, runtime: &str, key: &str, value: &str) -> String {
    format!(
        "---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: {name}
  annotations:
    render.crossplane.io/runtime: {runtime}
    render.crossplane.io/runtime-{key}: {value}
"
    )
}
