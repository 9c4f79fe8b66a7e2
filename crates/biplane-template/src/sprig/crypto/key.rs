//! Private keys of all kinds, and their forms as text.

use ed25519_dalek::Signer as _;
use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use sha2::{Digest as _, Sha256};

use super::der::{self, Reader};
use super::rsa::RsaKey;
use super::{digital_signature, pem};
use crate::func::Host;

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// A private key.
#[derive(Clone)]
pub(super) enum PrivateKey {
    Rsa(RsaKey),
    Ecdsa(p256::ecdsa::SigningKey),
    Ed25519(ed25519_dalek::SigningKey),
    /// The encoded key. It cannot sign certificates.
    Dsa(Vec<u8>),
}

impl PrivateKey {
    pub(super) fn rsa(host: &dyn Host, bits: u32) -> Self {
        Self::Rsa(RsaKey::generate(host, bits))
    }

    /// A key of a named type. `None` if the name is unknown.
    pub(super) fn generate(host: &dyn Host, name: &[u8]) -> Option<Self> {
        Some(match name {
            b"" | b"rsa" => Self::rsa(host, 4096),
            b"dsa" => Self::Dsa(digital_signature::generate(host)),
            b"ecdsa" => Self::Ecdsa(ecdsa(host)),
            b"ed25519" => {
                let mut seed = [0; 32];
                host.random(&mut seed);
                Self::Ed25519(ed25519_dalek::SigningKey::from_bytes(&seed))
            }
            _ => return None,
        })
    }

    /// Reads a key. The error is Go's, except that it does not say where the encoding is wrong.
    pub(super) fn from_pem(text: &[u8]) -> Result<Self, String> {
        const ENCODING: &str = "asn1: structure error: tags don't match";
        let Some(block) = pem::decode(text) else { return Err("no PEM data in input".to_owned()) };
        let encoding = |what: &str| {
            let why = if block.bytes.is_empty() {
                "asn1: syntax error: sequence truncated"
            } else {
                ENCODING
            };
            format!("{what}: {why}")
        };
        match block.label.as_str() {
            "PRIVATE KEY" => {
                Self::from_pkcs8(&block.bytes).ok_or_else(|| encoding("decoding PEM as PKCS#8"))
            }
            "RSA PRIVATE KEY" => RsaKey::from_der(&block.bytes)
                .map(Self::Rsa)
                .ok_or_else(|| encoding("parsing RSA private key from PEM")),
            "EC PRIVATE KEY" => Self::from_sec1(&block.bytes, None)
                .ok_or_else(|| encoding("parsing EC private key from PEM")),
            "DSA PRIVATE KEY" => Reader::new(&block.bytes)
                .enter(der::SEQUENCE)
                .map(|_| Self::Dsa(block.bytes.clone()))
                .ok_or_else(|| encoding("parsing DSA private key from PEM")),
            label if label.ends_with(" PRIVATE KEY") => {
                Err(format!("invalid private key type {label}"))
            }
            label => Err(format!("no private key data in PEM block of type {label}")),
        }
    }

    fn from_pkcs8(bytes: &[u8]) -> Option<Self> {
        let mut fields = Reader::new(bytes).enter(der::SEQUENCE)?;
        fields.unsigned()?;
        let mut algorithm = fields.enter(der::SEQUENCE)?;
        let name = algorithm.expect(der::OID)?;
        let key = fields.expect(der::OCTET_STRING)?;
        match name {
            RSA => RsaKey::from_der(key).map(Self::Rsa),
            EC => Self::from_sec1(key, algorithm.expect(der::OID)),
            ED25519 => {
                let seed = Reader::new(key).expect(der::OCTET_STRING)?;
                let seed: [u8; 32] = seed.try_into().ok()?;
                Some(Self::Ed25519(ed25519_dalek::SigningKey::from_bytes(&seed)))
            }
            _ => None,
        }
    }

    fn from_sec1(bytes: &[u8], curve: Option<&[u8]>) -> Option<Self> {
        let mut fields = Reader::new(bytes).enter(der::SEQUENCE)?;
        fields.unsigned()?;
        let secret = fields.expect(der::OCTET_STRING)?;
        let own = fields.enter(der::explicit(0)).and_then(|mut own| own.expect(der::OID));
        if own.or(curve) != Some(P256) {
            return None;
        }
        p256::ecdsa::SigningKey::from_slice(secret).ok().map(Self::Ecdsa)
    }

    pub(super) fn to_pem(&self) -> String {
        match self {
            Self::Rsa(key) => pem::encode("RSA PRIVATE KEY", &key.to_der()),
            Self::Dsa(bytes) => pem::encode("DSA PRIVATE KEY", bytes),
            Self::Ecdsa(key) => {
                let sequence = der::sequence(&[
                    der::integer(&[1]),
                    der::element(der::OCTET_STRING, &key.to_bytes()),
                    der::element(der::explicit(0), &der::oid(P256)),
                    der::element(der::explicit(1), &der::bits(&point(key))),
                ]);
                pem::encode("EC PRIVATE KEY", &sequence)
            }
            Self::Ed25519(key) => {
                let seed = der::element(der::OCTET_STRING, key.as_bytes());
                let sequence = der::sequence(&[
                    der::integer(&[]),
                    der::sequence(&[der::oid(ED25519)]),
                    der::element(der::OCTET_STRING, &seed),
                ]);
                pem::encode("PRIVATE KEY", &sequence)
            }
        }
    }

    /// The public key: its algorithm and its bits. DSA keys are not used in certificates.
    pub(super) fn public(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        Some(match self {
            Self::Rsa(key) => {
                let null = der::element(der::NULL, &[]);
                (der::sequence(&[der::oid(RSA), null]), key.public_der())
            }
            Self::Ecdsa(key) => (der::sequence(&[der::oid(EC), der::oid(P256)]), point(key)),
            Self::Ed25519(key) => {
                (der::sequence(&[der::oid(ED25519)]), key.verifying_key().as_bytes().to_vec())
            }
            Self::Dsa(_) => return None,
        })
    }

    /// The algorithm of signatures.
    pub(super) fn algorithm(&self) -> Vec<u8> {
        match self {
            Self::Rsa(_) => der::sequence(&[der::oid(RSA_SHA256), der::element(der::NULL, &[])]),
            Self::Ecdsa(_) => der::sequence(&[der::oid(ECDSA_SHA256)]),
            Self::Ed25519(_) | Self::Dsa(_) => der::sequence(&[der::oid(ED25519)]),
        }
    }

    /// A signature of a message. The signature of one key and one message is always the same.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Rsa(key) => key.sign(message),
            Self::Ecdsa(key) => {
                let signature: p256::ecdsa::Signature =
                    key.sign_prehash(&Sha256::digest(message)).ok()?;
                let bytes = signature.to_bytes();
                let (r, s) = bytes.split_at(bytes.len() / 2);
                Some(der::sequence(&[der::integer(r), der::integer(s)]))
            }
            Self::Ed25519(key) => Some(key.sign(message).to_bytes().to_vec()),
            Self::Dsa(_) => None,
        }
    }
}

/// A key of the curve. Nearly all numbers of its size are one.
fn ecdsa(host: &dyn Host) -> p256::ecdsa::SigningKey {
    loop {
        let mut bytes = [0; 32];
        host.random(&mut bytes);
        if let Ok(key) = p256::ecdsa::SigningKey::from_slice(&bytes) {
            return key;
        }
    }
}

/// The public point, uncompressed.
fn point(key: &p256::ecdsa::SigningKey) -> Vec<u8> {
    key.verifying_key().to_sec1_point(false).as_bytes().to_vec()
}
