//! Starts a Kubernetes API server with its own etcd on the loopback address, for one test or
//! developer.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use tempfile::TempDir;

use crate::certificates::{Identity, token};
use crate::probe::Probe;
use crate::process::{Reaper, Server};
use crate::provision::{Binaries, Places, Tool, provision};
use crate::{EnvError, say};

/// etcd answers within a second on an idle machine, kube-apiserver within ten.
const ETCD_PATIENCE: Duration = Duration::from_mins(1);
const APISERVER_PATIENCE: Duration = Duration::from_mins(3);

/// A port that was free can be taken before the server binds it; then another one is tried.
const ATTEMPTS: usize = 5;

/// The error message of both programs when a port is in use.
const PORT_IS_TAKEN: &str = "address already in use";

/// A running API server. Dropping it stops both programs and removes their files.
#[derive(Debug)]
pub struct ApiServer {
    /// The URL of the server: `https://127.0.0.1:PORT`.
    pub url: String,
    /// The CA that signed the server's certificate.
    pub ca_pem: String,
    /// Bearer token of a member of `system:masters`.
    pub token: String,
    /// A self-contained kubeconfig.
    pub kubeconfig: PathBuf,
    // Fields are dropped in this order. Drop the reaper before the servers it would reap.
    _reaper: Reaper,
    _apiserver: Server,
    _etcd: Server,
    _dir: TempDir,
}

impl ApiServer {
    /// Starts a new, empty control plane. Missing programs are provided first.
    ///
    /// Blocks until the server is ready: some seconds, or minutes if programs have to be built.
    pub fn start() -> Result<Self, EnvError> {
        let binaries =
            provision(&Places::from_env()?, &[Tool::Etcd, Tool::KubeApiserver], &mut say)?;
        Self::start_with(&binaries)
    }

    /// Starts a new control plane from the given programs.
    pub fn start_with(binaries: &Binaries) -> Result<Self, EnvError> {
        let mut attempt = 1;
        loop {
            match Self::launch(binaries) {
                Err(EnvError::Stopped { log, .. })
                    if log.contains(PORT_IS_TAKEN) && attempt < ATTEMPTS =>
                {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// A `kubectl` command for this server. The program is provided first if it is missing.
    pub fn kubectl(&self) -> Result<Command, EnvError> {
        let binaries = provision(&Places::from_env()?, &[Tool::Kubectl], &mut say)?;
        let mut command = Command::new(binaries.path(Tool::Kubectl)?);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        Ok(command)
    }

    fn launch(binaries: &Binaries) -> Result<Self, EnvError> {
        let dir = tempfile::Builder::new()
            .prefix("biplane-devenv-")
            .tempdir()
            .map_err(EnvError::io("make a folder for the servers"))?;
        let identity = Identity::generate()?;
        let token = token()?;

        let etcd_port = free_port()?;
        let mut etcd = Server::spawn(
            "etcd",
            &mut etcd_command(&binaries.path(Tool::Etcd)?, dir.path(), etcd_port),
            dir.path().join("etcd.log"),
        )?;
        etcd.wait_ready(&Probe::Plain { port: etcd_port, path: "/health" }, ETCD_PATIENCE)?;

        let files = Files::write(dir.path(), &identity, &token)?;
        let port = free_port()?;
        let mut apiserver = Server::spawn(
            "kube-apiserver",
            &mut apiserver_command(&binaries.path(Tool::KubeApiserver)?, &files, port, etcd_port),
            dir.path().join("kube-apiserver.log"),
        )?;
        let reaper = Reaper::watch(dir.path(), &[&apiserver, &etcd])?;
        let probe = Probe::tls(port, "/readyz", &token, &identity)?;
        apiserver.wait_ready(&probe, APISERVER_PATIENCE)?;
        // If our etcd lost its port to another etcd, the API server is now using the other one.
        etcd.still_runs()?;

        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig = dir.path().join("kubeconfig.yaml");
        write(&kubeconfig, &kubeconfig_text(&url, &identity.ca, &token))?;
        Ok(Self {
            url,
            ca_pem: identity.ca,
            token,
            kubeconfig,
            _reaper: reaper,
            _apiserver: apiserver,
            _etcd: etcd,
            _dir: dir,
        })
    }
}

/// The files that kube-apiserver reads.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    account_key: PathBuf,
    account_public_key: PathBuf,
    tokens: PathBuf,
}

impl Files {
    fn write(dir: &Path, identity: &Identity, token: &str) -> Result<Self, EnvError> {
        let files = Self {
            certificate: dir.join("server.crt"),
            key: dir.join("server.key"),
            account_key: dir.join("accounts.key"),
            account_public_key: dir.join("accounts.pub"),
            tokens: dir.join("tokens.csv"),
        };
        write(&files.certificate, &identity.certificate)?;
        write(&files.key, &identity.key)?;
        write(&files.account_key, &identity.account_key)?;
        write(&files.account_public_key, &identity.account_public_key)?;
        write(&files.tokens, &format!("{token},admin,admin,\"system:masters\"\n"))?;
        Ok(files)
    }
}

fn etcd_command(program: &Path, dir: &Path, port: u16) -> Command {
    let client = format!("http://127.0.0.1:{port}");
    let mut command = Command::new(program);
    command
        .arg("--data-dir")
        .arg(dir.join("etcd"))
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", "http://127.0.0.1:0"])
        // The data need not survive a power failure: it is removed with its owner.
        .arg("--unsafe-no-fsync=true");
    command
}

fn apiserver_command(program: &Path, files: &Files, port: u16, etcd_port: u16) -> Command {
    let flag = |name: &str, path: &Path| {
        let mut flag = std::ffi::OsString::from(format!("--{name}="));
        flag.push(path);
        flag
    };
    let mut command = Command::new(program);
    command
        .arg(format!("--etcd-servers=http://127.0.0.1:{etcd_port}"))
        .arg(format!("--secure-port={port}"))
        .args(["--bind-address=127.0.0.1", "--endpoint-reconciler-type=none"])
        .args(["--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true"])
        .args(["--authorization-mode=RBAC", "--profiling=false"])
        // No controller creates service accounts here, so pods must not wait for one.
        .arg("--disable-admission-plugins=ServiceAccount")
        .arg("--service-account-issuer=https://kubernetes.default.svc.cluster.local")
        .arg(flag("service-account-signing-key-file", &files.account_key))
        .arg(flag("service-account-key-file", &files.account_public_key))
        .arg(flag("tls-cert-file", &files.certificate))
        .arg(flag("tls-private-key-file", &files.key))
        .arg(flag("token-auth-file", &files.tokens));
    command
}

fn kubeconfig_text(url: &str, ca: &str, token: &str) -> String {
    let ca = base64::engine::general_purpose::STANDARD.encode(ca);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: biplane
  cluster:
    server: {url}
    certificate-authority-data: {ca}
users:
- name: admin
  user:
    token: {token}
contexts:
- name: biplane
  context:
    cluster: biplane
    user: admin
current-context: biplane
"
    )
}

fn write(path: &Path, text: &str) -> Result<(), EnvError> {
    std::fs::write(path, text).map_err(EnvError::io(format!("write {}", path.display())))
}

fn free_port() -> Result<u16, EnvError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(EnvError::io("find a free port"))
}

#[cfg(test)]
mod tests;
