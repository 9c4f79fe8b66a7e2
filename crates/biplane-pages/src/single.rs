//! All about a run as one file that can be sent to somebody: its style is inside, and it has no script.

use biplane_go::json;
use biplane_recorder::query::answer::{
    ChangeItem, Condition, FieldItem, Need, RunDetail, Sign, SlotItem, StepItem,
};
use biplane_recorder::query::difference::is_redacted;
use biplane_recorder::query::record::ObjectRef;
use biplane_recorder::query::report::{Report, ReportStep};
use biplane_recorder::query::time;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use crate::layout;

/// The style of this page alone.
const CSS: &str = include_str!("single/style.css");

/// A document about a run.
pub fn page(report: &Report) -> String {
    let owner = &report.run.item.owner;
    let title = format!("{} {}", owner.kind, owner.name);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                meta name="referrer" content="no-referrer";
                title { (title) }
                // The style is our own and has no end tag in it.
                style { (PreEscaped(layout::CSS.as_str())) (PreEscaped(CSS)) }
            }
            body { main { (body(report)) } }
        }
    };
    page.into_string()
}

fn body(report: &Report) -> Markup {
    let run = &report.run;
    let item = &run.item;
    let redacted: usize = report.steps.iter().map(|step| step.item.redacted.len()).sum();
    html! {
        h1 { (item.owner.kind) " " (item.owner.name) }
        p.soft {
            @if !item.owner.namespace.is_empty() { "Namespace " (item.owner.namespace) ". " }
            @if !item.composition.is_empty() { "Composition " (item.composition) ". " }
            (when(&item.started)) " UTC, run " code { (item.run) } "."
        }
        p.sentence.bad[item.outcome.is_failure()] { (run.sentence) }
        h2 { "Steps" }
        (steps(&run.steps))
        h2 { "Resources" }
        @if run.resources.is_empty() { p.soft { "No resource is desired differently than in the run before." } }
        @for slot in &run.resources { (slot_difference(slot)) }
        @if run.unchanged > 0 { p.soft { (run.unchanged) " unchanged." } }
        (evidence(run))
        h2 { "Calls" }
        @for step in &report.steps { (call(step)) }
        h2 { "About this file" }
        p {
            code { (report.command) }
            " prints the same where the records are."
            @if redacted > 0 { " Secrets are redacted." }
        }
    }
}

/// Conditions, required resources and what providers did.
fn evidence(run: &RunDetail) -> Markup {
    let condition = |condition: &Condition| {
        [
            condition.r#type.clone(),
            condition.status.clone(),
            condition.reason.clone(),
            condition.step.label(),
            condition.message.clone(),
        ]
    };
    let need = |need: &Need| {
        [
            need.name.clone(),
            object(&need.object),
            need.object.namespace.clone(),
            need.resource_version.clone(),
            need.step.label(),
        ]
    };
    let change = |change: &ChangeItem| {
        [
            when(&change.at),
            change.operation.clone(),
            object(&change.object),
            change.provider.clone(),
            change.link.as_ref().map(|link| link.certainty.clone()).unwrap_or_default(),
            change.error.as_ref().map_or("ok".to_owned(), |error| format!("failed: {error}")),
        ]
    };
    html! {
        @if !run.conditions.is_empty() {
            h2 { "Conditions" }
            (table(["Type", "Status", "Reason", "Step", "Message"], run.conditions.iter().map(condition)))
        }
        @if !run.needs.is_empty() {
            h2 { "Needs" }
            (table(["Name", "Object", "Namespace", "Version", "Step"], run.needs.iter().map(need)))
        }
        @if !run.changes.is_empty() {
            h2 { "Afterwards" }
            (table(
                ["At", "Operation", "Resource", "Provider", "Link", "Result"],
                run.changes.iter().map(change)
            ))
        }
    }
}

fn table<const N: usize>(columns: [&str; N], rows: impl Iterator<Item = [String; N]>) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { @for column in columns { th scope="col" { (column) } } } }
            tbody { @for row in rows { tr { @for cell in row { td { (cell) } } } } }
        } }
    }
}

fn steps(items: &[StepItem]) -> Markup {
    let row = |item: &StepItem| {
        let worst = |severity: &str| item.results.iter().find(|r| r.severity == severity);
        let result = worst("fatal").or_else(|| worst("warning")).or_else(|| worst("normal"));
        let said = item.error.clone().or_else(|| result.map(|result| result.message.clone()));
        [
            item.step.label(),
            item.step.function.clone(),
            item.took_micros.map(time::took).unwrap_or_default(),
            item.outcome.name().to_owned(),
            format!("+{} ~{} -{}", item.added, item.changed, item.removed),
            said.unwrap_or_default(),
        ]
    };
    table(["Step", "Function", "Took", "Outcome", "Resources", "Result"], items.iter().map(row))
}

fn call(step: &ReportStep) -> Markup {
    let item = &step.item;
    let is_open = item.outcome.is_failure();
    html! {
        h3 { (item.step.label()) @if item.call > 1 { ", call " (item.call) } }
        @if let Some(error) = &item.error { p.bad { (error) } }
        @for result in &item.results { p { (result.severity) ": " (result.message) } }
        @if step.resources.is_empty() && step.context.is_empty() && item.response.is_some() {
            p.soft { "It desired what it was given." }
        }
        @for slot in &step.resources { (slot_difference(slot)) }
        @if !step.context.is_empty() {
            p { "Context" }
            ul.fields { @for field in &step.context { li { (field_difference(field)) } } }
        }
        @for (title, payload) in [("What it was given", &item.request), ("What it answered", &item.response)] {
            @if let Some(payload) = payload {
                details open[is_open] {
                    summary { (title) }
                    pre { (biplane_recorder::query::print::yaml(payload)) }
                }
            }
        }
    }
}

