//! Rows of the specification's tables, stored as data: a request and the expected response.
//!
//! | key | meaning |
//! |---|---|
//! | `id` | the rows and rules that it tests |
//! | `request` | the request, or a part that is merged into the request built from the other keys |
//! | `has`, `lacks` | values by their paths in the response, and paths that must not exist |
//! | `resource`, `composite`, `environment` | the desired resource `r`, the desired composite resource, the environment: all of it except `apiVersion` and `kind`, or `absent` |
//! | `ready` | the readiness of `r` |
//! | `results` | all results, where `…` matches any text; without this key there must be none |
//! | `fails` | the message of the only result, which is fatal |
//! | `invalid` | the same, without the prefix of a validation error |
//!
//! The other keys are specific to one function. They are documented where its requests are built.

use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_model::fieldpath::FieldPath;
use biplane_model::yaml;
use biplane_proto::json;
use serde_json::{Map, Value, json};

/// A row of a table. A key that is not used is an error in the row.
pub(crate) struct Row {
    id: String,
    keys: Map<String, Value>,
}

impl Row {
    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        self.keys.remove(key)
    }

    pub(crate) fn put(&mut self, key: &str, value: Value) {
        self.keys.insert(key.to_owned(), value);
    }

    /// Merges the row's own request into a request.
    pub(crate) fn request(&mut self, mut request: Value) -> RunFunctionRequest {
        if let Some(more) = self.take("request") {
            merge(&mut request, more);
        }
        json::from_value(request).unwrap_or_else(|e| panic!("{}: {e}", self.id))
    }
}

/// Merges one value over another.
pub(crate) fn merge(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                merge(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

/// Checks every row of a table.
pub(crate) fn check(table: &str, ask: impl Fn(&mut Row) -> RunFunctionResponse) {
    let Value::Array(rows) = yaml::parse_one("rows", table).unwrap().value else {
        panic!("a table is a list of rows")
    };
    assert!(!rows.is_empty());
    let mut wrong = Vec::new();
    for row in rows {
        let Value::Object(mut keys) = row else { panic!("{row} is no row") };
        let id = keys.remove("id").unwrap().as_str().unwrap().to_owned();
        let mut row = Row { id, keys };
        let answer = json::to_value(&ask(&mut row)).unwrap();
        let differences = differences(&mut row, &answer);
        assert!(row.keys.is_empty(), "{}: unknown keys {:?}", row.id, row.keys);
        wrong.extend(
            differences.into_iter().map(|text| format!("{}: {text}\n  in {answer}", row.id)),
        );
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

fn differences(row: &mut Row, answer: &Value) -> Vec<String> {
    let mut differ = Vec::new();
    let mut same = |what: &str, found: &Value, expected: &Value| {
        if found != expected {
            differ.push(format!("{what} is {found} and not {expected}"));
        }
    };
    for (key, path) in [
        ("resource", "/desired/resources/r/resource"),
        ("composite", "/desired/composite/resource"),
        ("environment", "/context/apiextensions.crossplane.io~1environment"),
    ] {
        let Some(expected) = row.take(key) else { continue };
        let mut found = answer.pointer(path).cloned().unwrap_or("absent".into());
        if let Value::Object(found) = &mut found {
            found.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind"));
        }
        same(key, &found, &expected);
    }
    if let Some(ready) = row.take("ready") {
        let found = answer.pointer("/desired/resources/r/ready").and_then(Value::as_str);
        let found = found.map_or("UNSPECIFIED", |text| text.trim_start_matches("READY_"));
        same("ready", &found.into(), &ready);
    }
    let answer = answer.as_object().unwrap();
    for (path, expected) in row.take("has").iter().flat_map(|has| has.as_object().unwrap()) {
        match FieldPath::parse(path).unwrap().get(answer) {
            Ok(found) => same(path, found, expected),
            Err(error) => same(path, &error.to_string().into(), expected),
        }
    }
    for path in row.take("lacks").iter().flat_map(|lacks| lacks.as_array().unwrap()) {
        if let Ok(found) = FieldPath::parse(path.as_str().unwrap()).unwrap().get(answer) {
            same(path.as_str().unwrap(), found, &"absent".into());
        }
    }
    let fatal = |text: Value| json!([format!("FATAL {}", text.as_str().unwrap())]);
    let invalid =
        |text: Value| json!([format!("FATAL invalid Function input: {}", text.as_str().unwrap())]);
    let expected = row
        .take("results")
        .or_else(|| row.take("fails").map(fatal))
        .or_else(|| row.take("invalid").map(invalid))
        .unwrap_or(json!([]));
    let found = results(answer);
    let expected = expected.as_array().unwrap();
    let alike = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, text)| is_like(found, text.as_str().unwrap()));
    if !alike {
        differ.push(format!("results are {found:?} and not {expected:?}"));
    }
    differ
}

/// Returns severity and message of each result. All results target the composite resource and have
/// no reason.
fn results(answer: &Map<String, Value>) -> Vec<String> {
    let results = answer.get("results").and_then(Value::as_array).map(Vec::as_slice);
    let text = |result: &Value| {
        let mut result = result.as_object().unwrap().clone();
        let severity = result.remove("severity").unwrap();
        let message = result.remove("message").unwrap();
        assert_eq!(Value::Object(result), json!({"target": "TARGET_COMPOSITE"}));
        let severity = severity.as_str().unwrap().trim_start_matches("SEVERITY_").to_owned();
        format!("{severity} {}", message.as_str().unwrap())
    };
    results.unwrap_or_default().iter().map(text).collect()
}

fn is_like(text: &str, pattern: &str) -> bool {
    match pattern.split_once('…') {
        None => text == pattern,
        Some((start, rest)) => {
            text.strip_prefix(start).is_some_and(|text| rest.is_empty() || text.contains(rest))
        }
    }
}
