//! How functions are declared.

use std::sync::Arc;

pub use crate::budget::Host;
use crate::types::Type;
use crate::value::Value;
pub use crate::value::{Call, Failure};

/// The comparisons that need an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Functions that see places rather than values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    And,
    Or,
    Not,
    Len,
    Index,
    Slice,
    Call,
    Eq,
    Ne,
    Ordered(Order),
}

/// The code of a function.
pub type Body = Arc<dyn Fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure> + Send + Sync>;

#[derive(Clone)]
pub(crate) enum Code {
    Native(Body),
    /// Functions that see values as `reflect.Value`s, or the operands themselves.
    Builtin(Builtin),
    /// Runs a named template and returns its output.
    Include,
}

/// A function with its Go signature.
#[derive(Clone)]
pub struct Func {
    pub(crate) name: &'static str,
    pub(crate) params: &'static [Type],
    pub(crate) variadic: bool,
    pub(crate) result: Type,
    pub(crate) code: Code,
}

impl std::fmt::Debug for Func {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, params, variadic, result, .. } = self;
        let dots = if *variadic { "..." } else { "" };
        write!(f, "{name}{params:?}{dots} -> {result:?}")
    }
}

impl Func {
    /// A function with exactly these parameters.
    pub fn new(
        name: &'static str,
        params: &'static [Type],
        result: Type,
        body: impl Fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self { name, params, variadic: false, result, code: Code::Native(Arc::new(body)) }
    }

    /// A function whose last parameter may repeat (`...T`). Its type is that of one argument.
    pub fn variadic(
        name: &'static str,
        params: &'static [Type],
        result: Type,
        body: impl Fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self { variadic: true, ..Self::new(name, params, result, body) }
    }

    /// `include`: runs a named template and returns its output.
    pub fn include() -> Self {
        const PARAMS: &[Type] = &[Type::String, Type::Any];
        Self {
            name: "include",
            params: PARAMS,
            variadic: false,
            result: Type::String,
            code: Code::Include,
        }
    }

    pub(crate) fn builtin(
        name: &'static str,
        params: &'static [Type],
        variadic: bool,
        result: Type,
        builtin: Builtin,
    ) -> Self {
        Self { name, params, variadic, result, code: Code::Builtin(builtin) }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The type of an argument.
    pub(crate) fn param(&self, index: usize) -> Type {
        self.params.get(index).or(self.params.last()).copied().unwrap_or(Type::Any)
    }

    /// Runs the code on arguments that fit the parameters, outside of a template. The built-in
    /// functions cannot run so.
    pub fn call(&self, call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
        match &self.code {
            Code::Native(body) => body(call, args),
            _ => Err(Failure::new(format!("{} runs in templates only", self.name))),
        }
    }
}
