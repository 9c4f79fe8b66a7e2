//! Go's `time` types as values: points in time, durations, months and days of the week.

use std::any::Any;

use biplane_go::time::{GoTime, format_duration, month_name, round_duration, weekday_name};

use super::args::{int, text};
use crate::func::{Call, Failure};
use crate::types::{IntKind, Kind, Type, UintKind};
use crate::value::{Json, Object, Signature, Value};

/// `time.Time`.
pub const TIME: Type = Type::named("time.Time", Kind::Struct);
/// `time.Duration`.
pub const DURATION: Type = Type::named("time.Duration", Kind::Int(IntKind::Int64));
/// `time.Month`.
pub const MONTH: Type = Type::named("time.Month", Kind::Int(IntKind::Int));
/// `time.Weekday`.
pub const WEEKDAY: Type = Type::named("time.Weekday", Kind::Int(IntKind::Int));
/// `*time.Location`.
const LOCATION: Type = Type::named("*time.Location", Kind::Ptr);

/// A point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time(pub GoTime);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration(pub i64);

/// A month, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Month(pub i64);

/// A day of the week. Sunday is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weekday(pub i64);

/// The name of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Location(String);

const fn returns(result: Type) -> Signature {
    Signature::new(&[], result)
}

const TIME_METHODS: &[(&str, Signature)] = &[
    ("Add", Signature::new(&[DURATION], TIME)),
    ("AddDate", Signature::new(&[Type::INT, Type::INT, Type::INT], TIME)),
    ("After", Signature::new(&[TIME], Type::Bool)),
    ("Before", Signature::new(&[TIME], Type::Bool)),
    ("Clock", Signature::unusable("function Clock has 3 return values; should be 1 or 2")),
    ("Compare", Signature::new(&[TIME], Type::INT)),
    ("Date", Signature::unusable("function Date has 3 return values; should be 1 or 2")),
    ("Day", returns(Type::INT)),
    ("Equal", Signature::new(&[TIME], Type::Bool)),
    ("Format", Signature::new(&[Type::String], Type::String)),
    ("GoString", returns(Type::String)),
    ("Hour", returns(Type::INT)),
    (
        "ISOWeek",
        Signature::unusable(
            "invalid function signature for ISOWeek: second return value should be error; is int",
        ),
    ),
    ("IsDST", returns(Type::Bool)),
    ("IsZero", returns(Type::Bool)),
    ("Local", returns(TIME)),
    ("Location", returns(LOCATION)),
    ("Minute", returns(Type::INT)),
    ("Month", returns(MONTH)),
    ("Nanosecond", returns(Type::INT)),
    ("Round", Signature::new(&[DURATION], TIME)),
    ("Second", returns(Type::INT)),
    ("String", returns(Type::String)),
    ("Sub", Signature::new(&[TIME], DURATION)),
    ("Truncate", Signature::new(&[DURATION], TIME)),
    ("UTC", returns(TIME)),
    ("Unix", returns(Type::INT64)),
    ("UnixMicro", returns(Type::INT64)),
    ("UnixMilli", returns(Type::INT64)),
    ("UnixNano", returns(Type::INT64)),
    ("Weekday", returns(WEEKDAY)),
    ("Year", returns(Type::INT)),
    ("YearDay", returns(Type::INT)),
    (
        "Zone",
        Signature::unusable(
            "invalid function signature for Zone: second return value should be error; is int",
        ),
    ),
    (
        "ZoneBounds",
        Signature::unusable(
            "invalid function signature for ZoneBounds: second return value should be error; is time.Time",
        ),
    ),
];

fn find(methods: &[(&str, Signature)], name: &str) -> Option<Signature> {
    methods.iter().find(|(known, _)| *known == name).map(|(_, signature)| *signature)
}

/// A time argument.
pub(super) fn time(args: &[Value], at: usize) -> GoTime {
    match args.get(at) {
        Some(Value::Object(object)) => {
            object.as_any().downcast_ref::<Time>().map_or_else(GoTime::zero, |time| time.0.clone())
        }
        _ => GoTime::zero(),
    }
}

/// A duration argument.
fn duration(args: &[Value], at: usize) -> i64 {
    match args.get(at) {
        Some(Value::Object(object)) => {
            object.as_any().downcast_ref::<Duration>().map_or(0, |duration| duration.0)
        }
        _ => int(args, at),
    }
}

