//! Where in the files the errors of a report are.

use biplane_model::{Map, Value};

use crate::report::{Finding, Report};
use crate::sources::Resource;

/// For every error the resource, the message, and the place with its line.
pub fn of(resources: &[Resource], report: &Report) -> Vec<String> {
    let mut shown = Vec::new();
    for (resource, outcome) in resources.iter().zip(&report.resources) {
        let Some(origin) = &resource.origin else { continue };
        let value = resource.object.to_value();
        for finding in &outcome.findings {
            let steps = steps(&value, &field(finding));
            let Some(place) = origin.place(&steps) else { continue };
            let message = &finding.message;
            shown.push(format!("{message}\n--> {}, {place}", origin.file.display()));
        }
    }
    shown
}

/// The path of the field that a finding is about. Some errors have it in their message only.
fn field(finding: &Finding) -> String {
    let quoted = || finding.message.split('"').nth(1).unwrap_or_default().to_owned();
    match finding.field.as_deref() {
        Some("<nil>") => {
            let detail = finding.message.strip_prefix("<nil>: Invalid value: \"\": ");
            let detail = detail.unwrap_or_default();
            match detail.strip_prefix('"') {
                Some(rest) => rest.split('"').next().unwrap_or_default().to_owned(),
                None => detail.rsplit_once(" in ").map_or("", |(_, path)| path).to_owned(),
            }
        }
        Some(field) => field.to_owned(),
        None if finding.message.starts_with("unknown field ") => quoted(),
        None => String::new(),
    }
}

/// The keys and indexes of a path, by what the value has: keys may have dots themselves.
pub(crate) fn steps(value: &Value, path: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let (mut value, mut rest) = (Some(value), path);
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some((inside, after)) =
            rest.strip_prefix('[').and_then(|inside| inside.split_once(']'))
        {
            value = value.and_then(|value| match value {
                Value::Array(items) => items.get(inside.parse::<usize>().ok()?),
                other => other.get(inside),
            });
            steps.push(inside.to_owned());
            rest = after;
            continue;
        }
        let fits = |key: &&String| {
            let after = rest.strip_prefix(key.as_str());
            after.is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
        };
        let keys = value.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let known = keys.filter(fits).max_by_key(|key| key.len());
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let step = known.map_or(rest.get(..end).unwrap_or_default(), String::as_str).to_owned();
        rest = rest.get(step.len()..).unwrap_or_default();
        value = value.and_then(|value| value.get(&step));
        if step.is_empty() {
            break;
        }
        steps.push(step);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_found_in_paths_even_if_they_have_dots() {
        let value = json!({"metadata": {"labels": {"a.b/c": "x"}}, "spec": {"list": [{"x": 1}]}});
        for (path, want) in [
            ("spec.list[0].x", vec!["spec", "list", "0", "x"]),
            ("metadata.labels.a.b/c", vec!["metadata", "labels", "a.b/c"]),
            ("metadata.labels[a.b/c]", vec!["metadata", "labels", "a.b/c"]),
            ("spec.missing.deep", vec!["spec", "missing", "deep"]),
            ("", vec![]),
        ] {
            assert_eq!(steps(&value, path), want, "{path}");
        }
    }
}
