//! The specification's table of engine cases, row by row.

use biplane_model::yaml;
use biplane_template::budget::Limits;
use biplane_template::func::Func;
use biplane_template::value::Value;
use biplane_template::{Delimiters, Functions, MissingKey, Template, sprig};
use serde_json::Value as Json;

use crate::engine::Nowhere;

/// Groups of rows that need functions of the function itself.
const ELSEWHERE: &str = "**toYaml, fromYaml, include, setResourceNameAnnotation**";

fn blocks(page: &str) -> impl Iterator<Item = Json> + '_ {
    let (_, section) = page.split_once("### 14.1 Engine").unwrap();
    let (section, _) = section.split_once(ELSEWHERE).unwrap();
    section.split("```yaml\n").skip(1).map(|block| {
        let (table, _) = block.split_once("\n```").unwrap();
        yaml::parse_one("table", table).unwrap().value
    })
}

fn render(row: &Json, data: &Json, functions: &Functions) -> Result<String, String> {
    let data = row.get("d").unwrap_or(data);
    let missing = match row["k"].as_str() {
        None => MissingKey::Default,
        Some(option) => MissingKey::option(&format!("missingkey={option}")).unwrap(),
    };
    let text = row["t"].as_str().unwrap();
    let template = Template::parse("manifests", text, functions, &Delimiters::default());
    let template = template.map_err(|error| error.to_string())?;
    let output = template.run(&Value::from_json(data), missing, &Nowhere, Limits::default());
    let output = output.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

#[test]
fn every_row_of_the_engine_table_holds() {
    let functions = Functions::new(sprig::functions().into_iter().chain([Func::include()]));
    let mut blocks = blocks(include_str!("../../../../spec/go-templating.md"));
    let data = blocks.next().unwrap()["D"].clone();
    let mut count = 0;
    let mut wrong = Vec::new();
    for row in blocks.flat_map(|block| block.as_array().unwrap().clone()) {
        if row["t"].as_str().unwrap().contains("randomChoice") {
            // Not a function of Sprig.
            continue;
        }
        count += 1;
        let got = render(&row, &data, &functions);
        let right = match (&row["o"], &row["e"], &row["c"]) {
            (Json::String(output), ..) => got.as_ref() == Ok(output),
            (_, Json::String(error), _) => got.as_ref() == Err(error),
            (.., Json::String(part)) => got.as_ref().is_err_and(|error| error.contains(part)),
            _ => false,
        };
        if !right {
            wrong.push(format!("{row}\n  got {got:?}"));
        }
    }
    assert!(count > 200, "{count} rows");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}
