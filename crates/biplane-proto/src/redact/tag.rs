//! Replaces the tag of a request. It is a hash over everything, so who has it can test guesses of
//! what was redacted.

use std::fmt::{self, Write as _};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// A random key of this process. Equal tags stay equal as long as the key is the same.
#[derive(Clone)]
pub struct TagKey([u8; 32]);

impl TagKey {
    /// Creates a key from random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    /// Replaces a tag by its keyed hash. An absent tag stays absent.
    pub(super) fn replace(&self, tag: &mut String) {
        if tag.is_empty() {
            return;
        }
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            tag.clear();
            return;
        };
        mac.update(tag.as_bytes());
        let mut text = String::with_capacity(64);
        for byte in mac.finalize().into_bytes() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        *tag = text;
    }
}

impl fmt::Debug for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagKey")
    }
}
