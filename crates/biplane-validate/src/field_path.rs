//! Checks whether a field path leads to something that a schema knows.

use biplane_model::Value;
use biplane_model::fieldpath::{FieldPath, Segment};
use serde_json::json;

/// The types that a field can have.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The type of the field that a path leads to. `None` if it is not known, because there is no schema
/// or it allows anything.
pub fn check(schema: Option<&Value>, path: &str) -> Result<Option<String>, String> {
    if path.is_empty() {
        return Ok(None);
    }
    let parsed = FieldPath::parse(path).map_err(|error| error.to_string())?;
    let with_metadata;
    let mut current = schema;
    if let (Some(Segment::Field(first)), Some(schema)) = (parsed.segments().first(), schema)
        && first == "metadata"
    {
        with_metadata = metadata_of(schema);
        current = Some(&with_metadata);
    }
    for segment in parsed.segments() {
        let Some(schema) = current else { return Ok(None) };
        current = match segment {
            Segment::Field(name) => match field(schema, name)? {
                Some(inner) => Some(inner),
                None => return Ok(None),
            },
            Segment::Index(index) => match item(schema, *index)? {
                Some(inner) => Some(inner),
                None => return Ok(None),
            },
        };
    }
    let Some(schema) = current else { return Ok(None) };
    let kind = type_of(schema);
    if TYPES.contains(&kind) {
        return Ok(Some(kind.to_owned()));
    }
    Err(format!("field path \"{path}\" has an unsupported type \"{kind}\""))
}

fn type_of(schema: &Value) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// The schema of a field. `None` if anything is allowed there.
fn field<'a>(schema: &'a Value, name: &str) -> Result<Option<&'a Value>, String> {
    let kind = type_of(schema);
    if !matches!(kind, "" | "object") {
        return Err(format!(
            "trying to access a field '{name}' of object, but schema says parent is of type: '{kind}'"
        ));
    }
    if let Some(property) = schema.get("properties").and_then(|properties| properties.get(name)) {
        return Ok(Some(property));
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        return Ok(None);
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => Ok(None),
        Some(inner @ Value::Object(_)) if type_of(inner).is_empty() => field(inner, name),
        Some(inner @ Value::Object(_)) => Ok(Some(inner)),
        _ => Err(format!("field '{name}' is not valid according to the schema")),
    }
}

/// The schema of an item. `None` if anything is allowed there.
fn item(schema: &Value, index: u32) -> Result<Option<&Value>, String> {
    let kind = type_of(schema);
    if kind != "array" {
        return Err(format!("trying to access a '{kind}' by index"));
    }
    let Some(items) = schema.get("items").filter(|items| !items.is_null()) else {
        return Err("no items found in array".to_owned());
    };
    let most = schema.get("maxItems").and_then(Value::as_i64);
    if let Some(most) = most.filter(|most| i64::from(index) >= *most) {
        let last = most - 1;
        return Err(format!("index is above the allowed size of the array: {index} > {last}"));
    }
    match items {
        Value::Array(listed) if index as usize > listed.len() => {
            Err(format!("no schema for item requested at index {index}"))
        }
        Value::Array(_) => Ok(None),
        single => Ok(Some(single)),
    }
}

/// The schema with the metadata that every object has, where it says nothing itself.
fn metadata_of(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let known = [
        ("name", &text),
        ("namespace", &text),
        ("uid", &text),
        ("generateName", &text),
        ("labels", &texts),
        ("annotations", &texts),
    ];
    let Some(root) = schema.as_object_mut() else { return schema };
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else { return schema };
    let metadata = properties.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else { return schema };
    metadata.entry("type").or_insert_with(|| json!("object"));
    let fields = metadata.entry("properties").or_insert_with(|| json!({}));
    if let Some(fields) = fields.as_object_mut() {
        for (name, kind) in known {
            let missing = fields.get(name).is_none_or(|field| type_of(field).is_empty());
            if missing {
                fields.insert(name.to_owned(), kind.clone());
            }
        }
    }
    schema
}

