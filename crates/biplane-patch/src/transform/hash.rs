//! Hashes and checksums of the `string` transform.

use std::fmt::Write as _;

use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

use crate::value::Val;

#[derive(Clone, Copy, Debug)]
pub enum Hash {
    Sha1,
    Sha256,
    Sha512,
    Adler32,
}

impl Hash {
    /// Returns the hash of a string, or of the JSON of any other value.
    pub fn run(self, value: &Val) -> Result<String, String> {
        let bytes = match value {
            Val::Text(text) => text.clone(),
            _ => json(value).map(String::into_bytes).map_err(|error| {
                let what = match self {
                    Self::Adler32 => "unable to generate Adler checksum",
                    _ => "cannot generate hash",
                };
                format!("{what}: {error}")
            })?,
        };
        Ok(match self {
            Self::Sha1 => hex(&Sha1::digest(&bytes)),
            Self::Sha256 => hex(&Sha256::digest(&bytes)),
            Self::Sha512 => hex(&Sha512::digest(&bytes)),
            Self::Adler32 => adler32(&bytes).to_string(),
        })
    }
}

/// Encodes a value as JSON.
pub(super) fn json(value: &Val) -> Result<String, String> {
    value.to_json_text().map_err(|error| format!("cannot marshal to JSON: {error}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn adler32(bytes: &[u8]) -> u32 {
    const BASE: u32 = 65521;
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % BASE;
        (a, (b + a) % BASE)
    });
    b << 16 | a
}
