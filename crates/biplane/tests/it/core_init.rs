//! Tests `core init` as users run it, on a real API server.

use biplane_devenv::ApiServer;
use serde_json::Value;

use crate::support::{Folder, run};

/// What was logged: a JSON object on each line.
fn logged(stderr: &str) -> Vec<Value> {
    stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_cluster_is_prepared_once() {
    let server = ApiServer::start().unwrap();
    let kubeconfig = format!("--kubeconfig={}", server.kubeconfig.display());
    let line =
        ["core", "init", &kubeconfig, "--namespace=platform", "--webhook-configurations-path=x"];
    let first = run(&line);
    assert_eq!(first.exit, 0, "{}", first.stderr);
    let said = logged(&first.stderr);
    assert!(said.len() > 20, "{}", first.stderr);
    assert!(first.stderr.contains("\"Initialization has been completed\""), "{}", first.stderr);

    // The warning about webhooks, and the end: nothing else was done.
    let second = run(&line);
    assert_eq!((second.exit, logged(&second.stderr).len()), (0, 2), "{}", second.stderr);

    let list = server
        .kubectl()
        .unwrap()
        .args(["get", "secrets,lock", "-n", "platform", "-o", "name"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(list.stdout).unwrap(),
        "secret/crossplane-root-ca\nsecret/crossplane-tls-client\nsecret/crossplane-tls-server\n\
         lock.pkg.crossplane.io/lock\n"
    );

    let folder = Folder::new();
    folder.write("x.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n");
    let crds = format!("--cr-ds-path={}", folder.path().display());
    let refused = run(&["core", "init", &kubeconfig, &crds]);
    assert_eq!(refused.exit, 1);
    let want = format!(
        "biplane: error: cannot initialize core: {}:1: only CRDs can exist in the folder of CRDs\n",
        folder.at("x.yaml").display()
    );
    assert!(refused.stderr.ends_with(&want), "{}", refused.stderr);
}

#[test]
fn mistakes_end_with_crossplanes_exit_codes() {
    let missing = run(&["core", "init", "--kubeconfig=/missing/kubeconfig"]);
    assert_eq!(missing.exit, 1);
    assert!(
        missing.stderr.contains("error: cannot initialize core: cannot use kubeconfig /missing/"),
        "{}",
        missing.stderr
    );
    for line in [["core", "init", "--nonsense"], ["core", "init", "--enable-webhooks=perhaps"]] {
        assert_eq!(run(&line).exit, 80, "{line:?}");
    }
}
