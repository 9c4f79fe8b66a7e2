//! Tests of the steps, on an in-memory API server.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use biplane_cluster::memory::{ApiServer, Entry, Verb};
use biplane_engine::FixedClock;
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::certificates::{Authority, CertificateError, Pair, Purpose};
use super::*;

fn now() -> Timestamp {
    "2026-02-03T04:05:06Z".parse().unwrap()
}

fn clock() -> &'static FixedClock {
    static CLOCK: OnceLock<FixedClock> = OnceLock::new();
    CLOCK.get_or_init(|| FixedClock(now()))
}

fn target(server: &Arc<ApiServer>) -> Target<'static> {
    Target { cluster: server.clone(), clock: clock() }
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

/// Keys take long to make, so tests share them.
fn authority() -> &'static Pair {
    static PAIR: OnceLock<Pair> = OnceLock::new();
    PAIR.get_or_init(|| Authority::generate(now()).unwrap())
}

fn parsed(pair: &Pair) -> Authority {
    Authority::parse(pair.certificate.as_bytes(), pair.key.as_bytes()).unwrap()
}

const SERVER_NAMES: [&str; 3] = [
    "crossplane-webhooks",
    "crossplane-webhooks.crossplane-system",
    "crossplane-webhooks.crossplane-system.svc",
];

fn leaf(purpose: Purpose) -> &'static Pair {
    static SERVER: OnceLock<Pair> = OnceLock::new();
    static CLIENT: OnceLock<Pair> = OnceLock::new();
    let (pair, names): (_, &[&str]) = match purpose {
        Purpose::Server => (&SERVER, &SERVER_NAMES),
        Purpose::Client => (&CLIENT, &["crossplane.crossplane-system"]),
    };
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    pair.get_or_init(|| parsed(authority()).issue(&names, purpose, now()).unwrap())
}

fn der(pair: &Pair) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()
}

/// What openssl prints of a certificate.
fn described(pair: &Pair) -> Value {
    let der = der(pair);
    let (rest, certificate) = X509Certificate::from_der(&der).unwrap();
    assert!(rest.is_empty());
    let names = certificate.subject_alternative_name().unwrap().unwrap();
    let names: Vec<String> = names
        .value
        .general_names
        .iter()
        .map(|name| match name {
            GeneralName::DNSName(name) => (*name).to_owned(),
            other => other.to_string(),
        })
        .collect();
    let usage = certificate.key_usage().unwrap().unwrap();
    let extended = certificate.extended_key_usage().unwrap();
    let constraints = certificate.basic_constraints().unwrap().unwrap();
    let public = certificate.public_key().parsed().unwrap();
    json!({
        "version": certificate.version().to_string(),
        "serial": certificate.raw_serial_as_string(),
        "issuer": certificate.issuer().to_string(),
        "subject": certificate.subject().to_string(),
        "from": Timestamp::from_second(certificate.validity().not_before.timestamp()).unwrap().to_string(),
        "until": Timestamp::from_second(certificate.validity().not_after.timestamp()).unwrap().to_string(),
        "algorithm": certificate.signature_algorithm.algorithm.to_id_string(),
        "bits": public.key_size(),
        "names": names,
        "usage": usage.value.to_string(),
        "server": extended.as_ref().is_some_and(|usage| usage.value.server_auth),
        "client": extended.as_ref().is_some_and(|usage| usage.value.client_auth),
        "critical": [usage.critical, constraints.critical],
        "ca": constraints.value.ca,
    })
}

const SUBJECT: &str = "C=Earth, O=Crossplane, L=Earth, ST=Earth, CN=Crossplane";

/// TLS-2
#[test]
fn the_authority_says_what_crossplanes_does() {
    let want = json!({
        "version": "V3", "serial": "07:e6", "issuer": SUBJECT, "subject": SUBJECT,
        "from": "2026-02-03T04:05:06Z", "until": "2036-02-03T04:05:06Z",
        "algorithm": "1.2.840.113549.1.1.11", "bits": 2048, "names": ["crossplane-root-ca"],
        "usage": "Key Cert Sign, CRL Sign", "server": false, "client": false,
        "critical": [true, true], "ca": true,
    });
    assert_eq!(described(authority()), want);
}

