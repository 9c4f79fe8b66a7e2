//! What objects must look like before anything can be made of them.

use anyhow::{Error, Result};
use biplane_model::pipeline::{CompositionSpec, composition_spec};
use biplane_model::{Map, Object, Value, gojson, typed};
use serde_path_to_error::Segment;

use super::source::Source;

/// Refuses an object of another kind or of a version that is not known.
pub(super) fn is_one(
    object: &Object,
    kind: &str,
    api_versions: &[&str],
    source: &Source<'_>,
) -> Result<()> {
    let wrong = if object.kind() != kind {
        "kind"
    } else if !api_versions.contains(&object.api_version()) {
        "apiVersion"
    } else {
        return Ok(());
    };
    let what = kind.to_lowercase();
    let problem = format!("not a {what}: {}/{}", object.kind(), object.name());
    Err(source.complain(&[wrong], problem))
}

/// A composite resource, of whatever kind.
pub(super) fn composite(object: &Object, source: &Source<'_>) -> Result<()> {
    self::object(object, source)?;
    metadata(object, source)
}

/// Something with a kind. More is not asked of objects that are only handed on.
pub(super) fn object(object: &Object, source: &Source<'_>) -> Result<()> {
    if object.kind().is_empty() {
        let text = gojson::to_string(&object.to_value());
        return Err(source.complain(&["kind"], format!("Object 'Kind' is missing in '{text}'")));
    }
    Ok(())
}

/// A Function, as far as rendering looks at it.
pub(super) fn function(object: &Object, source: &Source<'_>) -> Result<()> {
    metadata(object, source)?;
    strings(object, &["metadata", "annotations"], source)?;
    if let Some(spec) = part(object, &["spec"], source)? {
        string(spec, &["spec"], "package", source)?;
    }
    Ok(())
}

/// A Secret, whatever kind it says it is.
pub(super) fn secret(object: &Object, source: &Source<'_>) -> Result<()> {
    metadata(object, source)?;
    strings(object, &["stringData"], source)?;
    strings(object, &["data"], source)?;
    for (key, value) in part(object, &["data"], source)?.into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        if let Err(error) = typed::bytes(text) {
            let problem = format!("data.{key} is not base64: {error}");
            return Err(source.complain(&["data", key], problem));
        }
    }
    Ok(())
}

/// A Composition or whatever is given as one.
pub(super) fn composition(object: &Object, source: &Source<'_>) -> Result<()> {
    metadata(object, source)?;
    strings(object, &["metadata", "labels"], source)?;
    if composition_spec(object).is_ok() {
        return Ok(());
    }
    // Once more, with an eye on the way to what is wrong.
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let read: Result<CompositionSpec, _> = serde_path_to_error::deserialize(spec);
    let Err(error) = read else { return Ok(()) };
    let steps: Vec<_> = error.path().iter().filter_map(step).collect();
    let path: Vec<_> = std::iter::once("spec").chain(steps.iter().map(String::as_str)).collect();
    let problem = plain(&error.inner().to_string());
    let problem = format!("cannot unmarshal JSON to object: {}: {problem}", path.join("."));
    Err(source.complain(&path, problem))
}

fn step(segment: &Segment) -> Option<String> {
    match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { .. } | Segment::Unknown => None,
    }
}

/// Types as people know them who write YAML.
fn plain(problem: &str) -> String {
    let problem = problem.replace("a sequence", "a list").replace("a map", "an object");
    match problem.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected an object"),
        None => problem,
    }
    .replace("invalid type: sequence", "invalid type: list")
    .replace("invalid type: map", "invalid type: object")
}

fn metadata(object: &Object, source: &Source<'_>) -> Result<()> {
    let Some(metadata) = part(object, &["metadata"], source)? else { return Ok(()) };
    for key in ["name", "namespace", "generateName"] {
        string(metadata, &["metadata"], key, source)?;
    }
    Ok(())
}

/// An object inside, if it is there.
fn part<'o>(
    object: &'o Object,
    path: &[&str],
    source: &Source<'_>,
) -> Result<Option<&'o Map<String, Value>>> {
    match object.at(path) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(other) => Err(wrong(path, "an object", other, source)),
    }
}

/// Refuses an object inside that maps to anything but strings.
fn strings(object: &Object, path: &[&str], source: &Source<'_>) -> Result<()> {
    let Some(map) = part(object, path, source)? else { return Ok(()) };
    map.keys().try_for_each(|key| string(map, path, key, source))
}

fn string(map: &Map<String, Value>, path: &[&str], key: &str, source: &Source<'_>) -> Result<()> {
    match map.get(key) {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(wrong(&[path, &[key]].concat(), "a string", other, source)),
    }
}

fn wrong(path: &[&str], wanted: &str, found: &Value, source: &Source<'_>) -> Error {
    let place = path.join(".");
    let hint = match (wanted, found) {
        ("a string", Value::Number(_) | Value::Bool(_)) => "; put it in quotes",
        _ => "",
    };
    source.complain(path, format!("{place} must be {wanted} but is {}{hint}", kind(found)))
}

/// What a value is, in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
