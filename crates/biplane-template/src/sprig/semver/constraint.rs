//! Constraints on versions: alternatives of conditions that must all hold.

use std::sync::LazyLock;

use regex::Regex;

use super::Version;

/// A version with wildcards. Its groups are: major, minor and patch with their dots, and the
/// pre-release with its dash.
const VERSION: &str = r"v?([0-9|xX*]+)(\.[0-9|xX*]+)?(\.[0-9|xX*]+)?(-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?";
/// The operators in the order in which they are tried.
const OPERATOR: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
/// White space in Go's patterns.
const SPACE: &str = r"[\t\n\x0C\r ]";

/// The patterns of the grammar.
struct Grammar {
    range: Regex,
    alternative: Regex,
    condition: Regex,
    one_condition: Regex,
}

static GRAMMAR: LazyLock<Option<Grammar>> = LazyLock::new(|| {
    let (version, operator, space) = (VERSION, OPERATOR, SPACE);
    let plain = VERSION.replace('(', "(?:").replace("(?:?:", "(?:");
    let condition = format!("(?:{operator}){space}*(?:{plain})");
    let pattern = |text: String| Regex::new(&text).ok();
    Some(Grammar {
        range: pattern(format!("{space}*({plain}){space}+-{space}+({plain}){space}*"))?,
        alternative: pattern(format!(
            r"\A{space}*{condition}{space}*(?:(?:{space}+|,{space}*){condition}{space}*)*\z"
        ))?,
        condition: pattern(condition)?,
        one_condition: pattern(format!(r"\A{space}*({operator}){space}*({version}){space}*\z"))?,
    })
});

/// Conditions of which one alternative must hold.
#[derive(Debug)]
pub(super) struct Constraints {
    alternatives: Vec<Vec<Condition>>,
}

/// A condition on a version.
#[derive(Debug)]
struct Condition {
    operator: String,
    version: Version,
    /// Whether any part is a wildcard, the minor part is the first one, or the patch is.
    wild: bool,
    minor_wild: bool,
    patch_wild: bool,
}

impl Constraints {
    /// Reads constraints. The error is Go's.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let Some(grammar) = GRAMMAR.as_ref() else { return Err("no grammar".to_owned()) };
        let mut rewritten = text.to_owned();
        for found in grammar.range.captures_iter(text) {
            let group = |at: usize| found.get(at).map_or("", |group| group.as_str());
            let both = format!(">= {}, <= {} ", group(1), group(2));
            rewritten = rewritten.replacen(group(0), &both, 1);
        }
        let alternatives = rewritten.split("||").map(|alternative| {
            if !grammar.alternative.is_match(alternative) {
                return Err(format!("improper constraint: {alternative}"));
            }
            let conditions = grammar.condition.find_iter(alternative);
            conditions.map(|condition| Condition::parse(grammar, condition.as_str())).collect()
        });
        Ok(Self { alternatives: alternatives.collect::<Result<_, _>>()? })
    }

    /// Whether a version satisfies the constraints.
    pub(super) fn allow(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|conditions| {
            // Pre-releases count only for those who ask for one.
            let names_pre = conditions.iter().any(|condition| !condition.version.pre.is_empty());
            let pre_allowed = version.pre.is_empty() || names_pre;
            pre_allowed && conditions.iter().all(|condition| condition.allows(version))
        })
    }
}

impl Condition {
    fn parse(grammar: &Grammar, text: &str) -> Result<Self, String> {
        let Some(found) = grammar.one_condition.captures(text) else {
            return Err(format!("improper constraint: {text}"));
        };
        let group = |at: usize| found.get(at).map_or("", |group| group.as_str());
        let wildcard = |text: &str| matches!(text.trim_start_matches('.'), "" | "x" | "X" | "*");
        let (major, minor, patch, pre) = (group(3), group(4), group(5), group(6));
        let mut condition = Self {
            operator: group(1).to_owned(),
            version: Version::default(),
            wild: true,
            minor_wild: false,
            patch_wild: false,
        };
        let spelling = if wildcard(major) {
            format!("0.0.0{pre}")
        } else if wildcard(minor) {
            condition.minor_wild = true;
            format!("{major}.0.0{pre}")
        } else if wildcard(patch) {
            condition.patch_wild = true;
            format!("{major}{minor}.0{pre}")
        } else {
            condition.wild = false;
            group(2).to_owned()
        };
        let parsed = Version::parse(&spelling);
        condition.version = parsed.map_err(|_| "constraint parser error".to_owned())?;
        Ok(condition)
    }

