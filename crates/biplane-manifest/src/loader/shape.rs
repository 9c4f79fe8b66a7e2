//! Checks that objects have the kind and the types of fields that later code relies on.

use anyhow::{Error, Result};
use biplane_go::json;
use biplane_model::typed::{self, BYTES, Field, Names};
use biplane_model::{Map, Object, Value};

use super::source::{Source, name};

/// Rejects an object of another kind or of an unknown version.
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
    let text = if object.is_empty() {
        format!("{problem}\n--> {}: there is no object in it", name(source.file))
    } else {
        source.complain(&[wrong], problem).to_string()
    };
    Err(WrongKind(text).into())
}

/// An object has another kind or an unknown version.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongKind(String);

/// Checks a composite resource, which may have any kind.
pub(super) fn composite(object: &Object, source: &Source<'_>) -> Result<()> {
    self::object(object, source)?;
    metadata(object, source)
}

/// Checks that an object has a kind. Objects that are only passed on need nothing else.
pub(super) fn object(object: &Object, source: &Source<'_>) -> Result<()> {
    if object.kind().is_empty() {
        // A Secret may lack its kind too.
        let hidden = ["data", "stringData"].into_iter().any(|key| object.contains_key(key))
            || source.is_secret();
        let text = if hidden { "…".to_owned() } else { json::to_string(&object.to_value()) };
        let problem = undecoded(&format!("Object 'Kind' is missing in '{text}'"));
        let source = Source { secret: hidden, ..*source };
        return Err(source.complain(&["kind"], problem));
    }
    Ok(())
}

/// The fields of a type and their names.
pub type Type = (&'static [Field], Names);

/// Converts an object to a type as leniently as upstream's decoder, and rejects anything else.
pub(super) fn fit(object: &mut Object, (fields, names): Type, source: &Source<'_>) -> Result<()> {
    typed::text_scalars(object.make_mut(), fields, names);
    typed::decoded(object, fields, names).map_err(|misfit| {
        let path: Vec<_> = misfit.path.iter().map(String::as_str).collect();
        let found = part_at(object, &path).map_or("something else", kind);
        let words = if misfit.wanted == BYTES && found == "a string" {
            format!("{} is not base64", path.join("."))
        } else {
            format!("{} must be {} but is {found}", path.join("."), misfit.wanted)
        };
        source.complain_in_words(&path, undecoded(&misfit.text), &words)
    })
}

/// The value at a path of keys and list indices.
fn part_at<'o>(object: &'o Object, path: &[&str]) -> Option<&'o Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, step| match value {
        Value::Object(map) => map.get(*step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The prefix that upstream adds to the messages of its JSON decoder.
pub(super) fn undecoded(text: &str) -> String {
    format!("error unmarshaling JSON: while decoding JSON: {text}")
}

fn metadata(object: &Object, source: &Source<'_>) -> Result<()> {
    let Some(metadata) = part(object, &["metadata"], source)? else { return Ok(()) };
    for key in ["name", "namespace", "generateName"] {
        string(metadata, &["metadata"], key, source)?;
    }
    Ok(())
}

/// A nested object, if present.
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

/// The type of a value, as errors name it.
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
