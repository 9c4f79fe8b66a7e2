//! Functions of timestamps and durations.

use std::sync::LazyLock;

use biplane_go::time::{GoDuration, civil, strict_instant};
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;

use super::super::outcome::{Outcome, no_such_overload};
use super::super::value::Value;
use super::overflow;

const SECOND: i128 = 1_000_000_000;
/// From the year 1 to the end of the year 9999.
const TIMES: std::ops::RangeInclusive<i128> =
    -62_135_596_800 * SECOND..=253_402_300_800 * SECOND - 1;

/// Conversions from and to strings.
pub(super) fn convert<'a>(function: &str, value: &Value<'a>) -> Outcome<'a> {
    match (function, value) {
        ("timestamp", Value::Text(text)) => match strict_instant(text) {
            Some(instant) => timestamp(instant.nanos()),
            None => Err(format!("invalid RFC 3339 timestamp {}", biplane_go::fmt::quote(text))),
        },
        ("timestamp", Value::Int(seconds)) => timestamp(i128::from(*seconds) * SECOND),
        ("duration", Value::Int(nanos)) => Ok(Value::Duration(*nanos)),
        ("duration", Value::Text(text)) => match text.parse::<GoDuration>() {
            Ok(duration) => Ok(Value::Duration(duration.nanos())),
            Err(_) => {
                Err("type conversion error from 'string' to 'google.protobuf.Duration'".to_owned())
            }
        },
        ("string", Value::Timestamp(nanos)) => Ok(Value::Text(rfc3339(*nanos)?.into())),
        ("string", Value::Duration(nanos)) => {
            let seconds = *nanos as f64 / SECOND as f64;
            Ok(Value::Text(format!("{}s", biplane_go::num::format_float(seconds)).into()))
        }
        _ => Err(format!("no such overload: {function}({})", value.type_name())),
    }
}

/// Sums and differences.
pub(super) fn arithmetic<'a>(function: &str, left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (function, left, right) {
        ("_+_", Value::Duration(a), Value::Duration(b)) => {
            a.checked_add(*b).map(Value::Duration).ok_or_else(overflow)
        }
        ("_-_", Value::Duration(a), Value::Duration(b)) => {
            a.checked_sub(*b).map(Value::Duration).ok_or_else(overflow)
        }
        ("_+_", Value::Timestamp(at), Value::Duration(by))
        | ("_+_", Value::Duration(by), Value::Timestamp(at)) => timestamp(at + i128::from(*by)),
        ("_-_", Value::Timestamp(at), Value::Duration(by)) => timestamp(at - i128::from(*by)),
        ("_-_", Value::Timestamp(a), Value::Timestamp(b)) => {
            i64::try_from(a - b).map(Value::Duration).map_err(|_| overflow())
        }
        ("_+_" | "_-_", _, _) => no_such_overload(),
        _ => Err(format!("no such overload: {function}")),
    }
}

/// `getHours` and similar functions, in the given time zone or in UTC.
pub(super) fn get<'a>(function: &str, value: &Value<'a>, zone: Option<&Value<'a>>) -> Outcome<'a> {
    if let (Value::Duration(nanos), None) = (value, zone) {
        let seconds = nanos / 1_000_000_000;
        return Ok(Value::Int(match function {
            "getHours" => seconds / 3600,
            "getMinutes" => seconds / 60,
            "getSeconds" => seconds,
            "getMilliseconds" => nanos / 1_000_000 % 1000,
            _ => return no_such_overload(),
        }));
    }
    let Value::Timestamp(nanos) = value else { return no_such_overload() };
    let offset = match zone {
        None => 0,
        Some(Value::Text(zone)) => offset(zone, seconds(*nanos))?,
        Some(_) => return no_such_overload(),
    };
    let time = civil(seconds(*nanos) + offset).ok_or_else(out_of_range)?;
    Ok(Value::Int(match function {
        "getFullYear" => i64::from(time.year()),
        "getMonth" => i64::from(time.month()) - 1,
        "getDate" => i64::from(time.day()),
        "getDayOfMonth" => i64::from(time.day()) - 1,
        "getDayOfYear" => i64::from(time.day_of_year()) - 1,
        "getDayOfWeek" => i64::from(time.weekday().to_sunday_zero_offset()),
        "getHours" => i64::from(time.hour()),
        "getMinutes" => i64::from(time.minute()),
        "getSeconds" => i64::from(time.second()),
        "getMilliseconds" => (nanos.rem_euclid(SECOND) / 1_000_000) as i64,
        _ => return no_such_overload(),
    }))
}

/// A timestamp, if it is in the range of CEL.
fn timestamp<'a>(nanos: i128) -> Outcome<'a> {
    if TIMES.contains(&nanos) { Ok(Value::Timestamp(nanos)) } else { Err(out_of_range()) }
}

fn out_of_range() -> String {
    "timestamp overflow".to_owned()
}

/// Whole seconds since 1970.
fn seconds(nanos: i128) -> i64 {
    nanos.div_euclid(SECOND) as i64
}

/// The time zones, as this program brings them along: the answer is the same on every machine.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Seconds east of Greenwich at a moment, for the name of a time zone or an offset.
fn offset(zone: &str, at: i64) -> Result<i64, String> {
    // What is local to a server is not known, and usually this.
    if matches!(zone, "UTC" | "" | "Local") {
        return Ok(0);
    }
    let unknown = || format!("unknown time zone {zone}");
    let Some((hours, minutes)) = zone.split_once(':') else {
        let found = ZONES.get(zone).map_err(|_| unknown())?;
        // Names differ if they differ in case.
        if found.iana_name() != Some(zone) {
            return Err(unknown());
        }
        let at = Timestamp::from_second(at).map_err(|_| out_of_range())?;
        return Ok(i64::from(found.to_offset(at).seconds()));
    };
    let (sign, hours) = match hours.strip_prefix('-') {
        Some(hours) => (-1, hours),
        None => (1, hours.strip_prefix('+').unwrap_or(hours)),
    };
    let number = |text: &str| text.parse::<u16>().map(i64::from).map_err(|_| unknown());
    Ok(sign * (number(hours)? * 60 + number(minutes)?) * 60)
}

fn rfc3339(nanos: i128) -> Result<String, String> {
    let time = civil(seconds(nanos)).ok_or_else(out_of_range)?;
    let fraction = match nanos.rem_euclid(SECOND) {
        0 => String::new(),
        fraction => format!(".{fraction:09}").trim_end_matches('0').to_owned(),
    };
    Ok(format!("{time}{fraction}Z"))
}
