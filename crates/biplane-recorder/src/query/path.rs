//! Where a value is in a JSON document.

use std::fmt;

use serde_json::Value;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// A field of an object.
    Field(String),
    /// The item of a list whose fields have these values, as text.
    Item(Vec<(String, String)>),
    /// The item of a list at a position.
    Index(usize),
}

/// The way from the top of a document to a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// A path of fields.
    pub fn of(fields: &[&str]) -> Self {
        Self(fields.iter().map(|field| Segment::Field((*field).to_owned())).collect())
    }

    /// The name of the last field of the path.
    pub fn last_field(&self) -> Option<&str> {
        match self.0.last()? {
            Segment::Field(name) => Some(name),
            _ => None,
        }
    }

    /// The value at the path, if the document has one.
    pub fn get<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(document, |value, segment| match segment {
            Segment::Field(name) => value.as_object()?.get(name),
            Segment::Index(index) => value.as_array()?.get(*index),
            Segment::Item(key) => value.as_array()?.iter().find(|item| item_has_key(item, key)),
        })
    }

    /// Whether a control plane or an API server keeps the value for itself: it changes without
    /// anyone having asked for it.
    pub fn is_bookkeeping(&self) -> bool {
        let name = |at: usize| match self.0.get(at) {
            Some(Segment::Field(name)) => name.as_str(),
            _ => "",
        };
        // The metadata of the document itself, or of a resource in a message.
        let is_metadata =
            |at: usize| name(at) == "metadata" && (at == 0 || name(at - 1) == "resource");
        let is_kept = |at| matches!(name(at), "resourceVersion" | "generation" | "managedFields");
        if (0..self.0.len()).any(|at| is_metadata(at) && is_kept(at + 1)) {
            return true;
        }
        let times = ["lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime", "lastProbeTime"];
        let in_condition = self.0.iter().any(|segment| match segment {
            Segment::Field(name) => name == "conditions",
            _ => false,
        });
        in_condition && self.last_field().is_some_and(|field| times.contains(&field))
    }
}

/// Whether an item of a list has a key.
pub(crate) fn item_has_key(item: &Value, key: &[(String, String)]) -> bool {
    key.iter().all(|(field, value)| item.get(field).and_then(scalar).as_ref() == Some(value))
}

/// The text of a value that is neither a list nor an object.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(bool) => Some(bool.to_string()),
        _ => None,
    }
}

impl fmt::Display for Path {
    /// The form of Crossplane's field paths. A field that is not a plain name is in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if is_plain(name) => {
                    if at > 0 {
                        f.write_str(".")?;
                    }
                    f.write_str(name)?;
                }
                Segment::Field(name) => write!(f, "[{name}]")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Item(key) => {
                    f.write_str("[")?;
                    for (at, (field, value)) in key.iter().enumerate() {
                        let comma = if at > 0 { "," } else { "" };
                        write!(f, "{comma}{field}={value}")?;
                    }
                    f.write_str("]")?;
                }
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '$'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(name: &str) -> Segment {
        Segment::Field(name.to_owned())
    }

    fn item(field: &str, value: &str) -> Segment {
        Segment::Item(vec![(field.to_owned(), value.to_owned())])
    }

    #[test]
    fn paths_are_written_as_people_write_them() {
        let path = Path(vec![field("spec"), field("rules"), item("name", "expire"), field("days")]);
        assert_eq!(path.to_string(), "spec.rules[name=expire].days");
        let path = Path(vec![field("metadata"), field("annotations"), field("a.b/c")]);
        assert_eq!(path.to_string(), "metadata.annotations[a.b/c]");
        let path = Path(vec![field("list"), Segment::Index(3), field("x")]);
        assert_eq!(path.to_string(), "list[3].x");
        assert_eq!(Path::default().to_string(), ".");
    }

    #[test]
    fn paths_lead_to_values() {
        let document = json!({"a": [{"name": "x", "v": 1}, {"name": "y", "v": 2}], "b": [5]});
        let get = |segments: Vec<Segment>| Path(segments).get(&document).cloned();
        assert_eq!(get(vec![field("a"), item("name", "y"), field("v")]), Some(json!(2)));
        assert_eq!(get(vec![field("b"), Segment::Index(0)]), Some(json!(5)));
        assert_eq!(get(vec![field("b"), Segment::Index(1)]), None);
        assert_eq!(get(vec![field("a"), field("v")]), None);
    }

    #[test]
    fn bookkeeping_is_what_nobody_asked_for() {
        let condition = vec![field("status"), field("conditions"), item("type", "Ready")];
        let of = |last: &str| {
            let mut path = condition.clone();
            path.push(field(last));
            Path(path)
        };
        assert!(of("lastTransitionTime").is_bookkeeping());
        assert!(!of("reason").is_bookkeeping());
        assert!(Path::of(&["metadata", "managedFields"]).is_bookkeeping());
        assert!(Path::of(&["metadata", "resourceVersion"]).is_bookkeeping());
        assert!(!Path::of(&["spec", "generation"]).is_bookkeeping());
        assert!(!Path::of(&["spec", "metadata", "generation"]).is_bookkeeping());
        assert!(Path::of(&["x", "resource", "metadata", "generation"]).is_bookkeeping());
        assert!(!Path::of(&["spec", "lastUpdateTime"]).is_bookkeeping());
    }
}
