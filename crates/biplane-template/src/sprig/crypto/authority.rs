//! The functions that make keys and certificates.

use std::any::Any;

use biplane_go::time::GoTime;

use super::super::address;
use super::super::args::{any, int, text};
use super::certificate::{Issuer, Template};
use super::key::PrivateKey;
use super::{SLOW, pem};
use crate::func::{Call, Failure, Func};
use crate::types::{Kind, Type};
use crate::value::{Object, Value};

/// The type of what the functions return.
const CERTIFICATE: Type = Type::named("sprig.certificate", Kind::Struct);
/// The bits of new keys of certificates.
const BITS: u32 = 2048;

pub(super) fn functions() -> Vec<Func> {
    const LEAF: &[Type] = &[Type::String, Type::LIST, Type::LIST, Type::INT];
    const LEAF_KEY: &[Type] = &[Type::String, Type::LIST, Type::LIST, Type::INT, Type::String];
    const SIGNED: &[Type] = &[Type::String, Type::LIST, Type::LIST, Type::INT, CERTIFICATE];
    const SIGNED_KEY: &[Type] =
        &[Type::String, Type::LIST, Type::LIST, Type::INT, CERTIFICATE, Type::String];
    vec![
        Func::new("genPrivateKey", &[Type::String], Type::String, |call, args| {
            call.spend(SLOW * 10)?;
            let name = text(args, 0);
            Ok(match PrivateKey::generate(call.host(), name) {
                Some(key) => key.to_pem().into(),
                None => Value::text([b"Unknown type ", name].concat()),
            })
        }),
        Func::new("buildCustomCert", &[Type::String, Type::String], CERTIFICATE, build_custom),
        Func::new("genCA", &[Type::String, Type::INT], CERTIFICATE, |call, args| {
            let key = new_key(call)?;
            authority(call, args, &key)
        }),
        Func::new(
            "genCAWithKey",
            &[Type::String, Type::INT, Type::String],
            CERTIFICATE,
            |call, args| {
                let key = given_key(text(args, 2))?;
                authority(call, args, &key)
            },
        ),
        Func::new("genSelfSignedCert", LEAF, CERTIFICATE, |call, args| {
            let key = new_key(call)?;
            self_signed(call, args, &key)
        }),
        Func::new("genSelfSignedCertWithKey", LEAF_KEY, CERTIFICATE, |call, args| {
            let key = given_key(text(args, 4))?;
            self_signed(call, args, &key)
        }),
        Func::new("genSignedCert", SIGNED, CERTIFICATE, |call, args| {
            let key = new_key(call)?;
            signed(call, args, &key)
        }),
        Func::new("genSignedCertWithKey", SIGNED_KEY, CERTIFICATE, |call, args| {
            let key = given_key(text(args, 5))?;
            signed(call, args, &key)
        }),
    ]
}

/// A certificate and its key as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Certificate {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Object for Certificate {
    fn go_type(&self) -> Type {
        CERTIFICATE
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("Cert", Value::text(self.cert.as_slice())), ("Key", Value::text(self.key.as_slice()))]
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.as_any().downcast_ref::<Self>() == Some(self)
    }
}

fn new_key(call: &mut Call<'_>) -> Result<PrivateKey, Failure> {
    call.spend(SLOW * 5)?;
    Ok(PrivateKey::rsa(call.host(), BITS))
}

fn given_key(text: &[u8]) -> Result<PrivateKey, Failure> {
    PrivateKey::from_pem(text).map_err(|why| Failure::new(format!("parsing private key: {why}")))
}

