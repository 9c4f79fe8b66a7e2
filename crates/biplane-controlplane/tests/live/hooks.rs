//! Webhooks on a real API server: what becomes of Compositions and definitions, of webhooks that
//! are down, and of certificates that are exchanged.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_cluster::Cluster;
use biplane_controlplane::composite::Settings;
use biplane_controlplane::init::{self, Address, Features};
use biplane_controlplane::start::{self, Server};
use biplane_controlplane::webhooks::{COMPOSITIONS, CertificateSource, DEFINITIONS, Webhooks};
use biplane_engine::SystemClock;
use biplane_function::metrics::Metrics;
use biplane_function::server::{Listener, Network};
use biplane_model::Value;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::world::{PATIENCE, Plane, World, condition, wait_for};

const API: &str = "/apis/apiextensions.crossplane.io/v1";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/crossplane";
const SECRETS: &str = "/api/v1/namespaces/crossplane-system/secrets";
const SERVER: &str = "crossplane-tls-server";
const FEATURES: Features = Features { resources_mode: true, environments: false };

/// A server that asks webhooks of this process.
struct Hooked {
    world: World,
    cluster: Arc<dyn Cluster>,
    runtime: Runtime,
}

/// Webhooks that are being served.
struct Served {
    webhooks: Webhooks,
    port: u16,
}

impl Hooked {
    fn new() -> Self {
        let world = World::with(FEATURES);
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        let cluster = runtime.block_on(async {
            let (metrics, options) = (Metrics::default(), biplane_kube::Options::default());
            let at = Server::At(world.endpoint());
            start::connect(&at, options, &metrics).await.unwrap().0
        });
        Self { cluster: Arc::new(cluster), world, runtime }
    }

    /// Serves webhooks, and makes the server ask them.
    fn serve(&self) -> Served {
        let bound = Listener::bind(Network::Tcp, "127.0.0.1:0");
        let listener = self.runtime.block_on(bound).unwrap();
        let port = listener.tcp_address().unwrap().port();
        self.tell(Address::Url(format!("https://127.0.0.1:{port}").parse().unwrap()));
        let source = CertificateSource::Secret {
            namespace: "crossplane-system".to_owned(),
            name: SERVER.to_owned(),
        };
        let cluster = Arc::clone(&self.cluster);
        let serving = Webhooks::serve(listener, cluster, &source, true);
        let served = Served { webhooks: self.runtime.block_on(serving).unwrap(), port };
        self.wait_until_asked();
        served
    }

    /// Tells the server where webhooks are.
    fn tell(&self, at: Address) {
        let webhooks = Some(init::Webhooks { at, validation: true });
        let options = init::Options { webhooks, features: FEATURES, ..init::Options::default() };
        let prepared = init::run(Arc::clone(&self.cluster), &SystemClock, &options);
        self.runtime.block_on(prepared).unwrap();
    }

    /// The server reads its configuration when it gets to it.
    fn wait_until_asked(&self) {
        let mut broken = composition("broken", None, &thing("Nop"), "spec.text");
        broken["spec"]["resources"][0]["patches"] =
            json!([{"type": "PatchSet", "patchSetName": "none"}]);
        wait_for("the webhooks", PATIENCE, || {
            let answer = self.world.client.post(&format!("{API}/compositions?dryRun=All"), &broken);
            let body = answer.unwrap().body;
            let is_asked = body.contains("denied the request: Composition.apiextensions");
            if is_asked { Ok(()) } else { Err(body) }
        });
    }

