//! Objects as they arrive, and as a cache keeps them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use biplane_cluster::watch::{Name, Packed};
use biplane_cluster::{Form, Query};
use biplane_model::{Gvk, Object, Value};
use serde::Deserialize;

use super::text::Text;

/// The labels of an object in one text: each name and each value ends with NUL, which is in none of
/// them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Labels(Box<str>);

impl Labels {
    fn new<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut text = String::new();
        for part in all.flat_map(|(name, value)| [name, value]) {
            text.push_str(part);
            text.push('\0');
        }
        Self(text.into())
    }

    fn of(object: &Object) -> Self {
        let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        Self::new(labels.map(|(name, value)| (&**name, value.as_str().unwrap_or_default())))
    }

    fn get(&self, name: &str) -> Option<&str> {
        let mut parts = self.0.split('\0');
        while let (Some(label), Some(value)) = (parts.next(), parts.next()) {
            if label == name {
                return Some(value);
            }
        }
        None
    }
}

/// Whether an object matches. [`Query::matches`] for objects that are not parsed.
pub(super) fn matches(query: &Query, name: &Name, labels: &Labels) -> bool {
    (query.namespace.is_empty() || query.namespace == name.namespace())
        && (query.name.is_empty() || query.name == name.name())
        && query.labels.iter().all(|(name, value)| labels.get(name) == Some(value))
        && query.labelled.iter().all(|name| labels.get(name).is_some())
}

/// An object as it arrives. What a cache must know of it is read; the rest is only if it is needed.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(super) name: Name,
    pub(super) uid: Cow<'a, str>,
    pub(super) resource_version: Cow<'a, str>,
    /// The same as a number. Zero if it is none.
    pub(super) version: u64,
    pub(super) labels: Labels,
    /// The object, if it was parsed.
    pub(super) object: Option<&'a Object>,
    /// Its whole text, if it was received alone.
    text: Option<&'a [u8]>,
}

impl<'a> Item<'a> {
    /// An object, with its text if there is one.
    pub(super) fn new(object: &'a Object, text: Option<&'a [u8]>) -> Self {
        Self {
            name: Name::of(object),
            uid: object.uid().into(),
            resource_version: object.resource_version().into(),
            version: object.resource_version().parse().unwrap_or_default(),
            labels: Labels::of(object),
            object: Some(object),
            text,
        }
    }

    /// An object of a kind as text. `None` if it is something else.
    pub(super) fn peek(text: &'a [u8], gvk: &Gvk) -> Option<Self> {
        let Peek { api_version, kind, metadata } = serde_json::from_slice(text).ok()?;
        if kind != gvk.kind || api_version != gvk.api_version() {
            return None;
        }
        let labels = metadata.labels.iter().flatten();
        let labels = labels.map(|(name, value)| (&**name, value.as_deref().unwrap_or_default()));
        Some(Self {
            name: Name::new(&metadata.namespace, &metadata.name),
            version: metadata.resource_version.parse().unwrap_or_default(),
            labels: Labels::new(labels),
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            object: None,
            text: Some(text),
        })
    }

    /// Whether this is more than metadata.
    pub(super) fn is_whole(&self) -> bool {
        let Some(object) = self.object else { return true };
        object.keys().any(|key| !is_metadata(key))
    }

    /// The text of the object in a form.
    pub(super) fn text(&self, form: Form) -> Cow<'a, [u8]> {
        match (form, self.text, self.object) {
            (Form::Whole, Some(text), _) => Cow::Borrowed(text),
            (Form::Whole, None, Some(object)) => json(&**object),
            (Form::Metadata, _, Some(object)) => {
                let fields = object.iter().filter(|(key, _)| is_metadata(key));
                json(&fields.collect::<BTreeMap<_, _>>())
            }
            (Form::Metadata, text, None) => {
                let fields = text.and_then(|text| serde_json::from_slice(text).ok());
                let mut fields: BTreeMap<String, Value> = fields.unwrap_or_default();
                fields.retain(|key, _| is_metadata(key));
                json(&fields)
            }
            (Form::Whole, None, None) => Cow::Borrowed(b"{}"),
        }
    }
}

fn is_metadata(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

fn json(value: &impl serde::Serialize) -> Cow<'static, [u8]> {
    // Maps whose keys are strings can always be written.
    Cow::Owned(serde_json::to_vec(value).unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Peek<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    labels: Option<BTreeMap<String, Option<String>>>,
}

/// An object as a cache keeps it and subscriptions share it.
#[derive(Debug, PartialEq)]
pub(super) struct Stored {
    pub(super) uid: Box<str>,
    /// The resource version. Zero if it is no number.
    pub(super) version: u64,
    pub(super) labels: Labels,
    pub(super) text: Text,
}

impl Packed for Stored {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> Option<u64> {
        (self.version > 0).then_some(self.version)
    }

    fn object(&self) -> Option<Object> {
        serde_json::from_slice(&self.text.read()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn thing() -> Value {
        json!({"apiVersion": "example.org/v1", "kind": "Thing",
            "metadata": {"namespace": "ns", "name": "a\u{e9}\"", "uid": "u", "resourceVersion": "7",
                "labels": {"l": "x", "n": null}, "managedFields": [{"manager": "m"}]},
            "spec": {"size": 3}})
    }

    #[test]
    fn a_text_says_the_same_as_its_object() {
        let (gvk, text) = (Gvk::new("example.org/v1", "Thing"), thing().to_string());
        let object = Object::from_value(thing()).unwrap();
        let (parsed, peeked) =
            (Item::new(&object, None), Item::peek(text.as_bytes(), &gvk).unwrap());
        assert_eq!(parsed.name, peeked.name);
        assert_eq!((&parsed.uid, parsed.version), (&peeked.uid, peeked.version));
        assert_eq!(parsed.labels, peeked.labels);
        assert_eq!((peeked.labels.get("l"), peeked.labels.get("n")), (Some("x"), Some("")));
        assert_eq!((peeked.labels.get("x"), peeked.labels.get("")), (None, None));
        for form in [Form::Whole, Form::Metadata] {
            let read = |item: &Item<'_>| serde_json::from_slice::<Object>(&item.text(form));
            assert_eq!(read(&parsed).unwrap(), form.of(object.clone()));
            assert_eq!(read(&peeked).unwrap(), form.of(object.clone()));
        }
    }

    #[test]
    fn what_is_of_another_kind_or_no_object_is_not_taken() {
        let text = thing().to_string();
        for (version, kind) in [("example.org/v2", "Thing"), ("example.org/v1", "Other")] {
            assert!(Item::peek(text.as_bytes(), &Gvk::new(version, kind)).is_none());
        }
        let gvk = Gvk::new("example.org/v1", "Thing");
        for text in ["{}", "[]", &format!("{text},\"x\":1"), &text[1..]] {
            assert!(Item::peek(text.as_bytes(), &gvk).is_none(), "{text}");
        }
    }
}
