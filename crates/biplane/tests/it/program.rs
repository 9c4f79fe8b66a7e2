//! The real binary: streams and exit codes.

use std::process::{Command, Output};

use biplane_testkit::Recording;

use crate::support::Folder;

fn biplane(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_biplane")).args(arguments).output().unwrap()
}

#[test]
fn documents_go_to_stdout_and_errors_to_stderr() {
    let case = Recording::load("engine", "result-normal-and-warning");
    let folder = Folder::new();
    for (name, text) in &case.files {
        folder.write(name, &text.replace("runtime: Development", "runtime: InProcess"));
    }
    let file = |name: &str| folder.at(name).to_str().unwrap().to_owned();
    let (xr, composition) = (file("xr.yaml"), file("composition.yaml"));
    let functions = file("functions.yaml");
    let ok = biplane(&["render", &xr, &composition, &functions, "--verbose"]);
    assert_eq!(ok.status.code(), Some(0));
    assert!(ok.stdout.starts_with(b"---\napiVersion: "));
    let said = String::from_utf8(ok.stderr).unwrap();
    let want = "\tDEBUG\tFunction runs in process\t{\"function\":\"function-dummy\",\"runs\":\"function-dummy\"}\n";
    assert!(said.ends_with(want), "{said}");

    let failed = biplane(&["render", &xr, &xr, &functions]);
    assert_eq!((failed.status.code(), failed.stdout.len()), (Some(1), 0));
    assert!(failed.stderr.starts_with(b"biplane: error: cannot load Composition from "));

    let usage = biplane(&["render", "--nonsense"]);
    assert_eq!((usage.status.code(), usage.stdout.len()), (Some(80), 0));
    let help = biplane(&["render", "--help"]);
    assert_eq!((help.status.code(), help.stderr.len()), (Some(0), 0));
    assert!(String::from_utf8(help.stdout).unwrap().contains("Examples:"));
}