    /// What kubectl says about the creation of an object, and whether that would succeed.
    fn create(&self, object: &Value) -> (bool, String) {
        let mut kubectl = self.world.kubectl();
        let mut kubectl = kubectl
            .args(["create", "--dry-run=server", "--validate=false", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        kubectl.stdin.take().unwrap().write_all(object.to_string().as_bytes()).unwrap();
        let output = kubectl.wait_with_output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    }

    /// The certificates that the server trusts webhooks by.
    fn trusted(&self) -> Vec<u8> {
        let configuration = self.world.get(CONFIGURATION).unwrap();
        let bundle = configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap();
        STANDARD.decode(bundle).unwrap()
    }

    fn stop(&self, served: Served) {
        self.runtime.block_on(served.webhooks.stop());
    }
}

fn thing(kind: &str) -> Value {
    json!({"apiVersion": "nop.example.org/v1", "kind": kind})
}

/// A Composition of one resource, whose number is patched from a field.
fn composition(name: &str, mode: Option<&str>, base: &Value, from: &str) -> Value {
    let annotations = mode.map_or(
        json!({}),
        |mode| json!({"crossplane.io/composition-schema-aware-validation-mode": mode}),
    );
    let patch = json!({
        "type": "FromCompositeFieldPath", "fromFieldPath": from, "toFieldPath": "spec.count",
    });
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "compositeTypeRef": {"apiVersion": "nop.example.org/v1", "kind": "XNop"},
            "mode": "Resources",
            "resources": [{"name": "a", "base": base, "patches": [patch]}],
        },
    })
}

fn crd(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let fields = json!({"text": {"type": "string"}, "count": {"type": "integer"}});
    let spec = json!({"type": "object", "properties": fields});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.nop.example.org")},
        "spec": {
            "group": "nop.example.org", "scope": "Cluster",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}},
            }}],
        },
    })
}

/// SAV-2, SAV-3: each row of the table of modes.
#[test]
fn the_mode_decides_what_becomes_of_a_composition() {
    let hooked = Hooked::new();
    for kind in ["XNop", "Nop"] {
        hooked.world.create(CRDS, &crd(kind));
    }
    let served = hooked.serve();
    let modes = [None, Some("warn"), Some("loose"), Some("strict")];
    let denied =
        "admission webhook \"compositions.apiextensions.crossplane.io\" denied the request: ";

    // Nothing is wrong.
    for mode in modes {
        let said = hooked.create(&composition("c", mode, &thing("Nop"), "spec.count"));
        assert_eq!(said, (true, String::new()), "{mode:?}");
    }
    // A schema is missing.
    let missing =
        "CustomResourceDefinition.apiextensions.k8s.io \"Missing.nop.example.org\" not found";
    for mode in modes {
        let said = hooked.create(&composition("c", mode, &thing("Missing"), "spec.text"));
        if mode == Some("strict") {
            let error = format!("{denied}cannot get the needed CRDs: [{missing}]\n");
            assert!(!said.0 && said.1.ends_with(&error), "{mode:?}: {said:?}");
        } else {
            assert_eq!(said, (true, format!("Warning: {missing}\n")), "{mode:?}");
        }
    }
    // The schemas do not allow it.
    let wrong = "spec.resources[0].patches[0].transforms: Required value: the fromFieldPath does not have a type compatible with the toFieldPath according to their schemas and no transforms were provided: string != integer";
    for mode in modes {
        let said = hooked.create(&composition("c", mode, &thing("Nop"), "spec.text"));
        if matches!(mode, None | Some("warn")) {
            let warning = format!(
                "Warning: Composition \"c\" invalid for schema-aware validation: {wrong}\n"
            );
            assert_eq!(said, (true, warning), "{mode:?}");
        } else {
            let error = format!("The Composition \"c\" is invalid: {wrong}\n");
            assert_eq!(said, (false, error), "{mode:?}");
        }
    }
    // The Composition contradicts itself.
    for mode in modes {
        let mut broken = composition("c", mode, &thing("Nop"), "spec.count");
        broken["spec"]["resources"][0]["patches"] =
            json!([{"type": "PatchSet", "patchSetName": "none"}]);
        let said = hooked.create(&broken);
        let error = "The Composition \"c\" is invalid: spec.resources[0].patches[0].patchSetName: Invalid value: \"none\": patchSetName must be the name of a declared patchSet\n";
        assert_eq!(said, (false, error.to_owned()), "{mode:?}");
    }
    // There is no such mode.
    let said = hooked.create(&composition("c", Some("lax"), &thing("Nop"), "spec.count"));
    let error = format!(
        "{denied}cannot get validation mode: invalid schema-aware composition validation mode: lax\n"
    );
    assert!(!said.0 && said.1.ends_with(&error), "{said:?}");

    // An update is reviewed as well.
    let compositions = format!("{API}/compositions");
    hooked
        .world
        .create(&compositions, &composition("c", Some("strict"), &thing("Nop"), "spec.count"));
    let worse = composition("c", Some("strict"), &thing("Nop"), "spec.text");
    let refused = hooked.world.client.merge_patch(&format!("{compositions}/c"), &worse).unwrap();
    assert_eq!(refused.code, 422, "{}", refused.body);
    assert!(refused.body.contains("string != integer"), "{}", refused.body);
    hooked.world.delete(&format!("{compositions}/c"));
    hooked.stop(served);
}

