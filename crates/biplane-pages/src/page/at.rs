//! A composite resource and what it composed at a time.

use biplane_recorder::query::answer::{At, AtItem};
use maud::{Markup, html};

use crate::draw;
use crate::ids;
use crate::layout::{Page, Place};
use crate::parts::{self, Links};

/// How many resources a page has, and how many fields of each.
pub const RESOURCES: usize = 100;
const FIELDS: usize = 5;

/// The page. `key` is the id of the composite resource.
pub fn page(at: &At, key: &str, from: usize, here: &str, links: &dyn Links) -> Page {
    let title = format!("{} at a time", parts::object_name(&at.owner));
    let shown = at.resources.iter().skip(from).take(RESOURCES);
    let end = from.saturating_add(RESOURCES).min(at.resources.len());
    let body = html! {
        h1 { (parts::object_name(&at.owner)) }
        p.path {
            a rel="up" href={ "/x/" (key) } { "As it is now" }
            span { "At " (parts::when(&at.at)) }
            span { "Run " (parts::run(&at.run.run)) }
            @if let Some(run) = &at.desired_run { span { "desired by run " (parts::run(run)) } }
            @if let Some(after) = &at.run_after { a rel="next" href={ "/runs/" (ids::trace(&after.run)) } { "The run after" } }
        }
        (parts::lead(if at.run.outcome.is_failure() { "fail" } else { "" }, &at.sentence))
        div.scroll {
            table {
                caption.hidden { "Resources at that time" }
                thead { tr { th scope="col" { "Resource" } th scope="col" { "Object" } th scope="col" { "Ready" } th scope="col" { "Observed" } th scope="col" { "Desired" } } }
                tbody { @for item in shown { (row(at, item, links)) } }
            }
        }
        @if from > 0 || end < at.resources.len() {
            p.pages {
                @if from > 0 { a rel="prev" href={ (here) "?o=" (from.saturating_sub(RESOURCES)) } { "Before" } }
                span.dim { (from + 1) " to " (end) " of " (at.resources.len()) }
                @if end < at.resources.len() { a rel="next" href={ (here) "?o=" (end) } { "Next" } }
            }
        }
    };
    let owner = format!("{}/{}", at.owner.kind, at.owner.name);
    Page::new(Place::Resources, title, body).command(format!(
        "biplane inspector at {} {}",
        parts::quoted(&at.at),
        parts::quoted(&owner)
    ))
}

fn row(at: &At, item: &AtItem, links: &dyn Links) -> Markup {
    let differs: Vec<_> =
        item.differs.iter().filter(|field| !field.bookkeeping).take(FIELDS).cloned().collect();
    let slot = links.slot(&at.owner, &item.resource);
    let since = |since: &Option<biplane_recorder::query::answer::Since>| {
        html! {
            @if let Some(since) = since {
                @if since.or_earlier { "before " } @else { "since " } (parts::when(&since.at))
            }
        }
    };
    html! {
        tr {
            th scope="row" {
                @match &slot {
                    Some(key) => a href={ "/r/" (key) } { (item.label()) },
                    None => (item.label()),
                }
            }
            td { (parts::object_name(&item.object)) }
            td { (item.ready) }
            td { @if item.observed.is_some() { (since(&item.observed_since)) } @else { span.dim { "not observed" } } }
            td {
                @if item.desired.is_some() { (since(&item.desired_since)) } @else { span.dim { "not desired" } }
                @if !differs.is_empty() { (draw::fields(&differs, &draw::Setting::default())) }
            }
        }
    }
}
