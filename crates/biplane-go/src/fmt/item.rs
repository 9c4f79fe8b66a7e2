//! Prints values of any Go type: all kinds of numbers, lists, maps, structs and values with methods.

use std::sync::Arc;

use super::{Arg, Printer};

/// A value of any Go type, with the names of types that formats can show.
#[derive(Clone, Debug)]
pub enum Item {
    /// A nil interface.
    Nil,
    Bool(bool),
    /// An integer of a signed type.
    Int(i64, &'static str),
    /// An integer of an unsigned type.
    Uint(u64, &'static str),
    Float(f64),
    Complex(f64, f64),
    /// A string, not necessarily valid UTF-8.
    Text(Arc<[u8]>, &'static str),
    /// A slice.
    List {
        name: String,
        nil: bool,
        items: Vec<Item>,
    },
    /// A `[]uint8`.
    Bytes {
        nil: bool,
        bytes: Vec<u8>,
    },
    /// A map in the order of its keys.
    Map {
        name: String,
        nil: bool,
        pairs: Vec<(Item, Item)>,
    },
    /// A struct, or a pointer to one.
    Struct {
        name: &'static str,
        pointer: bool,
        fields: Vec<(&'static str, Item)>,
    },
    /// A value with a method that returns its text.
    Stringer {
        text: String,
        inner: Box<Item>,
    },
}

impl Item {
    /// Go's name of the type.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_, name)
            | Self::Uint(_, name)
            | Self::Text(_, name)
            | Self::Struct { name, .. } => name,
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::List { name, .. } | Self::Map { name, .. } => name,
            Self::Bytes { .. } => "[]uint8",
            Self::Stringer { inner, .. } => inner.type_name(),
        }
    }

    pub(super) fn is_string(&self) -> bool {
        match self {
            Self::Text(..) => true,
            Self::Stringer { inner, .. } => inner.is_string(),
            _ => false,
        }
    }
}

impl Printer {
    /// Prints an item. `nested` is whether it is part of another one.
    pub(super) fn item(&mut self, item: &Item, verb: char, nested: bool) {
        match item {
            Item::Nil if nested && self.flags.source => self.text("interface {}(nil)"),
            Item::Nil if nested => self.text("<nil>"),
            Item::Nil if verb == 'v' => self.pad(b"<nil>"),
            Item::Nil => self.bad_verb(Arg::Nil, verb),
            Item::Bool(flag) => self.value(Arg::Bool(*flag), verb),
            Item::Float(float) => self.value(Arg::Float(*float), verb),
            Item::Int(integer, _) => {
                if !self.integer(integer.unsigned_abs(), *integer < 0, verb) {
                    self.bad_verb(Arg::Item(item), verb);
                }
            }
            Item::Uint(integer, _) => {
                if self.flags.source && verb == 'v' {
                    return self.source_byte(*integer);
                }
                if !self.integer(*integer, false, verb) {
                    self.bad_verb(Arg::Item(item), verb);
                }
            }
            Item::Complex(real, imaginary) => self.complex(item, *real, *imaginary, verb),
            Item::Text(text, _) => {
                if !self.text_verb(text, verb) {
                    self.bad_verb(Arg::Item(item), verb);
                }
            }
            Item::Bytes { nil, bytes } => self.byte_slice(bytes, *nil, verb, nested),
            Item::List { name, nil, items } => self.list(name, *nil, items, verb),
            Item::Map { name, nil, pairs } => self.map(name, *nil, pairs, verb),
            Item::Struct { name, pointer, fields } => {
                let pointer = *pointer && !nested;
                self.structure(name, pointer, fields, verb);
            }
            Item::Stringer { text, inner } => {
                let method = matches!(verb, 'v' | 's' | 'x' | 'X' | 'q');
                if method && !self.flags.source && !self.complaining {
                    self.text_verb(text.as_bytes(), verb);
                } else {
                    self.item(inner, verb, nested);
                }
            }
        }
    }

    fn source_byte(&mut self, integer: u64) {
        let sharp = std::mem::replace(&mut self.flags.sharp, true);
        self.integer(integer, false, 'x');
        self.flags.sharp = sharp;
    }

    fn complex(&mut self, item: &Item, real: f64, imaginary: f64, verb: char) {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return self.bad_verb(Arg::Item(item), verb);
        }
        let plus = self.flags.plus;
        self.push('(');
        self.float(real, verb);
        self.flags.plus = true;
        self.float(imaginary, verb);
        self.text("i)");
        self.flags.plus = plus;
    }

    /// Opens a list or map. Returns the closing bracket, or nothing if the value is nil.
    fn open(&mut self, name: &str, nil: bool, bracket: &str) -> Option<char> {
        if !self.flags.source {
            self.text(bracket);
            return Some(']');
        }
        self.text(name);
        if nil {
            self.text("(nil)");
            return None;
        }
        self.push('{');
        Some('}')
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.text(if self.flags.source { ", " } else { " " });
        }
    }

    fn list(&mut self, name: &str, nil: bool, items: &[Item], verb: char) {
        let Some(close) = self.open(name, nil, "[") else { return };
        for (index, item) in items.iter().enumerate() {
            if self.full {
                break;
            }
            self.separate(index);
            self.item(item, verb, true);
        }
        self.push(close);
    }

    fn map(&mut self, name: &str, nil: bool, pairs: &[(Item, Item)], verb: char) {
        let Some(close) = self.open(name, nil, "map[") else { return };
        for (index, (key, item)) in pairs.iter().enumerate() {
            if self.full {
                break;
            }
            self.separate(index);
            self.item(key, verb, true);
            self.push(':');
            self.item(item, verb, true);
        }
        self.push(close);
    }

    fn byte_slice(&mut self, bytes: &[u8], nil: bool, verb: char, nested: bool) {
        match verb {
            's' | 'x' | 'X' | 'q' => {
                self.text_verb(bytes, verb);
            }
            _ => {
                let name = if nested { "[]uint8" } else { "[]byte" };
                let items: Vec<Item> =
                    bytes.iter().map(|b| Item::Uint(u64::from(*b), "uint8")).collect();
                self.list(name, nil, &items, verb);
            }
        }
    }

    fn structure(
        &mut self,
        name: &str,
        pointer: bool,
        fields: &[(&'static str, Item)],
        verb: char,
    ) {
        let name = name.strip_prefix('*').unwrap_or(name);
        if pointer {
            self.push('&');
        }
        if self.flags.source {
            self.text(name);
        }
        self.push('{');
        for (index, (field, item)) in fields.iter().enumerate() {
            self.separate(index);
            if self.flags.names || self.flags.source {
                self.text(field);
                self.push(':');
            }
            self.item(item, verb, true);
        }
        self.push('}');
    }
}
