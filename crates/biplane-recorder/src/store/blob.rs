//! Stores bytes once, by hash, compressed against a relative, and reads them back.

use std::io::Write as _;

use sha2::{Digest as _, Sha256};
use zstd::zstd_safe::{self, DCtx};

use crate::digest::Hash;

use super::Store;
use super::db::{Db, Error, int};

/// Up to this size nothing is gained.
const SMALL: usize = 64;

/// How long a chain of relatives may be.
const MOST_DEPTH: i64 = 2;

/// Fast, and hardly worse than slower ones.
const LEVEL: i32 = 3;

/// A larger one is taken for damage.
const MOST_BYTES: i64 = 64 * 1024 * 1024;

/// Compresses bytes, after others if there are any.
fn compress(bytes: &[u8], base: Option<&[u8]>) -> std::io::Result<Vec<u8>> {
    let together = bytes.len() + base.map_or(0, <[u8]>::len);
    // The window must reach from the last byte to the first of the base.
    let window = (usize::BITS - together.leading_zeros()).clamp(10, 27);
    let out = Vec::with_capacity(bytes.len() / 8 + 64);
    let mut encoder = match base {
        Some(base) => zstd::stream::write::Encoder::with_ref_prefix(out, LEVEL, base)?,
        None => zstd::stream::write::Encoder::new(out, LEVEL)?,
    };
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    encoder.window_log(window)?;
    // The size is a column.
    encoder.include_contentsize(false)?;
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Decompresses at once: a stream would need a buffer of its own, which costs more than small bodies.
fn decompress(data: &[u8], base: Option<&[u8]>, size: usize) -> std::io::Result<Vec<u8>> {
    let failed = |code| std::io::Error::other(zstd_safe::get_error_name(code));
    let mut context = DCtx::create();
    if let Some(base) = base {
        context.ref_prefix(base).map_err(failed)?;
    }
    let mut out = Vec::with_capacity(size);
    context.decompress(&mut out, data).map_err(failed)?;
    Ok(out)
}

/// The checksum of what is stored. Some bytes of compressed data mean nothing, and damage there would
/// not be seen otherwise.
fn sum(data: &[u8]) -> i64 {
    let hash = Sha256::digest(data);
    hash.iter().take(4).fold(0, |sum, byte| sum << 8 | i64::from(*byte))
}

/// A row of the table.
struct Stored {
    base: Option<i64>,
    size: usize,
    data: Vec<u8>,
}

fn stored(db: &Db, id: i64) -> Result<Stored, Error> {
    let sql = "SELECT base, size, data, sum FROM blob WHERE id = $1";
    let Some(row) = db.first(sql, &[id.into()])? else {
        return Err(Error::Damaged(format!("blob {id} is missing")));
    };
    let size = row.int(1)?;
    if !(0..=MOST_BYTES).contains(&size) {
        return Err(Error::Damaged(format!("blob {id} has {size} bytes")));
    }
    let data = row.bytes(2)?;
    if sum(&data) != row.int(3)? {
        return Err(Error::Damaged(format!("blob {id} was altered")));
    }
    Ok(Stored { base: row.int_or(0)?, size: size as usize, data })
}

impl Store {
    /// The bytes of a blob.
    pub(super) fn blob(&self, id: i64) -> Result<Vec<u8>, Error> {
        self.blob_within(id, MOST_DEPTH)
    }

    fn blob_within(&self, id: i64, depth: i64) -> Result<Vec<u8>, Error> {
        if let Some(bytes) = self.cache.borrow_mut().get(id) {
            self.db.spend(id, bytes.len())?;
            return Ok(bytes);
        }
        let found = stored(&self.db, id)?;
        self.db.spend(id, found.size)?;
        let bytes = if found.data.len() == found.size {
            found.data
        } else {
            let base = match found.base {
                Some(_) if depth == 0 => {
                    return Err(Error::Damaged(format!("blob {id} has too many bases")));
                }
                Some(base) => Some(self.blob_within(base, depth - 1)?),
                None => None,
            };
            let bytes = decompress(&found.data, base.as_deref(), found.size);
            let bytes = bytes.map_err(|error| Error::Damaged(format!("blob {id}: {error}")))?;
            if bytes.len() != found.size {
                return Err(Error::Damaged(format!("blob {id} has not {} bytes", found.size)));
            }
            bytes
        };
        self.cache.borrow_mut().put(id, &bytes);
        Ok(bytes)
    }

    /// Stores bytes, unless they are there, and returns their key and whether they are new. The
    /// relative is tried as a base. `used` and `held` are hours; zero if nothing needs it.
    pub(super) fn put_blob(
        &self,
        hash: &Hash,
        bytes: &[u8],
        relative: Option<i64>,
        (used, held): (i64, i64),
    ) -> Result<(i64, bool), Error> {
        if let Some(id) = self.find_blob(hash)? {
            return Ok((id, false));
        }
        let unable = |error: std::io::Error| Error::Failed(format!("cannot compress: {error}"));
        let mut data = bytes.to_vec();
        let (mut base, mut depth) = (None, 0);
        if bytes.len() > SMALL {
            let alone = compress(bytes, None).map_err(unable)?;
            if alone.len() < data.len() {
                data = alone;
            }
            if let Some((id, base_depth)) = self.base_of(relative)? {
                let prefix = self.blob(id)?;
                let together = compress(bytes, Some(&prefix)).map_err(unable)?;
                if together.len() * 2 <= data.len() {
                    data = together;
                    base = Some(id);
                    depth = base_depth + 1;
                }
            }
        }
        if let Some(base) = base {
            // Whoever needs the one needs the other.
            self.stamp_blob(base, used, held)?;
        }
        let sql = "INSERT INTO blob (hash, base, depth, size, used, held, data, sum) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (hash) DO NOTHING RETURNING id";
        let size = int(bytes.len());
        let params = [
            (&hash[..]).into(),
            base.into(),
            depth.into(),
            size.into(),
            used.into(),
            held.into(),
            (&data).into(),
            sum(&data).into(),
        ];
        match self.db.number(sql, &params)? {
            Some(id) => {
                self.cache.borrow_mut().put(id, bytes);
                Ok((id, true))
            }
            // Another recorder was faster.
            None => match self.find_blob(hash)? {
                Some(id) => Ok((id, false)),
                None => Err(Error::Busy("a blob came and went".to_owned())),
            },
        }
    }

    pub(super) fn find_blob(&self, hash: &Hash) -> Result<Option<i64>, Error> {
        self.db.number("SELECT id FROM blob WHERE hash = $1", &[(&hash[..]).into()])
    }

    /// The blob to take as a base for a relative: itself, or its base if it is too deep.
    fn base_of(&self, relative: Option<i64>) -> Result<Option<(i64, i64)>, Error> {
        let Some(id) = relative else { return Ok(None) };
        let sql = "SELECT depth, base FROM blob WHERE id = $1";
        let Some(row) = self.db.first(sql, &[id.into()])? else { return Ok(None) };
        let depth = row.int(0)?;
        match row.int_or(1)? {
            Some(base) if depth >= MOST_DEPTH => Ok(Some((base, depth - 1))),
            _ => Ok(Some((id, depth))),
        }
    }

    /// Says that a blob and its bases are needed in an hour.
    pub(super) fn stamp_blob(&self, id: i64, used: i64, held: i64) -> Result<(), Error> {
        let mut next = Some(id);
        for _ in 0..=MOST_DEPTH {
            let Some(id) = next else { break };
            let sql = "UPDATE blob SET used = CASE WHEN used < $2 THEN $2 ELSE used END, \
                held = CASE WHEN held < $3 THEN $3 ELSE held END \
                WHERE id = $1 AND (used < $2 OR held < $3)";
            self.db.execute(sql, &[id.into(), used.into(), held.into()])?;
            next = self.db.number("SELECT base FROM blob WHERE id = $1", &[id.into()])?;
        }
        Ok(())
    }
}

/// The bytes of blobs that were needed last.
#[derive(Debug)]
pub(super) struct Cache {
    limit: usize,
    bytes: usize,
    clock: u64,
    kept: std::collections::BTreeMap<i64, (u64, Vec<u8>)>,
    order: std::collections::BTreeMap<u64, i64>,
}

impl Cache {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: 0,
            clock: 0,
            kept: std::collections::BTreeMap::new(),
            order: std::collections::BTreeMap::new(),
        }
    }

    fn get(&mut self, id: i64) -> Option<Vec<u8>> {
        let (at, bytes) = self.kept.get_mut(&id)?;
        self.clock += 1;
        self.order.remove(at);
        *at = self.clock;
        self.order.insert(self.clock, id);
        Some(bytes.clone())
    }

    fn put(&mut self, id: i64, bytes: &[u8]) {
        // One large blob must not push out all others.
        if bytes.len() > self.limit / 4 || self.kept.contains_key(&id) {
            return;
        }
        self.clock += 1;
        self.bytes += bytes.len() + 64;
        self.kept.insert(id, (self.clock, bytes.to_vec()));
        self.order.insert(self.clock, id);
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some((_, bytes)) = self.kept.remove(&oldest) {
                self.bytes -= bytes.len() + 64;
            }
        }
    }

    /// Forgets everything: keys of what was rolled back may be given out again.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_makes_it_small_and_is_needed_to_read_it() {
        let base: Vec<u8> =
            (0..4000_u32).flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
        let mut next = base.clone();
        next[8000..8004].copy_from_slice(b"abcd");
        let alone = compress(&next, None).unwrap();
        let together = compress(&next, Some(&base)).unwrap();
        assert!(together.len() < 100, "{}", together.len());
        assert!(alone.len() > 15_000, "{}", alone.len());
        assert_eq!(decompress(&together, Some(&base), next.len()).unwrap(), next);
        assert_ne!(decompress(&together, None, next.len()).ok(), Some(next));
    }

    #[test]
    fn a_cache_forgets_what_was_not_needed_for_longest() {
        let mut cache = Cache::new(1000);
        for id in 0..4 {
            cache.put(id, &[0; 200]);
            cache.get(0);
        }
        assert!(cache.get(0).is_some() && cache.get(3).is_some());
        assert!(cache.get(1).is_none());
        cache.put(9, &[0; 900]);
        assert!(cache.get(9).is_none());
    }
}
