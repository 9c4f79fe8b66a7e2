//! Texts that take little memory: each is compressed with another text of its kind as a dictionary.
//!
//! Objects of a kind have most of their text in common, above all in their managed fields, so a text
//! shrinks to a tenth. Writing one takes a few microseconds, reading it less than parsing it.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use zstd::zstd_safe::{CCtx, DCtx, compress_bound};

/// The fastest. Slower ones gain nothing if there is a dictionary.
const LEVEL: i32 = 1;
/// Up to this size nothing is gained.
const SMALL: usize = 256;
const LARGEST_DICTIONARY: usize = 16 << 10;
/// A dictionary is of little use to a text that is not compressed to this part of its size.
const GOOD: usize = 5;
/// So many texts share a dictionary before there is another one, or this part of all texts if that is
/// more. Texts keep their dictionaries, and these must not become as many as the texts.
const SHARED: usize = 16;

// A context takes a tenth of a megabyte, and work with it takes microseconds. So all share one.
static WRITER: LazyLock<Mutex<CCtx<'static>>> = LazyLock::new(|| Mutex::new(CCtx::create()));
static READER: LazyLock<Mutex<DCtx<'static>>> = LazyLock::new(|| Mutex::new(DCtx::create()));

/// A text.
#[derive(Debug, PartialEq)]
pub(super) enum Text {
    /// As it is.
    Plain(Box<[u8]>),
    /// Compressed.
    Packed {
        bytes: Box<[u8]>,
        /// The length of the text.
        length: usize,
        /// Empty if there was none.
        dictionary: Arc<[u8]>,
    },
}

impl Text {
    /// A text that stays as it is.
    pub(super) fn plain(text: &[u8]) -> Self {
        Self::Plain(text.into())
    }

    /// The text. `None` if it cannot be read.
    pub(super) fn read(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Plain(text) => Some(Cow::Borrowed(text)),
            Self::Packed { bytes, length, dictionary } => {
                let mut text = Vec::with_capacity(*length);
                let mut reader = READER.lock().unwrap_or_else(PoisonError::into_inner);
                reader.decompress_using_dict(&mut text, bytes, dictionary).ok()?;
                Some(Cow::Owned(text))
            }
        }
    }
}

/// Compresses the texts of one kind.
#[derive(Debug)]
pub(super) struct Packing {
    dictionary: Arc<[u8]>,
    /// How many texts were compressed with it.
    texts: usize,
}

impl Packing {
    pub(super) fn new() -> Self {
        Self { dictionary: Arc::new([]), texts: 0 }
    }

    /// Compresses a text if that is worth it, beside so many others that are kept. The first one, and
    /// later one that shares little with those before it, becomes the dictionary of those that follow.
    pub(super) fn pack(&mut self, text: &[u8], kept: usize) -> Text {
        if text.len() < SMALL {
            return Text::plain(text);
        }
        let Some(bytes) = compress(text, &self.dictionary) else { return Text::plain(text) };
        let dictionary = Arc::clone(&self.dictionary);
        self.texts += 1;
        let has_served = self.dictionary.is_empty() || self.texts >= SHARED.max(kept / SHARED);
        if has_served && bytes.len() * GOOD > text.len() {
            self.dictionary = text[..text.len().min(LARGEST_DICTIONARY)].into();
            self.texts = 0;
        }
        if bytes.len() + SMALL > text.len() {
            return Text::plain(text);
        }
        Text::Packed { bytes: bytes.into(), length: text.len(), dictionary }
    }
}

fn compress(text: &[u8], dictionary: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(compress_bound(text.len()));
    let mut writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    writer.compress_using_dict(&mut bytes, text, dictionary, LEVEL).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The text of an object that is like all others but for its name and number.
    fn text(number: usize) -> Vec<u8> {
        let fields = json!({"f:metadata": {"f:labels": {"f:crossplane.io/composite": {}}},
            "f:spec": {"f:region": {}, "f:size": {}, "f:crossplane": {"f:resourceRefs": {}}}});
        let value = json!({"apiVersion": "example.org/v1", "kind": "Thing",
            "metadata": {"name": format!("thing-{number}"), "managedFields": [
                {"manager": "a", "fieldsV1": fields}, {"manager": "b", "fieldsV1": fields}]},
            "spec": {"region": "eu-west-1", "size": number}});
        value.to_string().into_bytes()
    }

    fn size(text: &Text) -> usize {
        match text {
            Text::Plain(bytes) | Text::Packed { bytes, .. } => bytes.len(),
        }
    }

    #[test]
    fn texts_of_a_kind_shrink_to_a_fraction_and_come_back_as_they_were() {
        let mut packing = Packing::new();
        let packed: Vec<Text> =
            (0..200).map(|number| packing.pack(&text(number), number)).collect();
        for (number, packed) in packed.iter().enumerate() {
            assert_eq!(packed.read().as_deref(), Some(&*text(number)));
        }
        // The second one has a dictionary already.
        let early = size(&packed[1]);
        assert!(early * 5 < text(1).len(), "{early} bytes of {}", text(1).len());
        let late = packed.iter().skip(100).map(size).sum::<usize>() / 100;
        assert!(late * 5 < text(100).len(), "{late} bytes of {}", text(100).len());
    }

    #[test]
    fn texts_that_have_little_in_common_share_their_dictionaries() {
        let mut packing = Packing::new();
        let mut noise = 1_u64;
        let mut dictionaries = std::collections::BTreeSet::new();
        let mut texts = Vec::new();
        for kept in 0..160 {
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // A bit less than random, so that it is compressed at all.
                (noise >> 60) as u8
            })
            .take(4000)
            .collect();
            let packed = packing.pack(&bytes, kept);
            assert_eq!(packed.read().as_deref(), Some(&*bytes));
            if let Text::Packed { dictionary, .. } = &packed {
                dictionaries.insert(dictionary.to_vec());
            }
            texts.push(packed);
        }
        assert!(dictionaries.len() <= 11, "{}", dictionaries.len());
    }

    #[test]
    fn small_texts_and_damaged_ones_are_no_trouble() {
        let mut packing = Packing::new();
        assert_eq!(packing.pack(b"{}", 0), Text::plain(b"{}"));
        let damaged = Text::Packed { bytes: [1, 2, 3].into(), length: 9, dictionary: [].into() };
        assert_eq!(damaged.read(), None);
    }
}
