//! Semantic versions and constraints on them, like `Masterminds/semver`.

mod constraint;

use std::any::Any;
use std::cmp::Ordering;
use std::fmt;

use super::args::text;
use crate::func::{Call, Failure, Func};
use crate::types::{Kind, Type, UintKind};
use crate::value::{Json, Object, Signature, Value};

pub(super) fn functions() -> Vec<Func> {
    vec![
        Func::new("semver", &[Type::String], POINTER, |_, args| {
            let version = Version::parse(&String::from_utf8_lossy(text(args, 0)));
            version.map(Value::object).map_err(Failure::new)
        }),
        Func::new("semverCompare", &[Type::String, Type::String], Type::Bool, |call, args| {
            call.spend((text(args, 0).len() as u64 + text(args, 1).len() as u64) / 8)?;
            let check = constraint::Constraints::parse(&String::from_utf8_lossy(text(args, 0)));
            let version = Version::parse(&String::from_utf8_lossy(text(args, 1)));
            let (check, version) = (check.map_err(Failure::new)?, version.map_err(Failure::new)?);
            Ok(check.allow(&version).into())
        }),
    ]
}

/// The type of what `semver` returns.
const POINTER: Type = Type::named("*semver.Version", Kind::Ptr);
/// The type of the next versions.
const STRUCT: Type = Type::named("semver.Version", Kind::Struct);

/// A semantic version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: String,
    metadata: String,
    original: String,
    /// Whether the value is the struct itself. `semver` returns pointers.
    plain: bool,
}

impl Version {
    /// Reads a version of one to three numbers. A `v` may precede it. The error is Go's.
    pub fn parse(text: &str) -> Result<Self, String> {
        const INVALID: &str = "invalid semantic version";
        let body = text.strip_prefix('v').unwrap_or(text);
        let (body, metadata) = match body.split_once('+') {
            Some((body, metadata)) => (body, Some(metadata)),
            None => (body, None),
        };
        let (numbers, pre) = match body.split_once('-') {
            Some((numbers, pre)) => (numbers, Some(pre)),
            None => (body, None),
        };
        let numbers: Vec<&str> = numbers.split('.').collect();
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let parts_are_valid = |parts: Option<&str>| parts.is_none_or(identifiers);
        if numbers.len() > 3 || !numbers.iter().all(|number| digits(number)) {
            return Err(INVALID.to_owned());
        }
        if !parts_are_valid(pre) || !parts_are_valid(metadata) {
            return Err(INVALID.to_owned());
        }
        let number = |at: usize| match numbers.get(at) {
            None => Ok(0),
            Some(text) => text.parse::<u64>().map_err(|_| {
                let quoted = biplane_go::fmt::quote(text);
                let error = format!("strconv.ParseUint: parsing {quoted}: value out of range");
                format!("error parsing version segment: {error}")
            }),
        };
        let (major, minor, patch) = (number(0)?, number(1)?, number(2)?);
        let zero = |part: &str| part.len() > 1 && part.starts_with('0') && digits(part);
        if pre.is_some_and(|pre| pre.split('.').any(zero)) {
            return Err("version segment starts with 0".to_owned());
        }
        let (pre, metadata) = (pre.unwrap_or_default(), metadata.unwrap_or_default());
        Ok(Self {
            major,
            minor,
            patch,
            pre: pre.to_owned(),
            metadata: metadata.to_owned(),
            original: text.to_owned(),
            plain: false,
        })
    }

    /// The order by precedence. Metadata does not count.
    pub fn order(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| match (&*self.pre, &*other.pre) {
            ("", "") => Ordering::Equal,
            ("", _) => Ordering::Greater,
            (_, "") => Ordering::Less,
            (a, b) => order_of_pre(a, b),
        })
    }

    /// The next version, of which `change` sets the numbers.
    fn next(&self, change: impl FnOnce(&mut Self)) -> Value {
        let mut next =
            Self { pre: String::new(), metadata: String::new(), plain: true, ..self.clone() };
        change(&mut next);
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        next.original = format!("{prefix}{next}");
        Value::object(next)
    }
}

