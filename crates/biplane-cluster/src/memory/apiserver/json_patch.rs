//! Patches: RFC 6902 (JSON patch) and RFC 7386 (JSON merge patch).

use biplane_model::{Map, Value};

use crate::cluster::WriteError;

/// The document with a merge patch laid over it; null removes.
pub(super) fn merge(document: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut out = match document {
        Value::Object(map) => map.clone(),
        _ => Map::new(),
    };
    for (name, change) in changes {
        if change.is_null() {
            out.remove(name);
        } else {
            let before = out.get(name).unwrap_or(&Value::Null);
            let merged = merge(before, change);
            out.insert(name.clone(), merged);
        }
    }
    Value::Object(out)
}

/// The document after a list of operations; all of them go through, or none does.
pub(super) fn json(document: &Value, operations: &[Value]) -> Result<Value, WriteError> {
    let mut out = document.clone();
    for operation in operations {
        apply(&mut out, operation).ok_or_else(|| {
            let text = "the server rejected our request due to an error in our request";
            WriteError::Invalid(text.into())
        })?;
    }
    Ok(out)
}

fn apply(document: &mut Value, operation: &Value) -> Option<()> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let path = tokens(text("path")?)?;
    match text("op")? {
        "add" => add(document, &path, operation.get("value")?.clone()),
        "remove" => remove(document, &path).map(|_| ()),
        "replace" => {
            *find(document, &path)? = operation.get("value")?.clone();
            Some(())
        }
        "move" => {
            let value = remove(document, &tokens(text("from")?)?)?;
            add(document, &path, value)
        }
        "copy" => {
            let value = find(document, &tokens(text("from")?)?)?.clone();
            add(document, &path, value)
        }
        "test" => {
            let expected = operation.get("value").unwrap_or(&Value::Null);
            let found = find(document, &path).map_or(Value::Null, |found| found.clone());
            biplane_schema::value::equal(&found, expected).then_some(())
        }
        _ => None,
    }
}

fn tokens(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let rest = pointer.strip_prefix('/')?;
    Some(rest.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect())
}

fn find<'a>(document: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(document, |value, token| match value {
        Value::Object(map) => map.get_mut(token),
        Value::Array(items) => {
            let index = index(token, items.len())?;
            items.get_mut(index)
        }
        _ => None,
    })
}

/// A position in a list; negative ones count from its end.
fn index(token: &str, length: usize) -> Option<usize> {
    match token.strip_prefix('-') {
        Some(back) => length.checked_sub(back.parse().ok()?),
        None => token.parse().ok(),
    }
}

fn add(document: &mut Value, path: &[String], value: Value) -> Option<()> {
    let Some((last, parents)) = path.split_last() else {
        *document = value;
        return Some(());
    };
    match find(document, parents)? {
        Value::Object(map) => {
            map.insert(last.clone(), value);
            Some(())
        }
        Value::Array(items) => {
            let at = if last == "-" { items.len() } else { index(last, items.len())? };
            (at <= items.len()).then(|| items.insert(at, value))
        }
        _ => None,
    }
}

fn remove(document: &mut Value, path: &[String]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    match find(document, parents)? {
        Value::Object(map) => map.remove(last),
        Value::Array(items) => {
            let at = index(last, items.len())?;
            (at < items.len()).then(|| items.remove(at))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_lays_objects_over_each_other_and_null_removes() {
        for (document, patch, merged) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        ] {
            assert_eq!(merge(&document, &patch), merged);
        }
    }

    #[test]
    fn a_json_patch_goes_through_whole_or_not_at_all() {
        let document = json!({"a": {"b/c": [1, 2]}, "d": "x"});
        let patched = json(
            &document,
            &[
                json!({"op": "test", "path": "/d", "value": "x"}),
                json!({"op": "add", "path": "/a/b~1c/1", "value": 9}),
                json!({"op": "add", "path": "/a/b~1c/-", "value": 10}),
                json!({"op": "remove", "path": "/a/b~1c/0"}),
                json!({"op": "replace", "path": "/d", "value": "y"}),
                json!({"op": "copy", "from": "/d", "path": "/e"}),
                json!({"op": "move", "from": "/d", "path": "/f"}),
            ],
        );
        assert_eq!(patched, Ok(json!({"a": {"b/c": [9, 2, 10]}, "e": "y", "f": "y"})));
        for bad in [
            json!({"op": "remove", "path": "/nothing"}),
            json!({"op": "replace", "path": "/nothing", "value": 1}),
            json!({"op": "add", "path": "/a/b~1c/7", "value": 1}),
            json!({"op": "test", "path": "/d", "value": "z"}),
            json!({"op": "odd", "path": "/d"}),
            json!({"op": "add", "path": "d", "value": 1}),
        ] {
            assert!(matches!(json(&document, &[bad]), Err(WriteError::Invalid(_))));
        }
    }
}
