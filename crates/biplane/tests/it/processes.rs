//! Tests functions that are local processes.

use std::path::Path;

use serde_json::json;

use crate::support::{Folder, Ran};

const BIPLANE: &str = env!("CARGO_BIN_EXE_biplane");

/// Renders the files of the first example, with the function as a local process and more flags.
fn render(command: &serde_json::Value, flags: &[&str]) -> Ran {
    example(command).render(flags)
}

fn example(command: &serde_json::Value) -> Folder {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/first-composition");
    for name in ["xr.yaml", "composition.yaml"] {
        folder.write(name, &std::fs::read_to_string(root.join(name)).unwrap());
    }
    let function = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
        "metadata": {"name": "function-dummy", "annotations": {
            "render.crossplane.io/runtime": "Process",
            "render.crossplane.io/runtime-process-command": command.to_string(),
        }},
        "spec": {"package": "example.org/function-dummy:v1"},
    });
    folder.write("functions.yaml", &function.to_string());
    folder
}

fn served(rest: &[&str]) -> serde_json::Value {
    let start = [BIPLANE, "function", "serve", "function-dummy", "--metrics-address="];
    json!([&start[..], rest].concat())
}

fn in_process(flags: &[&str]) -> Ran {
    let flags = [&["-a=render.crossplane.io/runtime=InProcess"], flags].concat();
    render(&served(&[]), &flags)
}

#[test]
fn a_program_is_started_called_and_ended() {
    for flags in [&[][..], &["-rxc", "--context-values=a=1"], &["--output-format=v1", "-r"]] {
        let program = render(&served(&[]), &[&["--allow-process"], flags].concat());
        assert_eq!((program.exit, program.stderr.as_str()), (0, ""), "{flags:?}");
        assert!(!program.stdout.is_empty());
        assert_eq!(program, in_process(flags), "{flags:?}");
    }
}

#[test]
fn a_program_may_be_told_its_address_in_its_own_way() {
    let script = format!(
        "exec {BIPLANE} function serve function-dummy --metrics-address= --insecure --address=\"$0\""
    );
    let program = render(&json!(["sh", "-c", script, "{address}"]), &["--allow-process"]);
    assert_eq!((program.exit, program.stderr.as_str()), (0, ""));
    assert_eq!(program, in_process(&[]));
}