fn sign(change: Sign) -> Markup {
    let (class, word) = match change {
        Sign::Added => ("added", "added"),
        Sign::Removed => ("removed", "removed"),
        Sign::Changed => ("soft", "changed"),
        Sign::Moved => ("moved", "moved"),
        Sign::Unchanged => ("soft", "unchanged"),
    };
    html! {
        span class=(class) aria-hidden="true" { (change.mark()) }
        span.hidden { (word) }
        " "
    }
}

fn slot_difference(slot: &SlotItem) -> Markup {
    let name = object(&slot.object);
    let hidden = slot.fields.iter().filter(|field| field.bookkeeping).count();
    html! {
        p {
            (sign(slot.change)) strong { (slot.label()) }
            @if !name.is_empty() { " " (name) }
            @if let Some(step) = &slot.step { span.soft { ", by step " (step.label()) } }
        }
        ul.fields {
            @if slot.coarse { li { "It is too large to be compared field by field." } }
            @for field in slot.own_fields() { li { (field_difference(field)) } }
            @if let Some((before, after)) = &slot.ready {
                li { (sign(Sign::Changed)) "ready: " del { (before) } " → " ins { (after) } }
            }
            @for key in &slot.connection_details {
                li { (sign(key.change)) "connection detail " (key.path) }
            }
            @for path in &slot.unknown {
                li { span.unknown { "? " (path) ": redacted, whether it differs is unknown" } }
            }
            @if hidden > 0 { li.soft { (hidden) " of bookkeeping" } }
        }
    }
}

fn field_difference(field: &FieldItem) -> Markup {
    let place = |at: Option<usize>| at.map_or(0, |at| at + 1);
    html! {
        (sign(field.change)) (field.path) ": "
        @match (field.change, &field.before, &field.after) {
            (Sign::Moved, _, _) => { "was item " (place(field.from)) ", is item " (place(field.to)) }
            (Sign::Added, _, Some(after)) => { ins { (value(after)) } }
            (Sign::Removed, Some(before), _) => { del { (value(before)) } }
            (_, before, after) => {
                del { (value(before.as_ref().unwrap_or(&Value::Null))) }
                " → "
                ins { (value(after.as_ref().unwrap_or(&Value::Null))) }
            }
        }
    }
}

fn value(value: &Value) -> Markup {
    html! {
        @if is_redacted(value) { span.unknown { "redacted" } }
        @else if let Value::String(text) = value { (text) }
        @else { (json::to_string(value)) }
    }
}

fn object(object: &ObjectRef) -> String {
    match (object.kind.as_str(), object.name.as_str()) {
        ("", name) => name.to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, name) => format!("{kind}/{name}"),
    }
}

/// A time to the second.
fn when(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), time::date)
}

#[cfg(test)]
mod tests {
    use super::*;
    use biplane_recorder::query::record::{Outcome, StepResult};
    use serde_json::json;

    /// A report in which every text tries to be markup.
    fn hostile() -> Report {
        let evil = || "<script>alert(1)</script>\"'&".to_owned();
        let object =
            || ObjectRef { kind: evil(), name: evil(), namespace: evil(), ..ObjectRef::default() };
        let field = |change| FieldItem {
            path: evil(),
            change,
            before: Some(json!(evil())),
            after: Some(json!({"x": evil()})),
            ..FieldItem::default()
        };
        let slot = SlotItem {
            resource: evil(),
            object: object(),
            fields: [Sign::Added, Sign::Removed, Sign::Changed, Sign::Moved].map(field).to_vec(),
            ready: Some((evil(), evil())),
            connection_details: vec![field(Sign::Added)],
            unknown: vec![evil()],
            coarse: true,
            ..SlotItem::default()
        };
        let item = StepItem {
            outcome: Outcome::Fatal,
            results: vec![StepResult { severity: "fatal".into(), message: evil(), reason: evil() }],
            error: Some(evil()),
            request: Some(json!({evil(): evil(), "s": "**REDACTED**"})),
            response: Some(json!([evil()])),
            redacted: vec![evil()],
            ..StepItem::default()
        };
        let mut run = RunDetail {
            sentence: evil(),
            steps: vec![item.clone()],
            resources: vec![slot.clone()],
            conditions: vec![Condition { message: evil(), ..Condition::default() }],
            needs: vec![Need { name: evil(), object: object(), ..Need::default() }],
            changes: vec![ChangeItem {
                provider: evil(),
                error: Some(evil()),
                ..ChangeItem::default()
            }],
            ..RunDetail::default()
        };
        run.item.owner = object();
        run.item.composition = evil();
        run.item.outcome = Outcome::Fatal;
        let context = vec![field(Sign::Changed)];
        let step = ReportStep { item, resources: vec![slot], context };
        Report { run, steps: vec![step], command: evil() }
    }

    #[test]
    fn nothing_in_a_record_becomes_markup_and_there_is_no_script() {
        let page = page(&hostile());
        assert!(!page.contains("<script"), "{page}");
        assert!(page.matches("&lt;script&gt;").count() > 20);
        for active in [
            "<iframe",
            "javascript:",
            " onload",
            " onclick",
            "<link",
            "src=",
            "http://",
            "https://",
        ] {
            assert!(!page.contains(active), "{active}");
        }
        assert!(page.contains("default-src 'none'"));
        assert_eq!(page.matches("<h1>").count(), 1);
    }
}
