//! Version ranges of a project's packages, and the selection of the newest matching version.
//!
//! Versions and ranges are parsed leniently, like in other package managers: a version may start
//! with `v`, and parts of it may be missing.

use std::cmp::Ordering;

/// Whether a version is a digest.
pub fn is_digest(version: &str) -> bool {
    version.strip_prefix("sha256:").is_some_and(|hash| {
        hash.len() == 64 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Whether a version has all three numbers, so that no lookup is needed.
pub fn is_exact(version: &str) -> bool {
    parse_partial(version).is_some_and(|partial| partial.precision == 3)
}

/// Whether a tag is one version, of which parts may be missing, and no range.
pub fn is_version(tag: &str) -> bool {
    !tag.contains(['x', 'X', '*'])
        && parse_partial(tag).is_some_and(|partial| partial.precision > 0)
        || is_exact(tag)
}

/// The newest tag in a range, as spelled by the registry.
pub fn newest<'a>(tags: &'a [String], range: &Range) -> Option<&'a str> {
    tags.iter()
        .filter_map(|tag| Some((Version::parse(tag)?, tag.as_str())))
        .filter(|(version, _)| range.allows(version))
        .max_by(|(a, _), (b, _)| a.cmp(b))
        .map(|(_, tag)| tag)
}

/// A version without build metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    numbers: [u64; 3],
    /// The pre-release part, such as `rc.1`.
    early: Vec<String>,
}

impl Version {
    /// Missing parts are zero.
    fn parse(text: &str) -> Option<Self> {
        parse_partial(text).filter(|partial| partial.precision > 0).map(|partial| partial.version)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.early.is_empty(), other.early.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_early(&self.early, &other.early),
            }
        })
    }
}

/// Numbers are compared numerically and sort before words. If all else is equal, the longer one
/// wins.
fn compare_early(a: &[String], b: &[String]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let order = match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => a.cmp(b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// A version whose parts may be missing or wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Partial {
    version: Version,
    /// How many numbers are given.
    precision: usize,
}

fn parse_partial(text: &str) -> Option<Partial> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let text = text.split('+').next().unwrap_or_default();
    let (core, early) = match text.split_once('-') {
        Some((core, early)) => (core, early.split('.').map(ToOwned::to_owned).collect()),
        None => (text, Vec::new()),
    };
    if early.iter().any(String::is_empty) {
        return None;
    }
    let mut numbers = [0; 3];
    let mut precision = 0;
    let mut any = false;
    let parts: Vec<_> = core.split('.').collect();
    if parts.len() > 3 {
        return None;
    }
    for (slot, part) in numbers.iter_mut().zip(parts) {
        if matches!(part, "x" | "X" | "*") {
            any = true;
        } else {
            *slot = part.parse().ok().filter(|_| part.bytes().all(|b| b.is_ascii_digit()))?;
            // Everything after a wildcard is also a wildcard.
            precision += usize::from(!any);
        }
    }
    Some(Partial { version: Version { numbers, early }, precision })
}

/// The allowed versions: alternatives, each a list of bounds that must all hold.
#[derive(Clone, Debug)]
pub struct Range(Vec<Vec<Bound>>);