#[test]
fn webhooks_may_go_down_and_certificates_are_exchanged() {
    let hooked = Hooked::new();
    for kind in ["XNop", "Nop"] {
        hooked.world.create(CRDS, &crd(kind));
    }
    let served = hooked.serve();
    let path = format!("{API}/compositions?dryRun=All");
    let wrong = composition("c", Some("strict"), &thing("Nop"), "spec.text");
    let post = |object: &Value| hooked.world.client.post(&path, object).unwrap();
    assert_eq!(post(&wrong).code, 422);

    // While nobody answers, nothing is written.
    hooked.stop(served);
    let fine = composition("c", Some("strict"), &thing("Nop"), "spec.count");
    let refused = post(&fine);
    assert_eq!(refused.code, 500, "{}", refused.body);
    let failed = "failed calling webhook \\\"compositions.apiextensions.crossplane.io\\\"";
    assert!(refused.body.contains(failed), "{}", refused.body);
    let served = hooked.serve();
    wait_for("another server", PATIENCE, || match post(&fine) {
        answer if answer.code == 201 => Ok(()),
        answer => Err(answer.body),
    });

    // The same authority signs another certificate. What the server trusts stays.
    let configuration = || hooked.world.get(CONFIGURATION).unwrap();
    let url = Address::Url(format!("https://127.0.0.1:{}", served.port).parse().unwrap());
    let first = shown(served.port, "127.0.0.1", &hooked.trusted()).unwrap();
    assert_eq!(first, stored(&hooked));
    let before = configuration();
    hooked.world.delete(&format!("{SECRETS}/{SERVER}"));
    hooked.tell(url.clone());
    let second = stored(&hooked);
    assert_ne!(first, second);
    assert_eq!(configuration(), before);
    let shows = |name: &str, certificate: &CertificateDer<'_>| {
        wait_for("the certificate", PATIENCE, || {
            match shown(served.port, name, &hooked.trusted()) {
                Ok(shown) if shown == *certificate => Ok(()),
                other => Err(format!("{other:?}")),
            }
        });
    };
    shows("127.0.0.1", &second);
    assert_eq!(post(&wrong).code, 422);

    // Another authority, which the server has to be told about.
    hooked.world.delete(&format!("{SECRETS}/crossplane-root-ca"));
    hooked.tell(url);
    let third = stored(&hooked);
    assert_ne!(second, third);
    shows("127.0.0.1", &third);
    assert_ne!(configuration()["webhooks"], before["webhooks"]);
    hooked.wait_until_asked();
    assert_eq!(post(&wrong).code, 422);
    assert_eq!(post(&fine).code, 201);

    // A Service, whose names the certificate needs.
    let namespaces = "/api/v1/namespaces/crossplane-system";
    hooked.world.create(
        &format!("{namespaces}/services"),
        &json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hooks"},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }),
    );
    hooked.tell(Address::Service {
        name: "hooks".to_owned(),
        namespace: "crossplane-system".to_owned(),
        port: served.port,
    });
    let fourth = stored(&hooked);
    assert_ne!(third, fourth);
    shows("hooks.crossplane-system.svc", &fourth);
    let client = &configuration()["webhooks"][1]["clientConfig"];
    assert_eq!(client["service"]["path"], COMPOSITIONS);
    assert_eq!(client.get("url"), None);
    hooked.wait_until_asked();
    assert_eq!(post(&wrong).code, 422);
    assert_eq!(post(&fine).code, 201);

    // The second run of the same changes nothing, and without webhooks they go.
    let before = configuration();
    hooked.tell(Address::Service {
        name: "hooks".to_owned(),
        namespace: "crossplane-system".to_owned(),
        port: served.port,
    });
    assert_eq!(configuration(), before);
    hooked.stop(served);
    let options = init::Options { webhooks: None, features: FEATURES, ..init::Options::default() };
    let prepared = init::run(Arc::clone(&hooked.cluster), &SystemClock, &options);
    hooked.runtime.block_on(prepared).unwrap();
    assert_eq!(hooked.world.get(CONFIGURATION), None);
    wait_for("a server that asks nobody", PATIENCE, || match post(&wrong) {
        answer if answer.code == 201 => Ok(()),
        answer => Err(answer.body),
    });
}

