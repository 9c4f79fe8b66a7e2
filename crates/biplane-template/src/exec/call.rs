//! Calls functions.

use biplane_go::fmt::{quote, quote_bytes};

use super::{Machine, Result, Trouble};
use crate::func::{Builtin, Call, Code, Failure};
use crate::program::{NodeId, Site};
use crate::slot::Slot;
use crate::value::Value;

/// How often a template may be included inside of itself.
const MAX_INCLUDES: u32 = 1000;

/// What a call costs besides its instruction.
const CALL: u64 = 4;

impl Machine<'_> {
    /// Removes operands from the stack. Their list is given back with [`Machine::reuse`].
    pub(super) fn take(&mut self, count: usize) -> Vec<Value> {
        let at = self.stack.len().saturating_sub(count);
        let mut values = std::mem::take(&mut self.spare_operands);
        values.extend(self.stack.drain(at..).map(Slot::into_value));
        values
    }

    pub(super) fn reuse(&mut self, mut values: Vec<Value>) {
        values.clear();
        self.spare_operands = values;
    }

    /// Calls a function. Returns whether a template was started, whose output is the result.
    pub(super) fn call(&mut self, site: u32) -> Result<bool> {
        let program = self.program;
        let Some(site) = program.sites.get(site as usize) else { return Ok(false) };
        let Site { func, node, args, piped, callee } = site;
        let (node, args) = (*node, *args);
        match &func.code {
            Code::Native(body) => {
                self.budget.spend(CALL, self.host)?;
                let values = self.operands(site)?;
                let result = {
                    let mut call = Call { host: self.host, budget: &mut self.budget };
                    body(&mut call, &values)
                };
                self.reuse(values);
                let value = result.map_err(|failure| self.failed(func.name, node, failure))?;
                self.stack.push(Slot::of_type(&func.result, value));
            }
            Code::Builtin(builtin) => {
                let at = self.stack.len().saturating_sub(args);
                let mut slots: Vec<Slot> = self.stack.drain(at..).collect();
                if *piped {
                    slots.push(self.pop());
                }
                // Only `call` shows its operand.
                let callee = match builtin {
                    Builtin::Call if args > 0 => program.show(*callee),
                    Builtin::Call => {
                        String::from_utf8_lossy(&slots.first().map_or(Vec::new(), shown_value))
                            .into_owned()
                    }
                    _ => String::new(),
                };
                let result = crate::builtin::run(*builtin, &slots, &callee);
                let value =
                    result.map_err(|text| self.failed(func.name, node, Failure::Message(text)))?;
                self.stack.push(value);
            }
            Code::Include => {
                let values = self.operands(site)?;
                let [Value::Str(name), data] = &values[..] else { return Ok(false) };
                self.include(name, data.clone(), node)?;
                self.reuse(values);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The operands of a call and the piped value, which is checked last.
    fn operands(&mut self, site: &Site) -> Result<Vec<Value>> {
        let mut values = self.take(site.args);
        if site.piped {
            let last = self.pop().check(site.func.param(site.args))?;
            values.push(last.into_value());
        }
        Ok(values)
    }

    /// The error of a failed call, which happens at the call.
    pub(super) fn failed(&mut self, name: &str, node: NodeId, failure: Failure) -> Trouble {
        self.at(node);
        match failure {
            Failure::Message(text) => Trouble::Message(format!("error calling {name}: {text}")),
            Failure::Limit(exceeded) => Trouble::Limit(exceeded),
        }
    }

    fn include(&mut self, bytes: &[u8], data: Value, node: NodeId) -> Result<()> {
        let name = &*String::from_utf8_lossy(bytes);
        let Some(template) = self.program.by_name.get(name).copied() else {
            let (quoted, main) = (quote_bytes(bytes), quote(&self.program.name));
            let text = format!("template: no template {quoted} associated with template {main}");
            let names = self.program.by_name.keys().map(String::as_str);
            let near = crate::error::near(name, names);
            self.at(node);
            return Err(Trouble::Misspelt {
                message: format!("error calling include: {text}"),
                name: name.to_owned(),
                near,
            });
        };
        let count = self.included.get(template).copied().unwrap_or_default();
        if count > MAX_INCLUDES {
            let text = format!(
                "rendering template has a nested reference name: {name}: unable to execute template"
            );
            return Err(self.failed("include", node, Failure::Message(text)));
        }
        self.enter(template, Slot::plain(data), 0, Some(node))?;
        if let Some(count) = self.included.get_mut(template) {
            *count += 1;
        }
        let output = self.spare_outputs.pop().unwrap_or_default();
        self.outputs.push(output);
        Ok(())
    }
}

/// A value as `reflect.Value.String` shows it: strings as they are, others by their type.
fn shown_value(slot: &Slot) -> Vec<u8> {
    match slot.value() {
        Value::Str(text) => text.to_vec(),
        Value::Nil => b"<invalid Value>".to_vec(),
        value => format!("<{} Value>", value.type_name()).into_bytes(),
    }
}
