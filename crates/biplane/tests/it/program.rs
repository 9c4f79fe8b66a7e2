//! The real binary: streams and exit codes.

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
fn an_interrupt_leaves_no_program_behind() {
    let case = Recording::load("engine", "result-normal-and-warning");
    let folder = Folder::new();
    for (name, text) in &case.files {
        folder.write(name, text);
    }
    let file = |name: &str| folder.at(name).to_str().unwrap().to_owned();
    let pid_file = folder.at("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", pid_file.display());
    let command = serde_json::json!(["sh", "-c", script]).to_string().replace(',', "\\,");
    let mut render = Command::new(env!("CARGO_BIN_EXE_biplane"))
        .args(["render", &file("xr.yaml"), &file("composition.yaml"), &file("functions.yaml")])
        .args(["--allow-process", "-a=render.crossplane.io/runtime=Process"])
        .arg(format!("-a=render.crossplane.io/runtime-process-command={command}"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = loop {
        match std::fs::read_to_string(&pid_file) {
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