/// What a certificate says by the arguments: name, addresses, other names and days.
fn template(
    call: &mut Call<'_>,
    name: &[u8],
    addresses: &Value,
    names: &Value,
    days: i64,
) -> Result<Template, Failure> {
    let addresses = each(addresses, |value| {
        let Value::Str(text) = value else {
            return Err(not_text("error parsing ip", value));
        };
        let parsed = address::parse(text).ok().filter(|address| !address.zone);
        let Some(parsed) = parsed else {
            return Err(Failure::new(format!("error parsing ip: {}", text.to_lossy())));
        };
        // An IPv4 address is one in every spelling.
        let mapped = parsed.bytes.strip_prefix(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        Ok(mapped.map_or_else(|| parsed.bytes.clone(), <[u8]>::to_vec))
    })?;
    let names = each(names, |value| match value {
        Value::Str(text) => Ok(text.to_vec()),
        value => Err(not_text("error processing alternate dns name", value)),
    })?;
    let mut serial = [0; 16];
    call.host().random(&mut serial);
    let (seconds, nanos) = call.host().now();
    let not_before = GoTime::utc(seconds, nanos);
    let not_after = not_before.plus(days.wrapping_mul(86_400_000_000_000));
    let common_name = name.to_vec();
    Ok(Template { serial, common_name, addresses, names, not_before, not_after, authority: false })
}

fn not_text(what: &str, value: &Value) -> Failure {
    let shown = value.display_in_message();
    Failure::new(format!("{what}: {} is not a string", String::from_utf8_lossy(&shown)))
}

fn each(
    list: &Value,
    convert: impl Fn(&Value) -> Result<Vec<u8>, Failure>,
) -> Result<Vec<Vec<u8>>, Failure> {
    match list {
        Value::List(list) => list.items().iter().map(convert).collect(),
        _ => Ok(Vec::new()),
    }
}

/// The certificate of a key, signed by another key or by itself.
fn certificate(
    template: &Template,
    key: &PrivateKey,
    signer: Option<(&Issuer, &PrivateKey)>,
) -> Result<Value, Failure> {
    let (issuer, signer) = match signer {
        Some((issuer, signer)) => (Some(issuer), signer),
        None => (None, key),
    };
    let cert = template.sign(key, issuer, signer);
    let cert = cert.map_err(|why| Failure::new(format!("error creating certificate: {why}")))?;
    Ok(Value::object(Certificate {
        cert: pem::encode("CERTIFICATE", &cert).into_bytes(),
        key: key.to_pem().into_bytes(),
    }))
}

fn authority(call: &mut Call<'_>, args: &[Value], key: &PrivateKey) -> Result<Value, Failure> {
    let template = template(call, text(args, 0), &Value::Nil, &Value::Nil, int(args, 1))?;
    certificate(&Template { authority: true, ..template }, key, None)
}

fn self_signed(call: &mut Call<'_>, args: &[Value], key: &PrivateKey) -> Result<Value, Failure> {
    let template = template(call, text(args, 0), any(args, 1), any(args, 2), int(args, 3))?;
    certificate(&template, key, None)
}

fn signed(call: &mut Call<'_>, args: &[Value], key: &PrivateKey) -> Result<Value, Failure> {
    let authority = match any(args, 4) {
        Value::Object(object) => object.as_any().downcast_ref::<Certificate>(),
        _ => None,
    };
    let Some(authority) = authority else {
        return Err(Failure::new("unable to decode certificate"));
    };
    let block = pem::decode(&authority.cert);
    let block = block.ok_or_else(|| Failure::new("unable to decode certificate"))?;
    let issuer = Issuer::from_der(&block.bytes).map_err(|why| {
        Failure::new(format!("error parsing certificate: decodedSignerCert.Bytes: {why}"))
    })?;
    let signer = PrivateKey::from_pem(&authority.key)
        .map_err(|why| Failure::new(format!("error parsing private key: {why}")))?;
    let template = template(call, text(args, 0), any(args, 1), any(args, 2), int(args, 3))?;
    certificate(&template, key, Some((&issuer, &signer)))
}

fn build_custom(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    call.reserve(text(args, 0).len() as u64 + text(args, 1).len() as u64)?;
    let decode = |at: usize, what: &str| {
        let decoded = biplane_go::base64::decode(text(args, at));
        decoded.map_err(|_| Failure::new(format!("unable to decode base64 {what}")))
    };
    let cert = decode(0, "certificate")?;
    let key = decode(1, "private key")?;
    let block = pem::decode(&cert);
    let block = block.ok_or_else(|| Failure::new("unable to decode certificate"))?;
    Issuer::from_der(&block.bytes).map_err(|why| {
        Failure::new(format!("error parsing certificate: decodedCert.Bytes: {why}"))
    })?;
    PrivateKey::from_pem(&key)
        .map_err(|why| Failure::new(format!("error parsing private key: {why}")))?;
    Ok(Value::object(Certificate { cert, key }))
}
