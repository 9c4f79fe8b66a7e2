//! The function in Go, as a program that is called with mutual TLS and can hang and die.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_controlplane::functions::{self, CertificateSource};
use biplane_controlplane::init::certificates::{Authority, Pair, Purpose};
use biplane_engine::{Clock as _, SystemClock};
use biplane_model::Value;
use jiff::{Timestamp, ToSpan as _};
use serde_json::json;
use tempfile::TempDir;

use crate::world::{PATIENCE, World, wait_for};

const SECRETS: &str = "/api/v1/namespaces/crossplane-system/secrets";

/// The authority that `core init` has made, which signs the certificates of both sides.
pub(crate) struct Signer {
    authority: Authority,
    pem: Vec<u8>,
}

impl Signer {
    pub(crate) fn of(world: &World) -> Self {
        let secret = world.get(&format!("{SECRETS}/crossplane-root-ca")).unwrap();
        let (pem, key) = (read(&secret, "tls.crt"), read(&secret, "tls.key"));
        Self { authority: Authority::parse(&pem, &key).unwrap(), pem }
    }

    /// A certificate that is valid from now on.
    pub(crate) fn valid(&self, purpose: Purpose) -> Pair {
        self.issue(purpose, SystemClock.now())
    }

    /// A certificate that has expired.
    pub(crate) fn expired(&self, purpose: Purpose) -> Pair {
        let hours = 11 * 366 * 24;
        self.issue(purpose, SystemClock.now().checked_sub(hours.hours()).unwrap())
    }

    fn issue(&self, purpose: Purpose, now: Timestamp) -> Pair {
        self.authority.issue(&["localhost".to_owned()], purpose, now).unwrap()
    }

    /// Gives the control plane another certificate.
    pub(crate) fn give(&self, world: &World, pair: &Pair) {
        let data = json!({
            "tls.crt": STANDARD.encode(&pair.certificate),
            "tls.key": STANDARD.encode(&pair.key),
            "ca.crt": STANDARD.encode(&self.pem),
        });
        world.patch(&format!("{SECRETS}/crossplane-tls-client"), &json!({"data": data}));
    }
}

fn read(secret: &Value, key: &str) -> Vec<u8> {
    STANDARD.decode(secret["data"][key].as_str().unwrap()).unwrap()
}

/// Calls functions with the certificates of the Secret that `core init` has made.
pub(crate) fn with_mutual_tls(step_limit: Option<Duration>) -> functions::Options {
    let certificates = CertificateSource::Secret {
        namespace: "crossplane-system".to_owned(),
        name: "crossplane-tls-client".to_owned(),
    };
    functions::Options {
        certificates: Some(certificates),
        step_limit,
        ..functions::Options::default()
    }
}

/// A running function. It is killed when it is dropped.
pub(crate) struct Peer {
    folder: TempDir,
    process: Child,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Peer {
    /// Starts the function with a certificate.
    pub(crate) fn start(signer: &Signer, pair: &Pair) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let process = Command::new("true").spawn().unwrap();
        let mut peer = Self { folder, process };
        peer.start_again(signer, pair);
        peer
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("fn.sock")
    }

    /// Where the function is called.
    pub(crate) fn target(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Starts the function again at the same address, and waits until it listens.
    pub(crate) fn start_again(&mut self, signer: &Signer, pair: &Pair) {
        self.kill();
        let at = |file: &str| self.folder.path().join(file);
        std::fs::write(at("tls.crt"), &pair.certificate).unwrap();
        std::fs::write(at("tls.key"), &pair.key).unwrap();
        std::fs::write(at("ca.crt"), &signer.pem).unwrap();
        // One that was killed has left it.
        let _ = std::fs::remove_file(self.socket());
        self.process = Command::new(biplane_testkit::peers::go("server"))
            .arg("--network=unix")
            .arg("--address")
            .arg(self.socket())
            .arg("--tls-certs-dir")
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("the function", PATIENCE, || {
            if self.socket().exists() { Ok(()) } else { Err("there is no socket".to_owned()) }
        });
    }

    /// Ends the function at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Stops the function where it is. Its connections stay open.
    pub(crate) fn hang(&self) {
        self.signal("-STOP");
    }

    /// Lets the function go on.
    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
}
