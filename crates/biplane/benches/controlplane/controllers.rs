//! The control planes that are measured, and the functions that they call.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_cluster::{Cluster as _, Part, Source, Write};
use biplane_controlplane::init::certificates::{Authority, Pair, Purpose};
use biplane_engine::{Clock as _, SystemClock};
use biplane_kube::KubeCluster;
use biplane_model::{Gvk, Object, ObjectId, Value};
use serde_json::json;
use tempfile::TempDir;

use super::{FUNCTIONS, soon};

const BIPLANE: &str = env!("CARGO_BIN_EXE_biplane");
/// How often a cluster is prepared until it is.
const ATTEMPTS: usize = 10;
/// The name in the certificates of the functions.
const HOST: &str = "localhost";

/// A control plane and the way in which it calls functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    InProcess,
    Grpc,
    Upstream,
}

/// The folder with upstream's programs.
fn upstream() -> Option<PathBuf> {
    std::env::var_os("BIPLANE_UPSTREAM_BIN").map(PathBuf::from)
}

impl Mode {
    /// What can be measured here.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![Self::InProcess, Self::Grpc];
        if upstream().is_some_and(|bin| bin.join("crossplane").exists()) {
            all.push(Self::Upstream);
        }
        all
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InProcess => "biplane",
            Self::Grpc => "biplane-grpc",
            Self::Upstream => "crossplane",
        }
    }

    /// Whether it stops asking when there is nothing to do.
    pub(crate) fn comes_to_rest(self) -> bool {
        self != Self::Upstream
    }

    /// Prepares the cluster.
    pub(crate) fn init(self, kubeconfig: &Path) {
        // Biplane has its CRDs in the program.
        let (program, crds) = match (self, upstream()) {
            (Self::Upstream, Some(bin)) => (bin.join("crossplane"), Some(bin.join("crds"))),
            _ => (PathBuf::from(BIPLANE), None),
        };
        // Upstream's fails until the server knows the kinds that it has just been given. In a
        // cluster it is restarted.
        let prepared = (0..ATTEMPTS).any(|_| {
            let status = Command::new(&program)
                .args(["core", "init", "--enable-webhooks=false"])
                .env("KUBECONFIG", kubeconfig)
                .envs(crds.iter().map(|crds| ("CRDS_PATH", crds)))
                .env("TLS_CA_SECRET_NAME", "crossplane-root-ca")
                .env("TLS_CLIENT_SECRET_NAME", "crossplane-tls-client")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            status.expect("core init starts").success()
        });
        assert!(prepared, "core init failed");
    }
}

/// A process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A function that is called over gRPC.
struct Served {
    name: &'static str,
    port: u16,
    process: Running,
}

/// A running control plane with its functions.
pub(crate) struct Controller {
    mode: Mode,
    kubeconfig: PathBuf,
    process: Running,
    served: Vec<Served>,
    certificates: TempDir,
}

impl Controller {
    /// Starts the functions and the control plane.
    pub(crate) async fn start(mode: Mode, kubeconfig: &Path, cluster: &KubeCluster) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut served = Vec::new();
        if mode != Mode::InProcess {
            let signer = Signer::of(cluster).await;
            for purpose in [Purpose::Server, Purpose::Client] {
                signer.write(&folder.path().join(folder_of(purpose)), purpose);
            }
            served.extend(FUNCTIONS.map(|name| serve(name, &folder.path().join("server"))));
        }
        let process = spawn(mode, kubeconfig, folder.path());
        let kubeconfig = kubeconfig.to_owned();
        Self { mode, kubeconfig, process, served, certificates: folder }
    }

    /// Ends the control plane at once, and starts it again.
    pub(crate) fn restart(&mut self) {
        // It must not run twice.
        let _ = self.process.0.kill();
        let _ = self.process.0.wait();
        self.process = spawn(self.mode, &self.kubeconfig, self.certificates.path());
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// The processes of the functions.
    pub(crate) fn functions(&self) -> impl Iterator<Item = u32> {
        self.served.iter().map(|served| served.process.0.id())
    }

    /// What makes the functions known. Revisions that are made by hand are paused, so that nobody
    /// looks for their packages.
    pub(crate) fn function_objects(&self) -> Vec<Value> {
        let image = |name: &str| format!("registry.example.org/functions/{name}:v0.0.1");
        if self.mode == Mode::InProcess {
            let function = |name: &str| {
                json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
                    "metadata": {"name": name}, "spec": {"package": image(name)}})
            };
            return FUNCTIONS.map(function).into();
        }
        let revision = |name: &str| {
            json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision",
                "metadata": {"name": format!("{name}-1"),
                    "labels": {"pkg.crossplane.io/package": name},
                    "annotations": {"crossplane.io/paused": "true"}},
                "spec": {"image": image(name), "desiredState": "Active", "revision": 1}})
        };
        FUNCTIONS.map(revision).into()
    }

    /// Says where the functions are.
    pub(crate) async fn locate_functions(&self, cluster: &KubeCluster) {
        for Served { name, port, .. } in &self.served {
            let gvk = Gvk::new("pkg.crossplane.io/v1", "FunctionRevision");
            let id = ObjectId::new(gvk, "", &format!("{name}-1"));
            let mut revision = cluster.get(&id, Source::Live, soon()).await.expect("a revision");
            let endpoint = format!("dns:///{HOST}:{port}");
            let status = json!({"endpoint": endpoint, "capabilities": ["composition"]});
            revision.set_at(&["status"], status).expect("a status");
            let how = Write::by("bench");
            let written = cluster.update(&revision, Part::Status, &how, soon()).await;
            written.expect("a status");
        }
    }
}

