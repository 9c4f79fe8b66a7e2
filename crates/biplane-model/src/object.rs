//! A Kubernetes object as JSON that is cheap to clone, and the identifiers of objects.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A JSON object that is cheap to clone. It is copied only when it is changed while shared.
///
/// Read it through `Deref`, change it through [`Object::make_mut`].
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object(Arc<Map<String, Value>>);

impl Object {
    /// An empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// The map for changes. It is copied first if it is shared.
    pub fn make_mut(&mut self) -> &mut Map<String, Value> {
        Arc::make_mut(&mut self.0)
    }

    /// The map itself. It is copied only if it is shared.
    pub fn into_map(self) -> Map<String, Value> {
        Arc::unwrap_or_clone(self.0)
    }

    /// A JSON value with the same content.
    pub fn to_value(&self) -> Value {
        Value::Object((*self.0).clone())
    }

    /// Converts to a JSON value.
    pub fn into_value(self) -> Value {
        Value::Object(self.into_map())
    }

    /// An object, or `None` if the value is not an object.
    pub fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(map.into()),
            _ => None,
        }
    }

    /// Whether two handles share one map, so that a comparison is not needed.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The value at a path of object keys.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get(*first)?, |value, key| value.get(key))
    }

    /// The string at a path of object keys. Empty if it is absent or not a string.
    pub fn str_at(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// Writes a value at a path of object keys. Missing objects are created. If another value is in
    /// the way, including null, nothing is written.
    pub fn set_at(&mut self, path: &[&str], value: impl Into<Value>) -> Result<(), Occupied> {
        let occupied = |depth: usize| Occupied(path[..=depth].join("."));
        let Some((last, parents)) = path.split_last() else { return Ok(()) };
        let mut map = self.make_mut();
        for (depth, key) in parents.iter().enumerate() {
            map = object_in(map, key).ok_or_else(|| occupied(depth))?;
        }
        put(map, last, value.into());
        Ok(())
    }

    /// Does the same, but ignores a value in the way. For places where Crossplane ignores it too.
    pub fn set_at_or_ignore(&mut self, path: &[&str], value: impl Into<Value>) {
        let _ = self.set_at(path, value);
    }

    /// Removes the value at a path of object keys and returns it.
    pub fn remove_at(&mut self, path: &[&str]) -> Option<Value> {
        self.at(path)?;
        let (last, parents) = path.split_last()?;
        let mut map = self.make_mut();
        for key in parents {
            map = map.get_mut(*key)?.as_object_mut()?;
        }
        map.remove(*last)
    }

    /// `apiVersion`, empty when absent.
    pub fn api_version(&self) -> &str {
        self.str_at(&["apiVersion"])
    }

    /// `kind`, empty when absent.
    pub fn kind(&self) -> &str {
        self.str_at(&["kind"])
    }

    /// `metadata.name`, empty when absent.
    pub fn name(&self) -> &str {
        self.str_at(&["metadata", "name"])
    }

    /// `metadata.namespace`, empty when absent.
    pub fn namespace(&self) -> &str {
        self.str_at(&["metadata", "namespace"])
    }

    /// `metadata.generateName`, empty when absent.
    pub fn generate_name(&self) -> &str {
        self.str_at(&["metadata", "generateName"])
    }

    /// `metadata.uid`, empty when absent.
    pub fn uid(&self) -> &str {
        self.str_at(&["metadata", "uid"])
    }

    /// `metadata.resourceVersion`, empty when absent.
    pub fn resource_version(&self) -> &str {
        self.str_at(&["metadata", "resourceVersion"])
    }

    /// `metadata.generation`, zero when absent.
    pub fn generation(&self) -> i64 {
        self.at(&["metadata", "generation"]).and_then(integer).unwrap_or_default()
    }

    /// Whether `metadata.deletionTimestamp` is set to a time.
    pub fn is_being_deleted(&self) -> bool {
        biplane_go::time::instant(self.str_at(&["metadata", "deletionTimestamp"])).is_some()
    }

    /// A label's value, empty when absent.
    pub fn label(&self, key: &str) -> &str {
        self.text_of("labels", key)
    }

    /// An annotation's value, empty when absent.
    pub fn annotation(&self, key: &str) -> &str {
        self.text_of("annotations", key)
    }

    // A single value that is not a string invalidates all of them.
    fn text_of(&self, field: &str, key: &str) -> &str {
        let Some(Value::Object(map)) = self.at(&["metadata", field]) else { return "" };
        match map.get(key) {
            Some(Value::String(text)) if map.values().all(is_text) => text,
            _ => "",
        }
    }

    /// The labels or annotations. Null counts as an empty string. `None` if any other value is not
    /// a string.
    pub fn texts(&self, field: &str) -> Option<Map<String, Value>> {
        let map = self.at(&["metadata", field])?.as_object()?;
        let text = |value: &Value| if value.is_null() { "".into() } else { value.clone() };
        map.values()
            .all(is_text)
            .then(|| map.iter().map(|(key, value)| (key.clone(), text(value))).collect())
    }

    /// Whether it has all of these labels, as read by [`Self::texts`].
    pub fn has_labels<'a>(&self, wanted: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
        let labels = self.at(&["metadata", "labels"]).and_then(Value::as_object);
        let labels = labels.filter(|map| map.values().all(is_text));
        wanted.into_iter().all(|(key, value)| {
            let label = labels.and_then(|map| map.get(key));
            label.is_some_and(|label| label.as_str().unwrap_or_default() == value)
        })
    }

    /// Sets a field of `metadata`. An empty string removes it.
    pub fn set_meta(&mut self, key: &str, value: &str) {
        if value.is_empty() {
            self.remove_at(&["metadata", key]);
        } else {
            self.set_at_or_ignore(&["metadata", key], value);
        }
    }

    /// Adds entries to a map of strings in the metadata, such as the labels. Null in the map counts
    /// as an empty string. If any other value is not a string, the map counts as empty and is
    /// replaced.
    pub fn add_texts<'a>(
        &mut self,
        field: &str,
        texts: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) {
        let Some(metadata) = object_in(self.make_mut(), "metadata") else { return };
        if !metadata.get(field).is_some_and(Value::is_object) {
            put(metadata, field, Value::Object(Map::new()));
        }
        let Some(map) = object_in(metadata, field) else { return };
        if map.values().all(is_text) {
            map.values_mut().filter(|v| v.is_null()).for_each(|v| *v = "".into());
        } else {
            map.clear();
        }
        for (key, text) in texts {
            put(map, key, text.into());
        }
    }

    /// Group, version and kind. All are empty if `apiVersion` has too many parts.
    pub fn gvk(&self) -> Gvk {
        Gvk::of_type(self.api_version(), self.kind())
    }

    /// Kind, namespace and name.
    pub fn id(&self) -> ObjectId {
        ObjectId::new(self.gvk(), self.namespace(), self.name())
    }

    /// Whether this is the object with an id, without creating its own id.
    pub fn has_id(&self, id: &ObjectId) -> bool {
        self.name() == id.name && self.namespace() == id.namespace && self.has_gvk(&id.gvk)
    }

    /// Whether the object is of a kind, without creating its [`Gvk`].
    pub fn has_gvk(&self, gvk: &Gvk) -> bool {
        let api_version = self.api_version();
        if !is_group_version(api_version) {
            return *gvk == Gvk::default();
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kind() == gvk.kind && group == gvk.group && version == gvk.version
    }

    /// Whether two objects have the same id.
    pub fn same_id(&self, other: &Self) -> bool {
        self.name() == other.name()
            && self.namespace() == other.namespace()
            && self.kind() == other.kind()
            && (self.api_version() == other.api_version() || self.gvk() == other.gvk())
    }
}

