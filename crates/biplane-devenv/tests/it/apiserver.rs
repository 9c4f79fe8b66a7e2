//! Tests that a started API server responds, rejects unknown clients, and leaves nothing behind.

use std::net::TcpStream;
use std::path::Path;

use biplane_devenv::ApiServer;

fn listens(server_url: &str) -> bool {
    TcpStream::connect(server_url.trim_start_matches("https://")).is_ok()
}

#[test]
fn serves_its_owner_and_ends_with_it() {
    let server = ApiServer::start().unwrap();
    let dir = server.kubeconfig.parent().map(Path::to_owned).unwrap();
    let url = server.url.clone();

    let output = server.kubectl().unwrap().args(["auth", "whoami", "-o", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("system:masters"));

    let stranger =
        server.kubectl().unwrap().args(["get", "namespaces", "--token", "guess"]).output().unwrap();
    assert!(!stranger.status.success(), "a guessed token opens the door");

    assert!(listens(&url));
    drop(server);
    assert!(!listens(&url), "the API server outlives its owner");
    assert!(!dir.exists(), "{} stays behind", dir.display());
}
