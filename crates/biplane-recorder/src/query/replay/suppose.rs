//! What is supposed to be different in what a pipeline was given: `PATH=VALUE`.

use std::str::FromStr;

use biplane_model::fieldpath::{FieldPath, Segment};
use serde_json::{Map, Value};

use super::super::path::item_has_key;
use super::super::record::Step;

/// A supposition.
#[derive(Clone, Debug, PartialEq)]
pub struct Supposition {
    /// As the user wrote it.
    text: String,
    place: Place,
    path: Vec<Segment>,
    /// `None` removes the field.
    value: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// The composite resource as it was observed.
    Composite,
    /// A composed resource as it was observed.
    Resource(String),
    /// The input of a step.
    Input(String),
}

/// Why something cannot be supposed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SupposeError {
    /// It has not the form of a supposition.
    #[error(
        "expected PATH=VALUE, RESOURCE:PATH=VALUE or STEP/PATH=VALUE, such as spec.size=5, but got {0:?}"
    )]
    Form(String),
    /// There is no such field, and none can be made there.
    #[error("cannot set {text}: {reason}")]
    Place {
        /// The supposition.
        text: String,
        /// Why.
        reason: String,
    },
}

impl FromStr for Supposition {
    type Err = SupposeError;

    fn from_str(text: &str) -> Result<Self, SupposeError> {
        let wrong = || SupposeError::Form(text.to_owned());
        let (left, value) = split_outside(text, '=').ok_or_else(wrong)?;
        let (place, path) = if let Some((name, path)) = split_outside(left, ':') {
            (Place::Resource(name.to_owned()), path)
        } else if let Some((step, path)) = split_outside(left, '/') {
            (Place::Input(step.to_owned()), path)
        } else {
            (Place::Composite, left)
        };
        let is_named = match &place {
            Place::Composite => true,
            Place::Resource(name) | Place::Input(name) => !name.is_empty(),
        };
        let path = FieldPath::parse(path).map_err(|_| wrong())?.segments().to_vec();
        if path.is_empty() || !is_named {
            return Err(wrong());
        }
        // What is no JSON is a text.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        let value = (!value.is_null()).then_some(value);
        Ok(Self { text: text.to_owned(), place, path, value })
    }
}

/// Splits at the first of a character that is not in brackets.
fn split_outside(text: &str, at: char) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (place, character) in text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            character if character == at && depth == 0 => {
                return Some((text.get(..place)?, text.get(place + character.len_utf8()..)?));
            }
            _ => {}
        }
    }
    None
}

impl Supposition {
    /// As the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Changes what a step is given. Returns whether the step is one that it is about.
    pub fn apply(&self, step: &Step, request: &mut Value) -> Result<bool, SupposeError> {
        let failed = |reason: String| SupposeError::Place { text: self.text.clone(), reason };
        let at: Vec<&str> = match &self.place {
            Place::Composite => vec!["observed", "composite", "resource"],
            Place::Resource(name) => vec!["observed", "resources", name, "resource"],
            Place::Input(name) => {
                let number = i64::from(step.index) + 1;
                if *name != step.name && name.parse() != Ok(number) {
                    return Ok(false);
                }
                vec!["input"]
            }
        };
        let missing = || failed(format!("nothing was recorded at {}", at.join(".")));
        let place = at.iter().try_fold(&mut *request, |value, field| value.get_mut(field));
        let place = place.ok_or_else(missing)?;
        put(place, &self.path, self.value.as_ref()).map_err(failed)?;
        Ok(true)
    }
}

