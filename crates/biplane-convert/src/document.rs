//! Reads the object that is to be converted.

use anyhow::{Result, anyhow, bail};
use biplane_go::json::{Style, to_string_with};
use biplane_model::{Map, Value, fieldpath, yaml};

/// The group of Compositions.
const GROUP: &str = "apiextensions.crossplane.io";
const COMPOSITION: &str = "Composition";
/// What comes before a problem of a conversion.
const GENERATING: &str = "Error generating new Composition";

/// Reads the first document of a text as a Composition.
pub(crate) fn composition(text: &[u8]) -> Result<Map<String, Value>> {
    let object = object(text)?;
    check(&object).map_err(|error| error.context(GENERATING))?;
    Ok(object)
}

/// Runs a conversion, with the words that all of them share before their problems.
pub(crate) fn generating<T>(convert: impl FnOnce() -> Result<T>) -> Result<T> {
    convert().map_err(|error| error.context(GENERATING))
}

fn object(text: &[u8]) -> Result<Map<String, Value>> {
    let value = yaml::read_document(text)
        .map_err(|error| anyhow!("Unmarshalling Error: error converting YAML to JSON: {error}"))?;
    let refused = |problem: String| {
        anyhow!("Unmarshalling Error: error unmarshaling JSON: while decoding JSON: {problem}")
    };
    let map = match value {
        Value::Null => return Ok(Map::new()),
        Value::Object(map) => map,
        other => return Err(refused(cannot_unmarshal(&other, "map[string]interface {}"))),
    };
    if kind(&map).is_empty() {
        let shown = to_string_with(&Value::Object(map), Style::MARSHAL);
        return Err(refused(format!("Object 'Kind' is missing in '{shown}'")));
    }
    let mut map = map;
    fieldpath::normalize_map(&mut map);
    Ok(map)
}

/// The kind, unless the API version is none. Then the object counts as one without a kind.
fn kind(map: &Map<String, Value>) -> &str {
    let version = map.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if version.matches('/').count() > 1 {
        return "";
    }
    map.get("kind").and_then(Value::as_str).unwrap_or_default()
}

fn check(map: &Map<String, Value>) -> Result<()> {
    if map.is_empty() {
        bail!("GroupVersionKind is empty");
    }
    let version = map.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    if group != GROUP {
        bail!("GroupVersionKind Group is not {GROUP}");
    }
    if kind(map) != COMPOSITION {
        bail!("GroupVersionKind Kind is not {COMPOSITION}");
    }
    Ok(())
}

/// The message of Go about JSON of another kind than a type wants.
pub(crate) fn cannot_unmarshal(value: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {wanted}", kind_of(value))
}

/// Go's word for a kind of JSON.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A list of objects, as Go decodes it: items may be null.
type Objects = Vec<Option<Map<String, Value>>>;

/// A list of objects, as Go decodes it: null has no items.
pub(crate) fn objects(value: Value) -> Result<Option<Objects>, String> {
    const ITEM: &str = "map[string]interface {}";
    let items = match value {
        Value::Null => return Ok(None),
        Value::Array(items) => items,
        other => return Err(cannot_unmarshal(&other, &format!("[]{ITEM}"))),
    };
    let item = |item| match item {
        Value::Null => Ok(None),
        Value::Object(map) => Ok(Some(map)),
        other => Err(cannot_unmarshal(&other, ITEM)),
    };
    items.into_iter().map(item).collect::<Result<_, _>>().map(Some)
}
