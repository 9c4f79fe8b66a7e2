//! Dates and durations. The caller tells the time.

use biplane_go::time::{GoDuration, GoTime, format_duration, parse, round_duration};
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;

use super::args::{any, made, text};
use super::cast::atoi;
use super::time::{TIME, Time, time};
use crate::func::{Call, Failure, Func};
use crate::types::{IntKind, Type};
use crate::value::Value;

const SECOND: i64 = 1_000_000_000;
const HTML: &[u8] = b"2006-01-02";

pub(super) fn functions() -> Vec<Func> {
    const MODIFY: &[Type] = &[Type::String, TIME];
    const PARSE: &[Type] = &[Type::String, Type::String];
    let mut functions = vec![
        Func::new("now", &[], TIME, |call, _| Ok(value(now(call)))),
        Func::new("date", &[Type::String, Type::Any], Type::String, |call, args| {
            let point = point(call, any(args, 1));
            in_zone(call, text(args, 0), &point, b"Local")
        }),
        Func::new("htmlDate", &[Type::Any], Type::String, |call, args| {
            let point = point(call, any(args, 0));
            in_zone(call, HTML, &point, b"Local")
        }),
        Func::new("htmlDateInZone", &[Type::Any, Type::String], Type::String, |call, args| {
            let point = point(call, any(args, 0));
            in_zone(call, HTML, &point, text(args, 1))
        }),
        Func::new("toDate", PARSE, TIME, |_, args| {
            Ok(value(parse(text(args, 0), text(args, 1)).unwrap_or_else(|_| GoTime::zero())))
        }),
        Func::new("mustToDate", PARSE, TIME, |_, args| {
            parse(text(args, 0), text(args, 1)).map(value).map_err(Failure::new)
        }),
        Func::new("unixEpoch", &[TIME], Type::String, |_, args| {
            Ok(time(args, 0).seconds().to_string().into())
        }),
        Func::new("ago", &[Type::Any], Type::String, |call, args| {
            let since = match any(args, 0) {
                // Other numbers than these two are no times here.
                Value::Int(IntKind::Int32, _) => now(call),
                other => point(call, other),
            };
            let elapsed = round_duration(now(call).since(&since), SECOND);
            Ok(format_duration(elapsed).into())
        }),
        Func::new("duration", &[Type::Any], Type::String, |_, args| {
            let seconds = match any(args, 0) {
                Value::Str(text) => atoi(text),
                Value::Int(IntKind::Int64, seconds) => *seconds,
                _ => 0,
            };
            Ok(format_duration(seconds.wrapping_mul(SECOND)).into())
        }),
        Func::new("durationRound", &[Type::Any], Type::String, |call, args| {
            Ok(duration_round(call, any(args, 0)).into())
        }),
    ];
    for name in ["dateInZone", "date_in_zone"] {
        let params: &[Type] = &[Type::String, Type::Any, Type::String];
        functions.push(Func::new(name, params, Type::String, |call, args| {
            let point = point(call, any(args, 1));
            in_zone(call, text(args, 0), &point, text(args, 2))
        }));
    }
    for name in ["dateModify", "date_modify"] {
        functions.push(Func::new(name, MODIFY, TIME, |_, args| {
            let nanos = duration(text(args, 0)).unwrap_or(0);
            Ok(value(time(args, 1).plus(nanos)))
        }));
    }
    for name in ["mustDateModify", "must_date_modify"] {
        functions.push(Func::new(name, MODIFY, TIME, |_, args| {
            let nanos = duration(text(args, 0)).map_err(Failure::new)?;
            Ok(value(time(args, 1).plus(nanos)))
        }));
    }
    functions
}

fn value(time: GoTime) -> Value {
    Value::object(Time(time))
}

fn now(call: &Call<'_>) -> GoTime {
    let (seconds, nanos) = call.host().now();
    GoTime::utc(seconds, nanos)
}

fn duration(text: &[u8]) -> Result<i64, String> {
    let parsed = String::from_utf8_lossy(text).parse::<GoDuration>();
    parsed.map(GoDuration::nanos).map_err(|error| error.to_string())
}

/// The point in time that a value is. What is none means now.
fn point(call: &Call<'_>, value: &Value) -> GoTime {
    match value {
        Value::Int(IntKind::Int | IntKind::Int64 | IntKind::Int32, seconds) => {
            GoTime::utc(*seconds, 0)
        }
        Value::Object(object) => match object.as_any().downcast_ref::<Time>() {
            Some(time) => time.0.clone(),
            None => now(call),
        },
        _ => now(call),
    }
}

fn in_zone(
    call: &mut Call<'_>,
    layout: &[u8],
    point: &GoTime,
    zone: &[u8],
) -> Result<Value, Failure> {
    // Names of months are the longest that an element can become.
    call.reserve(layout.len() as u64 * 9)?;
    let (offset, name) = offset(zone, point.seconds());
    made(call, point.with_zone(offset, &name).format(layout))
}

/// The offset and the abbreviation of a zone at a time. What is no zone is UTC. The local zone is
/// UTC, as in containers.
fn offset(zone: &[u8], seconds: i64) -> (i32, String) {
    let utc = || (0, "UTC".to_owned());
    let name = match std::str::from_utf8(zone) {
        Ok("" | "UTC" | "Local") | Err(_) => return utc(),
        Ok(name) => name,
    };
    let Ok(known) = TimeZoneDatabase::bundled().get(name) else { return utc() };
    // Names of files have a case.
    if known.iana_name() != Some(name) {
        return utc();
    }
    let limits = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    let Ok(instant) = Timestamp::from_second(seconds.clamp(limits.0, limits.1)) else {
        return utc();
    };
    let info = known.to_offset_info(instant);
    (info.offset().seconds(), info.abbreviation().to_owned())
}

fn duration_round(call: &Call<'_>, value: &Value) -> String {
    const HOUR: u64 = 3_600_000_000_000;
    const UNITS: [(u64, &str); 6] = [
        (HOUR * 24 * 365, "y"),
        (HOUR * 24 * 30, "mo"),
        (HOUR * 24, "d"),
        (HOUR, "h"),
        (HOUR / 60, "m"),
        (HOUR / 3600, "s"),
    ];
    let nanos = match value {
        Value::Str(text) => duration(text).unwrap_or(0),
        Value::Int(IntKind::Int64, nanos) => *nanos,
        Value::Object(object) => match object.as_any().downcast_ref::<Time>() {
            Some(time) => now(call).since(&time.0),
            None => 0,
        },
        _ => 0,
    };
    let size = nanos.unsigned_abs();
    let unit = UNITS.iter().find(|(unit, _)| size > *unit);
    unit.map_or_else(|| "0s".to_owned(), |(unit, name)| format!("{}{name}", size / unit))
}
