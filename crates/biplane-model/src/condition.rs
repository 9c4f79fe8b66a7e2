//! Reads, compares and sets conditions at `status.conditions`, like the control plane.

use std::collections::BTreeMap;

use biplane_go::time::{Instant, instant};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Object;

/// `Ready`.
pub const READY: &str = "Ready";
/// `Synced`.
pub const SYNCED: &str = "Synced";
/// `Responsive`.
pub const RESPONSIVE: &str = "Responsive";

/// Types that only the control plane may set.
pub const SYSTEM_TYPES: [&str; 5] = [READY, SYNCED, "Healthy", "UpToDate", RESPONSIVE];

/// One condition. Other keys are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type of the condition.
    #[serde(default, deserialize_with = "null_is_default")]
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: String,
    /// RFC 3339, in seconds and UTC.
    #[serde(default, deserialize_with = "time")]
    pub last_transition_time: Option<String>,
    /// A machine-readable reason.
    #[serde(default, deserialize_with = "null_is_default")]
    pub reason: String,
    /// A human-readable message.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub message: String,
    /// The generation of the object that the condition is for. Zero if unknown.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(n: &i64) -> bool {
    *n == 0
}

/// Reads null as the default, like Go.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    if is_printed_so(&text) {
        return Ok(Some(text));
    }
    let time = instant(&text).and_then(Instant::timestamp);
    let time = time.ok_or_else(|| serde::de::Error::custom("not a time"))?;
    Ok(Some(seconds(time)))
}

/// Formats a timestamp as conditions store it.
pub fn seconds(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Condition {
    /// A condition without a message.
    pub fn new(r#type: &str, status: &str, reason: &str) -> Self {
        Self {
            r#type: r#type.into(),
            status: status.into(),
            reason: reason.into(),
            ..Self::default()
        }
    }

    /// Sets the message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Sets the transition time.
    #[must_use]
    pub fn at(mut self, time: jiff::Timestamp) -> Self {
        self.last_transition_time = Some(seconds(time));
        self
    }

    /// Sets the observed generation.
    #[must_use]
    pub fn observed(mut self, generation: i64) -> Self {
        self.observed_generation = generation;
        self
    }

    /// `Synced`: the reconcile succeeded.
    pub fn reconcile_success() -> Self {
        Self::new(SYNCED, "True", "ReconcileSuccess")
    }

    /// `Synced`: the reconcile failed.
    pub fn reconcile_error(message: impl Into<String>) -> Self {
        Self::new(SYNCED, "False", "ReconcileError").with_message(message)
    }

    /// `Synced`: reconciliation is paused.
    pub fn reconcile_paused() -> Self {
        Self::new(SYNCED, "False", "ReconcilePaused")
    }

    /// `Ready`: the resource is available.
    pub fn available() -> Self {
        Self::new(READY, "True", "Available")
    }

    /// `Ready`: the resource is being created.
    pub fn creating() -> Self {
        Self::new(READY, "False", "Creating")
    }

    /// `Ready`: the resource is being deleted.
    pub fn deleting() -> Self {
        Self::new(READY, "False", "Deleting")
    }

    /// Whether two conditions are equal except for their transition time.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        self.r#type == other.r#type
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
            && (self.observed_generation == other.observed_generation
                || self.observed_generation == 0
                || other.observed_generation == 0)
    }
}

/// The readable conditions of an object. A field of the wrong type is empty. An invalid time ends
/// the list.
pub fn conditions(object: &Object) -> Vec<Condition> {
    let Some(Value::Array(entries)) = object.at(&["status", "conditions"]) else {
        return Vec::new();
    };
    if let Ok(all) = entries.iter().map(whole).collect() {
        return all;
    }
    let mut all = Vec::with_capacity(entries.len());
    for entry in entries {
        let (condition, whole) = readable(entry);
        all.push(condition);
        if !whole {
            break;
        }
    }
    all
}

fn whole(entry: &Value) -> Result<Condition, serde_json::Error> {
    match entry {
        Value::Array(_) => Err(serde::de::Error::custom("a condition is an object")),
        entry => null_is_default(entry),
    }
}

/// The readable part of a condition, and whether all of it was readable. Keys are read in order.
fn readable(entry: &Value) -> (Condition, bool) {
    let mut condition = Condition::default();
    for (key, value) in entry.as_object().into_iter().flatten() {
        let text = || value.as_str().unwrap_or_default().to_owned();
        match key.as_str() {
            "lastTransitionTime" => match time(value) {
                Ok(time) => condition.last_transition_time = time,
                Err(_) => return (condition, false),
            },
            "message" => condition.message = text(),
            "observedGeneration" => {
                condition.observed_generation = value.as_i64().unwrap_or_default();
            }
            "reason" => condition.reason = text(),
            "status" => condition.status = text(),
            "type" => condition.r#type = text(),
            _ => {}
        }
    }
    (condition, true)
}

