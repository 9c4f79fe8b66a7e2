//! The real binary: streams and exit codes.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

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

#[test]
fn an_interrupt_leaves_no_function_behind() {
    let folder = Folder::new();
    let command = serde_json::json!(["sh", "-c", hanging(&folder, "exec sleep 600")]);
    let command = command.to_string().replace(',', "\\,");
    interrupt(
        &folder,
        &[
            "--allow-process".to_owned(),
            "-a=render.crossplane.io/runtime=Process".to_owned(),
            format!("-a=render.crossplane.io/runtime-process-command={command}"),
        ],
    );
}

/// Nor what the engine itself has started.
#[test]
fn an_interrupt_leaves_no_engine_behind() {
    let folder = Folder::new();
    let script = hanging(&folder, "sleep 600");
    let engine = folder.at("engine");
    std::fs::write(&engine, format!("#!/bin/sh\n({script})\n")).unwrap();
    std::fs::set_permissions(&engine, std::fs::Permissions::from_mode(0o755)).unwrap();
    interrupt(&folder, &[format!("--engine={}", engine.display())]);
}

/// A script that says that it runs, and then runs on.
fn hanging(folder: &Folder, and_then: &str) -> String {
    let file = folder.at("pid");
    format!("sh -c 'echo $$ > {0}.new; mv {0}.new {0}; {and_then}'", file.display())
}

/// Interrupts a render as soon as something hangs; nothing is left of it.
fn interrupt(folder: &Folder, flags: &[String]) {
    let case = Recording::load("engine", "result-normal-and-warning");
    for (name, text) in &case.files {
        folder.write(name, text);
    }
    let file = |name: &str| folder.at(name).to_str().unwrap().to_owned();
    let mut render = Command::new(env!("CARGO_BIN_EXE_biplane"))
        .args(["render", &file("xr.yaml"), &file("composition.yaml"), &file("functions.yaml")])
        .args(flags)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = loop {
        match std::fs::read_to_string(folder.at("pid")) {
            Ok(pid) => break pid.trim().to_owned(),
            Err(_) => assert!(render.try_wait().unwrap().is_none(), "render ended early"),
        }
        std::thread::yield_now();
    };
    let interrupt = Command::new("kill").args(["-INT", &render.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let output = render.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(output.stderr, b"biplane: error: interrupted\n");
    // It has been told to end; the system takes a moment to do it. A zombie that nobody has
    // collected is no program any more.
    let start = std::time::Instant::now();
    loop {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            break;
        }
        assert!(start.elapsed().as_secs() < 60, "{state}");
        std::thread::yield_now();
    }
}
