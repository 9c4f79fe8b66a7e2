//! Tests against what an API server estimated. In the table, a schema is followed by rules for data of
//! it, with what one run costs at most and how often the data fits into a request.

use serde_json::Value as Json;

use crate::cel::{Dialect, Shape, Sizes, Type, parse_as};

#[test]
fn rules_are_estimated_as_an_api_server_does() {
    let (mut shape, mut sizes) = (Shape::default(), Sizes::default());
    let (mut differ, mut rules) = (Vec::new(), 0);
    for line in include_str!("../estimates.jsonl").lines() {
        let line: Json = serde_json::from_str(line).unwrap();
        if let Some(schema) = line.get("schema") {
            shape = Shape::read(schema, false);
            sizes = Sizes::read(schema, false).unwrap();
            continue;
        }
        rules += 1;
        let rule = line["rule"].as_str().unwrap();
        let kind = shape.declared("selfType").unwrap();
        let old = match line.get("old") {
            Some(_) => Type::Optional(Box::new(kind.clone())),
            None => kind.clone(),
        };
        let program = parse_as(rule, Dialect::Kubernetes)
            .and_then(|expression| expression.check_with(&[("self", kind), ("oldSelf", old)]));
        let program = match program {
            Ok(program) => program,
            Err(error) => {
                differ.push(format!("{rule}: {error}"));
                continue;
            }
        };
        let ours = (program.most_expensive(&sizes), sizes.most_in_request());
        let real = (line["most"].as_u64().unwrap(), line["times"].as_u64().unwrap());
        if ours != real {
            differ.push(format!("{rule}: ours {ours:?}, real {real:?}"));
        }
    }
    assert!(rules > 400, "{rules}");
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}