/// The certificate in the Secret.
fn stored(hooked: &Hooked) -> CertificateDer<'static> {
    let secret = hooked.world.get(&format!("{SECRETS}/{SERVER}")).unwrap();
    let pem = STANDARD.decode(secret["data"]["tls.crt"].as_str().unwrap()).unwrap();
    CertificateDer::from_pem_slice(&pem).unwrap()
}

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A connection to webhooks of this machine that trusts an authority.
fn connect(port: u16, name: &str, authority: &[u8]) -> std::io::Result<Tls> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut session =
        ClientConnection::new(Arc::new(config), name).map_err(std::io::Error::other)?;
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    while session.is_handshaking() {
        session.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(session, stream))
}

/// The certificate that webhooks show.
fn shown(port: u16, name: &str, authority: &[u8]) -> std::io::Result<CertificateDer<'static>> {
    let stream = connect(port, name, authority)?;
    let chain = stream.conn.peer_certificates().unwrap_or_default();
    Ok(chain[0].clone().into_owned())
}

/// Posts a text to webhooks. Returns the status code and the body of the answer.
fn post(hooked: &Hooked, served: &Served, path: &str, body: &str) -> (u16, Value) {
    let mut stream = connect(served.port, "127.0.0.1", &hooked.trusted()).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, serde_json::from_str(body).unwrap())
}

/// A definition whose composite resources must not shrink.
fn definition() -> Value {
    let size = json!({
        "type": "integer", "x-kubernetes-validations": [
            {"rule": "self >= oldSelf", "message": "it must not shrink"},
            {"rule": "self % 2 == 0", "message": "it must be even"},
        ],
    });
    let spec = json!({"type": "object", "properties": {"size": size}});
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xdisks.rules.example.org"},
        "spec": {
            "group": "rules.example.org", "names": {"kind": "XDisk", "plural": "xdisks"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}},
            }}],
        },
    })
}