/// An operator and its version.
#[derive(Clone, Debug)]
struct Bound {
    operator: Operator,
    than: Partial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// Longer operators first, so that none is mistaken for its prefix.
const OPERATORS: &[(&str, Operator)] = &[
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("!=", Operator::NotEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    ("", Operator::Equal),
];

impl Range {
    /// Parses a range such as `>=v1.2.0, <2`. Returns `None` for anything else, which is then a
    /// literal tag.
    pub fn parse(text: &str) -> Option<Self> {
        text.split("||").map(bounds).collect::<Option<_>>().map(Self)
    }

    fn allows(&self, version: &Version) -> bool {
        self.0.iter().any(|bounds| bounds.iter().all(|bound| bound.allows(version)))
    }
}

/// Bounds are separated by commas or spaces. A dash between spaces denotes a range.
fn bounds(text: &str) -> Option<Vec<Bound>> {
    if let Some((from, to)) = text.split_once(" - ") {
        return Some(vec![
            bound(&format!(">={}", from.trim()))?,
            bound(&format!("<={}", to.trim()))?,
        ]);
    }
    let mut bounds = Vec::new();
    let mut operator = "";
    for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
        // An operator may be separated from its version by a space.
        if OPERATORS.iter().any(|(symbol, _)| *symbol == word) {
            operator = word;
            continue;
        }
        bounds.push(bound(&format!("{operator}{word}"))?);
        operator = "";
    }
    (operator.is_empty() && !bounds.is_empty()).then_some(bounds)
}

fn bound(text: &str) -> Option<Bound> {
    let (symbol, operator) = OPERATORS.iter().find(|(symbol, _)| text.starts_with(symbol))?;
    let than = parse_partial(text.strip_prefix(symbol)?)?;
    Some(Bound { operator: *operator, than })
}

impl Bound {
    fn allows(&self, version: &Version) -> bool {
        let Partial { version: than, precision } = &self.than;
        // Pre-releases match only if the bound names one.
        if !version.early.is_empty() && than.early.is_empty() {
            return false;
        }
        let same = |parts: usize| {
            version.numbers.iter().zip(&than.numbers).take(parts).all(|(a, b)| a == b)
        };
        match self.operator {
            Operator::Equal if *precision == 3 => version == than,
            Operator::Equal => same(*precision),
            Operator::NotEqual if *precision == 3 => version != than,
            Operator::NotEqual => !same(*precision),
            Operator::Greater if *precision == 3 => version > than,
            Operator::Greater => version > than && !same(*precision),
            Operator::Less => version < than,
            Operator::GreaterOrEqual => version >= than,
            Operator::LessOrEqual if *precision == 3 => version <= than,
            Operator::LessOrEqual => version <= than || same(*precision),
            Operator::Tilde => version >= than && same((*precision).min(2)),
            Operator::Caret => {
                // Up to the first number that is not zero.
                let given = than.numbers.iter().take(*precision);
                let leading = given.take_while(|number| **number == 0).count();
                version >= than && same((leading + 1).min(*precision))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(range: &str, version: &str) -> bool {
        Range::parse(range).unwrap().allows(&Version::parse(version).unwrap())
    }

    #[test]
    fn ranges_allow_what_they_say() {
        for (range, yes, no) in [
            (">=v0.0.0", &["v0.0.0", "1.2.3"][..], &["v1.0.0-rc.1"][..]),
            (">=1.2.0-0", &["1.2.0-rc.1", "1.2.0", "2.0.0-a"], &["1.1.9"]),
            ("v1.2.3", &["1.2.3", "v1.2.3+x"], &["1.2.4", "1.2.3-a"]),
            ("=1.2", &["1.2.0", "1.2.9"], &["1.3.0"]),
            ("1", &["1.0.0", "1.9.0"], &["2.0.0", "0.9.0"]),
            ("1.x", &["1.0.0", "1.9.0"], &["2.0.0"]),
            ("*", &["0.0.1", "9.0.0"], &["1.0.0-a"]),
            (">1", &["2.0.0"], &["1.0.0", "1.9.9"]),
            (">1.2.3", &["1.2.4"], &["1.2.3"]),
            ("<2", &["1.9.9"], &["2.0.0"]),
            ("<=1.2", &["1.2.9", "0.1.0"], &["1.3.0"]),
            ("!=1.2.3", &["1.2.4"], &["1.2.3"]),
            ("!=1.2", &["1.3.0"], &["1.2.3"]),
            ("~1.2.3", &["1.2.3", "1.2.9"], &["1.2.2", "1.3.0"]),
            ("~1.2", &["1.2.0"], &["1.3.0"]),
            ("~1", &["1.0.0", "1.9.0"], &["2.0.0"]),
            ("^1.2.3", &["1.2.3", "1.9.0"], &["1.2.2", "2.0.0"]),
            ("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0"]),
            ("^0.0.3", &["0.0.3"], &["0.0.4"]),
            ("^0.0", &["0.0.0", "0.0.9"], &["0.1.0"]),
            ("^0", &["0.0.0", "0.9.0"], &["1.0.0"]),
            (">=1, <2", &["1.5.0"], &["2.0.0", "0.9.0"]),
            (">=1 <2", &["1.5.0"], &["2.0.0"]),
            (">= 1.2", &["1.2.0"], &["1.1.0"]),
            ("<1 || >=3", &["0.5.0", "3.0.0"], &["2.0.0"]),
            ("1.2 - 1.4", &["1.2.0", "1.4.9"], &["1.5.0", "1.1.0"]),
        ] {
            for version in yes {
                assert!(allows(range, version), "{range} {version}");
            }
            for version in no {
                assert!(!allows(range, version), "{range} {version}");
            }
        }
        for tag in ["latest", "main-1", "", "1.2.3.4", ">=", ">=latest", "1..2"] {
            assert!(Range::parse(tag).is_none(), "{tag}");
        }
    }

    #[test]
    fn the_newest_version_is_meant() {
        let tags = ["latest", "v0.9.0", "v1.10.0", "v1.9.0", "v2.0.0-rc.1", "v2.0.0-rc.10", "nope"];
        let tags = tags.map(ToOwned::to_owned);
        let newest = |range: &str| newest(&tags, &Range::parse(range).unwrap());
        assert_eq!(newest(">=v0.0.0"), Some("v1.10.0"));
        assert_eq!(newest("<1"), Some("v0.9.0"));
        assert_eq!(newest(">=2.0.0-0"), Some("v2.0.0-rc.10"));
        assert_eq!(newest("^3"), None);
    }

    #[test]
    fn exact_versions_and_digests_need_no_registry() {
        for exact in ["v0.5.0", "0.5.0", "v1.2.3-rc.1", "v1.2.3+build"] {
            assert!(is_exact(exact), "{exact}");
        }
        for other in [">=v0.0.0", "1.2", "v1", "1.2.x", "latest"] {
            assert!(!is_exact(other), "{other}");
        }
        assert!(is_digest(&format!("sha256:{}", "0a".repeat(32))));
        assert!(!is_digest("sha256:0a") && !is_digest("v1.2.3"));
    }
}
