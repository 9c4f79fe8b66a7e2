//! Loops over numbers, lists and maps.

use super::{Machine, Result};
use crate::program::{RangeSite, Target};
use crate::slot::Slot;
use crate::types::{IntKind, Type, UintKind};
use crate::value::{List, Value};

/// What a loop goes over.
enum Items {
    Ints(IntKind, i64, i64),
    Uints(UintKind, u64, u64),
    List(List, usize),
    /// The entries as they were when the loop began.
    Map {
        pairs: std::vec::IntoIter<(Value, Value)>,
        key: &'static Type,
        element: &'static Type,
    },
}

/// An active loop.
pub(super) struct Loop {
    items: Items,
    /// How many variables there were before the body.
    vars: usize,
    dots: usize,
    marks: usize,
}

impl Items {
    fn next(&mut self) -> Option<(Slot, Slot)> {
        match self {
            Self::Ints(kind, next, end) => {
                let number = (*next < *end).then_some(*next)?;
                *next += 1;
                Some((Slot::Nothing, Slot::Plain(Value::Int(*kind, number))))
            }
            Self::Uints(kind, next, end) => {
                let number = (*next < *end).then_some(*next)?;
                *next += 1;
                Some((Slot::Nothing, Slot::Plain(Value::Uint(*kind, number))))
            }
            Self::List(list, index) => {
                let element = Slot::of_type(list.element(), list.get(*index)?);
                let at = Slot::Plain(Value::int(index.cast_signed() as i64));
                *index += 1;
                Some((at, element))
            }
            Self::Map { pairs, key, element } => {
                let (name, value) = pairs.next()?;
                Some((Slot::of_type(key, name), Slot::of_type(element, value)))
            }
        }
    }
}

impl Machine<'_> {
    fn range(&self, site: u32) -> Option<&RangeSite> {
        self.program.ranges.get(site as usize)
    }

    /// Begins a loop over the value on the stack. Returns where to go if there is nothing.
    pub(super) fn start_loop(&mut self, site: u32) -> Result<Option<Target>> {
        let value = self.pop().unbox();
        let (otherwise, names) =
            self.range(site).map_or((0, 0), |range| (range.otherwise, range.names.len()));
        let shown =
            |value: &Value| String::from_utf8_lossy(&value.display_in_message()).into_owned();
        let one_variable = |value: &Value| {
            if names > 1 {
                let value = shown(value);
                return Err(format!("can't use {value} to iterate over more than one variable"));
            }
            Ok(())
        };
        let items = match value.value().underlying() {
            Value::Nil => return Ok(Some(otherwise)),
            Value::Int(kind, end) => {
                one_variable(value.value())?;
                if end <= 0 {
                    return Ok(Some(otherwise));
                }
                Items::Ints(kind, 0, end)
            }
            Value::Uint(kind, end) => {
                one_variable(value.value())?;
                if end == 0 {
                    return Ok(Some(otherwise));
                }
                Items::Uints(kind, 0, end)
            }
            Value::List(list) if list.is_empty() => return Ok(Some(otherwise)),
            Value::List(list) => Items::List(list, 0),
            Value::Map(map) if map.is_empty() => return Ok(Some(otherwise)),
            Value::Map(map) => {
                self.budget.spend(map.len() as u64, self.host)?;
                let (key, element) = (map.key(), map.element());
                Items::Map { pairs: map.pairs().into_iter(), key, element }
            }
            _ => return Err(format!("range can't iterate over {}", shown(value.value())).into()),
        };
        let (vars, dots, marks) = (self.vars.len(), self.dots.len(), self.marks.len());
        self.loops.push(Loop { items, vars, dots, marks });
        Ok(None)
    }

    /// Begins a round. Returns whether there is one.
    pub(super) fn next_round(&mut self, site: u32) -> Result<bool> {
        let Some(active) = self.loops.last_mut() else { return Ok(false) };
        self.vars.truncate(active.vars);
        self.dots.truncate(active.dots);
        self.marks.truncate(active.marks);
        let Some((index, element)) = active.items.next() else {
            self.loops.pop();
            return Ok(false);
        };
        self.dots.push(element.clone());
        let program = self.program;
        let Some(range) = program.ranges.get(site as usize) else { return Ok(true) };
        match (&range.names[..], range.assign) {
            ([], _) => {}
            ([name], true) => self.assign(*name, element)?,
            ([first, second, ..], true) => {
                self.assign(*first, index)?;
                self.assign(*second, element)?;
            }
            ([_], false) => self.set_top(1, element),
            (_, false) => {
                self.set_top(1, element);
                self.set_top(2, index);
            }
        }
        Ok(true)
    }

    fn set_top(&mut self, from_top: usize, value: Slot) {
        let index = self.vars.len().checked_sub(from_top);
        if let Some((_, old)) = index.and_then(|index| self.vars.get_mut(index)) {
            *old = value;
        }
    }

    /// Leaves the innermost loop.
    pub(super) fn end_loop(&mut self) {
        if let Some(active) = self.loops.pop() {
            self.vars.truncate(active.vars);
            self.dots.truncate(active.dots);
            self.marks.truncate(active.marks);
        }
    }
}