/// XRDV-1, XRDV-2, XRDV-3, XRDV-6, XRDV-7, XRDV-8: with a control plane that reconciles what is
/// accepted.
#[test]
fn definitions_are_tried_and_the_rules_in_them_are_enforced() {
    let hooked = Hooked::new();
    let world = &hooked.world;
    let served = hooked.serve();
    let plane = Plane::start(world.endpoint(), Settings::default());
    let definitions = format!("{API}/compositeresourcedefinitions");

    // A rule that does not compile.
    let mut broken = definition();
    *broken
        .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/x-kubernetes-validations/0/rule")
        .unwrap() = json!("self >= nothing");
    let refused = world.client.post(&definitions, &broken).unwrap();
    assert_eq!(refused.code, 422, "{}", refused.body);
    let status = refused.json();
    let message = status["message"].as_str().unwrap();
    let prefix = "admission webhook \"compositeresourcedefinitions.apiextensions.crossplane.io\" denied the request: invalid CRD generated for CompositeResourceDefinition: CustomResourceDefinition.apiextensions.k8s.io \"xdisks.rules.example.org\" is invalid: ";
    assert!(message.starts_with(prefix), "{message}");
    assert!(message.contains("undeclared reference to 'nothing'"), "{message}");
    let details = &status["details"];
    assert_eq!(details["kind"], "CompositeResourceDefinition");
    let field = details["causes"][0]["field"].as_str().unwrap();
    let at = "<generated_CRD_\"xdisks.rules.example.org\">.spec.validation.openAPIV3Schema.properties[spec].properties[size].x-kubernetes-validations[0].rule";
    assert_eq!(field, at);

    // What is accepted is established, with its rules.
    world.create(&definitions, &definition());
    let path = format!("{definitions}/xdisks.rules.example.org");
    wait_for("the definition", PATIENCE, || {
        let xrd = world.get(&path).unwrap();
        if condition(&xrd, "Established") == "True" { Ok(()) } else { Err(xrd.to_string()) }
    });
    let disks = "/apis/rules.example.org/v1/xdisks";
    let disk = |size: u32| {
        json!({"apiVersion": "rules.example.org/v1", "kind": "XDisk", "metadata": {"name": "d"},
            "spec": {"size": size}})
    };
    let odd = world.client.post(disks, &disk(3)).unwrap();
    assert_eq!(odd.code, 422, "{}", odd.body);
    assert!(odd.body.contains("it must be even"), "{}", odd.body);
    world.create(disks, &disk(4));
    let smaller = json!({"spec": {"size": 2}});
    let smaller = world.client.merge_patch(&format!("{disks}/d"), &smaller).unwrap();
    assert_eq!(smaller.code, 422, "{}", smaller.body);
    assert!(smaller.body.contains("it must not shrink"), "{}", smaller.body);
    world.patch(&format!("{disks}/d"), &json!({"spec": {"size": 6}}));

    // Names are immutable by a rule of the kind, which comes first, and by the webhook.
    let renamed = json!({"spec": {"names": {"kind": "XTape", "plural": "xdisks"}}});
    let refused = world.client.merge_patch(&path, &renamed).unwrap();
    assert_eq!(refused.code, 422, "{}", refused.body);
    assert!(refused.body.contains("Value is immutable"), "{}", refused.body);
    let old = world.get(&path).unwrap();
    let review = |new: &Value| {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "UPDATE", "object": new, "oldObject": old},
        })
        .to_string()
    };
    let mut renamed = old.clone();
    renamed["spec"]["names"]["kind"] = json!("XTape");
    let (code, answer) = post(&hooked, &served, DEFINITIONS, &review(&renamed));
    let status = &answer["response"]["status"];
    assert_eq!((code, &status["code"]), (200, &json!(403)), "{answer}");
    let text = "spec.names.kind: Invalid value: \"XTape\": field is immutable";
    assert_eq!(status["message"], text);

    // An update that gives a CRD which the server does not accept.
    let mut worse = definition()["spec"].clone();
    worse["versions"][0]["referenceable"] = json!(false);
    let refused = world.client.merge_patch(&path, &json!({"spec": worse})).unwrap();
    assert_eq!(refused.code, 422, "{}", refused.body);
    assert!(refused.body.contains("invalid CRD generated for"), "{}", refused.body);
    // One that adds claims: their CRD is new.
    let claims = json!({"spec": {"claimNames": {"kind": "Disk", "plural": "disks"}}});
    world.patch(&path, &claims);
    wait_for("the CRD of claims", PATIENCE, || {
        world.get(&format!("{CRDS}/disks.rules.example.org")).ok_or_else(|| "none".to_owned())
    });

    // A definition whose CRD is somebody else's.
    world.create(CRDS, &crd("XNop"));
    let mut taken = definition();
    taken["metadata"]["name"] = json!("xnops.nop.example.org");
    taken["spec"]["group"] = json!("nop.example.org");
    taken["spec"]["names"] = json!({"kind": "XNop", "plural": "xnops"});
    let refused = world.client.post(&definitions, &taken).unwrap();
    assert_eq!(refused.code, 409, "{}", refused.body);
    assert!(refused.body.contains("already exists"), "{}", refused.body);

    // What is no review.
    for (path, body) in [(DEFINITIONS, "{"), (COMPOSITIONS, "{}"), (COMPOSITIONS, "")] {
        let (code, answer) = post(&hooked, &served, path, body);
        let status = &answer["response"]["status"];
        assert_eq!((code, &status["code"]), (400, &json!(400)), "{answer}");
    }

    // Definitions can go while they are reviewed.
    world.delete(&format!("{disks}/d"));
    world.delete(&path);
    wait_for("the end of the definition", PATIENCE, || match world.get(&path) {
        None => Ok(()),
        Some(xrd) => Err(xrd.to_string()),
    });
    plane.stop();
    hooked.stop(served);
}
