//! A composite resource or Operation: how it is, what it composes, and what happened to it.

use std::fmt::Write as _;

use biplane_recorder::query::answer::{ChangeItem, RunItem};
use biplane_recorder::query::record::ObjectRef;
use maud::{Markup, html};

use super::changes;
use super::run::{self, Beat};
use super::runs;
use crate::ids;
use crate::layout::{Page, Place};
use crate::parts::{self, Links};

/// How many composed resources a page has.
pub const SLOTS: usize = 200;

/// A composed resource.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    /// The key of the slot.
    pub key: i64,
    /// Its name.
    pub name: String,
    /// The object that was last observed there.
    pub object: ObjectRef,
    /// Since when what is desired of it is as it is, in microseconds since 1970.
    pub since: Option<i64>,
    /// Whether it is no longer desired.
    pub gone: bool,
    /// What the provider did last.
    pub change: Option<ChangeItem>,
}

/// All that the page shows.
#[derive(Clone, Debug, Default)]
pub struct Composite {
    /// The key of the object.
    pub key: i64,
    /// The object.
    pub object: ObjectRef,
    /// How it is.
    pub sentence: String,
    /// Whether the last run failed.
    pub is_failing: bool,
    /// Its last runs, the newest first.
    pub beats: Vec<Beat>,
    /// The same as rows.
    pub runs: Vec<RunItem>,
    /// Its composed resources: some of them.
    pub slots: Vec<Slot>,
    /// The first of them.
    pub from: usize,
    /// How many there are.
    pub total: usize,
    /// Objects around it: what they are to it, and their names.
    pub relations: Vec<(&'static str, ObjectRef)>,
    /// What providers did to its resources.
    pub changes: Vec<ChangeItem>,
    /// Whether providers have sent anything.
    pub has_changes: bool,
    /// Questions that can be asked about it: words and address.
    pub questions: Vec<(String, String)>,
}

/// The page.
pub fn page(composite: &Composite, links: &dyn Links) -> Page {
    let Composite { object, .. } = composite;
    let key = ids::text(composite.key);
    let title = parts::object_name(object);
    let composition = composite.runs.first().map(|run| run.composition.clone()).unwrap_or_default();
    let body = html! {
        h1 { (title) }
        p.path {
            @if !object.namespace.is_empty() { span { "Namespace " (object.namespace) } }
            @if !object.group().is_empty() { span { (object.group()) } }
            @if !composition.is_empty() { span { "Composition " (composition) } }
        }
        (parts::lead(if composite.is_failing { "fail" } else { "" }, &composite.sentence))
        @if !composite.questions.is_empty() {
            div.row { @for (words, href) in &composite.questions { a href=(href) { (words) } } }
        }
        (run::heartbeat(&composite.beats, ""))
        (at_form(&key))
        (slots(composite, &key, links))
        @if !composite.relations.is_empty() {
            h2 { "Around it" }
            dl {
                @for (what, object) in composite.relations.iter().take(50) {
                    dt { (what) } dd { (parts::object(object, links)) }
                }
            }
            @if composite.relations.len() > 50 { p.dim { (composite.relations.len() - 50) " more" } }
        }
        h2 { "Runs" }
        @if composite.runs.is_empty() { p { "No run of it is kept. Retention may have removed them." } }
        @else {
            (runs::table(&composite.runs, &[], links))
            p.pages { a href={ "/runs?f=x" (key) } { "All runs of it" } }
        }
        h2 { "Changes " span.dim { "what providers did to its resources" } }
        @if !composite.changes.is_empty() { (changes::table(&composite.changes, links)) }
        @else if composite.has_changes { p.dim { "None is kept." } }
        @else { (changes::none()) }
    };
    let kind = biplane_recorder::query::archive::kind_and_group(object);
    let mut command =
        format!("biplane inspector runs {}", parts::quoted(&format!("{kind}/{}", object.name)));
    if !object.namespace.is_empty() {
        let _ = write!(command, " --namespace={}", parts::quoted(&object.namespace));
    }
    Page::new(Place::Resources, title, body).command(command)
}

/// Time travel: a time is posted, so that the address has an id of it.
fn at_form(key: &str) -> Markup {
    html! {
        form.filters method="post" action={ "/x/" (key) "/at" } aria-label="At a time" {
            label { "At a time (UTC)" input type="text" name="at" placeholder="14:00 or 2026-01-15T14:00:00Z" maxlength="40" autocomplete="off"; }
            button type="submit" { "Show what was" }
        }
    }
}

fn slots(composite: &Composite, key: &str, links: &dyn Links) -> Markup {
    let end = composite.from + composite.slots.len();
    html! {
        h2 { "Resources " span.dim { (parts::number(i64::try_from(composite.total).unwrap_or(i64::MAX))) } }
        @if composite.slots.is_empty() { p.dim { "No composed resource is known." } } @else {
            div.scroll {
                table {
                    caption.hidden { "Composed resources" }
                    thead {
                        tr {
                            th scope="col" { "Resource" }
                            th scope="col" { "Object" }
                            th scope="col" { "As it is since" }
                            th scope="col" { "Provider" }
                        }
                    }
                    tbody {
                        @for slot in &composite.slots {
                            tr class=(if slot.change.as_ref().is_some_and(|change| change.error.is_some()) { "fail" } else { "" }) {
                                th scope="row" { a href={ "/r/" (ids::text(slot.key)) } { (slot.name) } }
                                td { (parts::object(&slot.object, links)) }
                                td {
                                    @if let Some(since) = slot.since { (parts::when_micros(since)) }
                                    @if slot.gone { " " span.second { "no longer desired" } }
                                }
                                td {
                                    @if let Some(change) = &slot.change {
                                        a href={ "/changes/" (change.id) } { (change.operation) }
                                        @if change.error.is_some() { " " span.status.fail { "failed" } } @else { " ok" }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if composite.from > 0 || end < composite.total {
                p.pages {
                    @if composite.from > 0 { a rel="prev" href={ "/x/" (key) "?o=" (composite.from.saturating_sub(SLOTS)) } { "Before" } }
                    span.dim { (composite.from + 1) " to " (end) }
                    @if end < composite.total { a rel="next" href={ "/x/" (key) "?o=" (end) } { "Next" } }
                }
            }
        }
    }
}

/// The page of an object that has no pipeline: who requires it, and what was done to it.
pub fn other(
    object: &ObjectRef,
    needed_by: &[ObjectRef],
    changed: &[ChangeItem],
    links: &dyn Links,
) -> Page {
    let title = parts::object_name(object);
    let sentence = match needed_by.len() {
        0 => "No pipeline is known to require it.".to_owned(),
        1 => "The pipeline of one composite resource requires it.".to_owned(),
        count => format!("The pipelines of {count} composite resources require it."),
    };
    let body = html! {
        h1 { (title) }
        p.path {
            @if !object.namespace.is_empty() { span { "Namespace " (object.namespace) } }
            @if !object.group().is_empty() { span { (object.group()) } }
        }
        (parts::lead("", &sentence))
        @if !needed_by.is_empty() {
            h2 { "Required by" }
            ul.plain {
                @for owner in needed_by.iter().take(200) { li { (parts::object(owner, links)) } }
                @if needed_by.len() > 200 { li.dim { (needed_by.len() - 200) " more" } }
            }
        }
        h2 { "Changes" }
        @if changed.is_empty() { p.dim { "No change of it is kept." } } @else { (changes::table(changed, links)) }
    };
    let address = parts::quoted(&format!("{}/{}", object.kind, object.name));
    Page::new(Place::Resources, title, body).command(format!("biplane changelogs list {address}"))
}
