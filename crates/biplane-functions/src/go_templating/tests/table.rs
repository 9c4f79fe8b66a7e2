//! The specification's tables: engine cases that need helpers of the function, and cases of the
//! function itself, row by row.

use biplane_function::v1::Requirements;
use biplane_model::yaml;
use biplane_template::value::Value as Data;
use serde_json::{Map, Value, json};

use super::*;

const PAGE: &str = include_str!("../../../../../spec/go-templating.md");

/// The table in the first YAML block after a heading.
fn rows(heading: &str) -> Vec<Value> {
    let (_, section) = PAGE.split_once(heading).unwrap();
    let (_, block) = section.split_once("```yaml\n").unwrap();
    let (table, _) = block.split_once("\n```").unwrap();
    let Value::Array(rows) = yaml::parse_one("table", table).unwrap().value else {
        panic!("a table is a list of rows")
    };
    rows
}

/// What a template of the engine table renders.
fn render(row: &Value, data: &Value) -> Result<String, String> {
    let data = row.get("d").unwrap_or(data);
    let template = parse(row["t"].as_str().unwrap(), &Delimiters::default());
    let template = template.map_err(|error| error.to_string())?;
    let budget = Budget::default();
    let host = host::Host::new(&Fixed, &budget);
    let output =
        template.run(&Data::from_json(data), MissingKey::Default, &host, Limits::default());
    let output = output.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

#[test]
fn every_row_about_helpers_holds() {
    let (_, section) = PAGE.split_once("### 14.1 Engine").unwrap();
    let data = &section.split("```yaml\n").nth(1).unwrap();
    let data = yaml::parse_one("data", data.split("\n```").next().unwrap()).unwrap().value;
    let mut all = rows("**toYaml, fromYaml, include, setResourceNameAnnotation**");
    let helper = section.lines().find(|line| line.contains("{{ randomChoice")).unwrap();
    all.extend(yaml::parse_one("row", helper).unwrap().value.as_array().unwrap().clone());
    assert!(all.len() >= 26, "{} rows", all.len());
    let mut wrong = Vec::new();
    for row in all {
        let got = render(&row, &data["D"]);
        let is_right = match (&row["o"], &row["e"], &row["c"]) {
            (Value::String(output), ..) => got.as_ref() == Ok(output),
            (_, Value::String(error), _) => got.as_ref() == Err(error),
            (.., Value::String(part)) => got.as_ref().is_err_and(|error| error.contains(part)),
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{row}\n  got {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

/// A row of the function table, as a function and its request. The folder must outlive both.
fn asked(row: &Value) -> (GoTemplating, RunFunctionRequest, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut function = GoTemplating::default();
    if let Some(options) = row["settings"]["defaultOptions"].as_str() {
        function = function.with_default_options(options);
    }
    let mut input = row
        .get("input")
        .cloned()
        .unwrap_or_else(|| json!({"source": "Inline", "inline": {"template": row["tpl"]}}));
    if let Some(files) = row.get("files").and_then(Value::as_object) {
        for (name, text) in files {
            let path = folder.path().join("templates").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.as_str().unwrap()).unwrap();
        }
        function = function.with_template_root(folder.path());
        input = json!({"source": "FileSystem", "fileSystem": {"dirPath": "/templates"}});
    }
    let xr = row.get("xr").cloned().unwrap_or_else(|| {
        json!({"apiVersion": "example.org/v1", "kind": "XR", "metadata": {"name": "cool-xr"},
            "spec": {"count": 2}})
    });
    let mut request = Map::new();
    request.insert("observed".into(), json!({"composite": {"resource": xr}}));
    if !input.is_null() {
        request.insert("input".into(), input);
    }
    for key in ["desired", "context", "requiredResources"] {
        if let Some(value) = row.get(key) {
            request.insert(key.into(), value.clone());
        }
    }
    (function, json::from_value(Value::Object(request)).unwrap(), folder)
}

/// What the response has for a key of `want`.
fn found(key: &str, answer: &Value, wanted: &Value) -> Value {
    let nothing = json!({});
    let or_empty = |value: &Value| if value.is_null() { nothing.clone() } else { value.clone() };
    let composite = &answer["desired"]["composite"];
    let readiness = |value: &Value| match value.as_str() {
        None => json!("READY_UNSPECIFIED"),
        Some(ready) => json!(ready),
    };
    let resources = or_empty(&answer["desired"]["resources"]);
    let resources = resources.as_object().unwrap();
    match key {
        "composed" => {
            resources.iter().map(|(name, r)| (name.clone(), r["resource"].clone())).collect()
        }
        "ready" => {
            resources.iter().map(|(name, r)| (name.clone(), readiness(&r["ready"]))).collect()
        }
        "composite" => composite["resource"].clone(),
        "status" => composite["resource"]["status"].clone(),
        "xrReady" => readiness(&composite["ready"]),
        "connectionDetailsBase64" => or_empty(&composite["connectionDetails"]),
        "conditions" => answer["conditions"].clone(),
        "context" => answer["context"].clone(),
        "requirements" => answer["requirements"].clone(),
        "ttlSeconds" => {
            let text = answer["meta"]["ttl"].as_str().unwrap_or("0s");
            json!(text.trim_end_matches('s').parse::<i64>().unwrap())
        }
        other => panic!("{other} in {wanted}"),
    }
}

#[test]
fn every_row_of_the_function_table_holds() {
    let all = rows("### 14.2 Function");
    assert!(all.len() >= 61, "{} rows", all.len());
    let mut wrong = Vec::new();
    for row in all {
        let (function, request, _folder) = asked(&row);
        let Value::Object(mut want) = row["want"].clone() else { panic!("{row}") };
        if let Some(rendered) = want.remove("rendered") {
            let input = function.templates.input(request.input.as_ref()).unwrap();
            let mut response = RunFunctionResponse::default();
            let budget = Budget::default();
            let text = function.rendered(&request, &input, &mut response, &budget).unwrap();
            if rendered != json!(String::from_utf8(text.clone()).unwrap()) {
                wrong.push(format!("{row}\n  renders {:?}", String::from_utf8_lossy(&text)));
            }
        }
        let response = function.run(request).unwrap();
        let answer = json::to_value(&response).unwrap();
        let said = message(&response);
        let is_said = match (want.remove("fatal"), want.remove("fatalContains")) {
            (Some(text), _) => json!(said) == text,
            (None, Some(part)) => said.contains(part.as_str().unwrap()),
            (None, None) => response.results.is_empty(),
        };
        if !is_said {
            wrong.push(format!("{row}\n  says {said:?}"));
        }
        for (key, wanted) in want {
            let got = found(&key, &answer, &wanted);
            // Nothing is written for an empty map of labels.
            let wanted = match key.as_str() {
                "requirements" => {
                    let wanted: Requirements = json::from_value(wanted).unwrap();
                    json::to_value(&wanted).unwrap()
                }
                _ => wanted,
            };
            if got != wanted {
                wrong.push(format!("{row}\n  {key} is {got}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}
