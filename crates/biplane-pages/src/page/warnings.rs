//! What was found in runs that somebody should look at.

use biplane_recorder::query::answer::{WarningDetail, WarningItem, WarningList};
use maud::{Markup, html};

use crate::layout::{Page, Place};
use crate::parts::{self, Links};

/// What a kind of warning is called.
fn title(kind: &str) -> &str {
    match kind {
        "flapping" => "Flapping field",
        "same-input" => "Same input, different output",
        "unstable-requirements" => "Unstable requirements",
        "slow-step" => "Slow step",
        "size" => "Near the size limit",
        other => other,
    }
}

fn state(item: &WarningItem) -> Markup {
    html! {
        @if item.open { span.status.warn { "goes on" } } @else { span.status.ok { "over" } }
    }
}

/// The list.
pub fn list(list: &WarningList, links: &dyn Links) -> Page {
    let tone = if list.warnings.iter().any(|warning| warning.open) { "warn" } else { "" };
    let body = html! {
        h1 { "Warnings" }
        (parts::lead(tone, &list.sentence))
        @if list.warnings.is_empty() {
            (parts::empty("What is looked for", &html! {
                ul {
                    li { "fields that change back and forth, and whom the pipeline fights" }
                    li { "functions that answer the same input with different output" }
                    li { "requirements that never settle" }
                    li { "steps that take much longer than they usually do" }
                    li { "messages and objects near their size limits" }
                }
            }))
        } @else {
            div.scroll {
                table {
                    caption.hidden { "Warnings, the last seen first" }
                    thead {
                        tr {
                            th scope="col" { "Warning" } th scope="col" { "Composite" } th scope="col" { "What was found" }
                            th scope="col" { "Last seen" } th.number scope="col" { "Seen" } th scope="col" { "State" }
                        }
                    }
                    tbody {
                        @for warning in &list.warnings {
                            tr class=(if warning.open { "warn" } else { "" }) {
                                th scope="row" { a href={ "/warnings/" (warning.id) } { (title(&warning.kind)) } }
                                td { (parts::object(&warning.owner, links)) }
                                td { (parts::cut(&warning.sentence, 240)) }
                                td { (parts::when(&warning.last)) }
                                td.number { (parts::number(warning.count)) }
                                td { (state(warning)) }
                            }
                        }
                    }
                }
            }
            @if let Some(more) = &list.more { p.pages { a rel="next" href={ "/warnings?after=" (more) } { "Older warnings" } } }
        }
    };
    Page::new(Place::Warnings, "Warnings", body).command("biplane inspector warnings")
}

/// One of them.
pub fn one(warning: &WarningDetail, links: &dyn Links) -> Page {
    let item = &warning.item;
    let title = title(&item.kind);
    let slot = item.resource.as_ref().and_then(|name| links.slot(&item.owner, name));
    let body = html! {
        h1 { (title) }
        p.path {
            a rel="up" href="/warnings" { "Warnings" }
            span { (parts::object(&item.owner, links)) }
            (state(item))
        }
        (parts::lead(if item.open { "warn" } else { "" }, &item.sentence))
        dl {
            @if let Some(name) = &item.resource {
                dt { "Resource" }
                dd {
                    @let label = if name.is_empty() { "composite" } else { name };
                    @match &slot {
                        Some(key) => a href={ "/r/" (key) } { (label) },
                        None => (label),
                    }
                }
            }
            @if let Some(path) = &item.path { dt { "Field" } dd.data { (path) } }
            @if let Some(step) = &item.step { dt { "Step" } dd { (parts::step_name(step)) " " span.dim { (step.function) } } }
            @for fact in warning.facts.iter().take(100) { dt { (fact.name) } dd.data { (parts::cut(&fact.value, 400)) } }
            dt { "First seen" } dd { (parts::when(&item.first)) " in run " (parts::run(&item.first_run)) }
            dt { "Last seen" } dd { (parts::when(&item.last)) " in run " (parts::run(&item.last_run)) }
            dt { "Seen" } dd { (parts::counted(item.count, "time")) }
        }
        @if !warning.advice.is_empty() { section.box { h2 { "What to do" } p { (warning.advice) } } }
    };
    Page::new(Place::Warnings, title, body)
        .command(format!("biplane inspector warnings {}", parts::quoted(&item.id)))
}