#[test]
fn a_certificate_that_lacks_a_name_is_noticed() {
    let authority = parsed(authority());
    let lacks = |leaf: &Pair, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        authority.has_signed_without(leaf.certificate.as_bytes(), &names)
    };
    let leaf = leaf(Purpose::Server);
    assert!(!lacks(leaf, &SERVER_NAMES));
    for name in ["localhost", "127.0.0.1", "::1"] {
        assert!(lacks(leaf, &[SERVER_NAMES[0], name]), "{name}");
    }
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let local = authority.issue(&names, Purpose::Server, now()).unwrap();
    assert!(!lacks(&local, &["localhost", "127.0.0.1", "::1"]));
    assert!(lacks(&local, &["127.0.0.2"]));
    // What somebody else has signed is theirs.
    let foreign = biplane_testkit::certs::Certs::new(&["elsewhere"]);
    let certificate = std::fs::read_to_string(foreign.server().join("tls.crt")).unwrap();
    assert!(!lacks(&Pair { certificate, key: String::new() }, &["localhost"]));
}

/// TLS-3, TLS-4
#[test]
fn leaves_say_what_crossplanes_do() {
    for (purpose, names) in [
        (Purpose::Server, SERVER_NAMES.as_slice()),
        (Purpose::Client, &["crossplane.crossplane-system"]),
    ] {
        let want = json!({
            "version": "V3", "serial": "07:e6", "issuer": SUBJECT, "subject": SUBJECT,
            "from": "2026-02-03T04:05:06Z", "until": "2036-02-03T04:05:06Z",
            "algorithm": "1.2.840.113549.1.1.11", "bits": 2048, "names": names,
            "usage": "Digital Signature, Key Encipherment, Data Encipherment",
            "server": purpose == Purpose::Server, "client": purpose == Purpose::Client,
            "critical": [true, true], "ca": false,
        });
        assert_eq!(described(leaf(purpose)), want);
    }
}

/// TLS-7
#[test]
fn keys_are_pkcs1_and_belong_to_their_certificates() {
    for pair in [authority(), leaf(Purpose::Server), leaf(Purpose::Client)] {
        assert!(pair.key.starts_with("-----BEGIN RSA PRIVATE KEY-----\n"));
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        assert!(matches!(key, PrivateKeyDer::Pkcs1(_)));
        let objection =
            parsed(authority()).objection(pair.certificate.as_bytes(), pair.key.as_bytes(), now());
        assert_eq!(objection, None);
    }
}

/// The time for which the certificates were made.
#[derive(Debug)]
struct Then;

impl rustls::time_provider::TimeProvider for Then {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = now().as_second().try_into().unwrap();
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Client and server trust each other by the authority alone.
#[test]
fn a_handshake_with_both_leaves_succeeds() {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = || {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(der(authority())).unwrap();
        Arc::new(roots)
    };
    let key = |pair: &Pair| PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let (server, client) = (leaf(Purpose::Server), leaf(Purpose::Client));
    let clients =
        rustls::server::WebPkiClientVerifier::builder_with_provider(roots(), Arc::clone(&provider));
    let server = rustls::ServerConfig::builder_with_details(Arc::clone(&provider), Arc::new(Then))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(vec![der(server)], key(server))
        .unwrap();
    let client = rustls::ClientConfig::builder_with_details(provider, Arc::new(Then))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots())
        .with_client_auth_cert(vec![der(client)], key(client))
        .unwrap();
    let name = ServerName::try_from(SERVER_NAMES[2]).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = rustls::ServerConnection::new(Arc::new(server)).unwrap();
    let mut wire = Vec::new();
    while client.is_handshaking() || server.is_handshaking() {
        wire.clear();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets().unwrap();
    }
    assert_eq!(server.peer_certificates().unwrap().len(), 1);
}