    fn allows(&self, version: &Version) -> bool {
        let own = &self.version;
        let order = version.order(own);
        match self.operator.as_str() {
            "" | "=" if !self.wild => order.is_eq(),
            "" | "=" | "~" | "~>" => self.near(version),
            "!=" => !self.wild_equal(version),
            ">" if !self.wild => order.is_gt(),
            ">" if version.major != own.major => version.major > own.major,
            ">" if self.minor_wild => false,
            ">" if self.patch_wild => version.minor > own.minor,
            ">" => order.is_gt(),
            "<" => order.is_lt(),
            ">=" | "=>" => order.is_ge(),
            "<=" | "=<" if !self.wild => order.is_le(),
            "<=" | "=<" => {
                let minor_above = version.minor > own.minor && !self.minor_wild;
                version.major < own.major || (version.major == own.major && !minor_above)
            }
            _ => self.compatible(version),
        }
    }

    /// Whether a version is one of those that the wildcards stand for.
    fn wild_equal(&self, version: &Version) -> bool {
        let own = &self.version;
        if !self.wild {
            return version.order(own).is_eq();
        }
        if version.major != own.major {
            return false;
        }
        if self.minor_wild {
            return true;
        }
        if version.minor != own.minor {
            return false;
        }
        if self.patch_wild {
            let pre = !version.pre.is_empty() || !own.pre.is_empty();
            return !pre || super::order_of_pre(&version.pre, &own.pre).is_eq();
        }
        version.order(own).is_eq()
    }

    /// `~`: the same minor version, or the same major version if only that is given.
    fn near(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.order(own).is_lt() {
            return false;
        }
        let zero = (own.major, own.minor, own.patch) == (0, 0, 0);
        if zero && !self.minor_wild && !self.patch_wild {
            return true;
        }
        version.major == own.major && (version.minor == own.minor || self.minor_wild)
    }

    /// `^`: the same first number that is not zero.
    fn compatible(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.order(own).is_lt() || version.major != own.major {
            return false;
        }
        if own.major > 0 || self.minor_wild {
            return true;
        }
        if own.minor > 0 || self.patch_wild {
            return version.minor == own.minor;
        }
        version.minor == 0 && version.patch == own.patch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_constraints() {
        for (constraint, version, allowed) in [
            ("~1.2.3", "1.2.9", true),
            ("~1.2.3", "1.3.0", false),
            ("~1", "1.9.9", true),
            ("^1.2.3", "1.9.0", true),
            ("^0.2.3", "0.3.0", false),
            ("^0.0.3", "0.0.4", false),
            (">1", "1.9.9", false),
            (">1.2", "1.3.0", true),
            ("<=1", "1.9.9", true),
            ("1.x", "1.4.0", true),
            ("1.2 - 1.4.5", "1.4.0", true),
            ("1.2 - 1.4.5", "1.4.6", false),
            (">=1.0, <2 || 3", "3.1.0", true),
            (">=1.0", "1.1.0-rc1", false),
            (">=1.0-0", "1.1.0-rc1", true),
            ("^x", "0.0.1", false),
            ("~0.0.0", "3.0.1", true),
            ("!=1.x", "1.2.0", false),
        ] {
            let parsed = Constraints::parse(constraint).unwrap();
            let version = Version::parse(version).unwrap();
            assert_eq!(parsed.allow(&version), allowed, "GT-S8 {constraint} {version}");
        }
        assert_eq!(Constraints::parse("").unwrap_err(), "improper constraint: ");
        assert_eq!(Constraints::parse("1 ||").unwrap_err(), "improper constraint: ");
        assert_eq!(Constraints::parse("1.0.0-01").unwrap_err(), "constraint parser error");
    }
}
