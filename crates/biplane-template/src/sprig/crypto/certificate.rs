//! X.509 certificates, as Go's `x509.CreateCertificate` makes them.

use biplane_go::time::GoTime;
use sha2::{Digest as _, Sha256};

use super::der::{self, Reader};
use super::key::PrivateKey;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const SUBJECT_KEY: &[u8] = &[0x55, 0x1d, 0x0e];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const SERVER: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const CLIENT: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

/// What a certificate says.
pub(super) struct Template {
    pub(super) serial: [u8; 16],
    pub(super) common_name: Vec<u8>,
    pub(super) addresses: Vec<Vec<u8>>,
    pub(super) names: Vec<Vec<u8>>,
    pub(super) not_before: GoTime,
    pub(super) not_after: GoTime,
    pub(super) authority: bool,
}

/// Who signs certificates: the parts of the certificate that matter for it.
pub(super) struct Issuer {
    pub(super) subject: Vec<u8>,
    pub(super) key_id: Option<Vec<u8>>,
    /// The public key with its algorithm.
    pub(super) public: Vec<u8>,
}

impl Template {
    /// The subject as a name of certificates.
    pub(super) fn subject(&self) -> Result<Vec<u8>, String> {
        if self.common_name.is_empty() {
            return Ok(der::sequence(&[]));
        }
        let printable = |byte: &u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(byte);
        let tag = if self.common_name.iter().all(printable) {
            der::PRINTABLE_STRING
        } else if std::str::from_utf8(&self.common_name).is_ok() {
            der::UTF8_STRING
        } else {
            return Err("asn1: string not valid UTF-8".to_owned());
        };
        let name = der::element(tag, &self.common_name);
        let attribute = der::sequence(&[der::oid(COMMON_NAME), name]);
        Ok(der::sequence(&[der::element(der::SET, &attribute)]))
    }

    /// The certificate of a key, signed by another key. Without an issuer it is signed by itself.
    pub(super) fn sign(
        &self,
        key: &PrivateKey,
        issuer: Option<&Issuer>,
        signer: &PrivateKey,
    ) -> Result<Vec<u8>, String> {
        const NO_SIGNER: &str = "x509: certificate private key does not implement crypto.Signer";
        let subject = self.subject()?;
        let (_, _) = signer.public().ok_or(NO_SIGNER)?;
        let Some((algorithm, bits)) = key.public() else {
            return Err("x509: unsupported public key type: *dsa.PublicKey".to_owned());
        };
        let public = der::sequence(&[algorithm, der::bits(&bits)]);
        let signer_public =
            signer.public().map(|(algorithm, bits)| der::sequence(&[algorithm, der::bits(&bits)]));
        let mut authority_key = None;
        if let Some(issuer) = issuer {
            if signer_public.as_ref() != Some(&issuer.public) {
                return Err("x509: provided PrivateKey doesn't match parent's PublicKey".to_owned());
            }
            authority_key = issuer.key_id.clone().filter(|_| issuer.subject != subject);
        }
        let extensions = self.extensions(&bits, authority_key.as_deref(), subject.len() == 2)?;
        let body = der::sequence(&[
            der::element(der::explicit(0), &der::integer(&[2])),
            der::integer(&self.serial),
            signer.algorithm(),
            issuer.map_or_else(|| subject.clone(), |issuer| issuer.subject.clone()),
            der::sequence(&[time(&self.not_before)?, time(&self.not_after)?]),
            subject,
            public,
            der::element(der::explicit(3), &der::sequence(&extensions)),
        ]);
        let signature = signer.sign(&body).ok_or("x509: the key is too short to sign with")?;
        Ok(der::sequence(&[body, signer.algorithm(), der::bits(&signature)]))
    }

