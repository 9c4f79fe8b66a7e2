//! The values of templates: what Go keeps in an `interface {}`.
//!
//! Clones are cheap. Maps and lists are references, as in Go: a clone names the same map. A run
//! stays on one thread, so that references need no locks.

mod call;
mod containers;
pub(crate) mod order;
pub mod print;

use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

pub use self::call::{Call, Failure};
pub use self::containers::{List, Map};
pub(crate) use self::containers::{break_cycles, watch_changes};
use crate::types::{IntKind, Kind, Type, UintKind};

/// A string. Go's strings are bytes, which need not be valid UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<[u8]>);

impl Text {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn shared(&self) -> Arc<[u8]> {
        self.0.clone()
    }

    /// The text with replacement characters for invalid bytes.
    pub fn to_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_lossy(), f)
    }
}

impl std::borrow::Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl std::ops::Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl From<&[u8]> for Text {
    fn from(text: &[u8]) -> Self {
        Self(text.into())
    }
}

impl From<Vec<u8>> for Text {
    fn from(text: Vec<u8>) -> Self {
        Self(text.into())
    }
}

/// A value as a function receives it for a parameter of type `interface {}`.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// A nil interface. A nil map or list is [`Value::Map`] or [`Value::List`].
    #[default]
    Nil,
    Bool(bool),
    Int(IntKind, i64),
    Uint(UintKind, u64),
    Float(f64),
    Complex(f64, f64),
    Str(Text),
    List(List),
    Map(Map),
    /// A value of a named type: a struct, a pointer to one, or a number or string with methods.
    Object(Rc<dyn Object>),
}

impl Value {
    /// An `int`.
    pub fn int(number: i64) -> Self {
        Self::Int(IntKind::Int, number)
    }

    /// An `int64`.
    pub fn int64(number: i64) -> Self {
        Self::Int(IntKind::Int64, number)
    }

    /// A `uint8`.
    pub fn byte(byte: u8) -> Self {
        Self::Uint(UintKind::Uint8, u64::from(byte))
    }

