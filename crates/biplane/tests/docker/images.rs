//! Images with the program under test. They are created once, from the binary and the libraries
//! that it needs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use bollard::models::{ContainerConfig, ContainerCreateBody};
use bollard::query_parameters::{
    CommitContainerOptions, CreateContainerOptions, CreateImageOptions, RemoveContainerOptions,
};
use tokio_stream::StreamExt;

use crate::daemon::Daemon;

const REPOSITORY: &str = "biplane.example/tests";
/// Files in all images besides programs: users, and replacements for the Python tools.
const FILES: &[(&str, &str)] = &[
    ("etc/passwd", "root:x:0:0::/:/bin/sh\nnonroot:x:65532:65532::/:/bin/sh\n"),
    ("etc/group", "root:x:0:\nnonroot:x:65532:\n"),
    ("bin/apt-get", "#!/bin/sh\n"),
    (
        "bin/python3",
        "#!/bin/sh\n[ \"$1 $2\" = '-m venv' ] && mkdir -p \"$3/bin\" && cp /tools/* \"$3/bin\"\n",
    ),
    (
        "tools/hatch",
        "#!/bin/sh\nmkdir \"$4\" && cp function/main.py \"$4/function.whl\" && cp ../../schemas/python/types \"$4\"\n",
    ),
    (
        "tools/pip",
        "#!/bin/sh\n[ \"$2\" = --quiet ] && exit\nfor word; do case $word in --target=*) into=${word#--target=} ;; esac; done\nmkdir -p \"$into/bin\" && cp \"$word\" \"$into/bin/function\" && cp /whl/types \"$into\"\n",
    ),
];

/// The program as a function.
pub(crate) const FUNCTION: &str = "biplane.example/tests:function";
/// A function that exits immediately with a message.
pub(crate) const BROKEN: &str = "biplane.example/tests:broken";
/// A function that does not listen and ignores requests to stop.
pub(crate) const DEAF: &str = "biplane.example/tests:deaf";
/// The program as an engine.
pub(crate) const ENGINE: &str = "biplane.example/tests:engine";

/// Whether an image is one that every test finds.
pub(crate) fn is_provided(tag: &str) -> bool {
    tag.strip_prefix(REPOSITORY).is_some_and(|rest| rest.starts_with(':'))
}

pub(crate) fn provide(daemon: &Daemon) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let program = Path::new(env!("CARGO_BIN_EXE_biplane"));
    copy(program, &root.join("biplane"));
    // Most of a debug build is not needed there.
    let _ = Command::new("strip").arg(root.join("biplane")).status();
    copy_libraries(program, root);
    for name in ["sh", "sleep"] {
        let program = Path::new("/bin").join(name);
        copy_libraries(&program, root);
        copy(&program, &root.join(name));
    }
    for name in ["sh", "mkdir", "cp"] {
        let program = Path::new("/bin").join(name);
        copy_libraries(&program, root);
        copy(&program, &root.join("bin").join(name));
    }
    for (path, text) in FILES {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let archive = Command::new("tar").arg("-C").arg(root).args(["-c", "."]).output().unwrap();
    assert!(archive.status.success());
    import(daemon, archive.stdout);
    for (tag, entry_point) in [
        ("function", r#"["/biplane", "function", "serve", "function-dummy"]"#),
        ("broken", r#"["/biplane", "function", "serve", "function-that-is-not-there"]"#),
        ("deaf", r#"["/sh", "-c", "/sleep 600"]"#),
        ("engine", r#"["/biplane"]"#),
    ] {
        tag_with(daemon, REPOSITORY, tag, entry_point);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::copy(from, to).unwrap();
}

fn copy_libraries(program: &Path, root: &Path) {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        copy(Path::new(library), &root.join(library.trim_start_matches('/')));
    }
}

fn import(daemon: &Daemon, archive: Vec<u8>) {
    let options = CreateImageOptions {
        from_src: Some("-".into()),
        repo: Some(REPOSITORY.into()),
        tag: Some("base".into()),
        ..CreateImageOptions::default()
    };
    let body = bollard::body_full(archive.into());
    let import = daemon.docker().create_image(Some(options), Some(body), None);
    daemon.wait(async {
        let mut import = std::pin::pin!(import);
        while let Some(step) = import.next().await {
            step.unwrap();
        }
    });
}

/// The same image with another entry point.
pub(crate) fn tag_with(daemon: &Daemon, repository: &str, tag: &str, entry_point: &str) {
    let docker = daemon.docker();
    daemon.wait(async {
        let body = ContainerCreateBody {
            image: Some(format!("{REPOSITORY}:base")),
            cmd: Some(vec!["/biplane".into()]),
            ..ContainerCreateBody::default()
        };
        let container = docker.create_container(None::<CreateContainerOptions>, body).await;
        let container = container.unwrap().id;
        let options = CommitContainerOptions {
            container: Some(container.clone()),
            repo: Some(repository.into()),
            tag: Some(tag.into()),
            changes: Some(format!("ENTRYPOINT {entry_point}\nCMD []")),
            ..CommitContainerOptions::default()
        };
        docker.commit_container(options, ContainerConfig::default()).await.unwrap();
        docker.remove_container(&container, None::<RemoveContainerOptions>).await.unwrap();
    });
}
