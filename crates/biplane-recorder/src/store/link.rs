//! The hashes of the chain of changes.

use sha2::{Digest as _, Sha256};

/// The chain before the first change.
pub(super) fn genesis(store: &[u8], kind: &str, cluster: &str, name: &str) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(store);
    for part in [kind, cluster, name] {
        hasher.update(part.as_bytes());
        hasher.update([0]);
    }
    hasher.finalize().into()
}

/// The hash of a change: over the one before, its number, the time and the line.
pub(super) fn link(before: &[u8], seq: i64, received: i64, line: &str) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(b"biplane change v1\0");
    hasher.update(before);
    hasher.update(seq.to_be_bytes());
    hasher.update(received.to_be_bytes());
    hasher.update(Sha256::digest(line.as_bytes()));
    hasher.finalize().into()
}