fn put(value: &mut Value, path: &[Segment], new: Option<&Value>) -> Result<(), String> {
    let Some((first, rest)) = path.split_first() else {
        *value = new.cloned().unwrap_or_default();
        return Ok(());
    };
    let removes = rest.is_empty() && new.is_none();
    match (first, &mut *value) {
        (Segment::Field(key), Value::Array(items)) if key.contains('=') => {
            let pairs: Vec<(String, String)> = key
                .split(',')
                .filter_map(|pair| pair.split_once('='))
                .map(|(field, value)| (field.to_owned(), value.to_owned()))
                .collect();
            let found = items.iter().position(|item| item_has_key(item, &pairs));
            let at = found.ok_or_else(|| format!("no item has {key}"))?;
            if removes {
                items.remove(at);
                return Ok(());
            }
            items.get_mut(at).map_or(Ok(()), |item| put(item, rest, new))
        }
        (Segment::Field(name), Value::Null) => {
            if removes {
                return Ok(());
            }
            let mut fields = Map::new();
            let mut below = Value::Null;
            put(&mut below, rest, new)?;
            fields.insert(name.clone(), below);
            *value = Value::Object(fields);
            Ok(())
        }
        (Segment::Field(name), Value::Object(fields)) => {
            if removes {
                fields.remove(name);
                return Ok(());
            }
            put(fields.entry(name.clone()).or_insert(Value::Null), rest, new)
        }
        (Segment::Index(index), Value::Array(items)) => {
            let (index, length) = (*index as usize, items.len());
            if removes && index < length {
                items.remove(index);
                return Ok(());
            }
            if index == length && !removes {
                items.push(Value::Null);
            }
            let item = items.get_mut(index);
            let item = item.ok_or_else(|| format!("the list has only {length} items"))?;
            put(item, rest, new)
        }
        (Segment::Index(0), Value::Null) if !removes => {
            let mut below = Value::Null;
            put(&mut below, rest, new)?;
            *value = Value::Array(vec![below]);
            Ok(())
        }
        (Segment::Field(name), _) => Err(format!("there is no object that could have {name}")),
        (Segment::Index(index), _) => Err(format!("there is no list that could have item {index}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn supposed(text: &str) -> Result<Value, SupposeError> {
        let mut request = json!({
            "observed": {
                "composite": {"resource": {"spec": {
                    "size": 3, "rules": [{"name": "keep", "days": 1}, {"name": "expire", "days": 2}],
                }}},
                "resources": {"bucket": {"resource": {"status": {}}}},
            },
            "input": {"resources": []},
        });
        let step = Step { index: 1, name: "compose".into(), ..Step::default() };
        let supposition: Supposition = text.parse()?;
        let is_meant = supposition.apply(&step, &mut request)?;
        request["meant"] = is_meant.into();
        Ok(request)
    }

    #[test]
    fn fields_are_set_made_and_removed() {
        for (text, pointer, want) in [
            ("spec.size=5", "/observed/composite/resource/spec/size", Some(json!(5))),
            ("spec.size=\"5\"", "/observed/composite/resource/spec/size", Some(json!("5"))),
            (
                "spec.region=eu west",
                "/observed/composite/resource/spec/region",
                Some(json!("eu west")),
            ),
            ("spec.a.b[0].c=true", "/observed/composite/resource/spec/a/b/0/c", Some(json!(true))),
            (
                "spec.tags={\"a\":\"b\"}",
                "/observed/composite/resource/spec/tags/a",
                Some(json!("b")),
            ),
            ("spec.size=null", "/observed/composite/resource/spec/size", None),
            (
                "spec.rules[1].days=9",
                "/observed/composite/resource/spec/rules/1/days",
                Some(json!(9)),
            ),
            (
                "spec.rules[2].days=9",
                "/observed/composite/resource/spec/rules/2/days",
                Some(json!(9)),
            ),
            (
                "spec.rules[name=expire].days=9",
                "/observed/composite/resource/spec/rules/1/days",
                Some(json!(9)),
            ),
            ("spec.rules[name=keep]=null", "/observed/composite/resource/spec/rules/1", None),
            (
                "metadata.annotations[a.b/c:d]=x=y",
                "/observed/composite/resource/metadata/annotations/a.b~1c:d",
                Some(json!("x=y")),
            ),
            (
                "bucket:status.ready=true",
                "/observed/resources/bucket/resource/status/ready",
                Some(json!(true)),
            ),
            ("compose/resources[0].name=a", "/input/resources/0/name", Some(json!("a"))),
            ("2/kind=x", "/input/kind", Some(json!("x"))),
            ("other/kind=x", "/input/kind", None),
        ] {
            let request = supposed(text).unwrap();
            assert_eq!(request.pointer(pointer).cloned(), want, "{text}");
            assert_eq!(request["meant"], json!(!text.starts_with("other")), "{text}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for text in ["", "spec.size", "=5", ":a=1", "/a=1", "a[=1"] {
            assert_eq!(supposed(text), Err(SupposeError::Form(text.to_owned())), "{text}");
        }
        for (text, reason) in [
            ("spec.size.x=1", "there is no object that could have x"),
            ("spec.rules[9]=1", "the list has only 2 items"),
            ("spec.rules[name=none].days=1", "no item has name=none"),
            ("spec[0]=1", "there is no list that could have item 0"),
            ("none:a=1", "nothing was recorded at observed.resources.none.resource"),
        ] {
            let (text, reason) = (text.to_owned(), reason.to_owned());
            assert_eq!(supposed(&text), Err(SupposeError::Place { text: text.clone(), reason }));
        }
    }
}
