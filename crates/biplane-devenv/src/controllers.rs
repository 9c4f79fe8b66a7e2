//! Starts kube-controller-manager with the controllers that need no nodes.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::EnvError;
use crate::client::Client;
use crate::common::Common;
use crate::kube_apiserver::flag;
use crate::process::Server;
use crate::provision::Tool;
use crate::users::{CONTROLLERS_USER, SELF};

/// The controllers are ready within five seconds on an idle machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// The controllers that work without nodes. Others would create pods that never run.
const CONTROLLERS: [&str; 8] = [
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "resourcequota-controller",
    "validatingadmissionpolicy-status-controller",
];

/// An object whose owner never existed. The garbage collector deletes it as soon as it works.
const ORPHAN: &str = "biplane-devenv-is-garbage-collected";

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// Starts the controllers and waits until they work: the namespace `default` has its service account,
/// and garbage is collected.
pub(crate) fn start(
    common: &Common,
    api_port: u16,
    report: &mut dyn FnMut(&str),
) -> Result<Server, EnvError> {
    let log = common.folder.join("kube-controller-manager.log");
    let mut command = command(common, api_port)?;
    let mut server = Server::spawn("kube-controller-manager", &mut command, log, &common.group)?;
    let client = common.client(api_port, SELF)?;
    let mut created = false;
    server.wait_ready(|| works(&client, &mut created), PATIENCE, report)?;
    Ok(server)
}

fn works(client: &Client, created: &mut bool) -> Result<(), String> {
    client
        .probe("/api/v1/namespaces/default/serviceaccounts/default")
        .map_err(|reason| format!("no service account in namespace default: {reason}"))?;
    if !*created {
        let answer = client.post(ROLES, &orphan()).map_err(|error| error.to_string())?;
        match answer.code {
            // It is there already if the controllers stopped before they deleted it.
            201 | 409 => *created = true,
            code => return Err(format!("cannot create {ORPHAN}: answered {code}")),
        }
    }
    let answer = client.get(&format!("{ROLES}/{ORPHAN}")).map_err(|error| error.to_string())?;
    match answer.code {
        404 => Ok(()),
        _ => Err("no garbage is collected yet".into()),
    }
}

fn orphan() -> serde_json::Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": ORPHAN,
            "ownerReferences": [{
                "apiVersion": "v1",
                "kind": "Namespace",
                "name": "biplane-devenv-never-existed",
                "uid": "00000000-0000-4000-8000-000000000000",
            }],
        },
    })
}

fn command(common: &Common, api_port: u16) -> Result<Command, EnvError> {
    let kubeconfig = common.kubeconfig("controllers", api_port, CONTROLLERS_USER)?;
    let mut command = Command::new(common.binaries.path(Tool::KubeControllerManager)?);
    command
        .arg(flag("kubeconfig", &kubeconfig))
        .arg(format!("--controllers={}", CONTROLLERS.join(",")))
        // It serves nothing, so that it needs no port.
        .args(["--secure-port=0", "--leader-elect=false"])
        .arg(flag("service-account-private-key-file", &common.files.account_key))
        .arg(flag("root-ca-file", &common.files.ca))
        // It would otherwise send 20 requests a second, and garbage would pile up.
        .args(["--kube-api-qps=1000", "--kube-api-burst=2000"]);
    Ok(command)
}