/// A value that is not an object is in the way of a write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not an object")]
pub struct Occupied(
    /// The path of the value.
    pub String,
);

/// About how many bytes an object takes besides its entries' texts: maps are allocated in nodes of
/// eleven entries.
pub(crate) const OBJECT_SIZE: usize = 640;

/// About how many bytes of memory a value takes.
pub fn memory(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
        Value::String(text) => size_of::<Value>() + text.len(),
        Value::Array(items) => items.iter().map(memory).sum::<usize>() + size_of::<Value>(),
        Value::Object(map) => memory_of_map(map),
    }
}

/// About how many bytes of memory the entries of an object take.
pub fn memory_of_map(map: &Map<String, Value>) -> usize {
    // Nodes are at least half full.
    let nodes = if map.is_empty() { 0 } else { 1 + map.len() / 8 };
    let texts = |(key, value): (&String, &Value)| match value {
        Value::Array(_) | Value::Object(_) => key.len() + memory(value),
        Value::String(text) => key.len() + text.len(),
        _ => key.len(),
    };
    size_of::<Value>() + nodes * OBJECT_SIZE + map.iter().map(texts).sum::<usize>()
}

/// The object at a key. It is created if the key is absent. `None` if the value is not an object.
fn object_in<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    if !map.contains_key(key) {
        put(map, key, Value::Object(Map::new()));
    }
    map.get_mut(key).and_then(Value::as_object_mut)
}

/// Inserts a value. An existing key is reused.
fn put(map: &mut Map<String, Value>, key: &str, value: Value) {
    match map.get_mut(key) {
        Some(there) => *there = value,
        None => {
            map.insert(key.to_owned(), value);
        }
    }
}

fn is_text(value: &Value) -> bool {
    value.is_string() || value.is_null()
}

fn is_group_version(api_version: &str) -> bool {
    api_version.bytes().filter(|b| *b == b'/').count() < 2
}

/// The value as an integer, also if it is a whole double.
pub fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9.2e18).map(|f| f as i64)
    })
}

/// Merges one object over another. Objects on both sides are merged, everything else is replaced.
pub fn overlay(mut base: Map<String, Value>, over: Map<String, Value>) -> Map<String, Value> {
    if base.is_empty() {
        return over;
    }
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => {
                *below = overlay(std::mem::take(below), above);
            }
            (Some(below), value) => *below = value,
            (None, value) => {
                base.insert(key, value);
            }
        }
    }
    base
}

