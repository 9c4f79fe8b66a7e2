//! Tests engines other than the built-in one, and functions that are local processes.

use std::os::unix::fs::PermissionsExt;

use biplane_testkit::Recording;

use crate::support::{Folder, Ran};

/// Renders a recorded case with a shell script as the engine.
fn with_engine(script: &str, flags: &[&str]) -> Ran {
    let folder = case();
    let path = folder.write("engine.sh", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let binary = format!("--crossplane-binary={path}");
    render(&folder, &[&[binary.as_str()], flags].concat())
}

fn case() -> Folder {
    let folder = Folder::new();
    for (name, text) in &Recording::load("engine", "result-normal-and-warning").files {
        let text = text.replace("runtime: Development", "runtime: InProcess");
        folder.write(name, &text);
    }
    folder
}

fn render(folder: &Folder, flags: &[&str]) -> Ran {
    folder.render(flags)
}

/// ENG-6, ENG-12, T-24, T-25, T-61
#[test]
fn what_a_foreign_engine_says_is_passed_on() {
    let failed =
        "cannot render composite resource: crossplane internal render returned error with output: ";
    for (script, want) in [
        ("cat >/dev/null; exit 3", format!("{failed}: exit status 3")),
        ("cat >/dev/null; echo boom >&2; exit 1", format!("{failed}boom\n                : exit status 1")),
        (
            "cat >/dev/null; printf '\\012\\000'; echo stop >&2; exit 3",
            "cannot render composite resource: crossplane internal render: pipeline returned fatal: stop".into(),
        ),
        (
            "echo 'crossplane: error: unexpected argument internal' >&2; exit 80",
            format!("{failed}crossplane: error: unexpected argument internal\n                : exit status 80\n                The binary must be the one of the controller, which knows `internal render`. Without --crossplane-binary neither it nor Docker is needed."),
        ),
        (
            "test \"$1 $2\" = 'internal render' && cat >/dev/null",
            "render response does not contain a composite output".into(),
        ),
    ] {
        let ran = with_engine(script, &[]);
        assert_eq!(ran.stderr, format!("biplane: error: {want}\n"), "{script}");
        assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{script}");
    }
    let garbage = with_engine("cat >/dev/null; echo garbage", &[]);
    let start =
        "biplane: error: cannot render composite resource: cannot unmarshal render response: ";
    assert!(garbage.stderr.starts_with(start), "{}", garbage.stderr);
}

#[test]
fn a_foreign_engine_that_hangs_is_ended() {
    let ran = with_engine("exec sleep 600", &["--timeout=200ms"]);
    assert_eq!(ran.exit, 1);
    let end = ": signal: killed\n                It was ended since the time that --timeout allows was over.\n";
    assert!(ran.stderr.ends_with(end), "{}", ran.stderr);
}

#[test]
fn a_foreign_engine_that_cannot_be_started_is_named() {
    let folder = case();
    let file = folder.at("xr.yaml").display().to_string();
    let ran = render(&folder, &[&format!("--engine={file}")]);
    let want = format!(
        "biplane: error: cannot render composite resource: crossplane internal render returned error with output: : fork/exec {file}: permission denied\n"
    );
    assert_eq!((ran.exit, ran.stderr), (1, want));
}

#[test]
fn a_program_that_ends_is_reported_with_its_log() {
    let folder = case();
    let ran = render(
        &folder,
        &[
            "--allow-process",
            "-a=render.crossplane.io/runtime=Process",
            r#"-a=render.crossplane.io/runtime-process-command=["sh"\,"-c"\,"echo no such flag $0 >&2; exit 4"]"#,
        ],
    );
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("has ended (exit status: 4):\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("no such flag --insecure\n"), "{}", ran.stderr);
}

/// ENG-3, RX-42: context that another engine cannot provide is served to it.
#[test]
fn another_engine_gets_context_and_programs() {
    let binary = env!("CARGO_BIN_EXE_biplane");
    let engine = format!("--engine={binary}");
    let command = format!(
        "-a=render.crossplane.io/runtime-process-command=[\"{binary}\"\\,\"function\"\\,\"serve\"\\,\"function-dummy\"\\,\"--metrics-address=\"]"
    );
    let program = ["--allow-process", "-a=render.crossplane.io/runtime=Process", command.as_str()];
    let context = ["-c", "-r", "-x", "--context-values=a={\"b\": [1, 2]}"];
    let plain = render(&case(), &context);
    assert_eq!((plain.exit, plain.stderr.as_str()), (0, ""));
    assert!(
        plain.stdout.ends_with("fields:\n  a:\n    b:\n    - 1\n    - 2\nkind: Context\n"),
        "{}",
        plain.stdout
    );
    for flags in [
        [&context[..], &[&engine]].concat(),
        [&context[..], &program].concat(),
        [&context[..], &program, &[&engine]].concat(),
    ] {
        assert_eq!(render(&case(), &flags), plain, "{flags:?}");
    }
}

/// ENG-12, T-61: this program is not started again, whatever its name.
#[test]
fn our_own_program_as_the_engine_is_the_engine_built_in() {
    let folder = case();
    let link = folder.at("crossplane");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_biplane"), &link).unwrap();
    let file = |name: &str| folder.at(name).to_str().unwrap().to_owned();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_biplane"))
        .args(["render", &file("xr.yaml"), &file("composition.yaml"), &file("functions.yaml")])
        .arg(format!("--crossplane-binary={}", link.display()))
        // Only the built-in engine knows the durations of its calls.
        .arg("--timing")
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.starts_with("step "), "{stderr}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), render(&folder, &[]).stdout);
}

/// T-24: a function that never responds takes no longer than the time limit.
#[test]
fn a_function_that_hangs_runs_into_the_deadline() {
    let folder = case();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!(
        "-a=render.crossplane.io/runtime-development-target={}",
        silent.local_addr().unwrap()
    );
    let development = "-a=render.crossplane.io/runtime=Development";
    let ran = render(&folder, &[development, &target, "--timeout=300ms"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("code = DeadlineExceeded"), "{}", ran.stderr);
    // The slow call is shown.
    for format in ["v1", "v2"] {
        let format = format!("--output-format={format}");
        let flags = [development, &target, "--timeout=300ms", "--timing", &format];
        let ran = render(&folder, &flags);
        assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
        let first = ran.stderr.lines().next().unwrap();
        assert!(first.starts_with("step "), "{}", ran.stderr);
        assert!(first.contains(", function function-dummy, call 1: "), "{}", ran.stderr);
    }
}
