//! Base64, base32 and checksums.

use sha1::{Digest as _, Sha1};
use sha2::{Sha256, Sha512};

use super::args::{made, text};
use crate::func::{Call, Failure, Func};
use crate::types::Type;
use crate::value::Value;

pub(super) fn functions() -> Vec<Func> {
    type Body = fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure>;
    let bodies: [(&str, Body); 8] = [
        ("b64enc", |call, args| made(call, base64(text(args, 0)))),
        ("b64dec", |call, args| {
            let decoded = biplane_go::base64::decode(text(args, 0));
            let problem = |at| format!("illegal base64 data at input byte {at}").into_bytes();
            made(call, decoded.unwrap_or_else(problem))
        }),
        ("b32enc", |call, args| made(call, base32(text(args, 0)))),
        ("b32dec", |call, args| {
            let problem = |at| format!("illegal base32 data at input byte {at}").into_bytes();
            made(call, decode_base32(text(args, 0)).unwrap_or_else(problem))
        }),
        ("sha1sum", |_, args| Ok(Value::text(hex(&Sha1::digest(text(args, 0)))))),
        ("sha256sum", |_, args| Ok(Value::text(hex(&Sha256::digest(text(args, 0)))))),
        ("sha512sum", |_, args| Ok(Value::text(hex(&Sha512::digest(text(args, 0)))))),
        ("adler32sum", |_, args| Ok(Value::text(adler32(text(args, 0)).to_string()))),
    ];
    bodies
        .into_iter()
        .map(|(name, body)| Func::new(name, &[Type::String], Type::String, body))
        .collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn adler32(bytes: &[u8]) -> u32 {
    const PRIME: u32 = 65_521;
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % PRIME;
        high = (high + low) % PRIME;
    }
    high << 16 | low
}

/// The groups of some bits of bytes, with zeros after the last byte.
fn groups(bytes: &[u8], width: u32) -> impl Iterator<Item = usize> {
    let count = (bytes.len() * 8).div_ceil(width as usize);
    (0..count).map(move |at| {
        let start = at * width as usize;
        let pair = |at: usize| u32::from(bytes.get(at).copied().unwrap_or_default());
        let window = pair(start / 8) << 8 | pair(start / 8 + 1);
        (window >> (16 - width - start as u32 % 8) & ((1 << width) - 1)) as usize
    })
}

fn encode(bytes: &[u8], alphabet: &[u8], width: u32, quantum: usize) -> String {
    let letter = |group: usize| char::from(alphabet.get(group).copied().unwrap_or_default());
    let mut out: String = groups(bytes, width).map(letter).collect();
    while !out.len().is_multiple_of(quantum) {
        out.push('=');
    }
    out
}

/// Standard base64 with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    encode(bytes, ALPHABET, 6, 4)
}

const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32(bytes: &[u8]) -> String {
    encode(bytes, BASE32, 5, 8)
}

/// Decodes padded base32 without its line breaks. The error is the offset of the problem.
fn decode_base32(text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| !b"\r\n".contains(byte)).collect();
    let mut out = Vec::with_capacity(text.len() / 8 * 5);
    let mut at = 0;
    let mut end = false;
    while at < text.len() && !end {
        let start = at;
        let mut bits = 0_u64;
        let mut digits = 8;
        for place in 0..8 {
            let Some(byte) = text.get(at).copied() else {
                // The input ends within a group.
                return Err(text.len() - place);
            };
            at += 1;
            if byte == b'=' && place >= 2 && text.len() - at < 8 {
                let missing = 8 - place - 1;
                let rest = text.get(at..).unwrap_or_default();
                if rest.len() < missing {
                    return Err(text.len());
                }
                if let Some(wrong) = rest.iter().take(missing).position(|byte| *byte != b'=') {
                    return Err(start + place + wrong);
                }
                if matches!(place, 1 | 3 | 6) {
                    return Err(start + place);
                }
                digits = place;
                end = true;
                break;
            }
            let digit = BASE32.iter().position(|letter| *letter == byte);
            bits = bits << 5 | digit.ok_or(start + place)? as u64;
        }
        bits <<= 5 * (8 - digits) as u32;
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(bytes.get(3..3 + digits * 5 / 8).unwrap_or_default());
        if end && at < text.len() {
            // Go stops after padding without looking at what follows in the same call.
            at = text.len();
        }
    }
    Ok(out)
}