impl Deref for Object {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<Map<String, Value>> for Object {
    fn from(map: Map<String, Value>) -> Self {
        Self(Arc::new(map))
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// Empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl Gvk {
    /// Parses an `apiVersion` and a `kind`. A string without a slash is a version of the core
    /// group. With more than one slash, group and version are empty.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let api_version = if is_group_version(api_version) { api_version } else { "" };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// The type of an object. If the `apiVersion` is invalid, the kind is also empty.
    pub fn of_type(api_version: &str, kind: &str) -> Self {
        if is_group_version(api_version) { Self::new(api_version, kind) } else { Self::default() }
    }

    /// `group/version`, or `version` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `Kind.group`, or `Kind` for the core group.
    pub fn group_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }
}

/// `group/version, Kind=kind`. For the core group, the part before the slash is empty.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// Identifies an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    // Compared by name first: names differ most often, so most comparisons end there.
    /// Name.
    pub name: String,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Group, version and kind.
    pub gvk: Gvk,
}

impl ObjectId {
    /// Creates an identifier from its parts.
    pub fn new(gvk: Gvk, namespace: &str, name: &str) -> Self {
        Self { name: name.into(), namespace: namespace.into(), gvk }
    }
}

/// `Kind.group namespace/name`.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.gvk.group_kind())?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        Object::from_value(value).unwrap().into_map()
    }

    /// ENV-23.
    #[test]
    fn objects_merge_and_all_else_is_replaced() {
        let base =
            json!({"a": {"x": 1, "y": {"z": 1}}, "list": [1, 2], "b": {"c": 1}, "n": 1, "s": 1});
        let over = json!({"a": {"x": 2, "y": {"w": 1}}, "list": [3], "b": "text", "n": null, "s": {"t": 1}});
        let merged = json!({"a": {"x": 2, "y": {"z": 1, "w": 1}}, "list": [3], "b": "text", "n": null, "s": {"t": 1}});
        assert_eq!(overlay(map(base), map(over)), map(merged));
    }

    #[test]
    fn an_empty_side_changes_nothing() {
        let some = map(json!({"a": {"b": 1}}));
        assert_eq!(overlay(some.clone(), Map::new()), some);
        assert_eq!(overlay(Map::new(), some.clone()), some);
        assert_eq!(overlay(some.clone(), map(json!({"a": {}}))), some);
    }

    #[test]
    fn nothing_is_written_through_what_is_no_object() {
        for metadata in [json!("text"), json!([]), json!(null)] {
            let before = Object::from_value(json!({ "metadata": metadata })).unwrap();
            let mut object = before.clone();
            object.set_meta("name", "n");
            assert_eq!(object, before);
        }
        let mut object = Object::new();
        object.set_meta("name", "n");
        assert_eq!(object.name(), "n");
    }

    #[test]
    fn a_type_that_makes_no_sense_is_no_type() {
        assert_eq!(Gvk::of_type("a/b/c", "Thing"), Gvk::default());
        assert_eq!(Gvk::of_type("a/b", "Thing"), Gvk::new("a/b", "Thing"));
    }

    #[test]
    fn one_label_that_is_no_text_spoils_all() {
        let with = |labels| Object::from_value(json!({"metadata": {"labels": labels}})).unwrap();
        assert_eq!(with(json!({"a": "b", "c": null})).label("a"), "b");
        let texts = with(json!({"a": "b", "c": null})).texts("labels");
        assert_eq!(texts.map(Value::Object), Some(json!({"a": "b", "c": ""})));
        assert_eq!(with(json!({"a": "b", "c": 1})).label("a"), "");
        assert_eq!(with(json!({"a": "b", "c": 1})).texts("labels"), None);
        // The same rules apply to selecting by labels.
        for (labels, wanted, has) in [
            (json!({"a": "b", "c": "d"}), vec![("a", "b"), ("c", "d")], true),
            (json!({"a": "b", "c": null}), vec![("c", "")], true),
            (json!({"a": "b"}), vec![("c", "")], false),
            (json!({"a": "b", "c": 1}), vec![("a", "b")], false),
            (json!({"a": "b", "c": 1}), vec![], true),
        ] {
            assert_eq!(with(labels.clone()).has_labels(wanted.clone()), has, "{labels} {wanted:?}");
        }
    }

    #[test]
    fn only_a_moment_is_a_time_of_deletion() {
        let with =
            |time| Object::from_value(json!({"metadata": {"deletionTimestamp": time}})).unwrap();
        assert!(with(json!("2024-01-01T00:00:00Z")).is_being_deleted());
        assert!(!with(json!("soon")).is_being_deleted());
    }

    #[test]
    fn an_api_version_of_many_parts_is_none() {
        let object = json!({"apiVersion": "a/b/c", "kind": "K"});
        assert_eq!(Object::from_value(object).unwrap().gvk(), Gvk::default());
        assert_eq!(Gvk::new("a/b/c", "K"), Gvk { kind: "K".into(), ..Gvk::default() });
    }
}
