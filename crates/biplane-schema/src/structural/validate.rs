//! Validates values against a schema, and reports the same errors as the API server.

mod scalar;

use std::collections::HashSet;

use biplane_go::fmt::quote;
use biplane_go::json;
use serde_json::{Map, Value};

use super::error::{FieldError, Problem};
use super::node::{Additional, ListKind, Node};

/// Errors, and the number of checks that passed. The number decides which alternative of `anyOf`
/// and `oneOf` is nearest.
#[derive(Debug, Default)]
pub(super) struct Findings {
    errors: Vec<FieldError>,
    passed: usize,
}

impl Findings {
    fn merge(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.passed += other.passed;
    }

    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.errors
    }
}

/// The location of a value, and its old value.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The path inside the validated value. Empty at its root.
    pub path: &'a str,
    /// The prefix of field names, such as `status`.
    pub prefix: &'a str,
    /// The value before the update, if it is known which one that was.
    pub old: Option<&'a Value>,
}

impl Place<'_> {
    fn error(
        self,
        problem: Problem,
        path: &str,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> FieldError {
        let path = path.strip_prefix('.').unwrap_or(path);
        let field = match (self.prefix, path) {
            ("", "") => "<nil>".to_owned(),
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        };
        FieldError::new(problem, field, value, detail)
    }

    /// A problem of this value.
    fn here(self, problem: Problem, value: impl Into<Value>, detail: String) -> FieldError {
        self.error(problem, self.path, value, detail)
    }

    /// A problem that the API server reports without its field.
    fn nowhere(self, detail: String) -> FieldError {
        self.error(Problem::Invalid, "", "", detail)
    }

    fn wrong_type(self, expected: &str, found: &str) -> FieldError {
        let detail = format!("{} in body must be of type {expected}: {}", self.path, quote(found));
        self.here(Problem::TypeInvalid, found, detail)
    }
}

/// Checks one value. Unchanged values are not reported.
pub(super) fn check(value: &Value, node: &Node, place: Place<'_>) -> Findings {
    let mut findings = check_new(value, node, place);
    if !findings.is_valid() && place.old == Some(value) {
        findings.errors.clear();
    }
    findings
}

fn check_new(value: &Value, node: &Node, place: Place<'_>) -> Findings {
    let mut out = Findings::default();
    if value.is_null() {
        if !node.types.is_empty() && !node.nullable {
            out.errors.push(place.wrong_type(&node.type_names(), "null"));
        }
        check_enum(value, node, place, &mut out);
        return out;
    }
    if !node.types.is_empty() || node.format.is_some() {
        match scalar::check_type(value, node, place) {
            Some(error) => out.errors.push(error),
            None => out.passed += 1,
        }
        out.passed += 1;
    }
    check_alternatives(value, node, place, &mut out);
    out.passed += 1;
    match value {
        Value::String(text) => {
            out.errors.extend(scalar::check_text(text, node, place));
            out.passed += 1;
            if let Some(format) = &node.format {
                if !format.fits(text) {
                    out.errors.push(place.here(
                        Problem::TypeInvalid,
                        text.as_str(),
                        format!(
                            "{} in body must be of type {}: {}",
                            place.path,
                            format.name,
                            quote(text)
                        ),
                    ));
                }
                out.passed += 1;
            }
        }
        Value::Number(number) => {
            scalar::check_number(number, node, place, &mut out.errors);
            out.passed += 2;
        }
        Value::Array(items) => {
            check_items(items, node, place, &mut out);
            out.passed += 2;
        }
        _ => {}
    }
    check_enum(value, node, place, &mut out);
    out.passed += 1;
    if let Value::Object(map) = value {
        check_fields(map, node, place, &mut out);
        out.passed += 1;
    }
    out.passed += 1;
    out
}

fn check_enum(value: &Value, node: &Node, place: Place<'_>, out: &mut Findings) {
    // A null among the allowed values allows nothing, not even null.
    let same = |allowed: &Value| !allowed.is_null() && crate::value::equal(allowed, value);
    if node.allowed.is_empty() || node.allowed.iter().any(same) {
        return;
    }
    let values: Vec<String> = node
        .allowed
        .iter()
        .map(|allowed| match allowed {
            Value::String(text) => quote(text),
            other => quote(&json::to_string(other)),
        })
        .collect();
    let detail = format!("supported values: {}", values.join(", "));
    out.errors.push(place.here(Problem::NotSupported, value.clone(), detail));
}

/// Keeps the result of the schema that the value is nearest to.
fn nearest(best: &mut Option<Findings>, found: Findings) {
    if best.as_ref().is_none_or(|best| found.passed > best.passed) {
        *best = Some(found);
    }
}

