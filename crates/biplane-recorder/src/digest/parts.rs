//! The results and conditions of a response.

use serde_json::{Map, Value};

/// The names of severities, by number.
const SEVERITIES: [&str; 4] =
    ["SEVERITY_UNSPECIFIED", "SEVERITY_FATAL", "SEVERITY_WARNING", "SEVERITY_NORMAL"];

/// The names of the states of conditions, by number.
const STATUSES: [&str; 4] = [
    "STATUS_CONDITION_UNSPECIFIED",
    "STATUS_CONDITION_UNKNOWN",
    "STATUS_CONDITION_TRUE",
    "STATUS_CONDITION_FALSE",
];

/// The names of targets, by number.
const TARGETS: [&str; 3] = ["TARGET_UNSPECIFIED", "TARGET_COMPOSITE", "TARGET_COMPOSITE_AND_CLAIM"];

/// A result of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultOf {
    /// The number of the severity.
    pub severity: i64,
    /// The text.
    pub message: String,
    /// The reason, if it is set.
    pub reason: Option<String>,
    /// The number of the target, if it is set.
    pub target: Option<i64>,
}

/// A condition that a function set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub kind: String,
    /// The number of its status.
    pub status: i64,
    /// The reason.
    pub reason: String,
    /// The text, if it is set.
    pub message: Option<String>,
    /// The number of the target, if it is set.
    pub target: Option<i64>,
}

/// The worst severity: fatal before warning before normal before none.
pub fn severity_number(results: &[ResultOf]) -> i64 {
    let badness = |severity: i64| if severity == 0 { i64::MAX } else { severity };
    results.iter().map(|result| result.severity).min_by_key(|s| badness(*s)).unwrap_or_default()
}

fn number(names: &[&str], value: Option<&Value>) -> Option<i64> {
    let Some(value) = value else { return Some(0) };
    let name = value.as_str()?;
    let number = names.iter().position(|known| *known == name)?;
    i64::try_from(number).ok()
}

fn text(map: &Map<String, Value>, key: &str) -> String {
    map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn text_or(map: &Map<String, Value>, key: &str) -> Option<String> {
    map.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn target(map: &Map<String, Value>) -> Option<i64> {
    map.get("target").and_then(|value| number(&TARGETS, Some(value)))
}

/// The results, and whether they are exactly what [`results_value`] gives back.
pub(super) fn results(value: Option<&Value>) -> (Vec<ResultOf>, bool) {
    let list = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let results: Vec<ResultOf> = list
        .iter()
        .filter_map(Value::as_object)
        .map(|map| ResultOf {
            severity: number(&SEVERITIES, map.get("severity")).unwrap_or_default(),
            message: text(map, "message"),
            reason: text_or(map, "reason"),
            target: target(map),
        })
        .collect();
    let regular =
        !results.is_empty() && value.is_some_and(|value| *value == results_value(&results));
    (results, regular)
}

/// The conditions, and whether they are exactly what [`conditions_value`] gives back.
pub(super) fn conditions(value: Option<&Value>) -> (Vec<Condition>, bool) {
    let list = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let conditions: Vec<Condition> = list
        .iter()
        .filter_map(Value::as_object)
        .map(|map| Condition {
            kind: text(map, "type"),
            status: number(&STATUSES, map.get("status")).unwrap_or_default(),
            reason: text(map, "reason"),
            message: text_or(map, "message"),
            target: target(map),
        })
        .collect();
    let regular = !conditions.is_empty()
        && value.is_some_and(|value| *value == conditions_value(&conditions));
    (conditions, regular)
}

fn set(map: &mut Map<String, Value>, key: &str, value: &str) {
    if !value.is_empty() {
        map.insert(key.to_owned(), value.into());
    }
}

fn set_or(map: &mut Map<String, Value>, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.into());
    }
}

/// The name of a number, unless it is the first, which protobuf's JSON leaves out.
fn name(names: &'static [&'static str], number: i64) -> &'static str {
    let name = usize::try_from(number).ok().filter(|at| *at > 0).and_then(|at| names.get(at));
    name.copied().unwrap_or_default()
}

fn target_name(target: Option<i64>) -> Option<&'static str> {
    TARGETS.get(usize::try_from(target?).ok()?).copied()
}

/// Results in protobuf's JSON.
pub fn results_value(results: &[ResultOf]) -> Value {
    let value = |result: &ResultOf| {
        let mut map = Map::new();
        set(&mut map, "severity", name(&SEVERITIES, result.severity));
        set(&mut map, "message", &result.message);
        set_or(&mut map, "reason", result.reason.as_deref());
        set_or(&mut map, "target", target_name(result.target));
        Value::Object(map)
    };
    results.iter().map(value).collect()
}

/// Conditions in protobuf's JSON.
pub fn conditions_value(conditions: &[Condition]) -> Value {
    let value = |condition: &Condition| {
        let mut map = Map::new();
        set(&mut map, "type", &condition.kind);
        set(&mut map, "status", name(&STATUSES, condition.status));
        set(&mut map, "reason", &condition.reason);
        set_or(&mut map, "message", condition.message.as_deref());
        set_or(&mut map, "target", target_name(condition.target));
        Value::Object(map)
    };
    conditions.iter().map(value).collect()
}