#[test]
fn leaves_are_replaced_for_a_reason() {
    let own = parsed(authority());
    let other = Authority::generate(now()).unwrap();
    let (leaf, client) = (leaf(Purpose::Server), leaf(Purpose::Client));
    let certificate = leaf.certificate.as_bytes();
    let end: Timestamp = "2036-02-03T04:05:06Z".parse().unwrap();
    let soon = Some("its certificate has expired or soon will");
    for (authority, key, at, want) in [
        (&own, leaf, now(), None),
        (&own, leaf, end - days(91), None),
        (&own, leaf, end - days(89), soon),
        (&own, leaf, end + days(1), soon),
        (&own, client, now(), Some("its key does not belong to its certificate")),
        (&parsed(&other), leaf, now(), Some("its certificate was signed by an earlier authority")),
    ] {
        assert_eq!(authority.objection(certificate, key.key.as_bytes(), at), want);
    }
    let garbage = own.objection(b"garbage", leaf.key.as_bytes(), now());
    assert_eq!(garbage, Some("its certificate cannot be read"));
}

/// A certificate of an authority with another name belongs to somebody else.
#[test]
fn leaves_of_others_are_kept() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut certificate = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
    certificate.not_after = rcgen::date_time_ymd(2040, 1, 1);
    let certificate = certificate.self_signed(&key).unwrap().pem();
    let objection = parsed(authority()).objection(
        certificate.as_bytes(),
        key.serialize_pem().as_bytes(),
        now(),
    );
    assert_eq!(objection, None);
}

#[test]
fn an_unusable_authority_is_reported_in_crossplanes_words() {
    let pair = authority();
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let error = Authority::parse(pair.certificate.as_bytes(), key.as_bytes()).unwrap_err();
    assert!(matches!(error, CertificateError::AuthorityKey(_)));
    assert!(error.to_string().starts_with("cannot parse CA key: "), "{error}");
    let error = Authority::parse(b"garbage", pair.key.as_bytes()).unwrap_err();
    assert!(error.to_string().starts_with("cannot parse CA certificate: "), "{error}");
}

fn crd(plural: &str, kind: &str, versions: &Value) -> Object {
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.org")},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": versions,
        },
    }))
}

fn things(stored: &str) -> Object {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == stored,
            "schema": {"openAPIV3Schema": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}}})
    };
    crd("things", "Thing", &json!([version("v1beta1"), version("v1")]))
}

#[test]
fn a_folder_may_hold_nothing_but_crds() {
    let folder = tempfile::tempdir().unwrap();
    let load = || definitions::load(Some(folder.path()), Features::default());
    let nothing = load().unwrap_err().to_string();
    assert_eq!(nothing, format!("there are no CRDs in {}", folder.path().display()));
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let text = serde_json::to_string(&things("v1").to_value()).unwrap();
    write("a.yaml", &format!("---\n# nothing\n---\n{text}\n---\n{text}\n"));
    write("README.md", "Not YAML: {");
    assert_eq!(load().unwrap(), [things("v1"), things("v1")]);
    write("b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n");
    let refused = load().unwrap_err().to_string();
    let file = folder.path().join("b.yaml");
    let want = format!("{}:1: only CRDs can exist in the folder of CRDs", file.display());
    assert_eq!(refused, want);
    write("b.yaml", "a: b: c\n");
    assert!(load().unwrap_err().to_string().contains("b.yaml"));
    let missing =
        definitions::load(Some(&folder.path().join("missing")), Features::default()).unwrap_err();
    assert!(missing.to_string().starts_with("cannot read CRDs from "), "{missing}");
}

