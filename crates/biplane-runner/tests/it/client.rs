//! Tests of the gRPC client: targets, protocol versions, connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use biplane_function::serve as server;
use biplane_runner::grpc::{Client, Security};
use biplane_runner::{Call, FunctionRunner, GrpcRunner, Named, tls};
use biplane_testkit::certs::Certs;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::faults::{Raw, V1, V1BETA1};
use crate::world::{BRIEF, Echo, PATIENCE, Wire, call, client, config, error, request, serve};

/// FN-P7
#[tokio::test]
async fn a_function_that_speaks_v1_is_called_once() {
    let echo = Echo::default();
    let running = serve(echo.clone()).await;
    let answer = call(running.target()).await.unwrap();
    let desired = answer.desired.unwrap().composite.unwrap().resource.unwrap();
    assert_eq!(desired.to_value(), json!({"spec": {"replicas": 3, "ratio": 0.5}}));
    assert_eq!(answer.meta.unwrap().tag, "t");
    assert_eq!(echo.0.load(Ordering::SeqCst), 1);
}

/// FN-P7
#[tokio::test]
async fn a_function_that_speaks_v1beta1_only_is_called_in_that() {
    let raw = Raw::answering("").serve(V1BETA1).await;
    for n in 1..=2 {
        assert!(call(&raw.target).await.is_ok());
        assert_eq!(raw.calls(), n, "nothing is remembered, nothing is called twice");
    }
}

/// FN-P7
#[tokio::test]
async fn other_failures_of_v1_are_final() {
    let raw = Raw::failing(14, "gone").serve(V1).await;
    assert_eq!(error(&raw.target, PATIENCE).await, "rpc error: code = Unavailable desc = gone");
    assert_eq!(raw.calls(), 1);
}

#[tokio::test]
async fn a_server_without_either_service_is_unimplemented() {
    let raw = Raw::answering("").serve("some.other.Service").await;
    let text = error(&raw.target, PATIENCE).await;
    assert!(text.starts_with("rpc error: code = Unimplemented desc = "), "{text}");
}

#[tokio::test]
async fn errors_of_the_function_are_told_in_the_words_of_go() {
    let running = serve(Echo::default()).await;
    let runner = Named::default()
        .with("fn", Arc::new(GrpcRunner::new(running.target(), Security::Plaintext).unwrap()));
    let call = Call { function: "fn".into(), ..Call::default() };
    let failed = runner.run(&call, request("t", &json!({"fail": "not today"}))).await;
    assert_eq!(
        failed.unwrap_err().to_string(),
        "rpc error: code = FailedPrecondition desc = not today"
    );
    let call = Call { function: "other".into(), ..Call::default() };
    let failed = runner.run(&call, request("t", &Value::Null)).await;
    assert_eq!(
        failed.unwrap_err().to_string(),
        "unknown function \"other\" - is it listed in the render input?"
    );
}

/// FN-P3
#[tokio::test]
async fn calls_share_a_connection() {
    let running = serve(Echo::default()).await;
    let wire = Wire::to(running.target()).await;
    let client = client(&wire.address);
    for _ in 0..5 {
        client.call(request("t", &Value::Null), Some(PATIENCE)).await.unwrap();
    }
    assert_eq!(wire.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_connection_that_broke_between_calls_is_replaced() {
    let running = serve(Echo::default()).await;
    let wire = Wire::to(running.target()).await;
    let client = client(&wire.address);
    client.call(request("t", &Value::Null), Some(PATIENCE)).await.unwrap();
    wire.cut();
    // The broken connection is detected before or during the next call. The call after that
    // succeeds.
    let _ = client.call(request("t", &Value::Null), Some(PATIENCE)).await;
    client.call(request("t", &Value::Null), Some(PATIENCE)).await.unwrap();
    assert_eq!(wire.connections.load(Ordering::SeqCst), 2);
}

/// FN-P5
#[tokio::test]
async fn a_call_waits_for_a_function_that_is_still_starting() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let client = client(&address);
    let started = async {
        // The connection is refused at least once before the server listens.
        let refused = client.call(request("t", &Value::Null), Some(BRIEF)).await;
        assert!(refused.is_err());
        let config = server::Config { address: address.clone(), ..config() };
        server::start(Arc::new(Echo::default()), config, std::future::pending()).await.unwrap()
    };
    let (answer, _running) =
        tokio::join!(client.call(request("t", &Value::Null), Some(PATIENCE)), started);
    answer.unwrap();
}

/// FN-P5
#[tokio::test]
async fn a_function_that_never_starts_exceeds_the_deadline_and_says_why() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    assert_eq!(
        error(&address, BRIEF).await,
        format!(
            "rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: \
             desc = \"transport: Error while dialing: dial tcp {address}: connect: connection refused\""
        )
    );
}

