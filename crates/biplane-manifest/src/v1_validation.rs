//! Validates a Composition with the rules that Crossplane v1 applied before rendering.
//!
//! A Composition of mode Pipeline may still have the patch sets and resources of the older mode.
//! These were also validated.

use anyhow::{Result, bail};
use biplane_go::fmt::quote;
use biplane_go::regex::GoRegex;
use biplane_model::{Object, Value};

/// All errors, each with its field.
pub fn findings(composition: &Object) -> Vec<String> {
    let spec = composition.get("spec").unwrap_or(&Value::Null);
    let mut wrong = Findings::default();
    wrong.mode(spec);
    wrong.patch_sets(spec);
    wrong.resources(spec);
    wrong.pipeline(spec);
    let mut texts: Vec<String> = Vec::new();
    for text in wrong.0 {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Fails with all errors.
pub fn validate(composition: &Object) -> Result<()> {
    let texts = findings(composition);
    let name = quote(composition.name());
    match texts.as_slice() {
        [] => Ok(()),
        [text] => bail!("invalid Composition {name}: {text}"),
        texts => bail!("invalid Composition {name}: [{}]", texts.join(", ")),
    }
}

/// The errors, in the order in which they were found.
#[derive(Default)]
struct Findings(Vec<String>);

type Finding = Option<String>;

impl Findings {
    fn mode(&mut self, spec: &Value) {
        // The field was added after the mode.
        match spec.get("mode").and_then(Value::as_str).unwrap_or("Resources") {
            "Resources" if items(spec, "resources").is_empty() => self.0.push(required(
                "spec.resources",
                "an array of resources is required in Resources mode (the default if no mode is specified)",
            )),
            "Pipeline" if items(spec, "pipeline").is_empty() => self.0.push(required(
                "spec.pipeline",
                "an array of pipeline steps is required in Pipeline mode",
            )),
            _ => {}
        }
    }

    fn patch_sets(&mut self, spec: &Value) {
        let mut names = Vec::new();
        for (i, set) in items(spec, "patchSets").iter().enumerate() {
            names.push(text(set, "name"));
            for (j, patch) in items(set, "patches").iter().enumerate() {
                let path = format!("spec.patchSets[{i}].patches[{j}]");
                if text(patch, "type") == "PatchSet" {
                    let what = "cannot use patches within patches";
                    self.0.push(invalid(&format!("{path}.type"), "PatchSet", what));
                } else {
                    self.0.extend(patch_finding(&path, patch));
                }
            }
        }
        for (i, resource) in items(spec, "resources").iter().enumerate() {
            for (j, patch) in items(resource, "patches").iter().enumerate() {
                if text(patch, "type") != "PatchSet" {
                    continue;
                }
                let path = format!("spec.resources[{i}].patches[{j}].patchSetName");
                match given(patch, "patchSetName").and_then(Value::as_str) {
                    None => {
                        self.0.push(required(&path, "must be specified when type is patchSet"));
                    }
                    Some(name) if !names.contains(&name) => self.0.push(invalid(
                        &path,
                        name,
                        "patchSetName must be the name of a declared patchSet",
                    )),
                    Some(_) => {}
                }
            }
        }
    }

    fn resources(&mut self, spec: &Value) {
        const MIXED: &str = "cannot mix named and anonymous resources, all resources must have a name or none must have a name";
        let resources = items(spec, "resources");
        let functions = !items(spec, "pipeline").is_empty();
        let mut seen = Vec::new();
        for (i, resource) in resources.iter().enumerate() {
            let path = format!("spec.resources[{i}].name");
            let name = text(resource, "name");
            if name.is_empty() {
                if functions {
                    let what = "cannot have anonymous resources when composition has functions";
                    self.0.push(required(&path, what));
                } else if i != 0 && !seen.is_empty() {
                    self.0.push(required(&path, MIXED));
                }
            } else if seen.contains(&name) {
                self.0.push(duplicate(&path, name));
            } else if i != 0 && seen.is_empty() {
                self.0.push(invalid(&path, name, MIXED));
            } else {
                seen.push(name);
            }
        }
        for (i, resource) in resources.iter().enumerate() {
            for (j, patch) in items(resource, "patches").iter().enumerate() {
                let path = format!("spec.resources[{i}].patches[{j}]");
                self.0.extend(patch_finding(&path, patch));
            }
            for (j, check) in items(resource, "readinessChecks").iter().enumerate() {
                let path = format!("spec.resources[{i}].readinessChecks[{j}]");
                self.0.extend(readiness_finding(&path, check));
            }
        }
    }

    fn pipeline(&mut self, spec: &Value) {
        let mut seen = Vec::new();
        for (i, step) in items(spec, "pipeline").iter().enumerate() {
            let name = text(step, "step");
            if seen.contains(&name) {
                self.0.push(duplicate(&format!("spec.pipeline[{i}].step"), name));
            }
            seen.push(name);
            let mut seen = Vec::new();
            for (j, credentials) in items(step, "credentials").iter().enumerate() {
                let path = format!("spec.pipeline[{i}].credentials[{j}]");
                let name = text(credentials, "name");
                if seen.contains(&name) {
                    self.0.push(duplicate(&format!("{path}.name"), name));
                }
                seen.push(name);
                let secret = text(credentials, "source") == "Secret";
                if secret && given(credentials, "secretRef").is_none() {
                    let what = "must be specified when source is Secret";
                    self.0.push(required(&format!("{path}.secretRef"), what));
                }
            }
        }
    }
}

fn patch_finding(path: &str, patch: &Value) -> Finding {
    let kind = text(patch, "type");
    let needs: &[&str] = match kind {
        "" | "FromCompositeFieldPath" | "ToCompositeFieldPath" => &["fromFieldPath"],
        "PatchSet" => &["patchSetName"],
        "CombineFromComposite" | "CombineToComposite" => &["combine", "toFieldPath"],
        _ => return Some(invalid(&format!("{path}.type"), kind, "unknown patch type")),
    };
    if let Some(missing) = needs.iter().find(|field| given(patch, field).is_none()) {
        let what = format!("{missing} must be set for patch type {kind}");
        return Some(required(&format!("{path}.{missing}"), &what));
    }
    items(patch, "transforms")
        .iter()
        .enumerate()
        .find_map(|(i, transform)| transform_finding(&format!("{path}.transforms[{i}]"), transform))
}

fn transform_finding(path: &str, transform: &Value) -> Finding {
    let kind = text(transform, "type");
    if !["math", "map", "match", "string", "convert"].contains(&kind) {
        return Some(invalid(&format!("{path}.type"), kind, "unknown transform type"));
    }
    let path = format!("{path}.{kind}");
    let Some(settings) = given(transform, kind) else {
        let what = format!("given transform type {kind} requires configuration");
        return Some(required(&path, &what));
    };
    match kind {
        "math" => math_finding(&path, settings),
        "map" if settings.as_object().is_none_or(serde_json::Map::is_empty) => Some(required(
            &format!("{path}.pairs"),
            "at least one pair must be specified if a map transform is specified",
        )),
        "match" => match_finding(&path, settings),
        "string" => string_finding(&path, settings),
        "convert" => convert_finding(&path, settings),
        _ => None,
    }
}

fn math_finding(path: &str, math: &Value) -> Finding {
    let (field, what) = match text(math, "type") {
        "" | "Multiply" => ("multiply", "multiply"),
        "ClampMin" => ("clampMin", "clamp min"),
        "ClampMax" => ("clampMax", "clamp max"),
        other => {
            return Some(invalid(&format!("{path}.type"), other, "unknown math transform type"));
        }
    };
    let what = format!("must specify a value if a {what} math transform is specified");
    needed(path, math, field, &what)
}

fn match_finding(path: &str, settings: &Value) -> Finding {
    let patterns = items(settings, "patterns");
    if patterns.is_empty() {
        let what = "at least one pattern must be specified if a match transform is specified";
        return Some(required(&format!("{path}.patterns"), what));
    }
    patterns.iter().enumerate().find_map(|(i, pattern)| {
        let path = format!("{path}.patterns[{i}]");
        match text(pattern, "type") {
            "" | "literal" => {
                needed(&path, pattern, "literal", "literal pattern type requires a literal")
            }
            "regexp" => needed(&path, pattern, "regexp", "regexp pattern type requires a regexp")
                .or_else(|| expression(&format!("{path}.regexp"), text(pattern, "regexp"))),
            other => Some(invalid(&format!("{path}.type"), other, "unknown pattern type")),
        }
    })
}

fn string_finding(path: &str, settings: &Value) -> Finding {
    let (field, what) = match text(settings, "type") {
        "" | "Format" => ("fmt", "format transform requires a format"),
        "Convert" => ("convert", "convert transform requires a conversion type"),
        "TrimPrefix" | "TrimSuffix" => ("trim", "trim transform requires a trim value"),
        "Join" => ("join", "join transform requires a join"),
        "Regexp" => {
            let path = format!("{path}.regexp");
            let Some(regexp) = given(settings, "regexp") else {
                return Some(required(&path, "regexp transform requires a regexp"));
            };
            let path = format!("{path}.match");
            return match text(regexp, "match") {
                "" => Some(required(&path, "regexp transform requires a match")),
                found => expression(&path, found),
            };
        }
        other => {
            return Some(invalid(&format!("{path}.type"), other, "unknown string transform type"));
        }
    };
    needed(path, settings, field, what)
}

fn convert_finding(path: &str, settings: &Value) -> Finding {
    let format = given(settings, "format").and_then(Value::as_str).unwrap_or("none");
    if !["none", "quantity", "json"].contains(&format) {
        return Some(invalid(&format!("{path}.format"), format, "invalid format"));
    }
    let kind = text(settings, "toType");
    let kinds = ["string", "bool", "int", "int64", "float64", "object", "array"];
    let known = kinds.contains(&kind);
    (!known).then(|| invalid(&format!("{path}.toType"), kind, "invalid type"))
}

fn readiness_finding(path: &str, check: &Value) -> Finding {
    let kind = text(check, "type");
    match kind {
        "None" => return None,
        "MatchString" if text(check, "matchString").is_empty() => {
            let what = "cannot be empty for type MatchString";
            return Some(required(&format!("{path}.matchString"), what));
        }
        "MatchInteger" if check.get("matchInteger").and_then(Value::as_i64).unwrap_or(0) == 0 => {
            let what = "cannot be 0 for type MatchInteger";
            return Some(required(&format!("{path}.matchInteger"), what));
        }
        "MatchCondition" => {
            let condition = given(check, "matchCondition")?;
            let empty = ["type", "status"].into_iter().find(|key| text(condition, key).is_empty());
            return empty.map(|key| {
                let what = "cannot be empty for type MatchCondition";
                required(&format!("{path}.matchCondition.{key}"), what)
            });
        }
        "NonEmpty" | "MatchString" | "MatchInteger" | "MatchTrue" | "MatchFalse" => {}
        other => {
            return Some(invalid(&format!("{path}.type"), other, "unknown readiness check type"));
        }
    }
    let empty = text(check, "fieldPath").is_empty();
    empty.then(|| required(&format!("{path}.fieldPath"), "cannot be empty"))
}

fn expression(path: &str, text: &str) -> Finding {
    let broken = GoRegex::new(text).is_err();
    broken.then(|| invalid(path, text, "invalid regexp"))
}

fn needed(path: &str, value: &Value, field: &str, what: &str) -> Finding {
    given(value, field).is_none().then(|| required(&format!("{path}.{field}"), what))
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn given<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|value| !value.is_null())
}

fn required(path: &str, what: &str) -> String {
    format!("{path}: Required value: {what}")
}

fn duplicate(path: &str, value: &str) -> String {
    format!("{path}: Duplicate value: {}", quote(value))
}

fn invalid(path: &str, value: &str, what: &str) -> String {
    format!("{path}: Invalid value: {}: {what}", quote(value))
}

#[cfg(test)]
mod tests;
