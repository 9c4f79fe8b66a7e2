//! Keys and certificates, checked by another implementation.

use std::sync::Arc;

use biplane_template::value::Value;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::{fails, render, run};

/// Checks a certificate for a name at a time, a number of seconds after the time of the host.
fn verify(authority: &str, certificate: &str, name: &str, seconds: u64) -> Result<(), String> {
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(der(authority)).map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = verifier.build().unwrap();
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_700_000_000 + seconds));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    verifier
        .verify_server_cert(&der(certificate), &[], &name, &[], now)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// Whether another implementation can sign with a key.
fn usable(key: &str) -> bool {
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    rustls::crypto::ring::sign::any_supported_type(&key).is_ok()
}

/// An authority and a certificate that it signed: two certificates and their keys.
fn chain(authority: &str, arguments: &str) -> [String; 4] {
    let text = render(&format!(
        "{{{{ $ca := {authority} }}}}{{{{ $c := genSignedCert `leaf.example` \
         (list `192.0.2.7` `2001:db8::1`) (list `a.example` `b.example`) 30 $ca{arguments} }}}}\
         {{{{ $ca.Cert }}}}|{{{{ $ca.Key }}}}|{{{{ $c.Cert }}}}|{{{{ $c.Key }}}}"
    ));
    let parts: Vec<String> = text.split('|').map(str::to_owned).collect();
    parts.try_into().unwrap()
}

#[test]
fn an_authority_signs_certificates_for_names_and_addresses() {
    const DAY: u64 = 86_400;
    let [authority, authority_key, certificate, key] = chain("genCA `my ca` 365", "");
    for name in ["a.example", "b.example", "192.0.2.7", "2001:db8::1"] {
        assert_eq!(verify(&authority, &certificate, name, 1), Ok(()), "{name}");
    }
    assert!(verify(&authority, &certificate, "c.example", 1).is_err());
    assert_eq!(verify(&authority, &certificate, "a.example", 30 * DAY - 10), Ok(()));
    assert!(verify(&authority, &certificate, "a.example", 30 * DAY + 10).is_err());
    let [other, ..] = chain("genCA `my ca` 365 ", "");
    assert_eq!(other, authority, "the same seed makes the same authority");
    for key in [&authority_key, &key] {
        assert!(key.starts_with("-----BEGIN RSA PRIVATE KEY-----\n") && usable(key));
    }
    // The subject is the common name alone.
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let subject = b"\x30\x17\x31\x15\x30\x13\x06\x03\x55\x04\x03\x13\x0cleaf.example";
    assert!(der.windows(subject.len()).any(|window| window == subject));
}

#[test]
fn keys_of_other_kinds_sign_as_well() {
    for kind in ["ecdsa", "ed25519"] {
        let key = render(&format!("{{{{ genPrivateKey `{kind}` }}}}"));
        assert!(usable(&key), "{kind}");
        let authority = format!("genCAWithKey `ca` 10 `{key}`");
        let [authority, authority_key, certificate, _] = chain(&authority, "");
        assert_eq!(authority_key, key, "{kind}");
        assert_eq!(verify(&authority, &certificate, "a.example", 1), Ok(()), "{kind}");
    }
    let signed = render(
        "{{ $key := genPrivateKey `ecdsa` }}\
         {{ $ca := genCAWithKey `ca` 10 $key }}\
         {{ $c := genSignedCertWithKey `x` nil (list `a.example`) 5 $ca (genPrivateKey `ed25519`) }}\
         {{ $ca.Cert }}|{{ $c.Cert }}",
    );
    let (authority, certificate) = signed.split_once('|').unwrap();
    assert_eq!(verify(authority, certificate, "a.example", 1), Ok(()));
}

#[test]
fn a_certificate_can_sign_itself_and_be_given() {
    let made = render(
        "{{ $c := genSelfSignedCertWithKey `x` nil (list `a.example`) 5 (genPrivateKey `ecdsa`) }}\
         {{ $d := buildCustomCert (b64enc $c.Cert) (b64enc $c.Key) }}\
         {{ deepEqual $c $d }} {{ kindOf $d }} {{ typeOf $d }} {{ toJson $d | fromJson | keys | sortAlpha }}",
    );
    assert_eq!(made, "true struct sprig.certificate [Cert Key]");
}

#[test]
fn other_keys_are_made_too() {
    let rsa = run("{{ genPrivateKey `rsa` }}", &Value::Nil, 2).unwrap();
    assert!(usable(&String::from_utf8(rsa).unwrap()));
    assert!(render("{{ genPrivateKey `dsa` }}").starts_with("-----BEGIN DSA PRIVATE KEY-----\n"));
    assert_eq!(render("{{ genPrivateKey `x` }}"), "Unknown type x");
}

#[test]
fn wrong_arguments_are_refused_in_go_s_words() {
    const KEY: &str = "(genPrivateKey `ed25519`)";
    for (call, error) in [
        ("genSelfSignedCertWithKey `x` (list `1.2.3`) nil 1 KEY", "error parsing ip: 1.2.3"),
        ("genSelfSignedCertWithKey `x` (list 1) nil 1 KEY", "error parsing ip: 1 is not a string"),
        (
            "genSelfSignedCertWithKey `x` nil (list 1) 1 KEY",
            "error processing alternate dns name: 1 is not a string",
        ),
        ("genCAWithKey `x` 1 `no key`", "parsing private key: no PEM data in input"),
        ("buildCustomCert `!` ``", "unable to decode base64 certificate"),
        ("buildCustomCert `` `!`", "unable to decode base64 private key"),
        ("buildCustomCert `` ``", "unable to decode certificate"),
    ] {
        let name = call.split(' ').next().unwrap();
        let call = call.replace("KEY", KEY);
        assert_eq!(fails(&format!("{{{{ $_ := {call} }}}}")), format!("{name}: {error}"));
    }
}
