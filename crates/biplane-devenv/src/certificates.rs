//! Creates the keys of one short-lived API server: a CA, a serving certificate and a token.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};

use crate::EnvError;

/// Keys and certificates, all in PEM.
pub(crate) struct Identity {
    pub(crate) ca: String,
    pub(crate) ca_der: rustls::pki_types::CertificateDer<'static>,
    pub(crate) certificate: String,
    pub(crate) key: String,
    /// Signs service account tokens.
    pub(crate) account_key: String,
    pub(crate) account_public_key: String,
}

impl Identity {
    /// Creates new keys, valid for the loopback address only.
    pub(crate) fn generate() -> Result<Self, EnvError> {
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        ca.distinguished_name = named("biplane-devenv-ca");
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

        let mut server = CertificateParams::new(["localhost".into(), "127.0.0.1".into()])?;
        server.distinguished_name = named("kube-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &ca)?;

        let account = KeyPair::generate()?;
        Ok(Self {
            ca: ca.pem(),
            ca_der: ca.der().clone(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            account_key: account.serialize_pem(),
            account_public_key: account.public_key_pem(),
        })
    }
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// A random bearer token.
pub(crate) fn token() -> Result<String, EnvError> {
    use base64::Engine;
    let mut bytes = [0u8; 24];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| rustls::Error::FailedToGetRandomBytes)?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}
