//! The values that data becomes by its schema.

use biplane_go::time::GoDuration;
use biplane_model::Value as Json;

use super::super::shape::Shape;
use super::Value;

impl Shape {
    /// The value that data becomes. Data that does not fit the schema becomes an error.
    pub fn value<'a>(&'a self, data: &'a Json) -> Value<'a> {
        let wrong = |text: String| Value::Failed(text.into());
        if data.is_null() {
            return if self.nullable {
                Value::Null
            } else {
                wrong("invalid data, got null for schema with nullable=false".to_owned())
            };
        }
        if self.int_or_string {
            return match data {
                Json::String(text) => Value::Text(text.as_str().into()),
                Json::Number(number) if number.is_i64() => {
                    Value::Int(number.as_i64().unwrap_or_default())
                }
                _ => wrong(
                    "invalid data, expected XIntOrString value to be either a string or integer"
                        .to_owned(),
                ),
            };
        }
        let expected =
            |what: &str| wrong(format!("invalid data, expected {what}, got {}", go_type(data)));
        match (self.type_name.as_str(), data) {
            ("object", Json::Object(map)) => Value::TypedMap(map, self),
            ("object", _) => wrong(
                "invalid data, expected a map for the provided schema with type=object".to_owned(),
            ),
            ("array", Json::Array(items)) if self.items.is_some() => Value::TypedList(items, self),
            ("array", Json::Array(_)) => {
                wrong("invalid array type, expected Items with a non-empty Schema".to_owned())
            }
            ("array", _) => wrong(
                "invalid data, expected an array for the provided schema with type=array"
                    .to_owned(),
            ),
            ("string", Json::String(text)) => self.text(text),
            ("string", _) => expected("string"),
            ("number", Json::Number(number)) => Value::Double(number.as_f64().unwrap_or_default()),
            ("number", _) => expected("float"),
            ("integer", Json::Number(number)) if number.is_i64() => {
                Value::Int(number.as_i64().unwrap_or_default())
            }
            ("integer", _) => expected("int"),
            ("boolean", Json::Bool(bool)) => Value::Bool(*bool),
            ("boolean", _) => expected("bool"),
            _ if self.preserve => Value::Raw(data),
            (other, _) => wrong(format!(
                "invalid type, expected object, array, number, integer, boolean or string, or no \
                 type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is \
                 true, got {other}"
            )),
        }
    }

    fn text<'a>(&self, text: &'a str) -> Value<'a> {
        let wrong = |what: &str, reason: String| {
            Value::Failed(format!("Invalid {what} {text}: {reason}").into())
        };
        match self.format.as_str() {
            "duration" => match duration(text) {
                Some(nanos) => Value::Duration(nanos),
                None => wrong("duration", format!("unable to parse {text} as duration")),
            },
            "date" => match biplane_go::time::parse(b"2006-01-02", text.as_bytes()) {
                Ok(time) => Value::Timestamp(nanos(&time)),
                Err(reason) => wrong("date formatted string", reason),
            },
            "date-time" => match date_time(text) {
                Ok(nanos) => Value::Timestamp(nanos),
                Err(reason) => wrong("date-time formatted string", reason),
            },
            "byte" => match biplane_go::base64::decode(text.as_bytes()) {
                Ok(bytes) => Value::Bytes(bytes.into()),
                Err(at) => wrong(
                    "byte formatted string",
                    format!("illegal base64 data at input byte {at}"),
                ),
            },
            _ => Value::Text(text.into()),
        }
    }
}

fn nanos(time: &biplane_go::time::GoTime) -> i128 {
    i128::from(time.seconds()) * 1_000_000_000 + i128::from(time.subsecond())
}

/// The forms of a time that the API server reads, in its order.
const FORMS: [&str; 5] = [
    "2006-01-02T15:04:05.000000Z07:00",
    "2006-01-02T15:04:05.000Z07:00",
    "2006-01-02T15:04:05Z07:00",
    "2006-01-02T15:04:05.999999999Z07:00",
    "2006-01-02T15:04:05",
];

/// A time. Without any text it is the first second of 1970.
fn date_time(text: &str) -> Result<i128, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let mut last = String::new();
    for form in FORMS {
        match biplane_go::time::parse(form.as_bytes(), text.as_bytes()) {
            Ok(time) => return Ok(nanos(&time)),
            Err(reason) => last = reason,
        }
    }
    Err(last)
}

/// Units of durations in words. Every word that begins with the last spelling counts too.
const UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

/// A duration as Go writes it, or the sum of all numbers with a unit in words.
fn duration(text: &str) -> Option<i64> {
    if let Ok(duration) = text.parse::<GoDuration>() {
        return Some(duration.nanos());
    }
    let (mut sum, mut found) = (0i64, false);
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = rest.get(start..)?;
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at_checked(digits)?;
        let unit = after.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let letters =
            unit.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(unit.len());
        let (unit, after) = unit.split_at_checked(letters)?;
        rest = after;
        if unit.is_empty() {
            continue;
        }
        let number = number.parse::<i64>().ok()?;
        let unit = unit.to_lowercase();
        for (spellings, one) in UNITS {
            let last = spellings.last().is_some_and(|last| unit.starts_with(last));
            if last || spellings.contains(&unit.as_str()) {
                found = true;
                sum = sum.wrapping_add(number.wrapping_mul(one));
            }
        }
    }
    found.then_some(sum)
}

/// Go's name of the type that holds the data.
fn go_type(data: &Json) -> &'static str {
    match data {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}
