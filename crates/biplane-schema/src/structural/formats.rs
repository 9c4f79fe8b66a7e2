//! Formats of strings and numbers that the API server checks.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

/// A format that is checked, with the name that the schema gives it.
#[derive(Clone, Debug)]
pub(super) struct Format {
    pub name: String,
}

const CHECKED: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

impl Format {
    /// The format, if the API server checks it for this type.
    pub(super) fn known(name: &str, types: &[&str]) -> Option<Self> {
        let checked = match types {
            [] | ["string"] => CHECKED.contains(&name.replace('-', "").as_str()),
            ["integer"] => matches!(name, "int32" | "int64"),
            ["number"] => matches!(name, "float" | "double"),
            _ => false,
        };
        checked.then(|| Self { name: name.to_owned() })
    }

    /// Whether a string has this format. Formats of numbers accept every string.
    pub(super) fn fits(&self, text: &str) -> bool {
        let matches = |regex: &LazyLock<Regex>| regex.is_match(text);
        match self.name.replace('-', "").as_str() {
            "uri" => is_request_uri(text),
            "email" => is_email(text),
            "hostname" => is_hostname(text),
            "ipv4" => text.contains('.') && text.parse::<IpAddr>().is_ok(),
            "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
            "cidr" => is_cidr(text),
            "mac" => matches(&MAC),
            "uuid" => matches(&UUID),
            "uuid3" => matches(&UUID3),
            "uuid4" => matches(&UUID4),
            "uuid5" => matches(&UUID5),
            "hexcolor" => matches(&HEX_COLOR),
            "ssn" => matches(&SSN),
            "bsonobjectid" => matches(&OBJECT_ID),
            "byte" => !text.is_empty() && STANDARD.decode(text).is_ok(),
            "isbn10" => is_isbn10(text),
            "isbn13" => is_isbn13(text),
            "isbn" => is_isbn10(text) || is_isbn13(text),
            "creditcard" => is_credit_card(text),
            "rgbcolor" => matches(&RGB_COLOR),
            "date" => matches(&DATE) && text.parse::<jiff::civil::Date>().is_ok(),
            "datetime" => is_date_time(text),
            "duration" => is_duration(text),
            "k8sshortname" => text.len() <= 63 && matches(&LABEL),
            "k8slongname" => text.len() <= 253 && text.split('.').all(|part| LABEL.is_match(part)),
            _ => true,
        }
    }
}

macro_rules! patterns {
    ($($name:ident = $pattern:literal;)*) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| never_wrong($pattern));)*
    };
}

/// Compiles a constant pattern. A test compiles all of them.
fn never_wrong(pattern: &str) -> Regex {
    #[allow(clippy::expect_used)] // a constant that the tests compile
    Regex::new(pattern).expect("a valid pattern")
}

patterns! {
    UUID = "(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i-u)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    MAC = "(?i-u)^([0-9a-f]{2}[:-]){5}([0-9a-f]{2}[:-]){0,2}[0-9a-f]{2}$";
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = "^rgb\\(\\s*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\\s*,\\s*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\\s*,\\s*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\\s*\\)$";
    CARD = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}|6[27][0-9]{14})$";
    SSN = "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    OBJECT_ID = "^[0-9a-fA-F]{24}$";
    DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$";
    TIME = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    GO_DURATION = "^[-+]?(0|([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$";
    WORDY_DURATION = "^[0-9]+\\s*[A-Za-zµ]+";
    LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
    HOST = "^[a-zA-Z0-9\\p{S}\\p{L}]((-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?)$";
    HOST_WITH_DOMAIN = "^([a-zA-Z0-9\\p{S}\\p{L}](([a-zA-Z0-9\\p{S}\\p{L}-]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?)(\\.)){1,}([a-zA-Z\\p{L}]){2,63}$";
}

