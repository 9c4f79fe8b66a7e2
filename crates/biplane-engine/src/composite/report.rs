//! Events and conditions that functions and the reconciler report to users.

use std::collections::BTreeSet;

use biplane_cluster::{Event, EventType, Optional, Regarding, Source};
use biplane_go::fmt::quote;
use biplane_model::condition::{Condition, SYSTEM_TYPES, set_conditions};
use biplane_model::{Gvk, Object, ObjectId};
use biplane_proto::function::v1::{self as fnv1, Severity, Status, Target};

use super::pass::{COMPONENT, Pass, XR};

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
pub(super) async fn deliver(pass: &Pass<'_>, xr: &mut XR, report: &Report) -> BTreeSet<String> {
    let claim =
        if report.events.iter().any(|e| e.claim) { claim(pass, &xr.object).await } else { None };
    for event in &report.events {
        let message = if event.detail.is_empty() {
            event.message.clone()
        } else {
            format!("{}: {}", event.detail, event.message)
        };
        let record = |regarding: Regarding, message: String| {
            pass.context().events.record(Event {
                regarding,
                r#type: event.r#type,
                reason: event.reason.clone(),
                message,
                component: COMPONENT.into(),
                annotations: pass.annotations(),
                count: 1,
            });
        };
        record((&xr.object).into(), message);
        if let (true, Some(claim)) = (event.claim, &claim) {
            record(claim.into(), event.message.clone());
        }
    }
    let own =
        |targeted: &&TargetedCondition| !SYSTEM_TYPES.contains(&targeted.condition.r#type.as_str());
    let conditions: Vec<_> = report.conditions.iter().filter(own).collect();
    // At once, because every change reads and writes the whole list.
    if !conditions.is_empty() {
        set_conditions(
            &mut xr.object,
            conditions.iter().map(|targeted| targeted.condition.clone()),
        );
    }
    let of_claim = conditions.iter().filter(|targeted| targeted.claim);
    pass.layout()
        .add_claim_condition_types(&mut xr.object, of_claim.map(|t| t.condition.r#type.as_str()));
    conditions.into_iter().map(|targeted| targeted.condition.r#type.clone()).collect()
}

/// Returns the claim, if there is one and it can be read.
async fn claim(pass: &Pass<'_>, xr: &Object) -> Option<Object> {
    let reference = pass.layout().claim(xr)?;
    let gvk = Gvk::new(&reference.api_version, &reference.kind);
    let id = ObjectId::new(gvk, &reference.namespace, &reference.name);
    match pass.cluster().get(&id, Source::Cache, pass.by).await.optional() {
        Ok(found) => found,
        Err(error) => {
            tracing::debug!(claim = %id, %error, "cannot get claim");
            None
        }
    }
}

/// What is missing to a composed resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The API server did not accept it.
    Valid,
    /// No function has called it ready.
    Ready,
}

impl Missing {
    fn word(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Ready => "ready",
        }
    }
}

/// The message of the event about a composed resource that is not as it should be.
///
/// The render protocol has no other place for it, so the message is also read: by those who
/// summarise what an engine said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotYet {
    /// The name of the resource in the pipeline.
    pub resource: String,
    /// What is missing.
    pub missing: Missing,
}

impl std::fmt::Display for NotYet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (resource, missing) = (quote(&self.resource), self.missing.word());
        write!(f, "Composed resource {resource} is not yet {missing}")
    }
}

impl NotYet {
    /// Reads a message. `None` if it is about something else.
    pub fn read(message: &str) -> Option<Self> {
        let rest = message.strip_prefix("Composed resource ")?;
        [Missing::Valid, Missing::Ready].into_iter().find_map(|missing| {
            let name = rest.strip_suffix(missing.word())?.strip_suffix(" is not yet ")?;
            Some(Self { resource: serde_json::from_str(name).ok()?, missing })
        })
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
    fn what_is_not_yet_ready_can_be_read_back() {
        for resource in ["bucket", "with \"quotes\"", "line\nbreak", ""] {
            for missing in [Missing::Valid, Missing::Ready] {
                let not_yet = NotYet { resource: resource.to_owned(), missing };
                assert_eq!(NotYet::read(&not_yet.to_string()), Some(not_yet));
            }
        }
        assert_eq!(NotYet::read("Composed resource \"a\" is not yet there"), None);
        assert_eq!(NotYet::read("Successfully selected composition: ready"), None);
    }

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
