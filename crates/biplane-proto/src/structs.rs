//! `google.protobuf.Struct` as a JSON object, with encoding and decoding.

mod decode;
mod encode;

use std::ops::Deref;

use biplane_model::{Map, Object, Value};
use prost::DecodeError;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType};
use serde::{Deserialize, Deserializer, Serialize};

use crate::backwards::Backwards;

/// A `google.protobuf.Struct`: a JSON object whose numbers follow the rules of protobuf.
///
/// Cloning shares the object. Every number fits into a double: see [`Struct::from`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Struct(Object);

/// How deeply objects and lists may nest on the wire. Real documents use less than a tenth of it,
/// and later recursion has a few kilobytes of stack for each level.
pub const MAX_DEPTH: usize = 500;

impl Struct {
    /// The object.
    pub fn object(&self) -> &Object {
        &self.0
    }

    /// Converts to the object.
    pub fn into_object(self) -> Object {
        self.0
    }

    /// The map for changes. New values must follow the rules of [`normalize`].
    pub fn make_mut(&mut self) -> &mut Map<String, Value> {
        self.0.make_mut()
    }

    /// Writes the fields of the message, last one first.
    pub(crate) fn write_backwards(&self, out: &mut Backwards) {
        encode::write_fields(out, &self.0);
    }
}

impl Deref for Struct {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.0
    }
}

/// Applies the number rules of protobuf. An object that already follows them is shared, not copied.
impl From<Object> for Struct {
    fn from(mut object: Object) -> Self {
        if !object.values().all(is_normal) {
            object.make_mut().values_mut().for_each(normalize);
        }
        Self(object)
    }
}

impl<'de> Deserialize<'de> for Struct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::deserialize(deserializer).map(Self::from)
    }
}

impl From<Map<String, Value>> for Struct {
    fn from(mut map: Map<String, Value>) -> Self {
        map.values_mut().for_each(normalize);
        Self(map.into())
    }
}

/// The magnitude below which every whole double is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Converts a double to JSON. Whole and exact doubles become integers, except for negative zero.
/// Doubles that are not finite become null.
pub fn number(double: f64) -> Value {
    finite(double).unwrap_or_default()
}

/// Like [`number`], but `None` for doubles that JSON cannot represent.
///
/// Go accepts infinities and `NaN` on the wire and fails when the message is converted to JSON,
/// which happens to every message. We fail when it is read.
fn finite(double: f64) -> Option<Value> {
    if double.fract() == 0.0
        && double.abs() < EXACT
        && !(double == 0.0 && double.is_sign_negative())
    {
        return Some(Value::from(double as i64));
    }
    serde_json::Number::from_f64(double).map(Value::Number)
}

fn is_normal(value: &Value) -> bool {
    match value {
        Value::Number(n) => match n.as_i64() {
            Some(i) => (i as f64).abs() < EXACT,
            None => n.as_f64().is_some_and(|f| number(f) == *value),
        },
        Value::Array(items) => items.iter().all(is_normal),
        Value::Object(map) => map.values().all(is_normal),
        _ => true,
    }
}

/// Changes every number to one that fits into a double.
pub fn normalize(value: &mut Value) {
    match value {
        Value::Number(n) => *value = number(n.as_f64().unwrap_or_default()),
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(map) => map.values_mut().for_each(normalize),
        _ => {}
    }
}

impl prost::Message for Struct {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        let mut out = Backwards::with_capacity(1024);
        self.write_backwards(&mut out);
        buf.put_slice(out.as_slice());
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != 1 {
            return encoding::skip_field(wire_type, tag, buf, ctx);
        }
        encoding::check_wire_type(WireType::LengthDelimited, wire_type)?;
        decode::field(buf, self.0.make_mut(), MAX_DEPTH)
    }

    fn encoded_len(&self) -> usize {
        encode::fields_len(&self.0)
    }

    fn clear(&mut self) {
        self.0 = Object::new();
    }
}
