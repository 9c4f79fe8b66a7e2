//! One change: what a provider did, why, and the resource as it was.

use biplane_recorder::query::answer::ChangeDetail;
use maud::html;

use super::changes;
use crate::layout::{Page, Place};
use crate::parts::{self, Links};
use crate::tree::{self, Position};

/// The page. `None` if the entry has no such part.
pub fn page(
    change: &ChangeDetail,
    position: &Position,
    from: usize,
    links: &dyn Links,
) -> Option<Page> {
    let item = &change.item;
    let title = format!("{} of {}", item.operation, parts::object_name(&item.object));
    let result = match &item.error {
        Some(error) => format!("failed: {}", parts::cut(error, 300)),
        None => "succeeded".to_owned(),
    };
    let cause = match item.cause.as_deref() {
        Some("spec-change") => " What is desired had changed.",
        Some("drift") => " Nobody had changed what is desired: the outside world had changed.",
        Some("retry") => " It was tried again after a failure.",
        Some("resume") => " It had been paused.",
        Some("recreate") => " It had existed before.",
        _ => "",
    };
    let sentence = format!("The {} {result}.{cause}", item.operation);
    let base = format!("/changes/{}", item.id);
    let body = html! {
        h1 { (title) }
        p.path {
            a rel="up" href="/changes" { "Changes" }
            span { (parts::when(&item.at)) }
            @if !item.provider.is_empty() { span { (item.provider) } }
        }
        (parts::lead(if item.error.is_some() { "fail" } else { "" }, &sentence))
        dl {
            dt { "Resource" } dd { (parts::object(&item.object, links)) }
            @if !item.external_name.is_empty() { dt { "External name" } dd.data { (item.external_name) } }
            @if let Some(cause) = &item.cause { dt { "Cause" } dd { (cause) } }
            @if let Some(link) = &item.link {
                dt { "Run" } dd { (changes::link(item)) }
                dt { "Owner" } dd { (parts::object(&link.owner, links)) @if !link.resource.is_empty() { ", " (link.resource) } }
            }
            dt { "Received" } dd { (parts::when(&change.received)) " by " (change.source) ", entry " (change.sequence) }
        }
        @if let Some(error) = &item.error { section.box { h2 { "Error" } pre { (parts::cut(error, 4000)) } } }
        h2 { "Entry" }
        (tree::document(&change.entry, position, from, &base)?)
    };
    Some(
        Page::new(Place::Changes, title, body)
            .command(format!("biplane changelogs show {}", item.id)),
    )
}
