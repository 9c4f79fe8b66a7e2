//! Which run a change of a provider belongs to, and how certain that is.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::record::{ChangeRecord, ObjectRef};

/// How certain a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The provider names the run.
    Certain,
    /// The run changed what is desired, and then the provider changed the resource.
    Likely,
    /// Nobody changed what is desired. The provider put back what the run had decided.
    Enforces,
}

impl Certainty {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Enforces => "enforces",
        }
    }
}

/// A run from which on something else was desired of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The trace of the run.
    pub run: String,
    /// When it began.
    pub at: Timestamp,
    /// Whether the runs before are no longer kept, so that one of them may have decided it.
    pub or_earlier: bool,
}

/// The run that a change belongs to. `previous` is the time of the provider's change of the resource
/// before; `versions` are of the resource, the oldest first.
pub fn judge(
    change: &ChangeRecord,
    previous: Option<Timestamp>,
    versions: &[Version],
) -> Option<(Certainty, String)> {
    if let Some(trace) = &change.trace
        && let Some(version) = versions.iter().find(|version| bare(&version.run) == bare(trace))
    {
        return Some((Certainty::Certain, version.run.clone()));
    }
    // Entries are known by the second.
    let until = change.at.checked_add(SignedDuration::from_secs(1)).unwrap_or(change.at);
    let current = versions.iter().rev().find(|version| version.at < until)?;
    let is_new = previous.is_none_or(|previous| current.at >= previous);
    let is_known = !current.or_earlier;
    let certainty = match change.cause.as_deref().unwrap_or_default() {
        "drift" | "recreate" => Certainty::Enforces,
        // It carries out what an attempt before could not.
        "retry" if is_known => Certainty::Likely,
        _ if is_new && is_known => Certainty::Likely,
        _ => return None,
    };
    Some((certainty, current.run.clone()))
}

/// A trace without hyphens: the inspector has UUIDs, `traceparent` has plain digits.
pub fn bare(trace: &str) -> String {
    trace.chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase()
}

/// A trace of 32 digits as the inspector writes it.
pub fn hyphenated(trace: &str) -> Option<String> {
    let bare = bare(trace);
    let is_id = bare.len() == 32 && bare.bytes().all(|b| b.is_ascii_hexdigit());
    let part = |from: usize, to: usize| bare.get(from..to).unwrap_or_default();
    is_id.then(|| [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"))
}

/// The owner and the name of the composed resource, as the snapshot of a resource tells them.
pub fn owner_in_snapshot(entry: &Value) -> Option<(ObjectRef, String)> {
    let metadata = entry.get("snapshot")?.get("metadata")?;
    let annotations = metadata.get("annotations")?;
    let slot = annotations.get("crossplane.io/composition-resource-name")?.as_str()?;
    let owners = metadata.get("ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    let text =
        |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let namespace = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    let owner = ObjectRef {
        api_version: text("apiVersion"),
        kind: text("kind"),
        namespace: namespace.to_owned(),
        name: text("name"),
        uid: text("uid"),
    };
    Some((owner, slot.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn change(second: i64, cause: &str) -> ChangeRecord {
        let cause = (!cause.is_empty()).then(|| cause.to_owned());
        ChangeRecord { at: at(second), cause, ..ChangeRecord::default() }
    }

    #[test]
    fn a_change_belongs_to_the_run_that_decided_it() {
        let versions: Vec<_> = [("a", 10), ("b", 20), ("c", 30)]
            .map(|(run, s)| Version { run: run.into(), at: at(s), or_earlier: false })
            .into();
        for (second, cause, previous, want) in [
            (25, "spec-change", Some(15), Some((Certainty::Likely, "b"))),
            (25, "spec-change", None, Some((Certainty::Likely, "b"))),
            // What is desired has not changed since the provider's last change.
            (25, "spec-change", Some(22), None),
            (25, "drift", Some(22), Some((Certainty::Enforces, "b"))),
            (25, "retry", Some(22), Some((Certainty::Likely, "b"))),
            (25, "recreate", Some(22), Some((Certainty::Enforces, "b"))),
            (11, "create", None, Some((Certainty::Likely, "a"))),
            // Both within one second.
            (10, "create", None, Some((Certainty::Likely, "a"))),
            (9, "create", None, None),
            (25, "", Some(15), Some((Certainty::Likely, "b"))),
        ] {
            let found = judge(&change(second, cause), previous.map(at), &versions);
            let want = want.map(|(certainty, run)| (certainty, run.to_owned()));
            assert_eq!(found, want, "{second} {cause} {previous:?}");
        }
    }

    #[test]
    fn a_run_that_may_not_have_decided_something_is_no_link() {
        let version = [Version { run: "k".into(), at: at(20), or_earlier: true }];
        for (cause, want) in [
            ("spec-change", None),
            ("create", None),
            ("retry", None),
            // The provider puts back what this run wants, too.
            ("drift", Some((Certainty::Enforces, "k".to_owned()))),
        ] {
            assert_eq!(judge(&change(25, cause), None, &version), want, "{cause}");
        }
    }

    #[test]
    fn a_run_that_the_provider_names_is_certain() {
        let run = "5d2c4f1e-0001-4000-8000-00000000abcd";
        let trace = bare(run);
        assert_eq!(hyphenated(&trace).as_deref(), Some(run));
        assert_eq!(hyphenated("5d2c"), None);
        let change = ChangeRecord { trace: Some(trace), ..change(5, "drift") };
        let versions = [Version { run: run.to_owned(), at: at(9), or_earlier: false }];
        assert_eq!(judge(&change, None, &versions), Some((Certainty::Certain, run.to_owned())));
    }

    #[test]
    fn snapshots_name_their_owner() {
        let entry = json!({"snapshot": {"metadata": {
            "namespace": "team-a",
            "annotations": {"crossplane.io/composition-resource-name": "bucket"},
            "ownerReferences": [
                {"kind": "Other", "name": "x"},
                {"apiVersion": "shop.example.org/v1", "kind": "Store", "name": "north", "uid": "u", "controller": true},
            ],
        }}});
        let (owner, slot) = owner_in_snapshot(&entry).unwrap();
        assert_eq!(
            (owner.kind.as_str(), owner.name.as_str(), slot.as_str()),
            ("Store", "north", "bucket")
        );
        assert_eq!(owner_in_snapshot(&json!({"snapshot": {}})), None);
    }
}