    /// A string.
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Str(text.into())
    }

    /// A value of a named type.
    pub fn object(object: impl Object + 'static) -> Self {
        Self::Object(Rc::new(object))
    }

    /// An `[]interface {}`.
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(List::new(&Type::Any, items))
    }

    /// A `[]string`.
    pub fn strings(items: impl IntoIterator<Item = impl Into<Text>>) -> Self {
        let items = items.into_iter().map(Self::text).collect();
        Self::List(List::new(&Type::String, items))
    }

    /// A `[]uint8`.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self::List(List::new(&Type::UINT8, bytes.iter().map(|b| Self::byte(*b)).collect()))
    }

    /// A `map[string]interface {}`.
    pub fn dict(entries: impl IntoIterator<Item = (Text, Value)>) -> Self {
        Self::Map(Map::dict(entries))
    }

    /// JSON as untyped Go values: integers that fit are `int64`, other numbers are `float64`.
    pub fn from_json(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Nil,
            serde_json::Value::Bool(flag) => Self::Bool(*flag),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(integer) => Self::int64(integer),
                None => Self::Float(number.as_f64().unwrap_or_default()),
            },
            serde_json::Value::String(text) => Self::text(text.as_str()),
            serde_json::Value::Array(items) => {
                Self::list(items.iter().map(Self::from_json).collect())
            }
            serde_json::Value::Object(map) => Self::dict(
                map.iter().map(|(key, value)| (Text::from(key.as_str()), Self::from_json(value))),
            ),
        }
    }

    /// The type of the value. Nil has none.
    pub fn go_type(&self) -> Option<Type> {
        Some(match self {
            Self::Nil => return None,
            Self::Bool(_) => Type::Bool,
            Self::Int(kind, _) => Type::Int(*kind),
            Self::Uint(kind, _) => Type::Uint(*kind),
            Self::Float(_) => Type::Float64,
            Self::Complex(..) => Type::Complex128,
            Self::Str(_) => Type::String,
            Self::List(list) => Type::Slice(list.element()),
            Self::Map(map) => Type::Map(map.key(), map.element()),
            Self::Object(object) => object.go_type(),
        })
    }

    /// The name of the type, as `%T` prints it.
    pub fn type_name(&self) -> String {
        self.go_type().map_or_else(|| "<nil>".into(), |t| t.to_string())
    }

    /// The kind of the value.
    pub fn kind(&self) -> Kind {
        self.go_type().map_or(Kind::Invalid, Type::kind)
    }

    /// The value without the name of its type: an object that is a number or a string in Go.
    #[must_use]
    pub fn underlying(&self) -> Self {
        match self {
            Self::Object(object) => object.underlying().unwrap_or_else(|| self.clone()),
            other => other.clone(),
        }
    }

    /// The bytes of a `[]uint8`.
    pub fn as_byte_slice(&self) -> Option<Vec<u8>> {
        let Self::List(list) = self else { return None };
        if *list.element() != Type::UINT8 {
            return None;
        }
        let items = list.items();
        Some(items.iter().map(|i| if let Self::Uint(_, b) = i { *b as u8 } else { 0 }).collect())
    }

    /// Whether the value is true for `if`: not zero, not empty and not nil.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(flag) => *flag,
            Self::Int(_, number) => *number != 0,
            Self::Uint(_, number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(object) => object.underlying().is_none_or(|value| value.is_true()),
        }
    }

    /// The value as `fmt.Sprint` prints it (`%v`), or a remark that it is too large. Results are
    /// printed with [`Call::display`], which counts.
    pub fn display_in_message(&self) -> Vec<u8> {
        if let Self::Str(text) = self {
            return text.to_vec();
        }
        print::display_in_message(self)
    }

    /// The zero value of a type.
    pub fn zero(of: &Type) -> Self {
        match of {
            // Nothing makes a zero value of a struct that only its functions know.
            Type::Any | Type::Reflect | Type::Named(_) => Self::Nil,
            Type::Bool => Self::Bool(false),
            Type::Int(kind) => Self::Int(*kind, 0),
            Type::Uint(kind) => Self::Uint(*kind, 0),
            Type::Float64 => Self::Float(0.0),
            Type::Complex128 => Self::Complex(0.0, 0.0),
            Type::String => Self::text(""),
            Type::Slice(element) => Self::List(List::nil(element)),
            Type::Map(key, element) => Self::Map(Map::nil(key, element)),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::Str(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// How a method is called.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    pub params: &'static [Type],
    pub variadic: bool,
    pub result: Type,
    /// The complaint about a method that templates cannot call, such as one with three results.
    pub unusable: Option<&'static str>,
}

impl Signature {
    /// A method with these parameters and this result.
    pub const fn new(params: &'static [Type], result: Type) -> Self {
        Self { params, variadic: false, result, unusable: None }
    }

    /// A method that templates cannot call.
    pub const fn unusable(why: &'static str) -> Self {
        Self { params: &[], variadic: false, result: Type::Any, unusable: Some(why) }
    }
}

/// How a value of a named type is written as JSON.
#[derive(Clone, Debug)]
pub enum Json {
    /// Like another value.
    As(Value),
    /// As an object with these members in this order.
    Fields(Vec<(&'static str, Value)>),
    /// Not at all, for this reason.
    Failed(String),
}

/// A value of a named Go type: a struct, a pointer to a struct, or a number or string with methods.
pub trait Object: fmt::Debug {
    /// Its type, a [`Type::Named`].
    fn go_type(&self) -> Type;

    /// To get back at the Rust type.
    fn as_any(&self) -> &dyn Any;

    /// The number or string that the value is, if the type is one.
    fn underlying(&self) -> Option<Value> {
        None
    }

    /// What its method `String` or `Error` returns. `fmt` prints that.
    fn string(&self) -> Option<String> {
        None
    }

    /// The fields of a struct in their order, for printing. A pointer to a struct has them too.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// An exported field of a struct.
    fn field(&self, name: &str) -> Option<Value> {
        let mut fields = self.fields().into_iter();
        let exported = name.chars().next().is_some_and(char::is_uppercase);
        fields.find(|(field, _)| exported && *field == name).map(|(_, value)| value)
    }

    /// The parameters of a method, if the type has it.
    fn method(&self, _name: &str) -> Option<Signature> {
        None
    }

    /// Calls a method that [`Object::method`] knows. The arguments fit its parameters.
    fn call(&self, name: &str, _call: &mut Call<'_>, _args: &[Value]) -> Result<Value, Failure> {
        Err(Failure::new(format!("no method {name}")))
    }

    /// The names of all methods and fields, to propose one for a misspelt name.
    fn names(&self) -> Vec<&'static str> {
        self.fields().into_iter().map(|(name, _)| name).collect()
    }

    /// Whether two values of the same type are equal (`==`). Pointers are equal if they are the
    /// same pointer, which the caller has checked.
    fn equals(&self, _other: &dyn Object) -> bool {
        false
    }

    /// Whether two values of the same type have the same contents (`reflect.DeepEqual`), which
    /// looks behind pointers.
    fn deep_equals(&self, other: &dyn Object) -> bool {
        self.equals(other)
    }

    /// What `copystructure` makes of the value. `None` means the value itself.
    fn deep_copy(&self) -> Option<Value> {
        None
    }

    /// What `encoding/json` writes.
    fn json(&self) -> Json {
        self.underlying().map_or_else(|| Json::Fields(self.fields()), Json::As)
    }
}
