//! The compact forms of what the store keeps in columns of bytes: ids of traces, states, and lists
//! of blobs.

use crate::digest::{Hash, READY};

use super::db::Error;
use super::rows::StateEntry;

fn damaged<T>(what: &str) -> Result<T, Error> {
    Err(Error::Damaged(format!("{what} cannot be read")))
}

/// Writes numbers in groups of seven bits, and bytes after their length.
#[derive(Debug, Default)]
struct Pack(Vec<u8>);

impl Pack {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Reads what [`Pack`] wrote.
#[derive(Debug)]
struct Unpack<'a>(&'a [u8]);

impl<'a> Unpack<'a> {
    fn byte(&mut self) -> Result<u8, Error> {
        match self.0 {
            [byte, rest @ ..] => {
                self.0 = rest;
                Ok(*byte)
            }
            [] => damaged("a packed list"),
        }
    }

    fn number(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        damaged("a packed number")
    }

    fn id(&mut self) -> Result<i64, Error> {
        i64::try_from(self.number()?).or_else(|_| damaged("a packed key"))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        match self.0.split_at_checked(length) {
            Some((bytes, rest)) => {
                self.0 = rest;
                Ok(bytes)
            }
            None => damaged("a packed text"),
        }
    }

    fn text(&mut self) -> Result<String, Error> {
        let text = String::from_utf8(self.bytes()?.to_vec());
        text.or_else(|_| damaged("a packed text"))
    }
}

/// The bytes of a trace or span: 16 for a UUID as it is usually written, otherwise a mark and the
/// text.
pub(super) fn pack_id(text: &str) -> Vec<u8> {
    if let Some(bytes) = uuid_bytes(text) {
        return bytes.to_vec();
    }
    let mut bytes = vec![0xff];
    bytes.extend_from_slice(text.as_bytes());
    if bytes.len() == 16 {
        // So that it is not taken for a UUID.
        bytes.push(0);
    }
    bytes
}

/// The text of [`pack_id`].
pub(super) fn unpack_id(bytes: &[u8]) -> String {
    if bytes.len() == 16 {
        let hex = hex(bytes);
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
        return parts.join("-");
    }
    let text = bytes.strip_prefix(&[0xff]).unwrap_or(bytes);
    let text = if bytes.len() == 17 { text.strip_suffix(&[0]).unwrap_or(text) } else { text };
    String::from_utf8_lossy(text).into_owned()
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let bytes = text.as_bytes();
    let dashes = [8, 13, 18, 23];
    if bytes.len() != 36 || dashes.iter().any(|at| bytes.get(*at) != Some(&b'-')) {
        return None;
    }
    let digits: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'-').collect();
    <[u8; 16]>::try_from(unhex(&digits)?).ok()
}

/// The bytes of lower-case hexadecimal digits.
pub(super) fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// The traces that begin with a prefix: from, and before. `None` if no UUID can begin so.
pub(super) fn prefix_range(prefix: &str) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let digits: String = prefix.chars().filter(|c| *c != '-').collect();
    let digits = digits.to_ascii_lowercase();
    if digits.len() > 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let from = unhex(format!("{digits:0<32}").as_bytes())?;
    let last = unhex(format!("{digits:f<32}").as_bytes())?;
    // The first that does not begin so.
    let mut before = last;
    for byte in before.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return Some((from, Some(before)));
        }
    }
    Some((from, None))
}

/// A tag: 32 bytes if it is a hash, otherwise its text.
fn pack_tag(out: &mut Pack, tag: Option<&str>) {
    match tag.map(|tag| (tag, unhex(tag.as_bytes()).filter(|bytes| bytes.len() == 32))) {
        None => out.0.push(0),
        Some((_, Some(hash))) => {
            out.0.push(2);
            out.0.extend_from_slice(&hash);
        }
        Some((text, None)) => {
            out.0.push(1);
            out.bytes(text.as_bytes());
        }
    }
}

fn unpack_tag(from: &mut Unpack<'_>) -> Result<Option<String>, Error> {
    match from.byte()? {
        0 => Ok(None),
        1 => from.text().map(Some),
        2 => match from.0.split_at_checked(32) {
            Some((hash, rest)) => {
                from.0 = rest;
                Ok(Some(hex(hash)))
            }
            None => damaged("a tag"),
        },
        _ => damaged("a tag"),
    }
}

/// A request or response as a list of blobs. `N` blobs may be there or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum List<const N: usize> {
    Empty,
    Opaque { bytes: u64, hash: Hash },
    Blobs { ids: [Option<i64>; N], tag: Option<String> },
}

/// The blobs of a request: observed, desired, required and extra are states, then context, input,
/// schemas, credentials and the rest.
pub(super) type RequestList = List<9>;

/// The blobs of a response: desired is a state, then context, requirements, output and the rest.
pub(super) type ResponseList = List<5>;

impl<const N: usize> List<N> {
    pub(super) fn pack(&self) -> Vec<u8> {
        let mut out = Pack::default();
        match self {
            Self::Empty => out.0.push(0),
            Self::Opaque { bytes, hash } => {
                out.0.push(1);
                out.number(*bytes);
                out.0.extend_from_slice(hash);
            }
            Self::Blobs { ids, tag } => {
                out.0.push(2);
                let there = ids.iter().enumerate().filter(|(_, id)| id.is_some());
                out.number(there.map(|(at, _)| 1 << at).sum());
                for id in ids.iter().flatten() {
                    out.number(id.unsigned_abs());
                }
                pack_tag(&mut out, tag.as_deref());
            }
        }
        out.0
    }

