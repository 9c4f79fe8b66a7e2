//! Creates the keys of one API server: a CA, a serving certificate and tokens.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};

use crate::EnvError;

/// Keys and certificates, all in PEM.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Identity {
    pub(crate) ca: String,
    /// Servers and proxies of one control plane present the same certificate.
    pub(crate) certificate: String,
    pub(crate) key: String,
    /// Signs service account tokens.
    pub(crate) account_key: String,
    pub(crate) account_public_key: String,
}

// Keys do not belong into a log.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
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
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random::<24>()?))
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], EnvError> {
    let mut bytes = [0u8; N];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| rustls::Error::FailedToGetRandomBytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ() {
        assert_ne!(token().unwrap(), token().unwrap());
    }

    #[test]
    fn keys_are_not_logged() {
        let identity = Identity::generate().unwrap();
        assert_eq!(format!("{identity:?}"), "Identity { .. }");
    }
}
