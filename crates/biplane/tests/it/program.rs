//! Tests the real binary: streams, signals and exit codes.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};

use biplane_testkit::Recording;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

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
fn help_that_cannot_be_written_is_a_failure() {
    for argument in ["--help", "--version"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_biplane"));
        let output = command.arg(argument).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("biplane: error: cannot write help: No space left"), "{said}");
    }
}

/// CLI-12
#[test]
fn a_tilde_is_the_home_folder_for_context_too() {
    let folder = Folder::new();
    let xr = folder.write("xr.yaml", crate::mistakes::XR);
    let composition = folder.write("composition.yaml", crate::mistakes::COMPOSITION);
    folder.write("k.yaml", "of: home\n");
    let rendered = Command::new(env!("CARGO_BIN_EXE_biplane"))
        .args(["render", &xr, &composition, "-c", "--context-files=k=~/k.yaml"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(rendered.stderr).unwrap();
    assert_eq!((rendered.status.code(), said.as_str()), (Some(0), ""));
    assert!(String::from_utf8(rendered.stdout).unwrap().contains("    of: home\n"));
}

/// The signals that interrupt a program: from Ctrl-C, from another program, when the terminal is
/// closed, and from Ctrl-\\.
const ASKED: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

#[test]
fn an_interrupt_leaves_no_function_behind() {
    for signal in ASKED {
        let folder = Folder::new();
        let flags = as_program(&hanging(&folder, "exec sleep 600"));
        interrupt(&folder, &flags, signal);
    }
}

/// Also for processes that the engine itself has started.
#[test]
fn an_interrupt_leaves_no_engine_behind() {
    for signal in ASKED {
        let folder = Folder::new();
        let script = hanging(&folder, "sleep 600");
        let engine = folder.at("engine");
        std::fs::write(&engine, format!("#!/bin/sh\n({script})\n")).unwrap();
        std::fs::set_permissions(&engine, std::fs::Permissions::from_mode(0o755)).unwrap();
        interrupt(&folder, &[format!("--engine={}", engine.display())], signal);
    }
}

/// As with `nohup`.
#[test]
fn a_command_that_is_to_outlive_its_terminal_does() {
    let folder = Folder::new();
    let gate = folder.at("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // Opening a pipe blocks until the other side is open.
    let flags = as_program(&format!("read go < {}; echo open >&2; exit 7", gate.display()));
    let deaf = render(&folder, &flags, "SIG_IGN").stderr(Stdio::piped()).spawn().unwrap();
    let mut open = std::fs::OpenOptions::new().write(true).open(&gate).unwrap();
    send(&deaf, Signal::SIGHUP);
    writeln!(open, "go").unwrap();
    let output = deaf.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("has ended (exit status: 7):"), "{said}");
}

/// Flags that run a script as the function.
fn as_program(script: &str) -> [String; 3] {
    let command = serde_json::json!(["sh", "-c", script]).to_string().replace(',', "\\,");
    [
        "--allow-process".to_owned(),
        "-a=render.crossplane.io/runtime=Process".to_owned(),
        format!("-a=render.crossplane.io/runtime-process-command={command}"),
    ]
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, signal).unwrap();
}

/// A script that reports that it runs, and then keeps running.
fn hanging(folder: &Folder, and_then: &str) -> String {
    let file = folder.at("pid");
    format!("sh -c 'echo $$ > {0}.new; mv {0}.new {0}; {and_then}'", file.display())
}

/// Renders a recorded case. The caller sets the signal dispositions, because the parent process of
/// the tests may ignore some signals.
fn render(folder: &Folder, flags: &[String], signals: &str) -> Command {
    let case = Recording::load("engine", "result-normal-and-warning");
    for (name, text) in &case.files {
        folder.write(name, text);
    }
    let file = |name: &str| folder.at(name).to_str().unwrap().to_owned();
    let start = format!(
        "import os, signal, sys\nfor s in (1, 2, 3, 15): signal.signal(s, signal.{signals})\nos.execv(sys.argv[1], sys.argv[1:])"
    );
    let mut render = Command::new("python3");
    render
        .args(["-c", &start, env!("CARGO_BIN_EXE_biplane"), "render"])
        .args([file("xr.yaml"), file("composition.yaml"), file("functions.yaml")])
        .args(flags);
    render
}

/// Interrupts a render once something blocks, and checks that nothing is left of it.
fn interrupt(folder: &Folder, flags: &[String], signal: Signal) {
    let mut render = render(folder, flags, "SIG_DFL").stderr(Stdio::piped()).spawn().unwrap();
    let pid = loop {
        match std::fs::read_to_string(folder.at("pid")) {
            Ok(pid) => break pid.trim().to_owned(),
            Err(_) => assert!(render.try_wait().unwrap().is_none(), "render ended early"),
        }
        std::thread::yield_now();
    };
    send(&render, signal);
    let output = render.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{signal}");
    assert_eq!(output.stderr, b"biplane: error: interrupted\n");
    // It was signalled, but may take a moment to exit. A zombie counts as ended.
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