    pub(super) fn unpack(bytes: &[u8]) -> Result<Self, Error> {
        let mut from = Unpack(bytes);
        match from.byte()? {
            0 => Ok(Self::Empty),
            1 => {
                let bytes = from.number()?;
                match Hash::try_from(from.0) {
                    Ok(hash) => Ok(Self::Opaque { bytes, hash }),
                    Err(_) => damaged("the hash of a payload"),
                }
            }
            2 => {
                let there = from.number()?;
                let mut ids = [None; N];
                for (at, id) in ids.iter_mut().enumerate() {
                    if there >> at & 1 == 1 {
                        *id = Some(from.id()?);
                    }
                }
                Ok(Self::Blobs { ids, tag: unpack_tag(&mut from)? })
            }
            _ => damaged("a list of blobs"),
        }
    }

    pub(super) fn tag(&self) -> Option<&str> {
        match self {
            Self::Blobs { tag, .. } => tag.as_deref(),
            Self::Empty | Self::Opaque { .. } => None,
        }
    }
}

/// A state as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedState {
    pub(super) has_composite: bool,
    pub(super) has_resources: bool,
    pub(super) entries: Vec<StateEntry>,
}

const ITEM: u8 = 1;
const READINESS: u8 = 2;
const KEYS: u8 = 4;
const BODY: u8 = 8;

impl PackedState {
    pub(super) fn pack(&self) -> Vec<u8> {
        let mut out = Pack::default();
        out.0.push(u8::from(self.has_composite) | u8::from(self.has_resources) << 1);
        out.number(self.entries.len() as u64);
        for entry in &self.entries {
            out.bytes(entry.name.as_bytes());
            let ready = entry.ready.as_ref().and_then(|n| READY.iter().position(|r| r == n));
            let flag = |set: bool, flag: u8| if set { flag } else { 0 };
            out.0.push(
                flag(entry.item.is_some(), ITEM)
                    | flag(ready.is_some(), READINESS)
                    | flag(entry.connection_keys.is_some(), KEYS)
                    | flag(entry.body.is_some(), BODY),
            );
            if let Some(item) = entry.item {
                out.number(item.into());
            }
            if let Some(ready) = ready {
                out.0.push(ready as u8);
            }
            if let Some(keys) = &entry.connection_keys {
                out.number(keys.len() as u64);
                for key in keys {
                    out.bytes(key.as_bytes());
                }
            }
            if let Some(body) = entry.body {
                out.number(body.unsigned_abs());
            }
        }
        out.0
    }

    pub(super) fn unpack(bytes: &[u8]) -> Result<Self, Error> {
        let mut from = Unpack(bytes);
        let has = from.byte()?;
        let count = from.number()?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let name = from.text()?;
            let flags = from.byte()?;
            let has = |flag: u8| flags & flag != 0;
            let item = if has(ITEM) { Some(from.number()? as u32) } else { None };
            let ready = if has(READINESS) {
                let ready = READY.get(usize::from(from.byte()?));
                Some(
                    ready
                        .map_or_else(|| damaged("a readiness"), |ready| Ok((*ready).to_owned()))?,
                )
            } else {
                None
            };
            let connection_keys = if has(KEYS) {
                let count = from.number()?;
                Some((0..count).map(|_| from.text()).collect::<Result<_, _>>()?)
            } else {
                None
            };
            let body = if has(BODY) { Some(from.id()?) } else { None };
            entries.push(StateEntry { name, item, ready, connection_keys, body });
        }
        Ok(Self { has_composite: has & 1 != 0, has_resources: has & 2 != 0, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_any_form_come_back() {
        for text in [
            "a3aba73d-78e3-4933-9791-319f264d679a",
            "A3ABA73D-78E3-4933-9791-319F264D679A",
            "00000000-0000-0000-0000-000000000000",
            "",
            "trace",
            "fifteen letters",
            "sixteen letters!",
            "seventeen letters",
        ] {
            assert_eq!(unpack_id(&pack_id(text)), text);
        }
        assert_eq!(pack_id("a3aba73d-78e3-4933-9791-319f264d679a").len(), 16);
        assert_ne!(pack_id("fifteen letters").len(), 16);
    }

    #[test]
    fn a_prefix_is_a_range_of_traces() {
        let (from, before) = prefix_range("A3a").unwrap();
        assert_eq!(
            (hex(&from), hex(&before.unwrap())),
            (
                "a3a00000000000000000000000000000".to_owned(),
                "a3b00000000000000000000000000000".to_owned()
            )
        );
        assert_eq!(prefix_range("ff").unwrap().1, None);
        assert!(prefix_range("north").is_none());
    }

    #[test]
    fn lists_and_states_come_back() {
        let blobs = RequestList::Blobs {
            ids: [Some(1), None, Some(300), None, None, None, None, None, Some(1 << 40)],
            tag: Some("ab286ab0c1606ddc20a4fb85e10b0b7c4f6d7a24d2208259612b7c02b9f3681d".into()),
        };
        let mut lists = vec![blobs, List::Empty, List::Opaque { bytes: 9, hash: [7; 16] }];
        lists.push(List::Blobs { ids: [None; 9], tag: Some("v1".into()) });
        lists.push(List::Blobs { ids: [None; 9], tag: None });
        for list in lists {
            assert_eq!(List::unpack(&list.pack()).unwrap(), list);
        }
        let entry = |name: &str, item, body| StateEntry {
            name: name.into(),
            item,
            ready: Some("READY_FALSE".into()),
            connection_keys: Some(vec!["a".into(), String::new()]),
            body,
        };
        let state = PackedState {
            has_composite: true,
            has_resources: false,
            entries: vec![entry("", None, Some(5)), entry("bucket", Some(3), None)],
        };
        let packed = state.pack();
        assert_eq!(PackedState::unpack(&packed).unwrap(), state);
        for cut in 0..packed.len() {
            assert!(PackedState::unpack(&packed[..cut]).is_err());
        }
    }
}
