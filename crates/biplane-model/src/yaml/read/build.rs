//! Builds the value of one document from the parser's events.

use std::borrow::Cow;
use std::collections::BTreeMap;

use granit_parser::{Event, ScalarStyle, Span};

use super::super::error::Problem;
use super::super::resolve::{self, Meaning, Tag};
use super::MAX_DEPTH;
use super::limits::{Budget, Size};
use crate::{Map, Number, Value};

const CORE_TAGS: &str = "tag:yaml.org,2002:";

/// Keeps the open lists and objects on its own stack.
#[derive(Debug)]
pub(super) struct Builder<'text> {
    text: &'text str,
    open: Vec<Open>,
    anchors: BTreeMap<usize, (Value, Size)>,
    budget: Budget,
    root: Option<Value>,
}

#[derive(Debug)]
struct Open {
    anchor: usize,
    size: Size,
    content: Content,
}

#[derive(Debug)]
enum Content {
    List(Vec<Value>),
    Object { map: Map<String, Value>, key: Option<Key> },
}

#[derive(Debug)]
pub(super) enum Key {
    Name(String),
    /// `<<`: the entries of the value become entries of this object.
    Merge,
}

/// A scalar after its quotes and its tag have been applied.
enum Scalar<'event> {
    Plain(Meaning, Cow<'event, str>),
    Text(String),
}

/// The value of a plain scalar without a tag.
pub(super) fn plain_value(text: &str) -> Result<Value, Problem> {
    Scalar::Plain(resolve::meaning(text), Cow::Borrowed(text)).value()
}

/// A plain scalar without a tag as a key.
pub(super) fn plain_key(text: &str) -> Result<Key, Problem> {
    match text {
        "<<" => Ok(Key::Merge),
        _ => Scalar::Plain(resolve::meaning(text), Cow::Borrowed(text)).key().map(Key::Name),
    }
}

impl<'text> Builder<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        let (open, anchors, budget) = (Vec::new(), BTreeMap::new(), Budget::default());
        Self { text, open, anchors, budget, root: None }
    }

    pub(super) fn finish(self) -> Option<Value> {
        self.root
    }

    pub(super) fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.budget.read(1);
                let tag = tag.map(|tag| Tag::named(tag.suffix_in_namespace(CORE_TAGS).as_deref()));
                self.scalar(text, style, anchor, tag)
            }
            Event::SequenceStart(_, anchor, _) => self.open(anchor, Content::List(Vec::new())),
            Event::MappingStart(_, anchor, _) => {
                self.open(anchor, Content::Object { map: Map::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => self.alias(id, span),
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<Tag>,
    ) -> Result<(), Problem> {
        let size = Size::scalar(&text);
        let plain = style == ScalarStyle::Plain;
        let merges = text == "<<" && (tag == Some(Tag::Merge) || (plain && tag.is_none()));
        let scalar = match tag {
            None if plain => Scalar::Plain(resolve::meaning(&text), text),
            None => Scalar::Text(text.into_owned()),
            Some(Tag::Binary) => Scalar::Text(resolve::binary(&text)?),
            Some(tag) => Scalar::Plain(resolve::tagged(tag, &text)?, text),
        };
        if self.expects_key() {
            let key = if merges { Key::Merge } else { Key::Name(scalar.key()?) };
            if anchor != 0 {
                // When an alias repeats the key, it is the string that the key was converted to.
                let name = if let Key::Name(name) = &key { name.as_str() } else { "<<" };
                self.remember(anchor, &Value::from(name), size)?;
            }
            self.put_key(key, size);
            return Ok(());
        }
        self.put(scalar.value()?, size, anchor)
    }

    fn open(&mut self, anchor: usize, content: Content) -> Result<(), Problem> {
        if self.expects_key() {
            return Err(Problem::UnsupportedKey(match content {
                Content::List(_) => "a list",
                Content::Object { .. } => "an object",
            }));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::TooDeep(MAX_DEPTH));
        }
        self.budget.read(1);
        let size = Size { nodes: 1, bytes: 0, height: 1 };
        self.open.push(Open { anchor, size, content });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        let Some(Open { anchor, size, content }) = self.open.pop() else { return Ok(()) };
        let value = match content {
            Content::List(items) => Value::Array(items),
            Content::Object { map, .. } => Value::Object(map),
        };
        self.put(value, size, anchor)
    }

    fn alias(&mut self, id: usize, span: &Span) -> Result<(), Problem> {
        let Some((value, size)) = self.anchors.get(&id) else {
            let name = span.slice(self.text).unwrap_or_default();
            return Err(Problem::AliasOfItself(name.trim_start_matches('*').to_owned()));
        };
        let size = *size;
        self.budget.read(1);
        self.budget.expand(size, self.open.len())?;
        if self.expects_key() {
            let key = Key::Name(key_of(value)?);
            self.put_key(key, size);
            return Ok(());
        }
        if self.merging() && !value.is_object() {
            return Err(Problem::MergeWantsMap);
        }
        let value = value.clone();
        self.put(value, size, 0)
    }

    /// Whether the next node is a key.
    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { content: Content::Object { key: None, .. }, .. }))
    }

    /// Whether the next node is the value of a merge key.
    fn merging(&self) -> bool {
        let key = match self.open.last() {
            Some(Open { content: Content::Object { key, .. }, .. }) => key.as_ref(),
            _ => None,
        };
        matches!(key, Some(Key::Merge))
    }

    fn put_key(&mut self, name: Key, size: Size) {
        if let Some(Open { size: outer, content: Content::Object { key, .. }, .. }) =
            self.open.last_mut()
        {
            outer.add(size);
            *key = Some(name);
        }
    }

    /// Puts a finished value into its parent.
    fn put(&mut self, value: Value, size: Size, anchor: usize) -> Result<(), Problem> {
        if anchor != 0 {
            self.remember(anchor, &value, size)?;
        }
        let Some(outer) = self.open.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        outer.size.add(size);
        match &mut outer.content {
            Content::List(items) => items.push(value),
            Content::Object { map, key } => match key.take() {
                Some(Key::Name(name)) => {
                    map.insert(name, value);
                }
                Some(Key::Merge) => merge(map, value)?,
                None => {}
            },
        }
        Ok(())
    }

    fn remember(&mut self, anchor: usize, value: &Value, size: Size) -> Result<(), Problem> {
        self.budget.copy(size)?;
        self.anchors.insert(anchor, (value.clone(), size));
        Ok(())
    }
}

