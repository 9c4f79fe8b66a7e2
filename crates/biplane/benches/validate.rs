//! Measures whole processes: `validate` of 1,000 objects against 200 CRDs with rules, for Biplane and,
//! if `BIPLANE_UPSTREAM_BIN` names a folder with it, upstream's `crossplane-cli`.

#![allow(clippy::disallowed_methods)] // benchmarks are configured by the environment
#![allow(clippy::print_stdout)]
#![allow(clippy::format_collect)] // input, made once

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const KINDS: usize = 200;
const OBJECTS: usize = 1_000;
const RUNS: usize = 20;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    write("crds.yaml", (0..KINDS).map(crd).collect());
    write("objects.yaml", (0..OBJECTS).map(object).collect());
    let ours = Path::new(env!("CARGO_BIN_EXE_biplane"));
    let ours = measure("biplane", ours, &["validate"], folder.path());
    let upstream = std::env::var_os("BIPLANE_UPSTREAM_BIN").map(PathBuf::from);
    match upstream.map(|folder| folder.join("crossplane-cli")) {
        None => println!("BIPLANE_UPSTREAM_BIN is not set: no side by side"),
        Some(program) => {
            let theirs = measure("upstream", &program, &["resource", "validate"], folder.path());
            println!("ratio: {:.1} times faster", theirs.as_secs_f64() / ours.as_secs_f64());
        }
    }
}

/// The median time of a process.
fn measure(name: &str, program: &Path, command: &[&str], folder: &Path) -> Duration {
    let once = |_| {
        let begin = Instant::now();
        let output = Command::new(program)
            .args(command)
            .args(["crds.yaml", "objects.yaml", "--crossplane-image=", "--cache-dir=cache"])
            .arg("--skip-success-results")
            .current_dir(folder)
            .output()
            .expect("the program starts");
        let took = begin.elapsed();
        let printed = String::from_utf8_lossy(&output.stdout);
        let want = format!("Total {OBJECTS} resources: 0 missing schemas, {OBJECTS} success cases");
        assert!(printed.contains(&want), "{printed}");
        took
    };
    let mut times: Vec<Duration> = (0..RUNS).map(once).collect();
    times.sort();
    let median = times[RUNS / 2];
    println!("{name}: median {:.0} ms of {RUNS} runs", median.as_secs_f64() * 1e3);
    median
}

fn crd(kind: usize) -> String {
    let fields: String = (0..20)
        .map(|field| {
            format!("                  f{field}: {{type: string, maxLength: 60, pattern: '^[a-z0-9-]*$', default: x}}\n")
        })
        .collect();
    format!(
        "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: kind{kind}s.example.org}}
spec:
  group: example.org
  scope: Namespaced
  names: {{kind: Kind{kind}, plural: kind{kind}s}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {{type: string}}
          kind: {{type: string}}
          metadata: {{type: object}}
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {{rule: self.size >= self.least, message: too small}}
            - {{rule: 'self.tags.all(t, t.startsWith(self.first))'}}
            properties:
              size: {{type: integer, minimum: 0}}
              least: {{type: integer, default: 1}}
              first: {{type: string, default: x}}
              tags: {{type: array, items: {{type: string}}}}
              inner:
                type: object
                properties:
{fields}"
    )
}

fn object(number: usize) -> String {
    format!(
        "---
apiVersion: example.org/v1
kind: Kind{}
metadata: {{name: o{number}, namespace: default}}
spec: {{size: {}, tags: [x1, x2, x3], inner: {{f1: a, f2: b, f3: c}}}}
",
        number % KINDS,
        number + 1
    )
}
