//! Events and conditions that functions and the reconciler report to users.

use std::collections::{BTreeMap, BTreeSet};

use biplane_cluster::cluster::Optional;
use biplane_cluster::{Cluster, Event, EventType, Source};
use biplane_model::condition::{Condition, SYSTEM_TYPES, set_conditions};
use biplane_model::{Gvk, Object, ObjectId};
use biplane_proto::function::v1::{self as fnv1, Severity, Status, Target};

use biplane_go::fmt::quote;
use biplane_model::layout::Layout;

/// An event to record, collected while composing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetedEvent {
    /// The severity.
    pub r#type: EventType,
    /// A machine-readable reason.
    pub reason: String,
    /// A human-readable message.
    pub message: String,
    /// A prefix for the message on the composite resource.
    pub detail: String,
    /// Whether the claim also gets the event.
    pub claim: bool,
}

/// A condition that a function sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetedCondition {
    /// The condition.
    pub condition: Condition,
    /// Whether the claim also gets the condition.
    pub claim: bool,
}

/// All events and conditions to report, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Events.
    pub events: Vec<TargetedEvent>,
    /// Conditions.
    pub conditions: Vec<TargetedCondition>,
}

impl Report {
    /// Adds a warning of the reconciler itself to the composite resource.
    pub(super) fn warn(&mut self, reason: &str, message: String) {
        self.events.push(TargetedEvent {
            r#type: EventType::Warning,
            reason: reason.to_owned(),
            message,
            detail: String::new(),
            claim: false,
        });
    }

    /// Adds the conditions of a function.
    pub(super) fn conditions(&mut self, from: &[fnv1::Condition], now: jiff::Timestamp) {
        self.conditions.extend(from.iter().map(|c| {
            let status = match c.status() {
                Status::ConditionTrue => "True",
                Status::ConditionFalse => "False",
                Status::ConditionUnknown | Status::ConditionUnspecified => "Unknown",
            };
            let condition =
                Condition::new(&c.r#type, status, &c.reason).with_message(c.message()).at(now);
            TargetedCondition { condition, claim: c.target() == Target::CompositeAndClaim }
        }));
    }

    /// Adds the results of a function. Stops at the first fatal result and returns its message.
    pub(super) fn results(&mut self, step: &str, from: &[fnv1::Result]) -> Result<(), String> {
        for result in from {
            let reason = match result.reason() {
                "" => "ComposeResources",
                reason => reason,
            };
            let claim = result.target() == Target::CompositeAndClaim;
            let detail = format!("Pipeline step {}", quote(step));
            let event = |r#type, message: String, detail, claim| TargetedEvent {
                r#type,
                reason: reason.to_owned(),
                message,
                detail,
                claim,
            };
            let message = result.message.clone();
            self.events.push(match result.severity() {
                Severity::Fatal => return Err(message),
                Severity::Warning => event(EventType::Warning, message, detail, claim),
                Severity::Normal => event(EventType::Normal, message, detail, claim),
                Severity::Unspecified => {
                    let text = format!(
                        "{detail} returned a result of unknown severity (assuming warning): {message}"
                    );
                    event(EventType::Warning, text, String::new(), false)
                }
            });
        }
        Ok(())
    }
}

/// Records events, and sets conditions on the composite resource. Returns the condition types that
/// were set.
pub(super) async fn deliver(
    cluster: &dyn Cluster,
    layout: Layout,
    annotations: &BTreeMap<String, String>,
    xr: &mut Object,
    report: &Report,
) -> BTreeSet<String> {
    let claim =
        if report.events.iter().any(|e| e.claim) { claim(cluster, layout, xr).await } else { None };
    for event in &report.events {
        let message = if event.detail.is_empty() {
            event.message.clone()
        } else {
            format!("{}: {}", event.detail, event.message)
        };
        let record = |regarding: ObjectId, message: String| Event {
            regarding,
            r#type: event.r#type,
            reason: event.reason.clone(),
            message,
            annotations: annotations.clone(),
        };
        cluster.record(record(xr.id(), message)).await;
        if let (true, Some(claim)) = (event.claim, &claim) {
            cluster.record(record(claim.clone(), event.message.clone())).await;
        }
    }
    let own =
        |targeted: &&TargetedCondition| !SYSTEM_TYPES.contains(&targeted.condition.r#type.as_str());
    let conditions: Vec<_> = report.conditions.iter().filter(own).collect();
    // At once, because every change reads and writes the whole list.
    if !conditions.is_empty() {
        set_conditions(xr, conditions.iter().map(|targeted| targeted.condition.clone()));
    }
    let of_claim = conditions.iter().filter(|targeted| targeted.claim);
    layout.add_claim_condition_types(xr, of_claim.map(|t| t.condition.r#type.as_str()));
    conditions.into_iter().map(|targeted| targeted.condition.r#type.clone()).collect()
}

/// Returns the claim, if there is one and it can be read.
async fn claim(cluster: &dyn Cluster, layout: Layout, xr: &Object) -> Option<ObjectId> {
    let reference = layout.claim(xr)?;
    let gvk = Gvk::new(&reference.api_version, &reference.kind);
    let id = ObjectId::new(gvk, &reference.namespace, &reference.name);
    match cluster.get(&id, Source::Cache).await.optional() {
        Ok(found) => found.map(|_| id),
        Err(error) => {
            tracing::debug!(claim = %id, %error, "cannot get claim");
            None
        }
    }
}

/// Lists the first three names in order, and the number of the others.
pub fn some_of(names: &[String]) -> String {
    let mut sorted: Vec<_> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    match sorted.as_slice() {
        [a, b, c] => format!("{a}, {b}, and {c}"),
        [a, b, c, rest @ ..] => format!("{a}, {b}, {c}, and {} more", rest.len()),
        few => few.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_as_people_do() {
        // XR-20, T-13, T-14
        let check = |names: &[&str], want: &str| {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            assert_eq!(some_of(&names), want);
        };
        check(&["a"], "a");
        check(&["b", "a"], "a, b");
        check(&["c", "b", "a"], "a, b, and c");
        check(&["elephant", "cow", "cat", "snake"], "cat, cow, elephant, and 1 more");
    }
}