/// The digits of an ISBN, without what may stand between them.
fn isbn_digits(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let values = digits.chars().enumerate().map(|(place, c)| match c {
        'X' if place == 9 => Some(10),
        c => c.to_digit(10),
    });
    let sum = values.zip(1..).try_fold(0, |sum, (value, weight)| Some(sum + value? * weight));
    digits.len() == 10 && sum.is_some_and(|sum| sum % 11 == 0)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    let weights = [1, 3].into_iter().cycle();
    let values = digits.chars().map(|c| c.to_digit(10)).zip(weights);
    let sum = values.into_iter().try_fold(0, |sum, (value, weight)| Some(sum + value? * weight));
    digits.len() == 13 && sum.is_some_and(|sum| sum % 10 == 0)
}

/// Whether the digits are those of a credit card, with their check digit.
fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let doubled =
        digits.chars().rev().filter_map(|c| c.to_digit(10)).zip([false, true].into_iter().cycle());
    let sum: u32 = doubled
        .map(|(digit, double)| match (digit * 2, double) {
            (_, false) => digit,
            (twice, true) if twice > 9 => twice - 9,
            (twice, true) => twice,
        })
        .sum();
    CARD.is_match(&digits) && sum.is_multiple_of(10)
}

fn is_hostname(text: &str) -> bool {
    let fits = HOST.is_match(text) || HOST_WITH_DOMAIN.is_match(text);
    fits && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let Ok(bits) = bits.parse::<u8>() else { return false };
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => bits <= 32,
        Ok(IpAddr::V6(_)) => bits <= 128,
        Err(_) => false,
    }
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let Some((date, time)) = lower.split_once('t') else { return false };
    if !DATE.is_match(date) || date.parse::<jiff::civil::Date>().is_err() {
        return false;
    }
    let Some(found) = TIME.captures(time) else { return false };
    let part = |i: usize| found.get(i).and_then(|m| m.as_str().parse::<u8>().ok()).unwrap_or(99);
    part(1) <= 23 && part(2) <= 59 && part(3) <= 59
}

fn is_duration(text: &str) -> bool {
    GO_DURATION.is_match(text) || WORDY_DURATION.is_match(text)
}

/// An approximate check: non-empty parts on both sides of one at sign.
fn is_email(text: &str) -> bool {
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(open), Some(inner)) => inner.get(open + 1..).unwrap_or_default(),
        _ => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    !local.is_empty()
        && !domain.is_empty()
        && !address.contains(char::is_whitespace)
        && !domain.starts_with('.')
        && !domain.ends_with('.')
        && !local.contains('@')
}

/// An absolute URI or an absolute path, as in the first line of an HTTP request.
fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| c.is_ascii_control() || c == ' ') {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_accept_and_refuse() {
        for (name, good, bad) in [
            ("date-time", "2024-01-02T03:04:05Z", "2024-01-02"),
            ("date-time", "2024-01-02t03:04:05.5+02:00", "2024-13-02T03:04:05Z"),
            ("date", "2024-02-29", "2023-02-29"),
            ("duration", "1h30m", "abc"),
            ("duration", "22 ns", ""),
            ("byte", "aGk=", "a"),
            ("ipv4", "10.0.0.1", "::1"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "01:02:03:04:05:06", "01:02"),
            ("uuid", "01234567-89ab-cdef-0123-456789abcdef", "x"),
            (
                "uuid4",
                "01234567-89ab-4def-8123-456789abcdef",
                "01234567-89ab-3def-8123-456789abcdef",
            ),
            ("hostname", "example.org", "-x"),
            ("email", "a@example.org", "a"),
            ("uri", "https://example.org/x", "example"),
            ("k8s-short-name", "a-b", "A"),
            ("k8s-long-name", "a.b", "a..b"),
            ("hexcolor", "#fff", "#ff"),
        ] {
            let format = Format::known(name, &["string"]).unwrap();
            assert!(format.fits(good), "{name} {good}");
            assert!(!format.fits(bad), "{name} {bad}");
        }
        assert!(Format::known("int-or-string", &["string"]).is_none());
        assert!(Format::known("int32", &["integer"]).is_some());
    }
}
