//! A mutating webhook: sets fields that nobody has set, and writes others in its own form.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_model::Value;
use biplane_testkit::certs::Certs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::world::World;

/// A running webhook. It ends with the process.
pub(crate) struct Webhook {
    asked: Arc<AtomicUsize>,
}

impl Webhook {
    /// Starts a webhook for ConfigMaps and Deployments of the namespace `default`.
    pub(crate) fn start(world: &World) -> Self {
        let certs = Certs::new(&["localhost"]);
        let read = |file: &str| std::fs::read(certs.server().join(file)).unwrap();
        let chain = CertificateDer::pem_slice_iter(&read("tls.crt")).map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_slice(&read("tls.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, count) = (Arc::clone(&config), Arc::clone(&count));
                // A connection that ends is no fault.
                std::thread::spawn(move || serve(stream, config, &count).ok());
            }
        });
        let rule = |group: &str, resource: &str| {
            json!({"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource],
                "operations": ["CREATE", "UPDATE"]})
        };
        let only_default = json!({"matchLabels": {"kubernetes.io/metadata.name": "default"}});
        world.create(
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            &json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": "defaults"},
                "webhooks": [{
                    "name": "defaults.example.org",
                    "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
                    "timeoutSeconds": 30,
                    "clientConfig": {
                        "url": format!("https://localhost:{port}/"),
                        "caBundle": STANDARD.encode(read("ca.crt")),
                    },
                    "namespaceSelector": only_default,
                    "rules": [rule("", "configmaps"), rule("apps", "deployments")],
                }],
            }),
        );
        Self { asked }
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Answers the requests of one connection.
fn serve(stream: TcpStream, config: Arc<ServerConfig>, asked: &AtomicUsize) -> std::io::Result<()> {
    let session = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(session, stream));
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().map_err(std::io::Error::other)?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        asked.fetch_add(1, Ordering::SeqCst);
        let answer = answer(&serde_json::from_slice(&body)?).to_string();
        let stream = stream.get_mut();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        )?;
        stream.flush()?;
    }
}

fn answer(review: &Value) -> Value {
    let (request, mut patch) = (&review["request"], Vec::new());
    let object = &request["object"];
    let mut set = |path: &str, value: Value| {
        if object.pointer(path) != Some(&value) {
            patch.push(json!({"op": "add", "path": path, "value": value}));
        }
    };
    match request["kind"]["kind"].as_str() {
        Some("ConfigMap") if object["data"].is_object() => {
            set("/data/defaulted", json!("by the webhook"));
            // What another has set is written in capitals.
            if let Some(text) = object["data"]["loud"].as_str() {
                set("/data/loud", json!(text.to_uppercase()));
            }
        }
        Some("Deployment") => {
            set("/spec/template/spec/hostname", json!("defaulted"));
        }
        _ => {}
    }
    let patch = STANDARD.encode(Value::from(patch).to_string());
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": request["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch},
    })
}
