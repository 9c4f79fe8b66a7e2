//! Values of named Go types, which have fields and methods.

use std::any::Any;
use std::fmt::Debug;

use super::Value;
use crate::func::{Call, Failure};
use crate::types::Type;

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

/// A value of a named Go type: a struct, a pointer to a struct, or a number or string with methods.
pub trait Object: Debug {
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
}