impl Scalar<'_> {
    fn key(self) -> Result<String, Problem> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Plain(Meaning::Text | Meaning::Timestamp, text) => Ok(text.into_owned()),
            Self::Plain(Meaning::Null, _) => Err(Problem::UnsupportedKey("null")),
            Self::Plain(Meaning::Bool(truth), _) => Ok(truth.to_string()),
            Self::Plain(Meaning::Int(whole), _) => Ok(whole.to_string()),
            Self::Plain(Meaning::Uint(_), _) => {
                Err(Problem::UnsupportedKey("a number above 9223372036854775807"))
            }
            Self::Plain(Meaning::Float(float), _) => Ok(resolve::float_key(float)),
        }
    }

    fn value(self) -> Result<Value, Problem> {
        Ok(match self {
            Self::Text(text) => Value::String(text),
            Self::Plain(Meaning::Text | Meaning::Timestamp, text) => {
                Value::String(text.into_owned())
            }
            Self::Plain(Meaning::Null, _) => Value::Null,
            Self::Plain(Meaning::Bool(truth), _) => Value::Bool(truth),
            Self::Plain(Meaning::Int(whole), _) => Value::from(whole),
            Self::Plain(Meaning::Uint(whole), _) => Value::from(whole as f64),
            Self::Plain(Meaning::Float(float), text) => match Number::from_f64(float) {
                Some(number) => Value::Number(number),
                None => return Err(Problem::NotJson(text.into_owned())),
            },
        })
    }
}

/// The key that an alias stands for.
fn key_of(value: &Value) -> Result<String, Problem> {
    match value {
        Value::Null => Err(Problem::UnsupportedKey("null")),
        Value::Array(_) => Err(Problem::UnsupportedKey("a list")),
        Value::Object(_) => Err(Problem::UnsupportedKey("an object")),
        Value::String(text) => Ok(text.clone()),
        Value::Bool(truth) => Ok(truth.to_string()),
        Value::Number(number) => Ok(match (number.is_f64(), number.as_f64()) {
            (true, Some(float)) => resolve::float_key(float),
            _ => number.to_string(),
        }),
    }
}

/// Overwrites entries above the merge key. Entries below it will overwrite these.
fn merge(map: &mut Map<String, Value>, value: Value) -> Result<(), Problem> {
    let sources = match value {
        Value::Array(sources) => sources,
        source @ Value::Object(_) => vec![source],
        _ => return Err(Problem::MergeWantsMap),
    };
    // If there are several sources, the first one wins.
    for source in sources.into_iter().rev() {
        let Value::Object(source) = source else { return Err(Problem::MergeWantsMap) };
        map.extend(source);
    }
    Ok(())
}
