//! Removes from responses the values that differ from run to run.

use std::collections::BTreeMap;

use biplane_model::{Object, Value};
use serde_json::json;

use super::Answer;

/// Replaces UIDs and versions by numbers, in order of first appearance.
#[derive(Default)]
pub(super) struct Normal {
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
}

fn numbered(known: &mut BTreeMap<String, String>, what: &str, text: &str) -> String {
    let next = format!("{what}-{}", known.len() + 1);
    known.entry(text.to_owned()).or_insert(next).clone()
}

impl Normal {
    pub(super) fn answer(&mut self, answer: Answer) -> Value {
        match answer {
            Answer::Gone => json!("gone"),
            Answer::Object(object) => self.object(object),
            Answer::Refused { reason, message } => {
                json!({"reason": reason, "message": self.message(&message)})
            }
        }
    }

    fn object(&mut self, mut object: Object) -> Value {
        let uid = numbered(&mut self.uids, "uid", object.uid());
        object.set_meta("uid", &uid);
        let version = numbered(&mut self.versions, "version", object.resource_version());
        object.set_meta("resourceVersion", &version);
        for field in ["creationTimestamp", "deletionTimestamp"] {
            if !object.str_at(&["metadata", field]).is_empty() {
                object.set_meta(field, "time");
            }
        }
        if let Some(Value::Array(mut entries)) = object.remove_at(&["metadata", "managedFields"]) {
            for entry in &mut entries {
                if entry.get("time").is_some() {
                    entry["time"] = json!("time");
                }
            }
            // The order depends on the second in which each entry was written.
            entries.sort_by_key(|entry| {
                ["operation", "manager", "apiVersion", "subresource"]
                    .map(|field| entry[field].as_str().unwrap_or_default().to_owned())
            });
            object.set_at_or_ignore(&["metadata", "managedFields"], entries);
        }
        object.into_value()
    }

    /// Sorts several errors, which the server reports in random order.
    fn message(&mut self, message: &str) -> String {
        let mut message = message.to_owned();
        for (uid, name) in &self.uids {
            message = message.replace(uid, name);
        }
        if let Some((head, list)) = message.split_once("is invalid: [")
            && let Some(list) = list.strip_suffix(']')
        {
            let mut problems: Vec<&str> = list.split(", ").collect();
            problems.sort_unstable();
            return format!("{head}is invalid: [{}]", problems.join(", "));
        }
        message
    }
}
