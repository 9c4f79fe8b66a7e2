//! A composed resource: how it came to be as it is, and one of its states.

use biplane_recorder::query::answer::{BlameItem, ChangeItem, Diff, StepRef};
use biplane_recorder::query::record::ObjectRef;
use biplane_recorder::query::sentence::lists::{self, ResourceHistory};
use maud::{Markup, html};

use super::changes;
use crate::draw;
use crate::ids;
use crate::layout::{Page, Place};
use crate::parts::{self, Links};

/// A version of what is desired of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// The run that had it first. `None` if it is no longer kept.
    pub run: Option<String>,
    /// When that run began, in microseconds since 1970.
    pub at: i64,
    /// Whether it is gone from then on.
    pub gone: bool,
    /// The paths that changed.
    pub fields: Vec<String>,
}

/// All that the page shows.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// The key of the slot.
    pub key: i64,
    /// The owner.
    pub owner: ObjectRef,
    /// The name of the composed resource; empty for the composite resource.
    pub name: String,
    /// The object.
    pub object: ObjectRef,
    /// The sentence's values.
    pub history: ResourceHistory,
    /// The versions of what is desired, the newest first.
    pub versions: Vec<Version>,
    /// Whether there are older ones.
    pub is_cut: bool,
    /// What the provider did, the newest first.
    pub changes: Vec<ChangeItem>,
    /// Who set what, in the last run that got to its end.
    pub blame: Option<(String, BlameItem)>,
    /// Questions that can be asked about it: words and address.
    pub questions: Vec<(String, String)>,
}

fn run_href(trace: &str) -> String {
    format!("/runs/{}", ids::trace(trace))
}

/// The page of a resource.
pub fn page(resource: &Resource, links: &dyn Links) -> Page {
    let Resource { owner, name, object, .. } = resource;
    let key = ids::text(resource.key);
    let label = if name.is_empty() { "composite" } else { name };
    let failed = resource.history.provider.as_ref().is_some_and(|(_, error)| error.is_some());
    let title = match parts::object_name(object).as_str() {
        "" => label.to_owned(),
        object => object.to_owned(),
    };
    let body = html! {
        h1 { (title) }
        p.path {
            span { (label) " of " (parts::object(owner, links)) }
            @if !object.api_version.is_empty() { span { (object.api_version) } }
            @if !object.namespace.is_empty() { span { "Namespace " (object.namespace) } }
        }
        (parts::lead(if failed { "fail" } else { "" }, &lists::resource(&resource.history)))
        @if !resource.questions.is_empty() {
            div.row { @for (words, href) in &resource.questions { a href=(href) { (words) } } }
        }
        h2 { "Blame" }
        @match &resource.blame {
            Some((run, item)) => {
                p.dim { "In run " (parts::run(run)) ", the last that got to its end." }
                (blame(item))
            },
            None => p.dim { "No run that got to its end has it." },
        }
        h2 { "History " span.dim { "what was desired" } }
        (versions(resource, &key))
        h2 { "Provider " span.dim { "what was done outside" } }
        @if resource.changes.is_empty() { (changes::none()) } @else { (changes::table(&resource.changes, links)) }
    };
    let command = match &resource.blame {
        Some((run, _)) => format!(
            "biplane inspector blame {}",
            parts::quoted(&format!("{}:{name}", ids::trace(run)))
        ),
        None => format!(
            "biplane changelogs list {}",
            parts::quoted(&format!("{}/{}", object.kind, object.name))
        ),
    };
    Page::new(Place::Resources, title, body).command(command)
}

/// Who set what, within the size of a page.
pub fn blame(item: &BlameItem) -> Markup {
    const FIELDS: usize = 100;
    if item.fields.len() <= FIELDS {
        return draw::blame(item, &run_href);
    }
    let cut =
        BlameItem { fields: item.fields.iter().take(FIELDS).cloned().collect(), ..item.clone() };
    html! {
        (draw::blame(&cut, &run_href))
        p.dim { (item.fields.len() - FIELDS) " more fields. The command below prints all of them." }
    }
}

fn versions(resource: &Resource, key: &str) -> Markup {
    if resource.versions.is_empty() {
        return html! { p.dim { "No version is kept." } };
    }
    html! {
        div.scroll {
            table {
                caption.hidden { "Versions, the newest first" }
                thead { tr { th scope="col" { "Since" } th scope="col" { "Run" } th scope="col" { "What changed" } } }
                tbody {
                    @for version in &resource.versions {
                        tr {
                            th scope="row" { (parts::when_micros(version.at)) }
                            td {
                                @match &version.run {
                                    Some(run) => a.data href={ "/runs/" (ids::trace(run)) "/r/" (key) } { (ids::trace(run)) },
                                    None => span.dim { "no longer kept" },
                                }
                            }
                            td {
                                @if version.gone { "no longer desired" }
                                @else if version.fields.is_empty() { span.second { "first version that is kept" } }
                                @else { (parts::cut(&version.fields.join(", "), 300)) }
                            }
                        }
                    }
                }
            }
        }
        @if resource.is_cut { p.dim { "Older versions are not shown." } }
    }
}

/// A resource in one run.
#[derive(Clone, Copy, Debug)]
pub struct InRun<'a> {
    /// The run.
    pub trace: &'a str,
    /// Its owner.
    pub owner: &'a ObjectRef,
    /// The name of the composed resource; empty for the composite resource.
    pub name: &'a str,
    /// The key of the slot.
    pub key: i64,
    /// What differs from the run before, if it is known.
    pub diff: Option<&'a Diff>,
    /// The same, drawn.
    pub drawn: &'a Markup,
    /// Who set what.
    pub blamed: Option<&'a BlameItem>,
}

/// The page of a resource in one run: what differs from the run before, and who set what.
pub fn in_run(shown: &InRun<'_>, links: &dyn Links) -> Page {
    let InRun { name, key, diff, drawn, blamed, .. } = *shown;
    let id = ids::trace(shown.trace);
    let label = if name.is_empty() { "composite" } else { name };
    let body = html! {
        h1 { (label) " in run " (id) }
        p.path {
            a rel="up" href={ "/runs/" (id) } { "The run" }
            a href={ "/r/" (ids::text(key)) } { "All about the resource" }
            span { (parts::object(shown.owner, links)) }
        }
        @if let Some(diff) = diff { (parts::lead("", &diff.sentence)) (drawn) }
        @else { (parts::lead("", "What differs is not known.")) (drawn) }
        h2 { "Blame" }
        @match blamed {
            Some(item) => (blame(item)),
            None => p.dim { "No step of this run desired it." },
        }
    };
    let address = parts::quoted(&format!("{id}:{name}"));
    let mut page = Page::new(Place::Runs, format!("{label} in run {id}"), body)
        .command(format!("biplane inspector diff {address}"));
    page.run = Some(id.to_owned());
    page
}

/// The label of a step for sentences: `2, compose`.
pub fn step_words(step: &StepRef) -> String {
    let name = if step.name.is_empty() { &step.function } else { &step.name };
    format!("{}, {name}", step.number)
}
