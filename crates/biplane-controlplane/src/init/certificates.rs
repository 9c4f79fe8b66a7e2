//! Keys and certificates in the form that Crossplane reads and writes: RSA keys as PKCS #1.
//!
//! ring cannot make RSA keys, so the `rsa` crate does. Everything else that needs a key is done by
//! ring.

use std::net::IpAddr;

use anyhow::anyhow;
use getrandom::SysRng;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rand_core::UnwrapErr;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyUsagePurpose, PublicKeyData, SerialNumber,
    SignatureAlgorithm, SigningKey,
};
use ring::rand::SystemRandom;
use ring::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use rsa::pkcs1::EncodeRsaPrivateKey as _;
use rsa::pkcs1::der::pem::LineEnding;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs1KeyDer};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::{FromDer as _, GeneralName};

const BITS: usize = 2048;
const YEARS: i64 = 10;
/// All certificates have the same serial number.
const SERIAL: u64 = 2022;
/// A certificate that ends sooner is replaced.
const DAYS_LEFT: i64 = 90;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The key of the authority cannot be used.
    #[error("cannot parse CA key: {0}")]
    AuthorityKey(String),
    /// The certificate of the authority cannot be used.
    #[error("cannot parse CA certificate: {0}")]
    AuthorityCertificate(String),
    /// The key or the certificate cannot be made.
    #[error("cannot generate tls certificate: {0}")]
    Generate(String),
}

impl CertificateError {
    fn generate(error: impl Into<anyhow::Error>) -> Self {
        Self::Generate(error.into().to_string())
    }
}

/// A certificate and its key as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

/// The key is a secret.
impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// A key that can sign.
struct Key(RsaKeyPair);

impl Key {
    /// Makes a key and returns it with its PEM.
    fn generate() -> Result<(Self, String), CertificateError> {
        let key = rsa::RsaPrivateKey::new(&mut UnwrapErr(SysRng), BITS)
            .map_err(CertificateError::generate)?;
        let pem = key.to_pkcs1_pem(LineEnding::LF).map_err(CertificateError::generate)?;
        let key = Self::parse(pem.as_bytes()).map_err(CertificateError::generate)?;
        Ok((key, pem.as_str().to_owned()))
    }

    fn parse(pem: &[u8]) -> anyhow::Result<Self> {
        let der = PrivatePkcs1KeyDer::from_pem_slice(pem)?;
        let key = RsaKeyPair::from_der(der.secret_pkcs1_der());
        Ok(Self(key.map_err(|error| anyhow!("{error}"))?))
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_RSA_SHA256
    }
}

impl SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let mut signature = vec![0; self.0.public().modulus_len()];
        self.0
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
            .map_err(|_| rcgen::Error::RingUnspecified)?;
        Ok(signature)
    }
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be shown by a server.
    Server,
    /// To be shown by a client.
    Client,
}

/// A certificate authority.
pub struct Authority {
    key: Key,
    certificate: CertificateDer<'static>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// Makes a certificate authority. This takes long.
    pub fn generate(now: Timestamp) -> Result<Pair, CertificateError> {
        let (key, pem) = Key::generate()?;
        let mut certificate = described(&["crossplane-root-ca".to_owned()], now)?;
        certificate.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        certificate.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = certificate.self_signed(&key).map_err(CertificateError::generate)?;
        Ok(Pair { certificate: certificate.pem(), key: pem })
    }

    /// Reads a certificate authority.
    pub fn parse(certificate: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let key =
            Key::parse(key).map_err(|error| CertificateError::AuthorityKey(error.to_string()))?;
        let unusable = |text: String| CertificateError::AuthorityCertificate(text);
        let certificate = CertificateDer::from_pem_slice(certificate)
            .map_err(|error| unusable(error.to_string()))?;
        parse(&certificate).map_err(unusable)?;
        Ok(Self { key, certificate })
    }