#[test]
fn without_a_folder_the_built_in_crds_are_used() {
    let names: Vec<String> = definitions::load(None, Features::default())
        .unwrap()
        .iter()
        .map(|crd| crd.name().to_owned())
        .collect();
    for name in ["locks.pkg.crossplane.io", "compositions.apiextensions.crossplane.io"] {
        assert!(names.iter().any(|n| n == name), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_is_never_served_is_named() {
    let server = Arc::new(ApiServer::default());
    // The names of this one are not accepted.
    let mut odd = crd("odds", "Odd", &json!([]));
    odd.remove_at(&["spec", "names", "kind"]);
    let began = Instant::now();
    let within = Duration::from_mins(2);
    let crds = [things("v1"), odd];
    let error = definitions::install(&target(&server), &crds, within).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "CRD odds.example.org is not served after 120s: it is not NamesAccepted"
    );
    assert!(began.elapsed() <= within);
}

/// INIT-1: pages of 500 objects.
#[tokio::test]
async fn objects_in_old_versions_are_stored_anew() {
    let server = Arc::new(ApiServer::default());
    let target = target(&server);
    let minute = Duration::from_mins(1);
    definitions::install(&target, &[things("v1beta1")], minute).await.unwrap();
    for number in 0..1201 {
        let thing = object(json!({
            "apiVersion": "example.org/v1beta1", "kind": "Thing",
            "metadata": {"name": format!("t{number:04}"), "namespace": "default"},
        }));
        target.create(thing).await.unwrap();
    }
    let now = things("v1");
    definitions::install(&target, std::slice::from_ref(&now), minute).await.unwrap();
    let stored = || async {
        let live = target.find(&now.id()).await.unwrap().unwrap();
        live.at(&["status", "storedVersions"]).cloned().unwrap()
    };
    assert_eq!(stored().await, json!(["v1beta1", "v1"]));
    let before = server.journal_len();
    stored_versions::migrate(&target, std::slice::from_ref(&now)).await.unwrap();
    assert_eq!(stored().await, json!(["v1"]));
    let patched: Vec<String> = server
        .journal()
        .into_iter()
        .skip(before)
        .filter_map(|entry| match entry {
            Entry::Write { verb: Verb::Patch, object } => Some(object.name().to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(patched, (0..1201).map(|n| format!("t{n:04}")).collect::<Vec<_>>());
    let before = server.journal_len();
    stored_versions::migrate(&target, std::slice::from_ref(&now)).await.unwrap();
    assert_eq!(server.journal_len(), before);
}

#[tokio::test]
async fn old_webhooks_are_removed_and_others_kept() {
    let webhooks = |names: &[&str]| {
        let webhooks: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        object(json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "crossplane"}, "webhooks": webhooks,
        }))
    };
    let old = "compositions.apiextensions.crossplane.io";
    let other = "other.example.org";
    for (before, after) in [
        (vec![old], None),
        (vec![old, other], Some(json!([{"name": other}]))),
        (vec![other], Some(json!([{"name": other}]))),
    ] {
        let server = Arc::new(ApiServer::default());
        let target = target(&server);
        let configuration = webhooks(&before);
        target.create(configuration.clone()).await.unwrap();
        for _ in 0..2 {
            webhooks::remove(&target).await.unwrap();
            let live = target.find(&configuration.id()).await.unwrap();
            assert_eq!(live.and_then(|live| live.get("webhooks").cloned()), after, "{before:?}");
        }
    }
}

/// WH-2 of validation: the webhooks, at a Service or a URL, and whatever else is there.
#[tokio::test]
async fn the_api_server_is_told_where_webhooks_are() {
    let server = Arc::new(ApiServer::default());
    let target = target(&server);
    let id = cluster_scoped(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "crossplane",
    );
    let service = Address::Service { name: "hooks".into(), namespace: "system".into(), port: 443 };
    webhooks::ensure(&target, &service, b"authority").await.unwrap();
    let live = target.find(&id).await.unwrap().unwrap();
    let webhook = |resource: &str, path: &str| {
        json!({
            "name": format!("{resource}.apiextensions.crossplane.io"),
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {
                "caBundle": "YXV0aG9yaXR5",
                "service": {"name": "hooks", "namespace": "system", "path": path, "port": 443},
            },
            "rules": [{
                "apiGroups": ["apiextensions.crossplane.io"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": [resource],
            }],
        })
    };
    let definitions = webhook(
        "compositeresourcedefinitions",
        "/validate-apiextensions-crossplane-io-v1-compositeresourcedefinition",
    );
    let compositions =
        webhook("compositions", "/validate-apiextensions-crossplane-io-v1-composition");
    assert_eq!(live.get("webhooks"), Some(&json!([definitions, compositions])));

    // What a server adds is no difference, and other webhooks stay.
    let mut with_defaults = compositions.clone();
    with_defaults["timeoutSeconds"] = json!(10);
    with_defaults["rules"][0]["scope"] = json!("*");
    let other = json!({"name": "other.example.org"});
    let patch = json!({"webhooks": [other, with_defaults, definitions]});
    let (how, patch) = (Write::by("server"), biplane_cluster::Patch::Merge(patch));
    let main = biplane_cluster::Part::Main;
    target.cluster.patch(&id, main, &patch, &how, soon()).await.unwrap();
    let before = server.journal_len();
    webhooks::ensure(&target, &service, b"authority").await.unwrap();
    assert_eq!(server.journal_len(), before, "nothing was different");

    let url = Address::Url("https://localhost:9443".parse().unwrap());
    webhooks::ensure(&target, &url, b"authority").await.unwrap();
    let live = target.find(&id).await.unwrap().unwrap();
    let all = live.get("webhooks").and_then(Value::as_array).unwrap();
    let path = "/validate-apiextensions-crossplane-io-v1-composition";
    assert_eq!((all.len(), &all[0]), (3, &other));
    assert_eq!(
        all[2]["clientConfig"],
        json!({"caBundle": "YXV0aG9yaXR5", "url": format!("https://localhost:9443{path}")})
    );
}

async fn packages(functions: &[&str], installed: &[(&str, &str)]) -> Result<Vec<(String, String)>> {
    let server = Arc::new(ApiServer::default());
    let target = target(&server);
    let crds = definitions::load(None, Features::default()).unwrap();
    definitions::install(&target, &crds, Duration::from_mins(1)).await.unwrap();
    let function = |name: &str, package: &str| {
        object(json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
            "metadata": {"name": name}, "spec": {"package": package}}))
    };
    for (name, package) in installed {
        target.create(function(name, package)).await.unwrap();
    }
    let functions = functions.iter().map(|image| (*image).to_owned()).collect();
    let packages = Packages { functions, ..Packages::default() };
    let options = Options { packages, ..Options::default() };
    defaults::ensure(&target, &options).await?;
    let before = server.journal_len();
    defaults::ensure(&target, &options).await?;
    assert_eq!(server.journal_len(), before, "the second run writes nothing");
    let all = server.objects().into_iter().filter(|object| object.kind() == "Function");
    Ok(all.map(|f| (f.name().to_owned(), f.str_at(&["spec", "package"]).to_owned())).collect())
}

/// INIT-3
#[tokio::test]
async fn packages_get_the_name_of_their_repository_or_keep_their_own() {
    let pair = |name: &str, package: &str| (name.to_owned(), package.to_owned());
    let image = "xpkg.example.org/org/function-auto-ready:v0.6.0";
    assert_eq!(packages(&[image], &[]).await.unwrap(), [pair("org-function-auto-ready", image)]);
    let earlier = "xpkg.example.org/org/function-auto-ready:v0.5.0";
    assert_eq!(
        packages(&[image], &[("mine", earlier), ("other", "xpkg.example.org/o/f:v1")])
            .await
            .unwrap(),
        [pair("mine", image), pair("other", "xpkg.example.org/o/f:v1")]
    );
    let refused = packages(&["function-auto-ready"], &[]).await.unwrap_err();
    let text = format!("{refused:#}");
    assert!(
        text.starts_with("cannot install packages: cannot parse package function-auto"),
        "{text}"
    );
}
