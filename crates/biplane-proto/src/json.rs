//! Protobuf JSON as Go's `protojson` writes and reads it.
//!
//! Names are written in lowerCamelCase. They may also be read in snake_case. Fields with their
//! default value are omitted. Fields are in the order of the contract, map entries in the order of
//! their keys. An enum number without a name is written and read as a number.

mod bytes;
mod depth;
mod enums;
mod unknown;

use std::io;

use biplane_go::num::format_float;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter};

pub(crate) use bytes::Bytes;
pub(crate) use enums::Enum;
pub(crate) use unknown::unknown_field;

/// How deeply JSON may nest.
pub const MAX_DEPTH: usize = crate::structs::MAX_DEPTH;

/// The reason why a message could not be written or read.
///
/// The message may quote the invalid value, so show it only to the sender.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The message contains something that JSON cannot represent, such as a time after the year
    /// 9999.
    #[error("cannot write message as JSON: {0}")]
    Write(#[source] serde_json::Error),
    /// The JSON is invalid, or does not fit the message.
    #[error("cannot read message from JSON: {0}")]
    Read(#[source] serde_json::Error),
    /// The JSON nests too deeply.
    #[error("cannot read message from JSON: nested deeper than {MAX_DEPTH} levels")]
    Depth,
}

/// How to treat unknown fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// They are an error.
    #[default]
    Reject,
    /// They are ignored, and unknown enum values count as zero.
    Discard,
}

/// Writes a message as JSON on one line.
pub fn to_string(message: &impl Serialize) -> Result<String, Error> {
    let mut out = Vec::with_capacity(256);
    message
        .serialize(&mut serde_json::Serializer::with_formatter(&mut out, GoNumbers))
        .map_err(Error::Write)?;
    String::from_utf8(out).map_err(|e| Error::Write(serde::ser::Error::custom(e)))
}

/// Converts a message to a JSON value.
pub fn to_value(message: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(message).map_err(Error::Write)
}

/// Reads a message from JSON. Unknown fields are an error.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    from_str_with(text, Unknown::Reject)
}

/// Reads a message from a JSON value. Unknown fields are an error.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    from_value_with(value, Unknown::Reject)
}

/// Reads a message from JSON.
pub fn from_str_with<T: DeserializeOwned>(text: &str, fields: Unknown) -> Result<T, Error> {
    // The library's own limit of 128 levels is too low for some schemas.
    if depth::of_text(text) > MAX_DEPTH {
        return Err(Error::Depth);
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    unknown::while_treating(fields, || {
        let message = T::deserialize(&mut reader)?;
        reader.end()?;
        Ok(message)
    })
    .map_err(Error::Read)
}

/// Reads a message from a JSON value.
pub fn from_value_with<T: DeserializeOwned>(value: Value, fields: Unknown) -> Result<T, Error> {
    unknown::while_treating(fields, || serde_json::from_value(value)).map_err(Error::Read)
}

/// Compact JSON with Go's number format.
struct GoNumbers;

impl Formatter for GoNumbers {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // The serializer has already written null for numbers that are not finite.
        CompactFormatter.write_raw_fragment(writer, &format_float(value))
    }
}

#[cfg(test)]
mod tests;
