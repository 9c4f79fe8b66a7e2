//! Looks up fields, keys and methods.

use std::rc::Rc;

use biplane_go::fmt::quote;

use super::{Machine, MissingKey, Pending, Result, Trouble};
use crate::error::near;
use crate::literal::convert;
use crate::parse::{constant_of, wrong_count};
use crate::program::{MethodSite, NodeId, Target};
use crate::slot::Slot;
use crate::types::{Kind, Type};
use crate::value::{Map, Object, Value};

/// What a name of a value is.
enum Found {
    Value(Slot),
    Method(Rc<dyn Object>),
}

impl Machine<'_> {
    /// Pushes the field of a value.
    pub(super) fn field(&mut self, receiver: Slot, name: u32, node: NodeId) -> Result<()> {
        match self.find(receiver, name, false)? {
            Found::Value(value) => self.stack.push(value),
            Found::Method(object) => {
                let pending = self.prepare(object, name, 0, false)?;
                self.invoke_method(&pending, name, node, &[])?;
            }
        }
        Ok(())
    }

    fn find(&self, receiver: Slot, name: u32, has_args: bool) -> Result<Found> {
        let name = self.program.names.get(name as usize).map_or("", String::as_str);
        let boxed = matches!(receiver, Slot::Boxed(_));
        let value = match receiver {
            Slot::Nothing if self.missing == MissingKey::Error => {
                return Err(format!("nil data; no entry for key {}", quote(name)).into());
            }
            Slot::Nothing | Slot::Plain(Value::Nil) => return Ok(Found::Value(Slot::Nothing)),
            Slot::Boxed(Value::Nil) => {
                return Err(format!("nil pointer evaluating interface {{}}.{name}").into());
            }
            Slot::Boxed(value) | Slot::Plain(value) => value,
        };
        if let Value::Map(map) = value {
            return self.key(&map, name, has_args);
        }
        // Messages name the type of the place.
        let shown = if boxed { Type::Any.to_string() } else { value.type_name() };
        match value {
            Value::Object(object) => find_member(object, name, has_args, &shown),
            _ => Err(format!("can't evaluate field {name} in type {shown}").into()),
        }
    }

    fn key(&self, map: &Map, name: &str, has_args: bool) -> Result<Found> {
        if has_args {
            return Err(format!("{name} is not a method but has arguments").into());
        }
        if let Some(value) = map.get(name.as_bytes()) {
            return Ok(Found::Value(Slot::of_type(map.element(), value)));
        }
        match self.missing {
            MissingKey::Default => Ok(Found::Value(Slot::Nothing)),
            MissingKey::Zero => {
                let zero = Value::zero(map.element());
                Ok(Found::Value(Slot::of_type(map.element(), zero)))
            }
            MissingKey::Error => {
                let entries = map.entries();
                let keys = entries.keys().filter_map(|key| std::str::from_utf8(key).ok());
                Err(Trouble::Misspelt {
                    message: format!("map has no entry for key {}", quote(name)),
                    name: name.to_owned(),
                    near: near(name, keys),
                })
            }
        }
    }

    /// Checks a method and the number of its operands.
    fn prepare(
        &self,
        object: Rc<dyn Object>,
        name: u32,
        args: usize,
        piped: bool,
    ) -> Result<Pending> {
        let name = self.program.names.get(name as usize).map_or("", String::as_str);
        let Some(signature) = object.method(name) else {
            return Err(format!("no method {name}").into());
        };
        let (params, variadic) = (signature.params.len(), signature.variadic);
        if let Some(message) = wrong_count(name, params, variadic, args, piped) {
            return Err(message.into());
        }
        match signature.unusable {
            Some(why) => Err(why.into()),
            None => Ok(Pending { object, signature }),
        }
    }

    /// Begins a call with operands. Returns where to go if there is nothing to call.
    pub(super) fn start_method(&mut self, site: u32) -> Result<Option<Target>> {
        let Some(site) = self.program.methods.get(site as usize) else { return Ok(None) };
        let MethodSite { name, args, piped, skip, .. } = *site;
        let receiver = self.pop();
        match self.find(receiver, name, true)? {
            Found::Value(value) => {
                if piped {
                    self.pop();
                }
                self.stack.push(value);
                Ok(Some(skip))
            }
            Found::Method(object) => {
                let pending = self.prepare(object, name, args, piped)?;
                self.pending.push(pending);
                Ok(None)
            }
        }
    }

    fn param(&self, index: usize) -> Type {
        let params = self.pending.last().map_or(&[][..], |pending| pending.signature.params);
        params.get(index).or(params.last()).copied().unwrap_or(Type::Any)
    }

    pub(super) fn method_const(&mut self, node: NodeId, index: u32) -> Result<()> {
        let to = self.param(index as usize);
        let program = self.program;
        let constant = program.node(node).and_then(|node| constant_of(&node.kind));
        if let Some(constant) = constant {
            let literal = convert(constant, to, &program.show(node))?;
            self.stack.push(Slot::Plain(literal.value()));
        }
        Ok(())
    }

    pub(super) fn method_nil(&mut self, index: u32) -> Result<()> {
        let to = self.param(index as usize);
        if !to.can_be_nil() {
            return Err(format!("cannot assign nil to {to}").into());
        }
        self.stack.push(Slot::Boxed(Value::zero(&to)));
        Ok(())
    }

    pub(super) fn method_check(&mut self, index: u32) -> Result<()> {
        let to = self.param(index as usize);
        let value = self.pop().check(to)?;
        self.stack.push(value);
        Ok(())
    }

    pub(super) fn call_method(&mut self, site: u32) -> Result<()> {
        let Some(site) = self.program.methods.get(site as usize) else { return Ok(()) };
        let MethodSite { name, node, args, piped, .. } = *site;
        let mut values = self.take(args);
        if piped {
            let last = self.pop().check(self.param(args))?;
            values.push(last.into_value());
        }
        let Some(pending) = self.pending.pop() else { return Ok(()) };
        self.invoke_method(&pending, name, node, &values)?;
        self.reuse(values);
        Ok(())
    }

    fn invoke_method(
        &mut self,
        pending: &Pending,
        name: u32,
        node: NodeId,
        args: &[Value],
    ) -> Result<()> {
        let program = self.program;
        let name = program.names.get(name as usize).map_or("", String::as_str);
        let result = {
            let mut call = crate::func::Call { host: self.host, budget: &mut self.budget };
            pending.object.call(name, &mut call, args)
        };
        match result {
            Ok(value) => {
                self.stack.push(Slot::of_type(&pending.signature.result, value));
                Ok(())
            }
            Err(failure) => Err(self.failed(name, node, failure)),
        }
    }
}

/// A method or field of a value with a named type.
fn find_member(object: Rc<dyn Object>, name: &str, has_args: bool, shown: &str) -> Result<Found> {
    if object.method(name).is_some() {
        return Ok(Found::Method(object));
    }
    let structure = matches!(object.go_type().kind(), Kind::Struct | Kind::Ptr);
    if structure && let Some(value) = object.field(name) {
        if has_args {
            return Err(format!("{name} has arguments but cannot be invoked as function").into());
        }
        return Ok(Found::Value(Slot::plain(value)));
    }
    let hidden = |field: &str| field == name && !name.starts_with(char::is_uppercase);
    if structure && object.fields().iter().any(|(field, _)| hidden(field)) {
        return Err(format!("{name} is an unexported field of struct type {shown}").into());
    }
    Err(Trouble::Misspelt {
        message: format!("can't evaluate field {name} in type {shown}"),
        name: name.to_owned(),
        near: near(name, object.names()),
    })
}
