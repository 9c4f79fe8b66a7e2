//! Passwords, encryption, keys and certificates. The caller provides randomness and time.

mod authority;
mod certificate;
mod der;
mod digital_signature;
mod key;
mod pem;
mod rsa;

use aes::Aes256;
use aes::cipher::{Array, BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::args::{int, made, text};
use crate::func::{Call, Failure, Func, Host};
use crate::types::Type;
use crate::value::Value;

/// What an operation counts that takes as long as thousands of instructions.
const SLOW: u64 = 20_000;

pub(super) fn functions() -> Vec<Func> {
    const TWO: &[Type] = &[Type::String, Type::String];
    let mut functions = vec![
        Func::new("bcrypt", &[Type::String], Type::String, |call, args| {
            Ok(bcrypt(call, text(args, 0))?.into())
        }),
        Func::new("htpasswd", TWO, Type::String, |call, args| {
            let user = String::from_utf8_lossy(text(args, 0)).into_owned();
            if user.contains(':') {
                return Ok(format!("invalid username: {user}").into());
            }
            let hash = bcrypt(call, text(args, 1))?;
            Ok(Value::text([text(args, 0), b":", hash.as_bytes()].concat()))
        }),
        Func::new(
            "derivePassword",
            &[Type::UINT32, Type::String, Type::String, Type::String, Type::String],
            Type::String,
            derive_password,
        ),
        Func::new("encryptAES", TWO, Type::String, encrypt),
        Func::new("decryptAES", TWO, Type::String, decrypt),
    ];
    functions.extend(authority::functions());
    functions
}

/// The caller's randomness, for algorithms that draw numbers themselves.
struct Randomness<'a>(&'a dyn Host);

impl rand_core::TryRng for Randomness<'_> {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut buffer = [0; 4];
        self.0.random(&mut buffer);
        Ok(u32::from_be_bytes(buffer))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let mut buffer = [0; 8];
        self.0.random(&mut buffer);
        Ok(u64::from_be_bytes(buffer))
    }

    fn try_fill_bytes(&mut self, buffer: &mut [u8]) -> Result<(), Self::Error> {
        self.0.random(buffer);
        Ok(())
    }
}

impl rand_core::TryCryptoRng for Randomness<'_> {}

fn bcrypt(call: &mut Call<'_>, password: &[u8]) -> Result<String, Failure> {
    const COST: u32 = 10;
    if password.len() > 72 {
        let why = "bcrypt: password length exceeds 72 bytes";
        return Ok(format!("failed to encrypt string with bcrypt: {why}"));
    }
    call.spend(SLOW)?;
    let mut salt = [0; 16];
    call.host().random(&mut salt);
    let hash = ::bcrypt::hash_with_salt(password, COST, salt);
    Ok(match hash {
        // Go writes the older name of the same version.
        Ok(hash) => hash.format_for_version(::bcrypt::Version::TwoA),
        Err(error) => format!("failed to encrypt string with bcrypt: {error}"),
    })
}

/// The templates of each type of password.
const TEMPLATES: &[(&str, &str)] = &[
    ("maximum", "anoxxxxxxxxxxxxxxxxx axxxxxxxxxxxxxxxxxno"),
    (
        "long",
        "CvcvnoCvcvCvcv CvcvCvcvnoCvcv CvcvCvcvCvcvno CvccnoCvcvCvcv CvccCvcvnoCvcv \
         CvccCvcvCvcvno CvcvnoCvccCvcv CvcvCvccnoCvcv CvcvCvccCvcvno CvcvnoCvcvCvcc \
         CvcvCvcvnoCvcc CvcvCvcvCvccno CvccnoCvccCvcv CvccCvccnoCvcv CvccCvccCvcvno \
         CvcvnoCvccCvcc CvcvCvccnoCvcc CvcvCvccCvccno CvccnoCvcvCvcc CvccCvcvnoCvcc \
         CvccCvcvCvccno",
    ),
    ("medium", "CvcnoCvc CvcCvcno"),
    ("short", "Cvcn"),
    ("basic", "aaanaaan aannaaan aaannaaa"),
    ("pin", "nnnn"),
];