/// Starts a control plane. The folder has the certificates for functions.
fn spawn(mode: Mode, kubeconfig: &Path, folder: &Path) -> Running {
    let program = match (mode, upstream()) {
        (Mode::Upstream, Some(bin)) => bin.join("crossplane"),
        _ => PathBuf::from(BIPLANE),
    };
    let mut start = Command::new(program);
    start.args(["core", "start", "--enable-webhooks=false"]);
    start.arg(match mode {
        Mode::InProcess => "--package-runtime=Function=InProcess",
        Mode::Grpc | Mode::Upstream => "--package-runtime=External",
    });
    if mode == Mode::Upstream {
        start.arg("--cache-dir").arg(folder.join("cache"));
        start.args(["--metrics-port", &free_port().to_string()]);
        start.args(["--health-probe-port", &free_port().to_string()]);
    } else {
        start.args(["--metrics-port=0", "--health-probe-port=0"]);
    }
    if mode != Mode::InProcess {
        start.arg("--tls-client-certs-dir").arg(folder.join("client"));
    }
    start.env("KUBECONFIG", kubeconfig).stdout(Stdio::null()).stderr(Stdio::null());
    Running(start.spawn().expect("a control plane"))
}

fn folder_of(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Server => "server",
        Purpose::Client => "client",
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Serves a function: the original if it is there, else that of the box.
fn serve(name: &'static str, certificates: &Path) -> Served {
    let port = free_port();
    let original = upstream().map(|bin| bin.join(name)).filter(|program| program.exists());
    let mut command = Command::new(original.as_deref().unwrap_or(Path::new(BIPLANE)));
    if original.is_none() {
        command.args(["function", "serve", name]);
    }
    println!("- {name}: {}", if original.is_some() { "the original" } else { "of the box" });
    let process = command
        .arg(format!("--address={}:{port}", Ipv4Addr::LOCALHOST))
        .arg("--tls-certs-dir")
        .arg(certificates)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Served { name, port, process: Running(process.expect("a function")) }
}

/// The authority that `core init` has made, which signs the certificates of both sides.
struct Signer {
    authority: Authority,
    pem: Vec<u8>,
}

impl Signer {
    async fn of(cluster: &KubeCluster) -> Self {
        let id = ObjectId::new(Gvk::new("v1", "Secret"), "crossplane-system", "crossplane-root-ca");
        let secret = cluster.get(&id, Source::Live, soon()).await.expect("an authority");
        let (pem, key) = (read(&secret, "tls.crt"), read(&secret, "tls.key"));
        Self { authority: Authority::parse(&pem, &key).expect("an authority"), pem }
    }

    /// Writes a certificate with its key and that of the authority into a folder.
    fn write(&self, folder: &Path, purpose: Purpose) {
        let issued = self.authority.issue(&[HOST.to_owned()], purpose, SystemClock.now());
        let Pair { certificate, key } = issued.expect("a certificate");
        std::fs::create_dir_all(folder).expect("a folder");
        for (file, text) in [
            ("tls.crt", certificate.as_bytes()),
            ("tls.key", key.as_bytes()),
            ("ca.crt", self.pem.as_slice()),
        ] {
            std::fs::write(folder.join(file), text).expect("a file");
        }
    }
}

fn read(secret: &Object, key: &str) -> Vec<u8> {
    STANDARD.decode(secret.str_at(&["data", key])).expect("base64")
}