/// The known field that a misspelt one is nearest to, as a whole path.
pub fn nearest(schema: &Value, path: &str) -> Option<String> {
    let parsed = FieldPath::parse(path).ok()?;
    let mut current = schema;
    for (place, segment) in parsed.segments().iter().enumerate() {
        current = match segment {
            Segment::Index(index) => item(current, *index).ok()??,
            Segment::Field(name) => {
                if let Ok(inner) = field(current, name) {
                    inner?
                } else {
                    let known = current.get("properties")?.as_object()?.keys();
                    let near = nearest_name(name, known.map(String::as_str))?;
                    let mut segments = parsed.segments().to_vec();
                    *segments.get_mut(place)? = Segment::Field(near.to_owned());
                    return Some(biplane_model::fieldpath::print(&segments));
                }
            }
        };
    }
    None
}

/// The known name that a misspelt one is nearest to.
pub(crate) fn nearest_name<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .map(|known| (distance(name, known), known))
        .filter(|(far, _)| *far <= 2 || *far * 3 <= name.len())
        .min()
        .map(|(_, known)| known)
}

/// How many letters are to be changed, added or removed to turn one word into another. Letters that
/// differ in case only count nothing.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        next.push(i + 1);
        for ((diagonal, above), y) in row.iter().zip(row.iter().skip(1)).zip(&b) {
            let change = diagonal + usize::from(x != *y);
            let left = next.last().copied().unwrap_or_default();
            next.push(change.min(left + 1).min(above + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "forProvider": {"type": "object", "properties": {
                    "foo": {"type": "array", "maxItems": 100, "items": {
                        "type": "object", "properties": {"bar": {"type": "string"}}}},
                    "single": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
                }},
                "name": {"type": "string"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "port": {"x-kubernetes-int-or-string": true},
            }},
            "data": {"type": "object", "additionalProperties": {
                "x-kubernetes-preserve-unknown-fields": true}},
        }})
    }

    /// SAV-7, SAV-8, SAV-9, SAV-10, SAV-11, SAV-12, SAV-13
    #[test]
    fn paths_are_known_or_the_first_wrong_step_is_named() {
        let schema = schema();
        let known = |kind: &str| Ok(Some(kind.to_owned()));
        let wrong = |text: &str| Err(text.to_owned());
        for (path, want) in [
            ("", Ok(None)),
            ("spec.forProvider.foo[0].bar", known("string")),
            (
                "spec.forProvider.foo[101].bar",
                wrong("index is above the allowed size of the array: 101 > 99"),
            ),
            (
                "spec.forProvider.single[1]",
                wrong("index is above the allowed size of the array: 1 > 0"),
            ),
            ("spec.name[0]", wrong("trying to access a 'string' by index")),
            (
                "spec.name.foo",
                wrong(
                    "trying to access a field 'foo' of object, but schema says parent is of type: 'string'",
                ),
            ),
            ("spec.free.anything", Ok(None)),
            ("data.x", Ok(None)),
            ("metadata.labels[a.b/c]", known("string")),
            ("metadata.uid", known("string")),
            ("metadata.generateName", known("string")),
            (
                "metadata.ownerReferences[0].uid",
                wrong("field 'ownerReferences' is not valid according to the schema"),
            ),
            (
                "spec.forProvider.foo[*].bar",
                wrong(
                    "trying to access a field '*' of object, but schema says parent is of type: 'array'",
                ),
            ),
            ("spec.nme", wrong("field 'nme' is not valid according to the schema")),
            ("spec.port", wrong("field path \"spec.port\" has an unsupported type \"\"")),
        ] {
            assert_eq!(check(Some(&schema), path), want, "{path}");
        }
        assert_eq!(check(None, "spec.anything"), Ok(None));
    }

    #[test]
    fn a_misspelt_field_has_a_nearest_one() {
        let schema = schema();
        assert_eq!(nearest(&schema, "spec.nme"), Some("spec.name".to_owned()));
        let want = Some("spec.forProvider.foo[0].bar".to_owned());
        assert_eq!(nearest(&schema, "spec.forprovider.foo[0].bar"), want);
        assert_eq!(nearest(&schema, "spec.somethingElse"), None);
    }
}