fn check_alternatives(value: &Value, node: &Node, place: Place<'_>, out: &mut Findings) {
    let name = quote(place.path);
    if !node.any_of.is_empty() {
        let mut best = None;
        let mut valid = None;
        for inner in &node.any_of {
            let found = check_new(value, inner, place);
            if found.is_valid() {
                valid = Some(found);
                break;
            }
            nearest(&mut best, found);
        }
        if valid.is_none() {
            let detail = format!("{name} must validate at least one schema (anyOf)");
            out.errors.push(place.nowhere(detail));
        }
        if let Some(found) = valid.or(best) {
            out.merge(found);
        }
    }
    if !node.one_of.is_empty() {
        let mut best = None;
        let mut valid = Vec::new();
        for inner in &node.one_of {
            let found = check_new(value, inner, place);
            if found.is_valid() {
                valid.push(found);
            } else if valid.is_empty() {
                nearest(&mut best, found);
            }
        }
        if valid.len() == 1 {
            for found in valid {
                out.merge(found);
            }
        } else {
            let found = match valid.len() {
                0 => "Found none valid".to_owned(),
                several => format!("Found {several} valid alternatives"),
            };
            let detail = format!("{name} must validate one and only one schema (oneOf). {found}");
            out.errors.push(place.nowhere(detail));
            if let Some(best) = best.filter(|_| valid.is_empty()) {
                out.merge(best);
            }
        }
    }
    if !node.all_of.is_empty() {
        let mut valid = 0;
        for inner in &node.all_of {
            let found = check_new(value, inner, place);
            valid += usize::from(found.is_valid());
            out.merge(found);
        }
        if valid != node.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            let detail = format!("{name} must validate all the schemas (allOf){none}");
            out.errors.push(place.nowhere(detail));
        }
    }
    if let Some(inner) = &node.not
        && check_new(value, inner, place).is_valid()
    {
        out.errors.push(place.nowhere(format!("{name} must not validate the schema (not)")));
    }
    out.passed += 1;
}

fn check_items(items: &[Value], node: &Node, place: Place<'_>, out: &mut Findings) {
    if let Some(inner) = node.items.as_deref() {
        let old_items = OldItems::new(node, place.old);
        for (i, item) in items.iter().enumerate() {
            let path = format!("{}[{i}]", place.path);
            let old = old_items.as_ref().and_then(|old| old.get(item));
            out.merge(check(item, inner, Place { path: &path, old, ..place }));
        }
    }
    let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(least) = node.min_items.filter(|least| size < *least) {
        let detail = format!("{} in body should have at least {least} items", place.path);
        out.errors.push(place.here(Problem::Invalid, size, detail));
    }
    if let Some(most) = node.max_items.filter(|most| size > *most) {
        out.errors.push(place.here(Problem::TooMany, size, at_most(most)));
    }
    let mut known = HashSet::new();
    if node.unique_items && !items.iter().all(|item| known.insert(item)) {
        let detail = format!("{} in body shouldn't contain duplicates", place.path);
        out.errors.push(place.here(Problem::Invalid, "", detail));
    }
}

fn at_most(most: i64) -> String {
    format!("must have at most {most} item{}", if most == 1 { "" } else { "s" })
}

/// The old items of a keyed list, by their keys. Those of other lists are not known.
#[allow(clippy::disallowed_types)] // values have no order, and nothing iterates over the map
struct OldItems<'a> {
    keys: &'a [String],
    items: std::collections::HashMap<Vec<Option<&'a Value>>, &'a Value>,
}

impl<'a> OldItems<'a> {
    fn new(node: &'a Node, old: Option<&'a Value>) -> Option<Self> {
        let ListKind::Map(keys) = &node.list else { return None };
        let old = old?.as_array()?.iter();
        // The first of several counts.
        let items = old.rev().map(|item| (identity(item, keys), item)).collect();
        Some(Self { keys, items })
    }

    fn get(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&identity(item, self.keys)).copied()
    }
}

fn identity<'a>(item: &'a Value, keys: &[String]) -> Vec<Option<&'a Value>> {
    keys.iter().map(|key| item.get(key)).collect()
}

fn check_fields(map: &Map<String, Value>, node: &Node, place: Place<'_>, out: &mut Findings) {
    let size = i64::try_from(map.len()).unwrap_or(i64::MAX);
    if let Some(least) = node.min_properties.filter(|least| size < *least) {
        let detail = format!("{} in body should have at least {least} properties", place.path);
        out.errors.push(place.here(Problem::Invalid, size, detail));
    }
    if let Some(most) = node.max_properties.filter(|most| size > *most) {
        out.errors.push(place.here(Problem::TooMany, size, at_most(most)));
    }
    let old = |name: &str| {
        let hidden = place.path.is_empty() && matches!(name, "apiVersion" | "kind" | "metadata");
        place.old.filter(|_| !hidden).and_then(|old| old.get(name))
    };
    for (name, value) in map {
        if node.properties.contains_key(name) {
            continue;
        }
        match &node.additional {
            Additional::Given(inner) => {
                let path = format!("{}.{name}", place.path);
                out.merge(check(value, inner, Place { path: &path, old: old(name), ..place }));
            }
            Additional::Bool(false) => {
                let detail = format!("{}.{name} in body is a forbidden property", place.path);
                out.errors.push(place.here(Problem::Invalid, name.as_str(), detail));
            }
            Additional::Undeclared | Additional::Bool(true) => {}
        }
    }
    for (name, inner) in &node.properties {
        let Some(value) = map.get(name) else { continue };
        let dot = if place.path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{name}", place.path);
        out.merge(check(value, inner, Place { path: &path, old: old(name), ..place }));
    }
    for name in &node.required {
        if !map.contains_key(name) {
            let path = format!("{}.{name}", place.path);
            out.errors.push(place.error(Problem::Required, &path, "", ""));
        }
    }
}