/// The point in time a number of years, months and days later.
fn add_date(time: &GoTime, years: i64, months: i64, days: i64) -> GoTime {
    let civil = time.civil();
    let clock = (i64::from(civil.hour) * 60 + i64::from(civil.minute)) * 60;
    let seconds = GoTime::unix_seconds(
        civil.year.wrapping_add(years),
        i64::from(civil.month).wrapping_add(months),
        i64::from(civil.day).wrapping_add(days),
        clock + i64::from(civil.second) - i64::from(time.offset()),
    );
    GoTime::in_zone(seconds, time.subsecond(), time.offset(), time.zone())
}

/// Cuts or rounds to a multiple of a duration since the zero time.
fn to_multiple(time: &GoTime, unit: i64, round: bool) -> GoTime {
    if unit <= 0 {
        return time.clone();
    }
    let since_zero = i128::from(time.seconds()) - i128::from(GoTime::zero().seconds());
    let nanos = since_zero * 1_000_000_000 + i128::from(time.subsecond());
    let rest = nanos.rem_euclid(i128::from(unit));
    let up = round && rest * 2 >= i128::from(unit);
    let shift = if up { i128::from(unit) - rest } else { -rest };
    time.plus(shift as i64)
}

impl Object for Time {
    fn go_type(&self) -> Type {
        TIME
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn string(&self) -> Option<String> {
        Some(self.0.to_string())
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        // Templates cannot read them, but messages know that they exist.
        let wall = Value::Uint(UintKind::Uint64, u64::from(self.0.subsecond()));
        let seconds = self.0.seconds().wrapping_sub(GoTime::zero().seconds());
        vec![("wall", wall), ("ext", Value::int64(seconds)), ("loc", Value::Nil)]
    }

    fn method(&self, name: &str) -> Option<Signature> {
        find(TIME_METHODS, name)
    }

    fn call(&self, name: &str, _: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
        let time_value = |time: GoTime| Value::object(Self(time));
        let own = &self.0;
        let civil = own.civil();
        let order = || own.order(&time(args, 0));
        let nanos = own.unix_nanos();
        let sub_micros = i64::from(own.subsecond() / 1_000);
        Ok(match name {
            "Add" => time_value(own.plus(duration(args, 0))),
            "AddDate" => time_value(add_date(own, int(args, 0), int(args, 1), int(args, 2))),
            "After" => order().is_gt().into(),
            "Before" => order().is_lt().into(),
            "Compare" => Value::int(order() as i64),
            "Day" => Value::int(i64::from(civil.day)),
            "Equal" => order().is_eq().into(),
            "Format" => Value::text(own.format(text(args, 0))),
            "GoString" => Value::text(go_string(own)),
            "Hour" => Value::int(i64::from(civil.hour)),
            "IsDST" => false.into(),
            "IsZero" => own.is_zero().into(),
            "Local" | "UTC" => time_value(own.with_zone(0, "UTC")),
            "Location" => {
                // The local zone is UTC. A fixed offset may have no name.
                Value::object(Location(own.zone().to_owned()))
            }
            "Minute" => Value::int(i64::from(civil.minute)),
            "Month" => Value::object(Month(i64::from(civil.month))),
            "Nanosecond" => Value::int(i64::from(own.subsecond())),
            "Round" => time_value(to_multiple(own, duration(args, 0), true)),
            "Second" => Value::int(i64::from(civil.second)),
            "String" => own.to_string().into(),
            "Sub" => Value::object(Duration(own.since(&time(args, 0)))),
            "Truncate" => time_value(to_multiple(own, duration(args, 0), false)),
            "Unix" => Value::int64(own.seconds()),
            "UnixMicro" => {
                Value::int64(own.seconds().wrapping_mul(1_000_000).wrapping_add(sub_micros))
            }
            "UnixMilli" => {
                Value::int64(own.seconds().wrapping_mul(1_000).wrapping_add(sub_micros / 1_000))
            }
            "UnixNano" => Value::int64(nanos),
            "Weekday" => Value::object(Weekday(i64::from(civil.weekday))),
            "Year" => Value::int(civil.year),
            _ => Value::int(i64::from(civil.year_day)),
        })
    }

    fn names(&self) -> Vec<&'static str> {
        TIME_METHODS.iter().map(|(name, _)| *name).collect()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.as_any().downcast_ref::<Self>() == Some(self)
    }