/// The condition of a type. Its status is `Unknown` if there is none.
pub fn condition(object: &Object, r#type: &str) -> Condition {
    conditions(object).into_iter().find(|c| c.r#type == r#type).unwrap_or_else(|| Condition {
        r#type: r#type.into(),
        status: "Unknown".into(),
        ..Condition::default()
    })
}

/// Merges conditions into a list. An equal condition keeps its time, another of the same type is
/// replaced in place, and a new type is appended.
pub fn merge(into: &mut Vec<Condition>, new: impl IntoIterator<Item = Condition>) {
    // Old lists may have several conditions of a type.
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, condition) in into.iter().enumerate() {
        places.entry(condition.r#type.clone()).or_default().push(index);
    }
    for condition in new {
        let Some(known) = places.get(&condition.r#type) else {
            places.insert(condition.r#type.clone(), vec![into.len()]);
            into.push(condition);
            continue;
        };
        for index in known {
            if let Some(old) = into.get_mut(*index)
                && !old.says_the_same_as(&condition)
            {
                old.clone_from(&condition);
            }
        }
    }
}

/// Sets conditions on an object. See [`merge`].
pub fn set_conditions(object: &mut Object, new: impl IntoIterator<Item = Condition>) {
    let mut new = new.into_iter().peekable();
    // Most often nothing changes, and then the object is not copied.
    if are_as_written(object) {
        while new.next_if(|condition| has(object, condition)).is_some() {}
        if new.peek().is_none() {
            return;
        }
    }
    let mut all = conditions(object);
    merge(&mut all, new);
    replace_conditions(object, &all);
}

/// The entries of `status.conditions`.
fn entries(object: &Object) -> &[Value] {
    match object.at(&["status", "conditions"]) {
        Some(Value::Array(entries)) => entries,
        _ => &[],
    }
}

/// Whether all conditions of a type say the same as this one, and there is one.
fn has(object: &Object, condition: &Condition) -> bool {
    let text = |entry: &Value, key: &str, expected: &str| {
        entry.get(key).and_then(Value::as_str).unwrap_or_default() == expected
    };
    let of_type = |entry: &&Value| text(entry, "type", &condition.r#type);
    let says_the_same = |entry: &Value| {
        let generation = entry.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
        text(entry, "status", &condition.status)
            && text(entry, "reason", &condition.reason)
            && text(entry, "message", &condition.message)
            && (generation == condition.observed_generation
                || generation == 0
                || condition.observed_generation == 0)
    };
    let mut all = entries(object).iter().filter(of_type).peekable();
    all.peek().is_some() && all.all(says_the_same)
}

/// Whether an object has conditions, and all of them as they are written here.
fn are_as_written(object: &Object) -> bool {
    let is_as_written = |entry: &Value| {
        let Value::Object(fields) = entry else { return false };
        let known = fields.iter().all(|(key, value)| match (key.as_str(), value) {
            ("type" | "status" | "reason", Value::String(_)) => true,
            ("message", Value::String(text)) => !text.is_empty(),
            ("lastTransitionTime", Value::String(text)) => is_printed_so(text),
            ("observedGeneration", value) => value.as_i64().is_some_and(|number| number != 0),
            _ => false,
        });
        let always = ["type", "status", "lastTransitionTime", "reason"];
        known && always.iter().all(|key| fields.contains_key(*key))
    };
    let entries = entries(object);
    !entries.is_empty() && entries.iter().all(is_as_written)
}

/// Whether a time is in the form in which it is printed.
fn is_printed_so(text: &str) -> bool {
    text.len() == "2006-01-02T15:04:05Z".len()
        && text.ends_with('Z')
        && instant(text).and_then(Instant::timestamp).is_some()
}

/// Replaces all conditions of an object.
pub fn replace_conditions(object: &mut Object, all: &[Condition]) {
    let value = serde_json::to_value(all).unwrap_or(Value::Null);
    object.set_at_or_ignore(&["status", "conditions"], value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_equal_condition_keeps_its_time_and_a_new_message_gets_a_new_one() {
        // CON-2, CON-3, T-20
        let mut all = vec![Condition::available().at(at(1))];
        merge(&mut all, [Condition::available().at(at(2))]);
        assert_eq!(all[0].last_transition_time.as_deref(), Some("1970-01-01T00:00:01Z"));
        merge(&mut all, [Condition::available().with_message("m").at(at(2))]);
        assert_eq!(all[0].last_transition_time.as_deref(), Some("1970-01-01T00:00:02Z"));
    }

    #[test]
    fn the_order_of_conditions_never_changes() {
        // CON-3
        let mut all = vec![Condition::available(), Condition::reconcile_success()];
        merge(&mut all, [Condition::reconcile_error("x"), Condition::creating()]);
        let types: Vec<_> = all.iter().map(|c| c.r#type.as_str()).collect();
        assert_eq!(types, [READY, SYNCED]);
    }

    #[test]
    fn every_condition_of_a_type_is_replaced() {
        let mut all = vec![Condition::available(), Condition::deleting(), Condition::creating()];
        merge(&mut all, [Condition::creating()]);
        assert_eq!(all, [Condition::creating(), Condition::creating(), Condition::creating()]);
    }

    #[test]
    fn conditions_are_read_as_far_as_they_can_be() {
        let a = json!({"type": "A", "lastTransitionTime": "2024-01-01T00:00:00Z"});
        for (written, types) in [
            (json!([a, 1, null, [], {"type": "B", "message": 5}]), vec!["A", "", "", "", "B"]),
            (json!([{"type": "B", "lastTransitionTime": "now"}, a]), vec![""]),
            (json!("text"), vec![]),
            (json!({}), vec![]),
        ] {
            let object = json!({"status": {"conditions": written}});
            let read = conditions(&Object::from_value(object).unwrap());
            assert_eq!(read.iter().map(|c| c.r#type.as_str()).collect::<Vec<_>>(), types);
        }
    }

    #[test]
    fn a_generation_counts_only_when_both_know_it() {
        // CON-2
        let a = Condition::available().observed(1);
        assert!(a.says_the_same_as(&Condition::available()));
        assert!(!a.says_the_same_as(&Condition::available().observed(2)));
    }

    #[test]
    fn setting_conditions_drops_foreign_keys_and_writes_times_in_utc() {
        let mut object = Object::from_value(json!({"status": {"conditions": [
            {"type": "A", "status": "True", "extra": 1, "lastTransitionTime": "2024-01-01T02:00:00+02:00"}
        ]}}))
        .unwrap();
        set_conditions(&mut object, []);
        assert_eq!(
            object.at(&["status", "conditions"]).unwrap(),
            &json!([{"type": "A", "status": "True", "reason": "", "lastTransitionTime": "2024-01-01T00:00:00Z"}])
        );
    }

    #[test]
    fn what_need_not_be_set_is_what_setting_would_leave() {
        // Every combination of what is there and what is set: the short cut gives the same.
        let time = "2024-01-01T00:00:00Z";
        let ready = json!({"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": time});
        let with = |key: &str, value: Value| {
            let mut changed = ready.clone();
            changed[key] = value;
            changed
        };
        let mut without_time = ready.clone();
        without_time.as_object_mut().unwrap().remove("lastTransitionTime");
        let there = [
            json!([]),
            json!(null),
            json!([ready]),
            json!([ready, ready]),
            json!([ready, with("status", json!("False"))]),
            json!([ready, 5]),
            json!([without_time]),
            json!([with("extra", json!(1))]),
            json!([with("message", json!(""))]),
            json!([with("message", json!("m"))]),
            json!([with("reason", json!(null))]),
            json!([with("observedGeneration", json!(0))]),
            json!([with("observedGeneration", json!(3))]),
            json!([with("observedGeneration", json!(2.0))]),
            json!([with("lastTransitionTime", json!("2024-01-01T02:00:00+02:00"))]),
            json!([with("lastTransitionTime", json!("2024-13-01T00:00:00Z"))]),
            json!([with("lastTransitionTime", json!("2024-13-01T00:00:00Z")), ready]),
        ];
        let available = || Condition::available().at(at(1));
        let sets: [Vec<Condition>; 7] = [
            vec![],
            vec![available()],
            vec![available(), available()],
            vec![available().with_message("m")],
            vec![available().observed(3)],
            vec![available(), Condition::reconcile_success().at(at(2))],
            vec![available(), Condition::creating().at(at(2)), available()],
        ];
        for there in &there {
            for new in &sets {
                let object = json!({"status": {"conditions": there}});
                let mut object = Object::from_value(object).unwrap();
                let mut expected = object.clone();
                let mut all = conditions(&expected);
                merge(&mut all, new.clone());
                replace_conditions(&mut expected, &all);
                set_conditions(&mut object, new.clone());
                assert_eq!(object, expected, "{there} {new:?}");
            }
        }
    }

    #[test]
    fn many_conditions_are_merged_in_linear_time() {
        let condition = |n: usize| Condition::new(&format!("T{n}"), "True", "R");
        let mut all: Vec<Condition> = (0..100_000).map(condition).collect();
        let new = (50_000..150_000).chain(0..3).map(|n| condition(n).with_message("m"));
        merge(&mut all, new);
        assert_eq!(all.len(), 150_000);
        assert_eq!(all.iter().filter(|c| c.message == "m").count(), 100_003);
    }
}