    fn extensions(
        &self,
        public: &[u8],
        authority_key: Option<&[u8]>,
        nameless: bool,
    ) -> Result<Vec<Vec<u8>>, String> {
        // Signatures and encryption of keys, and for an authority signatures of certificates.
        let usage: &[u8] = if self.authority { &[2, 0xa4] } else { &[5, 0xa0] };
        let mut constraints = Vec::new();
        if self.authority {
            constraints.push(der::element(der::BOOLEAN, &[0xff]));
        }
        let mut extensions = vec![
            extension(KEY_USAGE, true, &der::element(der::BIT_STRING, usage)),
            extension(
                EXTENDED_KEY_USAGE,
                false,
                &der::sequence(&[der::oid(SERVER), der::oid(CLIENT)]),
            ),
            extension(BASIC_CONSTRAINTS, true, &der::sequence(&constraints)),
        ];
        if self.authority {
            let hash = Sha256::digest(public);
            let id = der::element(der::OCTET_STRING, hash.get(..20).unwrap_or_default());
            extensions.push(extension(SUBJECT_KEY, false, &id));
        }
        if let Some(id) = authority_key {
            let id = der::sequence(&[der::element(der::implicit(0), id)]);
            extensions.push(extension(AUTHORITY_KEY, false, &id));
        }
        if let Some(name) = self.names.iter().find(|name| !name.is_ascii()) {
            let shown = biplane_go::fmt::quote_bytes(name);
            return Err(format!("x509: {shown} cannot be encoded as an IA5String"));
        }
        let names = self.names.iter().map(|name| der::element(der::implicit(2), name));
        let addresses = self.addresses.iter().map(|ip| der::element(der::implicit(7), ip));
        let alternatives: Vec<Vec<u8>> = names.chain(addresses).collect();
        if !alternatives.is_empty() {
            let alternatives = der::sequence(&alternatives);
            extensions.push(extension(ALTERNATIVE_NAMES, nameless, &alternatives));
        }
        Ok(extensions)
    }
}

fn extension(name: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![der::oid(name)];
    if critical {
        parts.push(der::element(der::BOOLEAN, &[0xff]));
    }
    parts.push(der::element(der::OCTET_STRING, value));
    der::sequence(&parts)
}

fn time(time: &GoTime) -> Result<Vec<u8>, String> {
    match time.civil().year {
        1950..2050 => Ok(der::element(der::UTC_TIME, &time.format(b"060102150405Z"))),
        0..10_000 => Ok(der::element(der::GENERALIZED_TIME, &time.format(b"20060102150405Z"))),
        _ => Err("asn1: structure error: cannot represent time as GeneralizedTime".to_owned()),
    }
}

impl Issuer {
    /// Reads a certificate. The error is Go's for what is no certificate at all.
    pub(super) fn from_der(bytes: &[u8]) -> Result<Self, String> {
        Self::read(bytes).ok_or_else(|| "x509: malformed certificate".to_owned())
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut whole = Reader::new(bytes);
        let mut certificate = whole.enter(der::SEQUENCE)?;
        if !whole.is_empty() {
            return None;
        }
        let mut body = certificate.enter(der::SEQUENCE)?;
        certificate.enter(der::SEQUENCE)?;
        certificate.expect(der::BIT_STRING)?;
        if body.peek() == Some(der::explicit(0)) {
            body.any()?;
        }
        body.expect(der::INTEGER)?;
        // Algorithm, issuer and validity do not matter.
        for _ in 0..3 {
            body.enter(der::SEQUENCE)?;
        }
        let (der::SEQUENCE, _, subject) = body.any()? else { return None };
        let (der::SEQUENCE, _, public) = body.any()? else { return None };
        let mut key_id = None;
        while let Some((tag, content, _)) = body.any() {
            if tag != der::explicit(3) {
                continue;
            }
            let mut extensions = Reader::new(content).enter(der::SEQUENCE)?;
            while let Some(mut extension) = extensions.enter(der::SEQUENCE) {
                let name = extension.expect(der::OID)?;
                extension.expect(der::BOOLEAN);
                let value = extension.expect(der::OCTET_STRING)?;
                if name == SUBJECT_KEY {
                    key_id = Reader::new(value).expect(der::OCTET_STRING).map(<[u8]>::to_vec);
                }
            }
        }
        Some(Self { subject: subject.to_vec(), key_id, public: public.to_vec() })
    }
}
