//! Points in time and lengths of it.

use super::super::eval::{Outcome, no_such_overload};
use super::super::value::Value;
use super::overflow;
use biplane_go::time;
use biplane_go::time::GoDuration;

const SECOND: i128 = 1_000_000_000;
const DAY: i64 = 86_400;

/// Conversions from and to text.
pub(super) fn convert<'a>(function: &str, value: &Value<'a>) -> Outcome<'a> {
    match (function, value) {
        // Here, other than elsewhere in Go, hours have two digits and fractions a point.
        ("timestamp", Value::Text(text)) => match time::instant(text)
            .filter(|_| text.as_bytes().get(13) == Some(&b':') && !text.contains(','))
        {
            Some(instant) => Ok(Value::Timestamp(instant.nanos())),
            None => Err(format!("invalid RFC 3339 timestamp {}", biplane_go::fmt::quote(text))),
        },
        ("timestamp", Value::Int(seconds)) => Ok(Value::Timestamp(i128::from(*seconds) * SECOND)),
        ("duration", Value::Int(nanos)) => Ok(Value::Duration(*nanos)),
        ("duration", Value::Text(text)) => match text.parse::<GoDuration>() {
            Ok(duration) => Ok(Value::Duration(duration.nanos())),
            Err(_) => {
                Err("type conversion error from 'string' to 'google.protobuf.Duration'".to_owned())
            }
        },
        ("string", Value::Timestamp(nanos)) => Ok(Value::Text(rfc3339(*nanos).into())),
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
        | ("_+_", Value::Duration(by), Value::Timestamp(at)) => {
            Ok(Value::Timestamp(at + i128::from(*by)))
        }
        ("_-_", Value::Timestamp(at), Value::Duration(by)) => {
            Ok(Value::Timestamp(at - i128::from(*by)))
        }
        ("_-_", Value::Timestamp(a), Value::Timestamp(b)) => {
            i64::try_from(a - b).map(Value::Duration).map_err(|_| overflow())
        }
        ("_+_" | "_-_", _, _) => no_such_overload(),
        _ => Err(format!("no such overload: {function}")),
    }
}

/// `getHours` and the like, in the zone named or in UTC.
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
        Some(Value::Text(zone)) => offset(zone)?,
        Some(_) => return no_such_overload(),
    };
    let seconds = nanos.div_euclid(SECOND) as i64 + offset;
    let (day, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, date) = civil(day);
    Ok(Value::Int(match function {
        "getFullYear" => year,
        "getMonth" => month - 1,
        "getDate" => date,
        "getDayOfMonth" => date - 1,
        "getDayOfYear" => day - time::days(year, 1, 1),
        "getDayOfWeek" => (day + 4).rem_euclid(7),
        "getHours" => second / 3600,
        "getMinutes" => second / 60 % 60,
        "getSeconds" => second % 60,
        "getMilliseconds" => (nanos.rem_euclid(SECOND) / 1_000_000) as i64,
        _ => return no_such_overload(),
    }))
}

/// Seconds east of Greenwich. Zones have to be given as an offset.
fn offset(zone: &str) -> Result<i64, String> {
    if matches!(zone, "UTC" | "") {
        return Ok(0);
    }
    let unknown = || format!("unknown time zone {zone}");
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+').unwrap_or(zone)),
    };
    let (hours, minutes) = rest.split_once(':').ok_or_else(unknown)?;
    let number = |text: &str| text.parse::<u16>().map(i64::from).map_err(|_| unknown());
    Ok(sign * (number(hours)? * 60 + number(minutes)?) * 60)
}

/// Year, month and day of a number of days since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn rfc3339(nanos: i128) -> String {
    let seconds = nanos.div_euclid(SECOND) as i64;
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let fraction = nanos.rem_euclid(SECOND);
    let fraction = if fraction == 0 {
        String::new()
    } else {
        format!(".{fraction:09}").trim_end_matches('0').to_owned()
    };
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}{fraction}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}