#[test]
fn a_program_is_not_started_without_leave() {
    let folder = Folder::new();
    let trace = folder.at("trace");
    let command = json!(["touch", trace.to_str().unwrap()]);
    let ran = render(&command, &[]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let said = "biplane: error: cannot start function runtimes: cannot start Function \"function-dummy\": it is a program on this machine; pass --allow-process if you trust ";
    assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    assert!(!trace.exists());
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let ran = render(&json!(["/nowhere/function"]), &["--allow-process"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let said = "biplane: error: cannot start function runtimes: cannot start Function \"function-dummy\": cannot start program \"/nowhere/function\": ";
    assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    let asked = "-a=render.crossplane.io/runtime=Process";
    crate::mistakes::fails(
        &[],
        &[asked, "--allow-process"],
        1,
        "cannot start function runtimes: cannot get runtime for Function \"function-auto-ready\": there is no \"render.crossplane.io/runtime-process-command\" annotation to say what to start",
    );
    for (command, said) in
        [(json!([]), "names no program"), (json!("go run ."), "is not a JSON array of strings")]
    {
        let ran = render(&command, &["--allow-process"]);
        assert_eq!(ran.exit, 1);
        let first = ran.stderr.lines().next().unwrap();
        assert!(first.contains(said), "{first}");
    }
}

/// RT-12: a process that never listens takes no longer than the time limit, and is killed.
#[test]
fn a_program_that_never_listens_runs_into_the_deadline() {
    let folder = Folder::new();
    let pid_file = folder.at("pid");
    let script = format!("echo $$ > {}; exec sleep 600", pid_file.display());
    let ran = render(&json!(["sh", "-c", script]), &["--allow-process", "--timeout=500ms"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("code = DeadlineExceeded"), "{}", ran.stderr);
    if let Ok(pid) = std::fs::read_to_string(&pid_file) {
        assert!(is_gone(pid.trim()), "{pid} is still there");
    }
}

#[test]
fn a_program_that_fails_is_reported_with_its_log() {
    let script = "import sys\nprint('no module named greeting', file=sys.stderr)\nsys.exit(3)";
    let ran = render(&json!(["python3", "-c", script]), &["--allow-process"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let log = "the program of function \"function-dummy\" has ended (exit status: 3):\n                no module named greeting\n";
    assert!(ran.stderr.ends_with(log), "{}", ran.stderr);
}

#[test]
fn what_a_program_says_does_not_steer_the_terminal() {
    let script = r"printf '\033[31mred\033]0;title\007\rover\n' >&2; exit 3";
    let ran = render(&json!(["sh", "-c", script]), &["--allow-process"]);
    let log = "(exit status: 3):\n                \\u{1b}[31mred\\u{1b}]0;title\\u{7}\\rover\n";
    assert!(ran.stderr.ends_with(log), "{}", ran.stderr);
}

/// A child of the process may keep the log open, or may have left the process group.
#[test]
fn a_program_that_ends_is_reported_while_others_hold_its_log() {
    let leave = "setsid sh -c 'echo it has > left; read go < gate'& read word < left;";
    for held in ["(read go < gate)&", leave] {
        let folder = Folder::new();
        let (gate, left) = (folder.at("gate"), folder.at("left"));
        let mut pipes = std::process::Command::new("mkfifo");
        assert!(pipes.args([&gate, &left]).status().unwrap().success());
        let script =
            format!("cd {}; {held} echo it is broken >&2; exit 5", folder.path().display());
        let ran = render(&json!(["sh", "-c", script]), &["--allow-process", "--timeout=1m"]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{held}");
        let log = "has ended (exit status: 5):\n                it is broken\n";
        assert!(ran.stderr.ends_with(log), "{held}: {}", ran.stderr);
        if held == leave {
            // Opening a pipe blocks until both sides are open; this unblocks it.
            std::fs::OpenOptions::new().write(true).open(&gate).unwrap();
        }
    }
}

/// No other program on the machine is needed to end the children.
#[test]
fn what_a_program_has_started_ends_with_it_without_other_programs() {
    let tools = Folder::new();
    let gate = tools.at("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let dir = tools.path().display();
    let script = format!(
        "(read go < {dir}/gate)& echo $! > {dir}/pid; {BIPLANE} function serve function-dummy --metrics-address= --insecure --address=\"$0\""
    );
    let folder = example(&json!(["/bin/sh", "-c", script, "{address}"]));
    let output = std::process::Command::new(BIPLANE)
        .args(["render", "xr.yaml", "composition.yaml", "functions.yaml", "--allow-process"])
        .current_dir(folder.path())
        .env("PATH", tools.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pid = std::fs::read_to_string(tools.at("pid")).unwrap();
    assert!(is_gone(pid.trim()), "{pid} is still there");
}

/// Only this user can reach the socket.
#[test]
fn a_program_may_listen_on_a_socket() {
    let folder = Folder::new();
    let seen = folder.at("seen");
    let script = format!(
        "ls -ld \"$(dirname \"$0\")\" > {}; exec {BIPLANE} function serve function-dummy --metrics-address= --insecure --network=unix --address=\"$0\"",
        seen.display()
    );
    let program = render(&json!(["sh", "-c", script, "{socket}"]), &["--allow-process"]);
    assert_eq!((program.exit, program.stderr.as_str()), (0, ""));
    assert_eq!(program, in_process(&[]));
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.starts_with("drwx------"), "{seen}");
    let socket = seen.split_whitespace().last().unwrap();
    assert!(!Path::new(socket).exists(), "its folder is removed");
}

/// A command that is killed cannot end anything itself.
#[test]
fn a_program_and_its_children_end_also_when_the_command_is_killed() {
    let place = Folder::new();
    let script = format!(
        "cd {}; sleep 600 & echo $! > child; echo $$ > pids; exec sleep 600",
        place.path().display()
    );
    let folder = example(&json!(["sh", "-c", script]));
    let mut command = std::process::Command::new(BIPLANE)
        .args(["render", "xr.yaml", "composition.yaml", "functions.yaml", "--allow-process"])
        .current_dir(folder.path())
        .spawn()
        .unwrap();
    let read = |name: &str| std::fs::read_to_string(place.at(name)).unwrap_or_default();
    let start = std::time::Instant::now();
    while !read("pids").ends_with('\n') {
        assert!(start.elapsed().as_secs() < 60, "it is not started");
        std::thread::yield_now();
    }
    command.kill().unwrap();
    command.wait().unwrap();
    for pid in [read("pids"), read("child")] {
        assert!(is_gone(pid.trim()), "{pid} is still there");
    }
}

/// Waits for the system to end a process. A zombie counts as ended.
fn is_gone(pid: &str) -> bool {
    let start = std::time::Instant::now();
    loop {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            return true;
        }
        if start.elapsed().as_secs() > 60 {
            return false;
        }
        std::thread::yield_now();
    }
}
