//! Compiles the expressions of a rule.

use biplane_model::Value as Json;

use super::Rule;
use super::path;
use crate::cel::{self, Dialect, Shape, Type, Value};

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) program: Program,
    /// Whether it compares with the state before.
    pub(crate) uses_old: bool,
    /// The expression of its message.
    pub(crate) message: Option<cel::Program>,
    /// Why the expression of the message does not compile.
    pub(crate) message_fault: Option<String>,
    /// The field that it blames, relative to where it stands.
    pub(crate) field_path: String,
}

/// The program of a rule.
#[derive(Debug)]
pub(crate) enum Program {
    /// The rule is blank.
    Empty,
    /// The rule does not compile.
    Faulty(String),
    /// The rule can run.
    Ready(cel::Program),
}

impl Compiled {
    pub(crate) fn new(rule: &Rule, kind: &Type, shape: &Shape) -> Self {
        let mut compiled = Self {
            program: Program::Empty,
            uses_old: false,
            message: None,
            message_fault: None,
            field_path: String::new(),
        };
        if rule.rule.trim().is_empty() {
            return compiled;
        }
        match program(&rule.rule, kind, rule.optional_old_self, &Type::Bool) {
            Ok((program, uses_old)) => {
                compiled.program = Program::Ready(program);
                compiled.uses_old = uses_old;
            }
            Err(reason) => {
                let reason = match reason {
                    Fault::Syntax(text) => format!("compilation failed: {text}"),
                    Fault::Type => "cel expression must evaluate to a bool".to_owned(),
                    Fault::Literal(text) => format!("program instantiation failed: {text}"),
                };
                compiled.program = Program::Faulty(reason);
                return compiled;
            }
        }
        if !rule.message_expression.is_empty() {
            let expression = &rule.message_expression;
            match program(expression, kind, rule.optional_old_self, &Type::Text) {
                Ok((program, _)) => compiled.message = Some(program),
                Err(reason) => {
                    compiled.message_fault = Some(match reason {
                        Fault::Syntax(text) => {
                            format!("messageExpression compilation failed: {text}")
                        }
                        Fault::Type => "messageExpression must evaluate to a string".to_owned(),
                        Fault::Literal(text) => {
                            format!("messageExpression instantiation failed: {text}")
                        }
                    });
                    // The field is not read after a message that does not compile.
                    return compiled;
                }
            }
        }
        if !rule.field_path.is_empty() {
            compiled.field_path = path::normalized(&rule.field_path, shape).unwrap_or_default();
        }
        compiled
    }
}

enum Fault {
    Syntax(String),
    Type,
    Literal(String),
}

fn program(
    text: &str,
    kind: &Type,
    optional_old: bool,
    wanted: &Type,
) -> Result<(cel::Program, bool), Fault> {
    let expression = cel::parse_as(text, Dialect::Kubernetes)
        .map_err(|error| Fault::Syntax(error.to_string()))?;
    let uses_old = expression.uses("oldSelf");
    let old = if optional_old { Type::Optional(Box::new(kind.clone())) } else { kind.clone() };
    let program = expression
        .check_with(&[("self", kind.clone()), ("oldSelf", old)])
        .map_err(|error| Fault::Syntax(error.to_string()))?;
    if program.result() != wanted {
        return Err(Fault::Type);
    }
    match program.literal_fault() {
        Some(reason) => Err(Fault::Literal(reason)),
        None => Ok((program, uses_old)),
    }
}

/// The variables of a rule.
pub(super) fn variables<'a>(
    shape: &'a Shape,
    value: &'a Json,
    old: Option<&'a Json>,
    optional_old: bool,
) -> Vec<(&'static str, Value<'a>)> {
    let mut variables = vec![("self", shape.value(value))];
    let old = old.map(|old| shape.value(old));
    if optional_old {
        variables.push(("oldSelf", Value::Optional(old.map(std::rc::Rc::new))));
    } else if let Some(old) = old {
        variables.push(("oldSelf", old));
    }
    variables
}
