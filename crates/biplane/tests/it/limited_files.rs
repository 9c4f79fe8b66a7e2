//! Tests input files that never end, are too large, or are no files.

use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use crate::mistakes::{COMPOSITION, XR, fails};
use crate::support::{Folder, run};

fn pipe(folder: &Folder, name: &str) {
    folder.write(&format!("{name}.d"), "");
    assert!(Command::new("mkfifo").arg(folder.at(name)).status().unwrap().success());
}

/// Nobody writes to it, so that reading it would never end.
#[test]
fn a_pipe_among_the_files_of_a_folder_is_an_error() {
    let folder = Folder::new();
    let [xr, composition] = [("xr.yaml", XR), ("composition.yaml", COMPOSITION)]
        .map(|(name, text)| folder.write(name, text));
    folder.write("o/a.yaml", "kind: A\n");
    pipe(&folder, "o/b.yaml");
    folder.write("s/a.json", "{}");
    pipe(&folder, "s/b.json");
    folder.write("c/composition.yaml", COMPOSITION);
    pipe(&folder, "c/more/b.yml");
    let path = |name: &str| folder.at(name).display().to_string();
    for (flag, file) in [
        (format!("-o={}", path("o")), "o/b.yaml"),
        (format!("-e={}", path("o")), "o/b.yaml"),
        (format!("-s={}", path("s")), "s/b.json"),
        (format!("--compositions={}", path("c")), "c/more/b.yml"),
    ] {
        let ran = run(&["render", &xr, &composition, "--until-stable", &flag]);
        let want = format!("open {}: it is not a regular file\n", path(file));
        assert!(ran.exit == 1 && ran.stderr.ends_with(&want), "{flag}: {ran:?}");
    }
}

/// It would fill the memory.
#[test]
fn a_file_without_end_is_given_up() {
    fails(
        &[],
        &["-o=/dev/zero"],
        1,
        "cannot load observed composed resources from \"/dev/zero\": cannot load YAML stream from file: open /dev/zero: it is larger than 64 MiB",
    );
}

#[test]
fn a_file_that_is_neither_a_file_nor_a_pipe_is_refused() {
    let folder = Folder::new();
    let [xr, composition] = [("xr.yaml", XR), ("composition.yaml", COMPOSITION)]
        .map(|(name, text)| folder.write(name, text));
    let socket = folder.at("s.yaml");
    let _socket = UnixListener::bind(&socket).unwrap();
    let flag = format!("-o={}", socket.display());
    let ran = run(&["render", &xr, &composition, &flag]);
    let want = format!("open {}: it is neither a file nor a pipe\n", socket.display());
    assert!(ran.exit == 1 && ran.stderr.ends_with(&want), "{ran:?}");
}

/// As a shell passes `<(command)`, and as `/dev/stdin` is often used.
#[test]
fn pipes_that_users_name_are_read() {
    let folder = Folder::new();
    folder.write("composition.yaml", COMPOSITION);
    folder.write("xr.yaml", XR);
    let render = |xr: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_biplane"))
            .args(["render", xr, "composition.yaml"])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It is not read when the file is given.
        let _ = child.stdin.take().unwrap().write_all(XR.as_bytes());
        child.wait_with_output().unwrap()
    };
    let plain = render("xr.yaml");
    assert!(plain.status.success() && !plain.stdout.is_empty());
    for xr in ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
        let ran = render(xr);
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "{xr}");
        assert_eq!(ran, plain, "{xr}");
    }
}
