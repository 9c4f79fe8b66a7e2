//! What objects must look like before anything can be made of them.

use anyhow::{Error, Result};
use biplane_go::json;
use biplane_model::typed::{self, BYTES, Field, Names};
use biplane_model::{Map, Object, Value};

use super::source::{Source, name};

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
    let text = if object.is_empty() {
        format!("{problem}\n--> {}: there is no object in it", name(source.file))
    } else {
        source.complain(&[wrong], problem).to_string()
    };
    Err(WrongKind(text).into())
}

/// An object is of another kind, or of a version that is not known.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongKind(String);

/// A composite resource, of whatever kind.
pub(super) fn composite(object: &Object, source: &Source<'_>) -> Result<()> {
    self::object(object, source)?;
    metadata(object, source)
}

/// Something with a kind. More is not asked of objects that are only handed on.
pub(super) fn object(object: &Object, source: &Source<'_>) -> Result<()> {
    if object.kind().is_empty() {
        let text = json::to_string(&object.to_value());
        let problem = undecoded(&format!("Object 'Kind' is missing in '{text}'"));
        return Err(source.complain(&["kind"], problem));
    }
    Ok(())
}

/// The fields of a type, and what they are called.
pub type Type = (&'static [Field], Names);

/// Makes an object fit a type as far as upstream's reader does, and refuses what does not fit.
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

/// What the keys, and the places in lists, lead to.
fn part_at<'o>(object: &'o Object, path: &[&str]) -> Option<&'o Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, step| match value {
        Value::Object(map) => map.get(*step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// What upstream puts before the words of its reader of JSON.
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