/// Whether a text is identifiers between dots.
fn identifiers(text: &str) -> bool {
    text.split('.').all(|part| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

fn order_of_pre(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('.').collect(), b.split('.').collect());
    for at in 0..a.len().max(b.len()) {
        let part =
            |parts: &[&str]| parts.get(at).map(|part| (*part).to_owned()).unwrap_or_default();
        let (a, b) = (part(&a), part(&b));
        let order = match (a.is_empty(), b.is_empty()) {
            (false, false) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(&b),
            },
            (a, b) => b.cmp(&a),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

/// The methods of versions. Those that only pointers have come last.
const METHODS: &[(&str, Signature)] = &[
    ("String", Signature::new(&[], Type::String)),
    ("Major", Signature::new(&[], Type::UINT64)),
    ("Minor", Signature::new(&[], Type::UINT64)),
    ("Patch", Signature::new(&[], Type::UINT64)),
    ("Prerelease", Signature::new(&[], Type::String)),
    ("Metadata", Signature::new(&[], Type::String)),
    ("IncMajor", Signature::new(&[], STRUCT)),
    ("IncMinor", Signature::new(&[], STRUCT)),
    ("IncPatch", Signature::new(&[], STRUCT)),
    ("SetPrerelease", Signature::new(&[Type::String], STRUCT)),
    ("SetMetadata", Signature::new(&[Type::String], STRUCT)),
    ("Original", Signature::new(&[], Type::String)),
    ("Compare", Signature::new(&[POINTER], Type::INT)),
    ("Equal", Signature::new(&[POINTER], Type::Bool)),
    ("LessThan", Signature::new(&[POINTER], Type::Bool)),
    ("LessThanEqual", Signature::new(&[POINTER], Type::Bool)),
    ("GreaterThan", Signature::new(&[POINTER], Type::Bool)),
    ("GreaterThanEqual", Signature::new(&[POINTER], Type::Bool)),
];

/// The number of methods that values have as well as pointers.
const VALUE_METHODS: usize = 11;

impl Object for Version {
    fn go_type(&self) -> Type {
        if self.plain { STRUCT } else { POINTER }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn string(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        // Templates cannot read them, but messages know that they exist.
        let uint = |number| Value::Uint(UintKind::Uint64, number);
        vec![
            ("major", uint(self.major)),
            ("minor", uint(self.minor)),
            ("patch", uint(self.patch)),
            ("pre", self.pre.clone().into()),
            ("metadata", self.metadata.clone().into()),
            ("original", self.original.clone().into()),
        ]
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let count = if self.plain { VALUE_METHODS } else { METHODS.len() };
        METHODS.iter().take(count).find(|(known, _)| *known == name).map(|(_, method)| *method)
    }

    fn call(&self, name: &str, _: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
        let uint = |number| Value::Uint(UintKind::Uint64, number);
        let order = || match args.first() {
            Some(Value::Object(object)) => {
                object.as_any().downcast_ref::<Self>().map(|other| self.order(other))
            }
            _ => None,
        };
        let compared = |test: fn(Ordering) -> bool| match order() {
            Some(order) => Ok(test(order).into()),
            None if name == "Equal" => Ok(false.into()),
            None => Err(Failure::new(super::args::NIL_POINTER)),
        };
        let given = || String::from_utf8_lossy(text(args, 0)).into_owned();
        Ok(match name {
            "String" => self.to_string().into(),
            "Major" => uint(self.major),
            "Minor" => uint(self.minor),
            "Patch" => uint(self.patch),
            "Prerelease" => self.pre.clone().into(),
            "Metadata" => self.metadata.clone().into(),
            "Original" => self.original.clone().into(),
            "IncMajor" => self.next(|next| {
                (next.major, next.minor, next.patch) = (self.major.wrapping_add(1), 0, 0);
            }),
            "IncMinor" => self.next(|next| {
                (next.minor, next.patch) = (self.minor.wrapping_add(1), 0);
            }),
            "IncPatch" => self.next(|next| {
                if self.pre.is_empty() {
                    next.patch = self.patch.wrapping_add(1);
                }
            }),
            "SetPrerelease" => {
                let pre = given();
                check(&pre, "invalid prerelease string", true)?;
                self.next(|next| (next.pre, next.metadata) = (pre, self.metadata.clone()))
            }
            "SetMetadata" => {
                let metadata = given();
                check(&metadata, "invalid metadata string", false)?;
                self.next(|next| (next.pre, next.metadata) = (self.pre.clone(), metadata))
            }
            "Compare" => match order() {
                Some(order) => Value::int(order as i64),
                None => return Err(Failure::new(super::args::NIL_POINTER)),
            },
            "Equal" => return compared(Ordering::is_eq),
            "LessThan" => return compared(Ordering::is_lt),
            "LessThanEqual" => return compared(Ordering::is_le),
            "GreaterThan" => return compared(Ordering::is_gt),
            _ => return compared(Ordering::is_ge),
        })
    }

    fn names(&self) -> Vec<&'static str> {
        METHODS.iter().map(|(name, _)| *name).collect()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        // Pointers are equal only if they are the same.
        self.plain && self.deep_equals(other)
    }

    fn deep_equals(&self, other: &dyn Object) -> bool {
        other.as_any().downcast_ref::<Self>() == Some(self)
    }

    fn deep_copy(&self) -> Option<Value> {
        // The fields are not exported: a copy has none of them.
        Some(Value::object(Self { plain: self.plain, ..Self::default() }))
    }

    fn json(&self) -> Json {
        Json::As(self.to_string().into())
    }
}

/// Complains about identifiers that are none.
fn check(text: &str, complaint: &str, numbers: bool) -> Result<(), Failure> {
    for part in text.split('.').filter(|_| !text.is_empty()) {
        if !identifiers(part) {
            return Err(Failure::new(complaint));
        }
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        if numbers && digits && part.len() > 1 && part.starts_with('0') {
            return Err(Failure::new("version segment starts with 0"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn reads_and_orders_versions() {
        assert_eq!(version("v1.02").to_string(), "1.2.0");
        assert_eq!(version("1.2.3-a.1+b").to_string(), "1.2.3-a.1+b");
        let ordered = ["1.0.0-1", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta", "1.0.0", "1.0.1"];
        for pair in ordered.windows(2) {
            assert_eq!(version(pair[0]).order(&version(pair[1])), Ordering::Less, "{pair:?}");
        }
        for (text, error) in [
            ("", "invalid semantic version"),
            ("1.2.3.4", "invalid semantic version"),
            ("1.2.3-", "invalid semantic version"),
            ("1.2.3-01", "version segment starts with 0"),
        ] {
            assert_eq!(Version::parse(text).unwrap_err(), error, "{text}");
        }
    }
}
