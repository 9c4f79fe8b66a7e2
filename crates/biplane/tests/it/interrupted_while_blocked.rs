//! Tests commands that are interrupted while they block on reading a file or writing their output.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fixtures::process;
use crate::support::Folder;
use crate::watch::{COMPOSITION, XR};

const ASKED: [Signal; 2] = [Signal::SIGINT, Signal::SIGTERM];

/// A folder with a function that is a local process and records its process id.
fn folder() -> Folder {
    let folder = Folder::new();
    let script = format!(
        "echo $$ > pid; exec {} function serve function-patch-and-transform --metrics-address= --insecure --address {{address}}",
        env!("CARGO_BIN_EXE_biplane")
    );
    let functions = process("function-patch-and-transform", &["sh", "-c", &script]);
    folder.write("xr.yaml", XR);
    folder.write("composition.yaml", COMPOSITION);
    folder.write("functions.yaml", &functions);
    folder
}

fn render(folder: &Folder, flags: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_biplane"))
        .args(["render", "xr.yaml", "composition.yaml", "functions.yaml", "--allow-process"])
        .args(flags)
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Replaces the composite resource by a pipe.
fn pipe(folder: &Folder) {
    std::fs::remove_file(folder.at("xr.yaml")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.at("xr.yaml")).status().unwrap().success());
}

/// Returns once the pipe has a reader.
fn write_to(folder: &Folder) -> File {
    OpenOptions::new().write(true).open(folder.at("xr.yaml")).unwrap()
}

/// Interrupts a command, and checks that it ends and its function ends.
fn stops(folder: &Folder, mut child: Child, signal: Signal) -> String {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
    let start = std::time::Instant::now();
    // Nothing reads its output.
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        if start.elapsed().as_secs() > 60 {
            child.kill().unwrap();
            panic!("{signal} does not stop it");
        }
        std::thread::yield_now();
    };
    assert_eq!(ended.code(), Some(130), "{signal}");
    if let Ok(pid) = std::fs::read_to_string(folder.at("pid")) {
        let stat = format!("/proc/{}/stat", pid.trim());
        let is_there = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        while is_there() {
            assert!(start.elapsed().as_secs() < 60, "{pid} is still there");
            std::thread::yield_now();
        }
    }
    let mut said = String::new();
    child.stderr.unwrap().read_to_string(&mut said).unwrap();
    said
}

#[test]
fn a_file_that_is_waited_for_keeps_nobody_from_stopping_a_watch() {
    for signal in ASKED {
        let folder = folder();
        pipe(&folder);
        let child = render(&folder, &["--watch"]);
        let _held = write_to(&folder);
        assert_eq!(stops(&folder, child, signal), "");
    }
}

#[test]
fn functions_that_are_up_end_while_a_file_is_waited_for() {
    for signal in ASKED {
        let folder = folder();
        pipe(&folder);
        let mut child = render(&folder, &["--watch"]);
        write_to(&folder).write_all(XR.as_bytes()).unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        folder.write("composition.yaml", &COMPOSITION.replace("Paint", "Varnish"));
        let _held = write_to(&folder);
        assert!(folder.at("pid").exists());
        let said = stops(&folder, child, signal);
        assert!(
            said.ends_with("changed: composition.yaml\n") && said.lines().count() == 1,
            "{said}"
        );
    }
}

/// The output is larger than a pipe's buffer.
#[test]
fn a_reader_that_does_not_read_keeps_nobody_from_stopping() {
    for (flags, last_words) in [(&[][..], "biplane: error: interrupted\n"), (&["--watch"], "")] {
        for signal in ASKED {
            let folder = folder();
            let colour = "r".repeat(1 << 20);
            folder.write("xr.yaml", &XR.replace("red", &colour));
            let mut child = render(&folder, flags);
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            assert!(folder.at("pid").exists());
            assert_eq!(stops(&folder, child, signal), last_words);
        }
    }
}