/// FN-P5
#[tokio::test]
async fn calls_go_round_all_addresses() {
    let (one, two) = (Echo::default(), Echo::default());
    let (first, second) = (serve(one.clone()).await, serve(two.clone()).await);
    let client = client(&format!("ipv4:{},{}", first.target(), second.target()));
    let calls = || [&one, &two].map(|echo| echo.0.load(Ordering::SeqCst));
    let call = async || client.call(request("t", &Value::Null), Some(PATIENCE)).await.unwrap();
    // Calls do not wait until both addresses are connected.
    let connected = async {
        while calls().contains(&0) {
            call().await;
        }
    };
    tokio::time::timeout(PATIENCE, connected).await.expect("both are reached");
    let before = calls();
    for round in 1..=10 {
        call().await;
        call().await;
        assert_eq!(calls(), before.map(|n| n + round), "one call each in every round");
    }
}

/// FN-P5
#[tokio::test]
async fn an_address_whose_connection_broke_is_called_again() {
    let (one, two) = (Echo::default(), Echo::default());
    let (first, second) = (serve(one.clone()).await, serve(two.clone()).await);
    let wire = Wire::to(first.target()).await;
    let client = client(&format!("ipv4:{},{}", wire.address, second.target()));
    let reach_both = async || {
        let before = [&one, &two].map(|echo| echo.0.load(Ordering::SeqCst));
        while one.0.load(Ordering::SeqCst) == before[0] || two.0.load(Ordering::SeqCst) == before[1]
        {
            let _ = client.call(request("t", &Value::Null), Some(PATIENCE)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reach_both()).await.expect("both are reached");
    wire.cut();
    tokio::time::timeout(PATIENCE, reach_both()).await.expect("both are reached again");
}

/// FN-P5
#[tokio::test]
async fn an_address_that_refuses_does_not_hold_up_the_others() {
    let echo = Echo::default();
    let running = serve(echo.clone()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = listener.local_addr().unwrap();
    drop(listener);
    let client = client(&format!("ipv4:{dead},{}", running.target()));
    for _ in 0..10 {
        client.call(request("t", &Value::Null), Some(PATIENCE)).await.unwrap();
    }
    assert_eq!(echo.0.load(Ordering::SeqCst), 10);
}

#[tokio::test]
async fn names_are_resolved() {
    let running = serve(Echo::default()).await;
    let (_, port) = running.target().rsplit_once(':').unwrap();
    for target in [
        format!("dns:///localhost:{port}"),
        format!("localhost:{port}"),
        format!("passthrough:///127.0.0.1:{port}"),
    ] {
        assert!(call(&target).await.is_ok(), "{target}");
    }
    let text = error("dns:///no-such-host.invalid:1", BRIEF).await;
    assert!(text.contains("DeadlineExceeded"), "{text}");
}

async fn serve_with(certs: &Certs) -> server::Running {
    let config = server::Config { certs_dir: Some(certs.server()), insecure: false, ..config() };
    server::start(Arc::new(Echo::default()), config, std::future::pending()).await.unwrap()
}

fn trusting(certs: &Certs) -> Security {
    Security::MutualTls(tls::client(&certs.client()).unwrap())
}

/// FN-T1, FN-T2, FN-T5
#[tokio::test]
async fn both_ends_show_certificates() {
    let certs = Certs::new(&["localhost"]);
    let running = serve_with(&certs).await;
    let (_, port) = running.target().rsplit_once(':').unwrap();
    let client = Client::new(&format!("dns:///localhost:{port}"), trusting(&certs)).unwrap();
    client.call(request("t", &Value::Null), Some(PATIENCE)).await.unwrap();
}

#[tokio::test]
async fn certificates_are_used_once_they_have_changed() {
    let (old, new) = (Certs::new(&["localhost"]), Certs::new(&["localhost"]));
    let running = serve_with(&old).await;
    let (_, port) = running.target().rsplit_once(':').unwrap();
    let target = format!("localhost:{port}");
    let client = Client::new(&target, trusting(&old)).unwrap();
    client.call(request("t", &Value::Null), Some(PATIENCE)).await.unwrap();
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        let next = old.server().join("next");
        std::fs::copy(new.server().join(name), &next).unwrap();
        std::fs::rename(next, old.server().join(name)).unwrap();
    }
    // A connection that is open stays open. Others use the new certificates.
    client.call(request("t", &Value::Null), Some(PATIENCE)).await.unwrap();
    let other = Client::new(&target, trusting(&new)).unwrap();
    other.call(request("t", &Value::Null), Some(PATIENCE)).await.unwrap();
    let text = refusal(&target, trusting(&old)).await;
    assert!(text.contains("x509: certificate signed by unknown authority"), "{text}");
}

async fn refusal(target: &str, security: Security) -> String {
    let client = Client::new(target, security).unwrap();
    let answer = client.call(request("t", &Value::Null), Some(BRIEF)).await;
    biplane_function::status::text(&answer.unwrap_err())
}

/// FN-T1, FN-T2
#[tokio::test]
async fn a_server_of_another_authority_or_name_is_refused() {
    let certs = Certs::new(&["localhost"]);
    let running = serve_with(&certs).await;
    let text = refusal(running.target(), trusting(&Certs::new(&["localhost"]))).await;
    assert!(text.contains("x509: certificate signed by unknown authority"), "{text}");
    // The target is an address, the certificate is for a name.
    let text = refusal(running.target(), trusting(&certs)).await;
    assert!(text.contains("x509: certificate is not valid for 127.0.0.1"), "{text}");
}

/// FN-T5
#[tokio::test]
async fn a_client_of_another_authority_is_refused() {
    let (ours, theirs) = (Certs::new(&["localhost"]), Certs::new(&["localhost"]));
    let running = serve_with(&ours).await;
    // The client trusts the server, but presents a certificate that the server does not trust.
    std::fs::copy(ours.client().join("ca.crt"), theirs.client().join("ca.crt")).unwrap();
    let (_, port) = running.target().rsplit_once(':').unwrap();
    let text = refusal(&format!("localhost:{port}"), trusting(&theirs)).await;
    assert!(text.contains("DeadlineExceeded") && text.contains("connection error"), "{text}");
}

#[tokio::test]
async fn a_client_without_certificates_is_refused() {
    let certs = Certs::new(&["localhost"]);
    let running = serve_with(&certs).await;
    let text = error(running.target(), BRIEF).await;
    assert!(text.contains("error reading server preface"), "{text}");
}

/// FN-T1
#[tokio::test]
async fn certificates_that_cannot_be_read_are_named() {
    let certs = Certs::new(&["localhost"]);
    std::fs::write(certs.client().join("ca.crt"), "nonsense").unwrap();
    assert_eq!(tls::client(&certs.client()).unwrap_err().to_string(), "invalid CA certificate");
    std::fs::remove_file(certs.client().join("ca.crt")).unwrap();
    let text = tls::client(&certs.client()).unwrap_err().to_string();
    assert!(text.starts_with("cannot read CA certificate: open "), "{text}");
    std::fs::write(certs.client().join("tls.key"), "nonsense").unwrap();
    let text = tls::client(&certs.client()).unwrap_err().to_string();
    assert!(text.starts_with("cannot load X509 keypair: "), "{text}");
}
