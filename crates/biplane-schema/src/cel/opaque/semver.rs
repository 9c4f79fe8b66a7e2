//! Semantic versions.

use std::cmp::Ordering;

use biplane_go::fmt::quote;

/// A semantic version.
#[derive(Clone, Debug)]
pub struct Semver {
    numbers: [u64; 3],
    prerelease: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Number(u64),
    Text(String),
}

const NAMES: [&str; 3] = ["major", "minor", "patch"];
const TITLES: [&str; 3] = ["Major", "Minor", "Patch"];

impl Semver {
    pub(in crate::cel) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts.as_slice() else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = rest.split_once('+').map_or((*rest, None), |(r, b)| (r, Some(b)));
        let (patch, prerelease) = rest.split_once('-').map_or((rest, None), |(p, r)| (p, Some(r)));
        let mut numbers = [0; 3];
        for ((text, slot), place) in [*major, *minor, patch].into_iter().zip(&mut numbers).zip(0..)
        {
            let name = NAMES.get(place).copied().unwrap_or_default();
            if !text.bytes().all(|b| b.is_ascii_digit()) {
                return Err(format!("Invalid character(s) found in {name} number {}", quote(text)));
            }
            if text.len() > 1 && text.starts_with('0') {
                let title = TITLES.get(place).copied().unwrap_or_default();
                return Err(format!(
                    "{title} number must not contain leading zeroes {}",
                    quote(text)
                ));
            }
            *slot = text.parse().map_err(|_| {
                let reason = if text.is_empty() { "invalid syntax" } else { "value out of range" };
                format!("strconv.ParseUint: parsing {}: {reason}", quote(text))
            })?;
        }
        let prerelease = match prerelease {
            Some(text) => text.split('.').map(part).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        for text in build.into_iter().flat_map(|build| build.split('.')) {
            if text.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
                return Err(format!(
                    "Invalid character(s) found in build meta data {}",
                    quote(text)
                ));
            }
        }
        Ok(Self { numbers, prerelease })
    }

    /// Parses a version that may begin with `v`, be short or have leading zeros.
    pub(in crate::cel) fn parse_loosely(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text
            .splitn(3, '.')
            .map(|part| {
                if part.len() <= 1 {
                    return part.to_owned();
                }
                let cut = part.trim_start_matches('0');
                if cut.starts_with(|c: char| c.is_ascii_digit()) {
                    cut.to_owned()
                } else {
                    format!("0{cut}")
                }
            })
            .collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    pub(in crate::cel) fn number(&self, place: usize) -> i64 {
        self.numbers.get(place).copied().unwrap_or_default().cast_signed()
    }

    pub(in crate::cel) fn order(&self, other: &Self) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        if numbers != Ordering::Equal {
            return numbers;
        }
        match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => {}
        }
        for (a, b) in self.prerelease.iter().zip(&other.prerelease) {
            let order = match (a, b) {
                (Part::Number(a), Part::Number(b)) => a.cmp(b),
                (Part::Number(_), Part::Text(_)) => Ordering::Less,
                (Part::Text(_), Part::Number(_)) => Ordering::Greater,
                (Part::Text(a), Part::Text(b)) => a.cmp(b),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        self.prerelease.len().cmp(&other.prerelease.len())
    }
}

fn part(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                quote(text)
            ));
        }
        return text.parse().map(Part::Number).map_err(|_| {
            format!("strconv.ParseUint: parsing {}: value out of range", quote(text))
        });
    }
    if text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Ok(Part::Text(text.to_owned()));
    }
    Err(format!("Invalid character(s) found in prerelease {}", quote(text)))
}
