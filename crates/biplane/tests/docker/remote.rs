//! Tests Docker engines that are reached over a network, with and without certificates.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::Case;
use crate::between::open_port;
use crate::daemon::Daemon;
use crate::images::{ENGINE, FUNCTION};
use crate::work::{Ran, Work};

pub(crate) const CASES: &[Case] = &[
    ("an_engine_is_reached_with_certificates", an_engine_is_reached_with_certificates),
    ("certificates_that_do_not_fit_are_reported", certificates_that_do_not_fit_are_reported),
    ("an_engine_is_reached_at_an_open_port", an_engine_is_reached_at_an_open_port),
    ("the_version_of_the_api_may_be_chosen", the_version_of_the_api_may_be_chosen),
];

/// The address at which the engine listens for clients with certificates.
pub(crate) const HOST: &str = "tcp://127.0.0.1:2376";

/// Creates certificates for an engine, and in separate folders those for a client that the engine
/// trusts and for one that it does not trust.
pub(crate) fn certify(folder: &Path) {
    let authority = || {
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        ca.distinguished_name.push(DnType::CommonName, "Tests");
        CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap()
    };
    let (ca, other) = (authority(), authority());
    let write = |ca: &CertifiedIssuer<'_, KeyPair>, names: &[&str], usage, at: [&str; 3]| {
        let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, ca).unwrap();
        for (at, text) in at.iter().zip([ca.pem(), certificate.pem(), key.serialize_pem()]) {
            let path = folder.join(at);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    };
    let client = ExtendedKeyUsagePurpose::ClientAuth;
    let server = ["ca.pem", "server.pem", "server-key.pem"];
    write(&ca, &["127.0.0.1"], ExtendedKeyUsagePurpose::ServerAuth, server);
    let friend = ["friend/ca.pem", "friend/cert.pem", "friend/key.pem"];
    write(&ca, &["friend"], client.clone(), friend);
    let stranger = ["stranger/ca.pem", "stranger/cert.pem", "stranger/key.pem"];
    write(&other, &["stranger"], client, stranger);
}

/// Renders with the engine at a TCP address.
fn render(work: &Work<'_>, host: &str, variables: &[(&str, &Path)], flags: &[&str]) -> Ran {
    let mut command = work.command(flags);
    Ran::of(command.env("DOCKER_HOST", host).envs(variables.iter().copied()))
}

/// RT-6
fn an_engine_is_reached_with_certificates(daemon: &Daemon) {
    let work = Work::with(daemon, FUNCTION, &[]);
    let friend = daemon.folder().join("friend");
    let certificates = ("DOCKER_CERT_PATH", friend.as_path());
    for variables in [&[certificates][..], &[certificates, ("DOCKER_TLS_VERIFY", Path::new("1"))]] {
        render(&work, HOST, variables, &[]).assert_rendered();
        let engine = format!("--crossplane-image={ENGINE}");
        render(&work, HOST, variables, &[&engine]).assert_rendered();
    }
    // With the scheme `https`, as some users write it.
    let https = HOST.replace("tcp", "https");
    render(&work, &https, &[certificates], &[]).assert_rendered();
}

/// RT-6
fn certificates_that_do_not_fit_are_reported(daemon: &Daemon) {
    let work = Work::with(daemon, FUNCTION, &[]);
    let folder = |name: &str| daemon.folder().join(name);
    let failed = |path: Option<&Path>, want: &str| {
        let variables: Vec<_> = path.iter().map(|&path| ("DOCKER_CERT_PATH", path)).collect();
        let ran = render(&work, HOST, &variables, &[]);
        ran.assert_failed(r#"cannot start function runtimes: cannot start Function "first": "#);
        assert!(ran.stderr.contains(want), "{}", ran.stderr);
    };
    // The client does not trust the engine.
    failed(Some(&folder("stranger")), ": invalid peer certificate: ");
    // The engine is called without a certificate.
    failed(None, "HTTP request to an HTTPS server");
    let missing = folder("nobody");
    let file = missing.join("ca.pem");
    failed(Some(&missing), &format!("open {}: no such file or directory", file.display()));
    // The engine does not trust the client.
    let mixed = folder("mixed");
    std::fs::create_dir_all(&mixed).unwrap();
    for (from, name) in [("friend", "ca.pem"), ("stranger", "cert.pem"), ("stranger", "key.pem")] {
        std::fs::copy(folder(from).join(name), mixed.join(name)).unwrap();
    }
    failed(Some(&mixed), ": received fatal alert: ");
}

/// RT-6
fn an_engine_is_reached_at_an_open_port(daemon: &Daemon) {
    let (host, _) = open_port(daemon);
    let work = Work::with(daemon, FUNCTION, &[]);
    render(&work, &host, &[], &[]).assert_rendered();
    render(&work, &host, &[], &[&format!("--crossplane-image={ENGINE}")]).assert_rendered();
}

/// RT-6
fn the_version_of_the_api_may_be_chosen(daemon: &Daemon) {
    let work = Work::with(daemon, FUNCTION, &[]);
    for version in ["1.40", "v1.40"] {
        let (host, heard) = open_port(daemon);
        let ran = render(&work, &host, &[("DOCKER_API_VERSION", Path::new(version))], &[]);
        ran.assert_rendered();
        let heard = heard.lock().unwrap();
        let requests: Vec<_> = heard.iter().filter(|line| line.ends_with(" HTTP/1.1")).collect();
        assert!(requests.iter().all(|line| line.contains(" /v1.40/")), "{requests:?}");
        assert!(requests.iter().any(|line| line.contains("/containers/create")), "{requests:?}");
    }
    let (host, _) = open_port(daemon);
    let ran = render(&work, &host, &[("DOCKER_API_VERSION", Path::new("1.99"))], &[]);
    ran.assert_failed("Error response from daemon: client version 1.99 is too new.");
}
