//! Checks the licences of dependencies.

use serde_json::Value;

/// Permissive licences that are compatible with Apache-2.0. `deny.toml` has the same list for
/// cargo-deny.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages that ship a licence text instead of a licence name. The texts were read by hand.
const READ_BY_HAND: &[(&str, &str)] = &[("libyaml-safer", "MIT")];

/// Every package whose licence is not known to be allowed.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter_map(|package| {
            let name = package["name"].as_str().unwrap_or_default();
            let read = READ_BY_HAND.iter().find(|(n, _)| *n == name).map(|(_, licence)| *licence);
            let Some(licence) = package["license"].as_str().or(read) else {
                return Some(format!("{name}: names no licence"));
            };
            (!allows(licence)).then(|| format!("{name}: licence {licence} is not allowed"))
        })
        .collect()
}

/// Whether an SPDX expression permits use under allowed licences.
fn allows(expression: &str) -> bool {
    // Old manifests write `/` for OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) && rest.is_empty()
}

fn any_of(words: &mut &[&str]) -> bool {
    let mut good = all_of(words);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        good |= all_of(words);
    }
    good
}

fn all_of(words: &mut &[&str]) -> bool {
    let mut good = one(words);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        good &= one(words);
    }
    good
}

fn one(words: &mut &[&str]) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let good = any_of(words);
            if let [")", rest @ ..] = *words {
                *words = rest;
            }
            good
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            ALLOWED.contains(&format!("{name} WITH {exception}").as_str())
        }
        [name, rest @ ..] => {
            *words = rest;
            ALLOWED.contains(name)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allowed_way_is_enough() {
        assert!(allows("MIT"));
        assert!(allows("MIT OR GPL-3.0-only"));
        assert!(allows("MIT/Apache-2.0"));
        assert!(allows("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only"));
        assert!(allows("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(allows("MIT OR GPL-3.0-only AND ISC"));
    }

    #[test]
    fn every_part_of_a_conjunction_counts() {
        assert!(!allows("GPL-3.0-only"));
        assert!(!allows("MIT AND GPL-3.0-only"));
        assert!(!allows("(MIT OR ISC) AND GPL-3.0-only"));
        assert!(!allows("MIT WITH Own-exception"));
        assert!(!allows("MIT ISC"));
        assert!(!allows(""));
    }

    #[test]
    fn deny_toml_allows_the_same() {
        let text = std::fs::read_to_string(crate::root().join("deny.toml")).unwrap();
        let list = text.split_once("allow = [\n").unwrap().1.split_once("]\n").unwrap().0;
        let listed: Vec<&str> =
            list.lines().map(|l| l.trim().trim_end_matches(',').trim_matches('"')).collect();
        assert_eq!(listed, ALLOWED);
    }
}