    fn json(&self) -> Json {
        if (0..=9999).contains(&self.0.civil().year) {
            return Json::As(self.0.rfc3339().into());
        }
        Json::Failed(
            "json: error calling MarshalJSON for type time.Time: \
             Time.MarshalJSON: year outside of range [0,9999]"
                .to_owned(),
        )
    }
}

/// The Go expression that makes a point in time.
fn go_string(time: &GoTime) -> String {
    let civil = time.civil();
    let month = month_name(i64::from(civil.month));
    let place = if time.zone() == "UTC" { "time.UTC" } else { "time.Local" };
    format!(
        "time.Date({}, time.{month}, {}, {}, {}, {}, {}, {place})",
        civil.year,
        civil.day,
        civil.hour,
        civil.minute,
        civil.second,
        time.subsecond()
    )
}

const DURATION_METHODS: &[(&str, Signature)] = &[
    ("Abs", returns(DURATION)),
    ("Hours", returns(Type::Float64)),
    ("Microseconds", returns(Type::INT64)),
    ("Milliseconds", returns(Type::INT64)),
    ("Minutes", returns(Type::Float64)),
    ("Nanoseconds", returns(Type::INT64)),
    ("Round", Signature::new(&[DURATION], DURATION)),
    ("Seconds", returns(Type::Float64)),
    ("String", returns(Type::String)),
    ("Truncate", Signature::new(&[DURATION], DURATION)),
];

impl Duration {
    /// The length in a unit of nanoseconds, as Go computes it.
    fn in_units(self, unit: i64) -> f64 {
        (self.0 / unit) as f64 + (self.0 % unit) as f64 / unit as f64
    }
}

impl Object for Duration {
    fn go_type(&self) -> Type {
        DURATION
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::int64(self.0))
    }

    fn string(&self) -> Option<String> {
        Some(format_duration(self.0))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        find(DURATION_METHODS, name)
    }

    fn call(&self, name: &str, _: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
        const SECOND: i64 = 1_000_000_000;
        let unit = duration(args, 0);
        Ok(match name {
            "Abs" => Value::object(Self(self.0.saturating_abs())),
            "Hours" => self.in_units(3600 * SECOND).into(),
            "Microseconds" => Value::int64(self.0 / 1_000),
            "Milliseconds" => Value::int64(self.0 / 1_000_000),
            "Minutes" => self.in_units(60 * SECOND).into(),
            "Nanoseconds" => Value::int64(self.0),
            "Round" => Value::object(Self(round_duration(self.0, unit))),
            "Seconds" => self.in_units(SECOND).into(),
            "Truncate" if unit > 0 => Value::object(Self(self.0 - self.0 % unit)),
            "Truncate" => Value::object(*self),
            _ => format_duration(self.0).into(),
        })
    }

    fn names(&self) -> Vec<&'static str> {
        DURATION_METHODS.iter().map(|(name, _)| *name).collect()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.as_any().downcast_ref::<Self>() == Some(self)
    }
}

/// A number that prints as a name.
macro_rules! named_number {
    ($name:ident, $type:ident, $text:ident) => {
        impl Object for $name {
            fn go_type(&self) -> Type {
                $type
            }

            fn as_any(&self) -> &dyn Any {
                self
            }

            fn underlying(&self) -> Option<Value> {
                Some(Value::int(self.0))
            }

            fn string(&self) -> Option<String> {
                Some($text(self.0))
            }

            fn method(&self, name: &str) -> Option<Signature> {
                (name == "String").then_some(returns(Type::String))
            }

            fn call(&self, _: &str, _: &mut Call<'_>, _: &[Value]) -> Result<Value, Failure> {
                Ok($text(self.0).into())
            }

            fn equals(&self, other: &dyn Object) -> bool {
                other.as_any().downcast_ref::<Self>() == Some(self)
            }
        }
    };
}

named_number!(Month, MONTH, month_name);
named_number!(Weekday, WEEKDAY, weekday_name);

impl Object for Location {
    fn go_type(&self) -> Type {
        LOCATION
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn string(&self) -> Option<String> {
        Some(self.0.clone())
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "String").then_some(returns(Type::String))
    }

    fn call(&self, _: &str, _: &mut Call<'_>, _: &[Value]) -> Result<Value, Failure> {
        Ok(self.0.clone().into())
    }

    fn json(&self) -> Json {
        Json::Fields(Vec::new())
    }
}