    /// Makes a key and a certificate of it. This takes long.
    pub fn issue(
        &self,
        names: &[String],
        purpose: Purpose,
        now: Timestamp,
    ) -> Result<Pair, CertificateError> {
        let (key, pem) = Key::generate()?;
        let mut certificate = described(names, now)?;
        certificate.is_ca = IsCa::ExplicitNoCa;
        certificate.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
            KeyUsagePurpose::DataEncipherment,
        ];
        certificate.extended_key_usages = vec![match purpose {
            Purpose::Server => ExtendedKeyUsagePurpose::ServerAuth,
            Purpose::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        // Subject and serial number are those of the authority. This tells the two keys apart.
        certificate.use_authority_key_identifier_extension = true;
        let issuer = Issuer::from_ca_cert_der(&self.certificate, &self.key)
            .map_err(CertificateError::generate)?;
        let certificate =
            certificate.signed_by(&key, &issuer).map_err(CertificateError::generate)?;
        Ok(Pair { certificate: certificate.pem(), key: pem })
    }

    /// Whether the authority itself must be replaced soon.
    pub fn is_expiring(&self, now: Timestamp) -> bool {
        parse(&self.certificate).is_ok_and(|certificate| is_expiring(&certificate, now))
    }

    /// Why a certificate must be replaced, or `None` if it can be kept.
    ///
    /// A certificate of another authority is kept, as long as it is valid.
    pub fn objection(
        &self,
        certificate: &[u8],
        key: &[u8],
        now: Timestamp,
    ) -> Option<&'static str> {
        let Ok(der) = CertificateDer::from_pem_slice(certificate) else {
            return Some("its certificate cannot be read");
        };
        let (Ok(leaf), Ok(own)) = (parse(&der), parse(&self.certificate)) else {
            return Some("its certificate cannot be read");
        };
        if is_expiring(&leaf, now) {
            return Some("its certificate has expired or soon will");
        }
        // Keys in other forms than ours are not compared.
        if let Ok(key) = Key::parse(key)
            && leaf.public_key().subject_public_key.data.as_ref() != key.der_bytes()
        {
            return Some("its key does not belong to its certificate");
        }
        let ours = leaf.issuer().as_raw() == own.subject().as_raw();
        if ours && leaf.verify_signature(Some(own.public_key())).is_err() {
            return Some("its certificate was signed by an earlier authority");
        }
        None
    }
}

impl Authority {
    /// Whether this authority has signed a certificate that lacks one of these names.
    pub fn has_signed_without(&self, certificate: &[u8], names: &[String]) -> bool {
        let Ok(der) = CertificateDer::from_pem_slice(certificate) else { return false };
        let (Ok(leaf), Ok(own)) = (parse(&der), parse(&self.certificate)) else { return false };
        let ours = leaf.issuer().as_raw() == own.subject().as_raw();
        ours && names.iter().any(|name| !has_name(&leaf, name))
    }
}

/// Whether a certificate is for a host: a name or an address.
fn has_name(certificate: &X509Certificate<'_>, host: &str) -> bool {
    let address = host.parse::<IpAddr>().map(|address| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    });
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return false };
    names.value.general_names.iter().any(|name| match (name, &address) {
        (GeneralName::DNSName(name), Err(_)) => *name == host,
        (GeneralName::IPAddress(octets), Ok(address)) => octets == address,
        _ => false,
    })
}

/// Reads a certificate.
fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, String> {
    let parsed = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
    Ok(parsed.1)
}

fn is_expiring(certificate: &X509Certificate<'_>, now: Timestamp) -> bool {
    let end = certificate.validity().not_after.timestamp();
    let left = SignedDuration::from_secs(end.saturating_sub(now.as_second()));
    left < SignedDuration::from_hours(24 * DAYS_LEFT)
}

/// What all certificates say.
fn described(names: &[String], now: Timestamp) -> Result<CertificateParams, CertificateError> {
    let mut certificate =
        CertificateParams::new(names.to_vec()).map_err(CertificateError::generate)?;
    let end = now.to_zoned(TimeZone::UTC).checked_add(YEARS.years());
    let end = end.map_err(CertificateError::generate)?.timestamp();
    let time = |time: Timestamp| {
        time::OffsetDateTime::from_unix_timestamp(time.as_second())
            .map_err(CertificateError::generate)
    };
    certificate.not_before = time(now)?;
    certificate.not_after = time(end)?;
    certificate.serial_number = Some(SerialNumber::from(SERIAL));
    certificate.distinguished_name = subject()?;
    Ok(certificate)
}

fn subject() -> Result<DistinguishedName, CertificateError> {
    let mut subject = DistinguishedName::new();
    for (part, value) in [
        (DnType::CountryName, "Earth"),
        (DnType::OrganizationName, "Crossplane"),
        (DnType::LocalityName, "Earth"),
        (DnType::StateOrProvinceName, "Earth"),
        (DnType::CommonName, "Crossplane"),
    ] {
        let value = value.try_into().map_err(CertificateError::generate)?;
        subject.push(part, DnValue::PrintableString(value));
    }
    Ok(subject)
}
