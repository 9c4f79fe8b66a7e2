//! How people name a run, a step of it, or a resource in it.

use std::fmt;

use jiff::Timestamp;

use super::time;

/// A run, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The run.
    pub run: RunName,
    /// The part of it.
    pub part: Part,
}

/// How a run is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunName {
    /// By the beginning of its trace.
    Trace(String),
    /// By its owner and time.
    Owner {
        /// The kind, with or without its group: `Store` or `store.shop.example.org`.
        kind: String,
        /// The name.
        name: String,
        /// Which of the owner's runs.
        which: Which,
    },
}

/// Which run of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// So many before the last one.
    Back(usize),
    /// The last one at a time.
    At(Timestamp),
}

/// A part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// A step by its number or name, perhaps with the number of the call.
    Step(String),
    /// A composed resource by name; empty is the composite resource.
    Slot(String),
}

/// Why a text is no address.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    /// It has no form of an address.
    #[error(
        "expected a run such as 9822d93d, 9822d93d/2, 9822d93d:bucket, Store/north or Store/north@{{1}} but got {0:?}"
    )]
    Form(String),
    /// The time is none.
    #[error(transparent)]
    Time(#[from] time::NoTime),
}

impl Address {
    /// Reads an address. `now` is for times without a date.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, AddressError> {
        let wrong = || AddressError::Form(text.to_owned());
        let (before_slot, slot) = match text.split_once(':') {
            Some((before, slot)) => (before, Some(slot)),
            None => (text, None),
        };
        let whole = |run| Self { run, part: Part::Whole };
        let found = match before_slot.split_once('/') {
            None if is_trace(before_slot) => {
                let run = RunName::Trace(before_slot.to_owned());
                match slot {
                    Some(slot) => Self { run, part: Part::Slot(slot.to_owned()) },
                    None => whole(run),
                }
            }
            None => return Err(wrong()),
            Some((trace, step)) if is_run_and_step(trace, step) => {
                // A step may be named with a colon.
                let step = text.get(trace.len() + 1..).unwrap_or_default();
                let run = RunName::Trace(trace.to_owned());
                Self { run, part: Part::Step(step.to_owned()) }
            }
            Some((kind, _)) => {
                let rest = text.get(kind.len() + 1..).unwrap_or_default();
                return owner(kind, rest, now).ok_or_else(wrong)?;
            }
        };
        match &found.part {
            Part::Step(step) if step.is_empty() => Err(wrong()),
            _ => Ok(found),
        }
    }
}

/// Reads what follows a kind: `NAME`, `NAME@{1}`, `NAME@14:00`, each with `/STEP` or `:SLOT`.
fn owner(kind: &str, rest: &str, now: Timestamp) -> Option<Result<Address, AddressError>> {
    let end = rest.find(['@', '/', ':']).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    if kind.is_empty() || name.is_empty() {
        return None;
    }
    let (which, rest) = match rest.strip_prefix('@') {
        None => (Which::Back(0), rest),
        Some(at) => {
            if let Some(count) = at.strip_prefix('{') {
                let (count, rest) = count.split_once('}')?;
                (Which::Back(count.parse().ok()?), rest)
            } else {
                let (text, rest) = at.split_at(end_of_time(at));
                match time::point(text, now) {
                    Ok(time) => (Which::At(time), rest),
                    Err(error) => return Some(Err(error.into())),
                }
            }
        }
    };
    let part = match (rest.strip_prefix('/'), rest.strip_prefix(':')) {
        (Some(""), _) => return None,
        (Some(step), _) => Part::Step(step.to_owned()),
        (_, Some(slot)) => Part::Slot(slot.to_owned()),
        _ if rest.is_empty() => Part::Whole,
        _ => return None,
    };
    let run = RunName::Owner { kind: kind.to_owned(), name: name.to_owned(), which };
    Some(Ok(Address { run, part }))
}

/// Where a time ends: before a slash, or before a colon that no digit follows.
fn end_of_time(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = |at: &usize| match bytes[*at] {
        b'/' => true,
        b':' => !bytes.get(at + 1).is_some_and(u8::is_ascii_digit),
        _ => false,
    };
    (0..bytes.len()).find(ends).unwrap_or(bytes.len())
}

