//! Protobuf JSON as Go's `protojson` writes and reads it.
//!
//! Names are written in lowerCamelCase and read in snake_case too; fields with their default value
//! are left out; fields stand in the order of the contract and map entries in that of their keys.
//! An enum's number without a name is written and read as the number.

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

/// How deep JSON text may nest.
pub const MAX_DEPTH: usize = crate::structs::MAX_DEPTH;

/// Why a message could not be written or read.
///
/// The text may quote the value that is at fault, so it is for whoever sent it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The message holds what JSON cannot say, such as a time beyond the year 9999.
    #[error("cannot write message as JSON: {0}")]
    Write(#[source] serde_json::Error),
    /// The JSON is broken, or not that of the message.
    #[error("cannot read message from JSON: {0}")]
    Read(#[source] serde_json::Error),
    /// The JSON nests too deep.
    #[error("cannot read message from JSON: nested deeper than {MAX_DEPTH} levels")]
    Depth,
}

/// What to do with fields that a message does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// They are an error.
    #[default]
    Reject,
    /// They are passed over, and unnamed values of enums count as zero.
    Discard,
}

/// A message as JSON text on one line.
pub fn to_string(message: &impl Serialize) -> Result<String, Error> {
    let mut out = Vec::with_capacity(256);
    message
        .serialize(&mut serde_json::Serializer::with_formatter(&mut out, GoNumbers))
        .map_err(Error::Write)?;
    String::from_utf8(out).map_err(|e| Error::Write(serde::ser::Error::custom(e)))
}

/// A message as a JSON value.
pub fn to_value(message: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(message).map_err(Error::Write)
}

/// A message from JSON text. Unknown fields are an error.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    from_str_with(text, Unknown::Reject)
}

/// A message from a JSON value. Unknown fields are an error.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    from_value_with(value, Unknown::Reject)
}

/// A message from JSON text.
pub fn from_str_with<T: DeserializeOwned>(text: &str, fields: Unknown) -> Result<T, Error> {
    // The library's own limit, 128 levels, is less than schemas may need.
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

/// A message from a JSON value.
pub fn from_value_with<T: DeserializeOwned>(value: Value, fields: Unknown) -> Result<T, Error> {
    unknown::while_treating(fields, || serde_json::from_value(value)).map_err(Error::Read)
}

/// Compact text with the numbers of Go.
struct GoNumbers;

impl Formatter for GoNumbers {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        // The serializer writes null for what is not finite before it comes here.
        CompactFormatter.write_raw_fragment(writer, &format_float(value))
    }
}

#[cfg(test)]
mod tests;
