//! Addresses hold ids, never names: keys of the store as short texts, and filters of lists.

use biplane_recorder::query::record::Outcome;
use biplane_recorder::store::hex;
use sha2::{Digest as _, Sha256};

/// A key of the store as it stands in addresses: base 36.
pub fn text(key: i64) -> String {
    let mut rest = key.unsigned_abs();
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(rest % 36).unwrap_or_default();
        digits.push(char::from_digit(digit, 36).unwrap_or('0'));
        rest /= 36;
        if rest == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}

/// The key of a text.
pub fn key(text: &str) -> Option<i64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_plain.then(|| i64::from_str_radix(text, 36).ok()).flatten()
}

/// The beginning of a trace, as long as addresses have it. Traces that are no UUIDs stay whole.
pub fn trace(trace: &str) -> &str {
    match trace.split_once('-') {
        Some((first, _)) if first.len() == 8 => first,
        _ => trace,
    }
}

/// A label as it stands in addresses: the beginning of its hash.
pub fn label(key: &str, value: &str) -> String {
    let hash = Sha256::digest(format!("{key}={value}"));
    hex(hash.get(..LABEL / 2).unwrap_or_default())
}

/// How many digits that has.
const LABEL: usize = 12;

/// How runs ended, as a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// In failure of any kind.
    Failed,
    /// In one way.
    As(Outcome),
}

impl Ended {
    /// All choices with their texts in addresses and their words.
    pub const ALL: [(Self, &str, &str); 6] = [
        (Self::Failed, "f", "Failed"),
        (Self::As(Outcome::Ok), "1", "Ok"),
        (Self::As(Outcome::Warning), "2", "Warning"),
        (Self::As(Outcome::Fatal), "3", "Fatal"),
        (Self::As(Outcome::Error), "4", "Error"),
        (Self::As(Outcome::Incomplete), "5", "Incomplete"),
    ];

    /// Reads the text of an address.
    pub fn of_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, name, _)| *name == text).map(|(ended, ..)| ended)
    }

    /// The text in addresses.
    pub fn text(self) -> &'static str {
        Self::ALL.into_iter().find(|(ended, ..)| *ended == self).map_or("", |(_, text, _)| text)
    }

    /// The outcomes that it means.
    pub fn outcomes(self) -> Vec<Outcome> {
        match self {
            Self::Failed => Outcome::ALL.into_iter().filter(|o| o.is_failure()).collect(),
            Self::As(outcome) => vec![outcome],
        }
    }
}

/// Which runs or changes a list shows. Everything that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The key of the Composition's name.
    pub composition: Option<i64>,
    /// The key of the function's name.
    pub function: Option<i64>,
    /// The key of the namespace.
    pub namespace: Option<i64>,
    /// A label of the owner, as [`label`] writes it.
    pub label: Option<String>,
    /// The key of the owner, or of the changed resource.
    pub object: Option<i64>,
    /// How runs ended. For changes, `Failed`.
    pub ended: Option<Ended>,
    /// How far back: `1h`, `24h`, `7d`.
    pub since: Option<String>,
    /// Only runs that changed something.
    pub changed: bool,
    /// Not before this second.
    pub from: Option<i64>,
    /// Before this second.
    pub until: Option<i64>,
    /// `create`, `update` or `delete`, by its number.
    pub operation: Option<i64>,
}

/// The times that lists can look back.
pub const SINCE: [(&str, &str); 5] = [
    ("15m", "Last 15 minutes"),
    ("1h", "Last hour"),
    ("6h", "Last 6 hours"),
    ("24h", "Last 24 hours"),
    ("7d", "Last 7 days"),
];

impl Filter {
    /// Reads the text of an address: `c12.o3.s1h`. What is not understood is left out.
    pub fn of_text(words: &str) -> Self {
        let mut filter = Self::default();
        for word in words.split('.') {
            let mut characters = word.chars();
            let Some(sign) = characters.next() else { continue };
            let rest = characters.as_str();
            match sign {
                'c' => filter.composition = key(rest),
                'f' => filter.function = key(rest),
                'n' => filter.namespace = key(rest),
                'l' => {
                    let is_hash =
                        rest.len() == LABEL && rest.bytes().all(|b| b.is_ascii_hexdigit());
                    filter.label = is_hash.then(|| rest.to_owned());
                }
                'x' => filter.object = key(rest),
                'o' => filter.ended = Ended::of_text(rest),
                'u' => filter.changed = true,
                'a' => filter.from = key(rest),
                'b' => filter.until = key(rest),
                'w' => filter.operation = key(rest).filter(|number| (1..=3).contains(number)),
                's' => {
                    let known = SINCE.into_iter().find(|(text, _)| *text == rest);
                    filter.since = known.map(|(text, _)| text.to_owned());
                }
                _ => {}
            }
        }
        filter
    }

    /// The text of an address.
    pub fn text(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        let mut keyed = |sign: char, key: Option<i64>| {
            words.extend(key.map(|key| format!("{sign}{}", text(key))));
        };
        keyed('a', self.from);
        keyed('b', self.until);
        keyed('c', self.composition);
        keyed('f', self.function);
        keyed('n', self.namespace);
        keyed('w', self.operation);
        keyed('x', self.object);
        words.extend(self.label.as_ref().map(|label| format!("l{label}")));
        words.extend(self.ended.map(|ended| format!("o{}", ended.text())));
        words.extend(self.since.as_ref().map(|since| format!("s{since}")));
        words.extend(self.changed.then(|| "u".to_owned()));
        words.join(".")
    }

    /// Whether it leaves nothing out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether only the time is limited.
    pub fn is_time_only(&self) -> bool {
        let times = Self {
            since: self.since.clone(),
            from: self.from,
            until: self.until,
            ..Self::default()
        };
        *self == times
    }

    /// The address of a list with this filter.
    pub fn href(&self, list: &str) -> String {
        match self.text().as_str() {
            "" => list.to_owned(),
            text => format!("{list}?f={text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_short_texts() {
        for (number, want) in
            [(0, "0"), (35, "z"), (36, "10"), (123, "3f"), (i64::MAX, "1y2p0ij32e8e7")]
        {
            assert_eq!(text(number), want);
            assert_eq!(key(want), Some(number));
        }
        for wrong in ["", "-1", "+1", "a b", "zzzzzzzzzzzzzzzz", "ä"] {
            assert_eq!(key(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn filters_are_read_as_they_are_written() {
        let filter = Filter {
            composition: Some(12),
            ended: Some(Ended::As(Outcome::Fatal)),
            since: Some("1h".to_owned()),
            changed: true,
            ..Filter::default()
        };
        assert_eq!(filter.text(), "cc.o3.s1h.u");
        assert_eq!(Filter::of_text(&filter.text()), filter);
        assert_eq!(Filter::of_text("q9..s9y.oX.w7"), Filter::default());
        assert_eq!(filter.href("/runs"), "/runs?f=cc.o3.s1h.u");
        assert_eq!(Filter::default().href("/runs"), "/runs");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,30}") {
            let filter = Filter::of_text(&text);
            prop_assert_eq!(Filter::of_text(&filter.text()), filter);
        }
    }

    #[test]
    fn addresses_have_the_first_part_of_a_trace() {
        assert_eq!(trace("9822d93d-14c2-4bf9-92a6-dc1a9e85a004"), "9822d93d");
        assert_eq!(trace("abc"), "abc");
        assert_eq!(trace("my-trace"), "my-trace");
    }
}