fn is_trace(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Tells `9822d93d/compose` from `Store/north`: traces are hexadecimal, and steps have numbers.
fn is_run_and_step(trace: &str, step: &str) -> bool {
    let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b) || b == b'-';
    let is_like_a_trace = !trace.is_empty()
        && trace.bytes().all(hexadecimal)
        && trace.bytes().any(|b| b.is_ascii_digit());
    let is_number = |text: &str| {
        let (number, iteration) = text.split_once('.').unwrap_or((text, "1"));
        number.parse::<u32>().is_ok() && iteration.parse::<u32>().is_ok()
    };
    is_trace(trace) && (is_like_a_trace || is_number(step))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run {
            RunName::Trace(trace) => f.write_str(trace)?,
            RunName::Owner { kind, name, which } => {
                write!(f, "{kind}/{name}")?;
                match which {
                    Which::Back(0) => {}
                    Which::Back(count) => write!(f, "@{{{count}}}")?,
                    Which::At(time) => write!(f, "@{time}")?,
                }
            }
        }
        match &self.part {
            Part::Whole => Ok(()),
            Part::Step(step) => write!(f, "/{step}"),
            Part::Slot(slot) => write!(f, ":{slot}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn now() -> Timestamp {
        "2026-11-16T15:00:00Z".parse().unwrap()
    }

    fn parse(text: &str) -> Result<Address, AddressError> {
        Address::parse(text, now())
    }

    fn trace(text: &str, part: Part) -> Address {
        Address { run: RunName::Trace(text.to_owned()), part }
    }

    fn of_owner(which: Which, part: Part) -> Address {
        let run = RunName::Owner { kind: "Store".to_owned(), name: "north".to_owned(), which };
        Address { run, part }
    }

    #[test]
    fn addresses_name_runs_steps_and_resources() {
        let step = |text: &str| Part::Step(text.to_owned());
        let slot = |text: &str| Part::Slot(text.to_owned());
        let at: Timestamp = "2026-11-16T14:00:00Z".parse().unwrap();
        for (text, want) in [
            ("9822d93d", trace("9822d93d", Part::Whole)),
            ("9822d93d/1", trace("9822d93d", step("1"))),
            ("9822d93d/1.2", trace("9822d93d", step("1.2"))),
            ("9822d93d/compose", trace("9822d93d", step("compose"))),
            ("9822d93d:bucket", trace("9822d93d", slot("bucket"))),
            ("9822d93d:", trace("9822d93d", slot(""))),
            ("9822d93d:a/b:c", trace("9822d93d", slot("a/b:c"))),
            ("Store/north", of_owner(Which::Back(0), Part::Whole)),
            ("Store/north@{1}", of_owner(Which::Back(1), Part::Whole)),
            ("Store/north@14:00", of_owner(Which::At(at), Part::Whole)),
            ("Store/north@14:00:bucket", of_owner(Which::At(at), slot("bucket"))),
            ("Store/north@2026-11-16T14:00:00Z/2", of_owner(Which::At(at), step("2"))),
            ("Store/north@{3}/compose", of_owner(Which::Back(3), step("compose"))),
            ("Store/north:bucket", of_owner(Which::Back(0), slot("bucket"))),
            ("Store/north/2", of_owner(Which::Back(0), step("2"))),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
        for text in
            ["", "/", ":x", "Store/", "/north", "Store/north@{x}", "Store/north@{1}x", "a b"]
        {
            assert_eq!(parse(text), Err(AddressError::Form(text.to_owned())), "{text}");
        }
        assert!(matches!(parse("Store/north@noon"), Err(AddressError::Time(_))));
    }

    proptest! {
        #[test]
        fn reading_does_not_panic(text in "\\PC{0,24}") {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_written_is_read_again(text in "[a-zA-Z0-9@{}:/.-]{0,16}") {
            if let Ok(address) = parse(&text) {
                prop_assert_eq!(parse(&address.to_string()), Ok(address));
            }
        }
    }
}
