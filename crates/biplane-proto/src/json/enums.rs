//! Enums in JSON: a name if the number has one, or else the number.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::StrDeserializer;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::unknown::discards;

/// A number of the enum `T`, named or not.
pub(crate) struct Enum<T> {
    number: i32,
    of: PhantomData<T>,
}

impl<T> Enum<T> {
    pub(crate) fn new(number: i32) -> Self {
        Self { number, of: PhantomData }
    }

    pub(crate) fn number(&self) -> i32 {
        self.number
    }
}

impl<T> Default for Enum<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<T: TryFrom<i32> + Serialize> Serialize for Enum<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match T::try_from(self.number) {
            Ok(named) => named.serialize(serializer),
            Err(_) => serializer.serialize_i32(self.number),
        }
    }
}

impl<'de, T: Deserialize<'de> + Into<i32>> Deserialize<'de> for Enum<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrNumber::<T>(PhantomData)).map(Self::new)
    }
}

struct NameOrNumber<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Into<i32>> Visitor<'de> for NameOrNumber<T> {
    type Value = i32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name or the number of an enum value")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<i32, E> {
        i32::try_from(number).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<i32, E> {
        i32::try_from(number).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<i32, E> {
        if number.fract() == 0.0 && number.abs() < 2_147_483_648.0 {
            return Ok(number as i32);
        }
        Err(E::custom(format_args!("{number} is not the number of an enum value")))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<i32, E> {
        match T::deserialize(StrDeserializer::<E>::new(name)) {
            Ok(named) => Ok(named.into()),
            Err(_) if discards() => Ok(0),
            Err(error) => Err(error),
        }
    }
}
