//! Starts kube-apiserver.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::EnvError;
use crate::common::{AUDIT_LOG, Common};
use crate::process::Server;
use crate::provision::Tool;
use crate::users::SELF;

/// kube-apiserver answers within ten seconds on an idle machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// The largest size of an audit log before the server begins a new one, in megabytes: never.
const LARGEST_AUDIT_LOG: u32 = 1_000_000;

/// The server's ports, and its number among those of one control plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) number: usize,
    pub(crate) port: u16,
    pub(crate) etcd_port: u16,
}

impl Place {
    /// A file of this server. The first one has names without a number.
    fn file(self, name: &str) -> String {
        match (self.number, name.rsplit_once('.')) {
            (2.., Some((stem, extension))) => format!("{stem}-{}.{extension}", self.number),
            _ => name.to_owned(),
        }
    }

    pub(crate) fn audit_log(self) -> String {
        self.file(AUDIT_LOG)
    }
}

/// Starts kube-apiserver and waits until it is ready.
pub(crate) fn start(
    common: &Common,
    place: Place,
    report: &mut dyn FnMut(&str),
) -> Result<Server, EnvError> {
    let log = common.folder.join(&place.file("kube-apiserver.log"));
    let mut command = command(common, place)?;
    let mut server = Server::spawn("kube-apiserver", &mut command, log, &common.group)?;
    let client = common.client(place.port, SELF)?;
    server.wait_ready(|| client.probe("/readyz"), PATIENCE, report)?;
    Ok(server)
}

/// A flag whose value is a path.
pub(crate) fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(path);
    flag
}

fn command(common: &Common, place: Place) -> Result<Command, EnvError> {
    let files = &common.files;
    let mut command = Command::new(common.binaries.path(Tool::KubeApiserver)?);
    command
        .arg(format!("--etcd-servers=http://127.0.0.1:{}", place.etcd_port))
        .arg(format!("--secure-port={}", place.port))
        .args(["--bind-address=127.0.0.1", "--endpoint-reconciler-type=none"])
        .args(["--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true"])
        .args(["--authorization-mode=RBAC", "--profiling=false"])
        .arg("--service-account-issuer=https://kubernetes.default.svc.cluster.local")
        .arg(flag("service-account-signing-key-file", &files.account_key))
        .arg(flag("service-account-key-file", &files.account_public_key))
        .arg(flag("tls-cert-file", &files.certificate))
        .arg(flag("tls-private-key-file", &files.key))
        .arg(flag("token-auth-file", &files.tokens));
    if !common.controllers {
        // No controller creates service accounts, so pods must not wait for one.
        command.arg("--disable-admission-plugins=ServiceAccount");
    }
    if common.audit_log.is_some() {
        command
            .arg(flag("audit-policy-file", &files.audit_policy))
            .arg(flag("audit-log-path", &common.folder.join(&place.audit_log())))
            // A request is written down before its answer ends, so that it can be counted then.
            .arg("--audit-log-mode=blocking")
            .arg(format!("--audit-log-maxsize={LARGEST_AUDIT_LOG}"));
    }
    command.args(&common.api_server_flags);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_do_not_share_files() {
        let place = |number| Place { number, port: 1, etcd_port: 2 };
        assert_eq!(place(1).file("kube-apiserver.log"), "kube-apiserver.log");
        assert_eq!(place(2).file("kube-apiserver.log"), "kube-apiserver-2.log");
    }
}