/// The characters that a character of a template stands for.
fn class(template: u8) -> &'static [u8] {
    match template {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

fn derive_password(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    const SEED: &[u8] = b"com.lyndir.masterpassword";
    let kind = String::from_utf8_lossy(text(args, 1));
    let Some((_, templates)) = TEMPLATES.iter().find(|(name, _)| *name == kind) else {
        return Ok(format!("cannot find password template {kind}").into());
    };
    let templates: Vec<&str> = templates.split_whitespace().collect();
    let (password, user, site) = (text(args, 2), text(args, 3), text(args, 4));
    call.spend(SLOW * 4)?;
    let length = |text: &[u8]| (text.len() as u32).to_be_bytes();
    let salt = [SEED, &length(user), user].concat();
    let mut key = [0; 64];
    let derived = ::scrypt::Params::new(15, 8, 2)
        .is_ok_and(|params| ::scrypt::scrypt(password, &salt, &params, &mut key).is_ok());
    let Some(mut mac) = Hmac::<Sha256>::new_from_slice(&key).ok().filter(|_| derived) else {
        return Ok("failed to derive password".into());
    };
    let counter = (int(args, 0) as u32).to_be_bytes();
    mac.update(&[SEED, &length(site), site, &counter].concat());
    let seed = mac.finalize().into_bytes();
    let pick =
        |choices: usize, at: usize| usize::from(seed.get(at).copied().unwrap_or(0)) % choices;
    let template = templates.get(pick(templates.len(), 0)).copied().unwrap_or_default();
    let characters = template.bytes().enumerate().filter_map(|(at, template)| {
        let class = class(template);
        class.get(pick(class.len(), at + 1)).copied()
    });
    Ok(Value::text(characters.collect::<Vec<u8>>()))
}

const BLOCK: usize = 16;

/// The first 32 bytes of a password, with zeros after a shorter one.
fn cipher(password: &[u8]) -> Aes256 {
    let mut key = [0; 32];
    for (slot, byte) in key.iter_mut().zip(password) {
        *slot = *byte;
    }
    Aes256::new(&Array::from(key))
}

fn xor(block: &mut [u8; BLOCK], other: &[u8]) {
    block.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
}

fn encrypt(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let plain = text(args, 1);
    if plain.is_empty() {
        return Ok(Value::text(""));
    }
    call.spend(plain.len() as u64 / 16)?;
    call.reserve(plain.len() as u64 * 2)?;
    let cipher = cipher(text(args, 0));
    let mut out = vec![0; BLOCK];
    call.host().random(&mut out);
    let padding = BLOCK - plain.len() % BLOCK;
    let padded = [plain, &vec![padding as u8; padding]].concat();
    for part in padded.chunks(BLOCK) {
        let mut block = [0; BLOCK];
        xor(&mut block, part);
        xor(&mut block, out.get(out.len() - BLOCK..).unwrap_or_default());
        let mut block = Array::from(block);
        cipher.encrypt_block(&mut block);
        out.extend_from_slice(&block);
    }
    made(call, super::encoding::base64(&out))
}

fn decrypt(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    if text(args, 1).is_empty() {
        return Ok(Value::text(""));
    }
    let encrypted = biplane_go::base64::decode(text(args, 1));
    let encrypted =
        encrypted.map_err(|at| Failure::new(format!("illegal base64 data at input byte {at}")))?;
    call.spend(encrypted.len() as u64 / 16)?;
    call.reserve(encrypted.len() as u64)?;
    let bounds = |text: String| {
        Err(Failure::new(format!("runtime error: slice bounds out of range {text}")))
    };
    let Some((mut before, body)) = encrypted.split_at_checked(BLOCK) else {
        return bounds(format!("[:{BLOCK}] with capacity {}", capacity(text(args, 1))));
    };
    if !body.len().is_multiple_of(BLOCK) {
        return Err(Failure::new("crypto/cipher: input not full blocks"));
    }
    let cipher = cipher(text(args, 0));
    let mut plain = Vec::with_capacity(body.len());
    for part in body.chunks(BLOCK) {
        let mut block = [0; BLOCK];
        xor(&mut block, part);
        let mut block = Array::from(block);
        cipher.decrypt_block(&mut block);
        let mut block: [u8; BLOCK] = block.into();
        xor(&mut block, before);
        plain.extend_from_slice(&block);
        before = part;
    }
    let Some(padding) = plain.last().copied() else {
        return Err(Failure::new("runtime error: index out of range [-1]"));
    };
    match plain.len().checked_sub(usize::from(padding)) {
        Some(length) => {
            plain.truncate(length);
            made(call, plain)
        }
        None => bounds(format!("[:{}]", plain.len().cast_signed() as i64 - i64::from(padding))),
    }
}

/// The capacity of Go's buffer for decoded base64: three bytes for four.
fn capacity(encoded: &[u8]) -> usize {
    encoded.len() / 4 * 3
}
