//! A registry with one image that requires credentials.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bollard::query_parameters::RemoveImageOptions;
use serde_json::{Value, json};
use tokio_stream::StreamExt;

use crate::Case;
use crate::daemon::Daemon;
use crate::images::FUNCTION;
use crate::work::{Ran, Work};

pub(crate) const CASES: &[Case] = &[
    ("an_image_is_pulled_with_credentials", an_image_is_pulled_with_credentials),
    ("an_image_that_arrives_broken_is_reported", an_image_that_arrives_broken_is_reported),
];

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// `me:secret`, encoded.
const CREDENTIALS: &str = "bWU6c2VjcmV0";

/// The content by path: type and bytes.
type Content = BTreeMap<String, (String, Vec<u8>)>;

/// Serves an image of the daemon as `tests:v1`, and returns its name.
fn serve(daemon: &Daemon, broken: bool) -> String {
    let content = Arc::new(content(daemon, broken));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let content = content.clone();
            std::thread::spawn(move || answer(&stream.unwrap(), &content));
        }
    });
    format!("{address}/tests:v1")
}

fn content(daemon: &Daemon, broken: bool) -> Content {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("image.tar");
    let mut bytes = Vec::new();
    daemon.wait(async {
        let mut export = std::pin::pin!(daemon.docker().export_image(FUNCTION));
        while let Some(part) = export.next().await {
            bytes.extend(part.unwrap());
        }
    });
    std::fs::write(&archive, bytes).unwrap();
    let unpacked =
        Command::new("tar").arg("-C").arg(folder.path()).arg("-xf").arg(&archive).status();
    assert!(unpacked.unwrap().success());
    let read = |name: &Value| std::fs::read(folder.path().join(name.as_str().unwrap())).unwrap();
    let index: Value = serde_json::from_slice(&read(&json!("manifest.json"))).unwrap();
    let image = &index[0];

    let mut content = Content::new();
    let mut add = |kind: &str, name: &Value| {
        let bytes = read(name);
        let digest = digest(&folder.path().join(name.as_str().unwrap()));
        let described = json!({"mediaType": kind, "size": bytes.len(), "digest": digest});
        content.insert(format!("/v2/tests/blobs/{digest}"), (kind.to_owned(), bytes));
        described
    };
    let layers = image["Layers"].as_array().unwrap().iter();
    let layers: Vec<_> =
        layers.map(|l| add("application/vnd.docker.image.rootfs.diff.tar.gzip", l)).collect();
    let kind = "application/vnd.docker.container.image.v1+json";
    let mut config = add(kind, &image["Config"]);
    if broken {
        // A digest that does not match the content.
        config["digest"] = format!("sha256:{:064}", 0).into();
        let path = format!("/v2/tests/blobs/sha256:{:064}", 0);
        content.insert(path, (kind.to_owned(), read(&image["Config"])));
    }
    let manifest =
        json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
    let manifest = manifest.to_string().into_bytes();
    let file = folder.path().join("own-manifest");
    std::fs::write(&file, &manifest).unwrap();
    for name in ["v1".to_owned(), digest(&file)] {
        let path = format!("/v2/tests/manifests/{name}");
        content.insert(path, (MANIFEST.to_owned(), manifest.clone()));
    }
    content
}

fn digest(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    format!("sha256:{}", text.split_whitespace().next().unwrap())
}

/// Answers one request.
fn answer(stream: &TcpStream, content: &Content) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let headers: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    let known = headers.iter().any(|h| h.ends_with(&format!("Basic {CREDENTIALS}")));
    let (status, kind, body): (_, &str, &[u8]) = match content.get(path) {
        _ if !known => ("401 Unauthorized", "application/json", b"{}"),
        _ if path == "/v2/" => ("200 OK", "application/json", b"{}"),
        Some((kind, body)) => ("200 OK", kind, body),
        None => ("404 Not Found", "application/json", b"{}"),
    };
    let mut stream = stream;
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nDocker-Distribution-Api-Version: registry/2.0\r\nWWW-Authenticate: Basic realm=\"tests\"\r\nConnection: close\r\n\r\n").ok()?;
    if method != "HEAD" {
        stream.write_all(body).ok()?;
    }
    Some(())
}

fn forget(daemon: &Daemon, image: &str) {
    let remove = daemon.docker().remove_image(image, None::<RemoveImageOptions>, None);
    daemon.wait(remove).unwrap();
}

/// RT-10
fn an_image_is_pulled_with_credentials(daemon: &Daemon) {
    let image = serve(daemon, false);
    let (registry, _) = image.split_once('/').unwrap();
    let work = Work::with(daemon, &image, &[]);
    let ran = work.render(&[]);
    ran.assert_failed(&format!(
        r#"cannot pull Docker image "{image}": Error response from daemon: "#
    ));
    assert!(ran.stderr.contains("no basic auth credentials"), "{}", ran.stderr);

    let config = json!({"auths": {registry: {"auth": CREDENTIALS}}});
    work.write(".docker/config.json", &config.to_string());
    let ran = work.render(&[]);
    ran.assert_rendered();
    let said = format!("Pulling image {image}...\n✓ Pulling image {image}\n");
    assert_eq!(ran.stderr, said);
    assert_eq!(work.render(&[]).stderr, "", "it is there now");
    let always = work.render(&["-a=render.crossplane.io/runtime-docker-pull-policy=Always"]);
    assert_eq!(always.stderr, said);
    forget(daemon, &image);

    let program = work.write(
        "bin/docker-credential-tests",
        &format!("#!/bin/sh\nread -r server\ntest \"$1 $server\" = 'get {registry}' && echo '{{\"Username\":\"me\",\"Secret\":\"secret\"}}'\n"),
    );
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    work.write(".docker/config.json", &json!({"credsStore": "tests"}).to_string());
    let mut command = work.command(&["--verbose"]);
    let path = format!("{}:/usr/bin:/bin", work.path("bin").display());
    let ran = Ran::of(command.env("PATH", path));
    ran.assert_rendered();
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
    forget(daemon, &image);

    // Without the credential helper, public images can still be pulled.
    let ran = work.render(&["--verbose"]);
    ran.assert_failed("no basic auth credentials");
    assert!(ran.stderr.contains("Cannot get pull options"), "{}", ran.stderr);
}

/// RT-10: the response starts well, and the failure is in the middle of it.
fn an_image_that_arrives_broken_is_reported(daemon: &Daemon) {
    let image = serve(daemon, true);
    let (registry, _) = image.split_once('/').unwrap();
    let work = Work::with(daemon, &image, &[]);
    let config = json!({"auths": {registry: {"auth": CREDENTIALS}}});
    work.write(".docker/config.json", &config.to_string());
    let ran = work.render(&[]);
    ran.assert_failed(&format!(
        r#"cannot start Function "first": cannot pull Docker image "{image}": "#
    ));
    assert!(ran.stderr.contains("verification failed"), "{}", ran.stderr);
}
