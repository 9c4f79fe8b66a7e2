//! What a search found. Words do not stand in addresses, so the form is answered with this page.

use biplane_recorder::query::record::{ObjectRef, Outcome};
use maud::html;

use crate::ids;
use crate::layout::{Page, Place};
use crate::parts::{self, Links};

/// A run that says something.
#[derive(Clone, Debug, Default)]
pub struct FoundRun {
    /// The trace.
    pub trace: String,
    /// The owner.
    pub owner: ObjectRef,
    /// When it began, in microseconds since 1970.
    pub started: i64,
    /// How it ended.
    pub outcome: Outcome,
}

/// A field that changed.
#[derive(Clone, Debug, Default)]
pub struct FoundField {
    /// The key of the slot.
    pub slot: i64,
    /// The name of the resource, and its owner.
    pub name: String,
    /// The owner.
    pub owner: ObjectRef,
    /// The trace of the run, if it is kept.
    pub run: Option<String>,
    /// The value before and after.
    pub values: (String, String),
}

/// A change of a provider.
#[derive(Clone, Debug, Default)]
pub struct FoundChange {
    /// The key.
    pub id: i64,
    /// The resource.
    pub object: ObjectRef,
    /// When, in microseconds since 1970.
    pub at: i64,
    /// Why it failed.
    pub error: String,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// What was searched.
    pub words: String,
    /// Objects whose names begin so.
    pub objects: Vec<ObjectRef>,
    /// Runs that have the id, or whose messages have the words.
    pub runs: Vec<FoundRun>,
    /// Changes of a field with this path.
    pub fields: Vec<FoundField>,
    /// Failed changes whose error has the words.
    pub changes: Vec<FoundChange>,
}

/// The page.
pub fn page(found: &Found, links: &dyn Links) -> Page {
    let total = found.objects.len() + found.runs.len() + found.fields.len() + found.changes.len();
    let sentence = match total {
        0 => format!("Nothing was found for \u{201c}{}\u{201d}.", parts::cut(&found.words, 100)),
        1 => "One thing was found.".to_owned(),
        total => format!("{total} things were found."),
    };
    let body = html! {
        h1 { "Search" }
        (parts::lead("", &sentence))
        @if total == 0 {
            (parts::empty("What can be searched", &html! {
                ul {
                    li { "the beginning of a run's id: " code { "9822d93d" } }
                    li { "the beginning of a name, with or without the kind: " code { "north" } " or " code { "Store/north" } }
                    li { "the path of a field: " code { "spec.forProvider.region" } }
                    li { "whole words of results and errors, in the last runs that failed or warned" }
                }
            }))
        }
        @if !found.objects.is_empty() {
            h2 { "Resources" }
            ul.plain { @for object in &found.objects { li { (parts::object(object, links)) " " span.dim { (object.group()) } } } }
        }
        @if !found.runs.is_empty() {
            h2 { "Runs" }
            ul.plain {
                @for run in &found.runs {
                    li { (parts::run(&run.trace)) " " (parts::when_micros(run.started)) " " (parts::object(&run.owner, links)) " " (parts::status(run.outcome, false)) }
                }
            }
        }
        @if !found.fields.is_empty() {
            h2 { "Fields" }
            ul.plain {
                @for field in &found.fields {
                    li {
                        a href={ "/r/" (ids::text(field.slot)) } { (if field.name.is_empty() { "composite" } else { &field.name }) }
                        " of " (parts::object(&field.owner, links)) ": "
                        span.data { (parts::cut(&field.values.0, 80)) " → " (parts::cut(&field.values.1, 80)) }
                        @if let Some(run) = &field.run { " " (parts::run(run)) }
                    }
                }
            }
        }
        @if !found.changes.is_empty() {
            h2 { "Changes" }
            ul.plain {
                @for change in &found.changes {
                    li {
                        a href={ "/changes/" (change.id) } { (parts::when_micros(change.at)) } " "
                        (parts::object(&change.object, links)) " " (parts::cut(&change.error, 200))
                    }
                }
            }
        }
    };
    Page::new(Place::Elsewhere, "Search", body).command("biplane inspector runs")
}
