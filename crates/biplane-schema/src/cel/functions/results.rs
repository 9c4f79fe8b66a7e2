//! What functions about text answer.

use std::rc::Rc;

use super::super::value::Value;

pub(super) fn string<'a>(text: impl Into<Rc<str>>) -> Value<'a> {
    Value::Text(text.into())
}

pub(super) fn strings<'a>(texts: impl IntoIterator<Item = String>) -> Value<'a> {
    Value::List(Rc::new(texts.into_iter().map(string).collect()))
}
