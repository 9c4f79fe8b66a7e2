//! The list of what providers did.

use std::fmt::Write as _;

use biplane_recorder::query::answer::{ChangeItem, ChangeList};
use biplane_recorder::query::record::ObjectRef;
use biplane_recorder::query::sentence::lists;
use maud::{Markup, html};

use crate::ids::{Ended, Filter, SINCE};
use crate::layout::{Page, Place};
use crate::parts::{self, Links};

/// All that the page shows.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The changes.
    pub list: ChangeList,
    /// The filter as it stands in the address.
    pub filter: Filter,
    /// The resource that the filter names.
    pub object: Option<ObjectRef>,
    /// Whether providers have sent anything.
    pub has_changes: bool,
}

/// The page.
pub fn page(changes: &Changes, links: &dyn Links) -> Page {
    let failed = changes.list.changes.iter().filter(|change| change.error.is_some()).count();
    let count = changes.list.changes.len();
    let sentence = lists::changes(count, failed, changes.list.more.is_some(), None);
    let filter = &changes.filter;
    let body = html! {
        h1 { "Changes" }
        @if changes.has_changes {
            (parts::lead(if failed > 0 { "fail" } else { "" }, &sentence))
            (filters(changes))
            @if count == 0 {
                (parts::empty("No change fits the filter", &html! { p { a href="/changes" { "Show all changes" } } }))
            } @else {
                (table(&changes.list.changes, links))
                @if let Some(more) = &changes.list.more {
                    @let sign = if filter.is_empty() { '?' } else { '&' };
                    p.pages { a rel="next" href={ (filter.href("/changes")) (sign) "after=" (more) } { "Older changes" } }
                }
            }
        } @else {
            (parts::lead("", "No provider has sent a change log."))
            (none())
        }
    };
    let mut command = "biplane changelogs list".to_owned();
    if let Some(object) = &changes.object {
        command.push(' ');
        command.push_str(&parts::quoted(&format!("{}/{}", object.kind, object.name)));
    }
    if let Some(operation) = filter.operation {
        let _ = write!(command, " --operation={}", operation_name(operation));
    }
    if filter.ended.is_some() {
        command.push_str(" --failed");
    }
    if let Some(since) = &filter.since {
        let _ = write!(command, " --since={since}");
    }
    Page::new(Place::Changes, "Changes", body).command(command)
}

/// The name of an operation's number.
pub fn operation_name(number: i64) -> &'static str {
    match number {
        1 => "create",
        2 => "update",
        _ => "delete",
    }
}

fn filters(changes: &Changes) -> Markup {
    let Filter { since, ended, operation, .. } = &changes.filter;
    let name = changes.object.as_ref().map(|object| object.name.clone()).unwrap_or_default();
    html! {
        form.filters method="post" action="/changes" aria-label="Filter" {
            label {
                "Time"
                select name="since" {
                    option value="" selected[since.is_none()] { "Any time" }
                    @for (value, text) in SINCE { option value=(value) selected[since.as_deref() == Some(value)] { (text) } }
                }
            }
            label {
                "Operation"
                select name="operation" {
                    option value="" selected[operation.is_none()] { "Any" }
                    @for number in 1..=3 { option value=(number) selected[*operation == Some(number)] { (operation_name(number)) } }
                }
            }
            label { "Name" input type="text" name="name" value=(name) maxlength="253" autocomplete="off"; }
            label.check { input type="checkbox" name="failed" value="1" checked[*ended == Some(Ended::Failed)]; "Only failed" }
            button type="submit" { "Show" }
            @if !changes.filter.is_empty() { a href="/changes" { "Clear" } }
        }
    }
}

/// Changes in a row that repeat the one before: the same resource, operation and error.
fn retries(changes: &[ChangeItem]) -> Vec<(&ChangeItem, usize)> {
    let mut rows: Vec<(&ChangeItem, usize)> = Vec::new();
    for change in changes {
        match rows.last_mut() {
            Some((last, count))
                if last.error.is_some()
                    && last.error == change.error
                    && last.object == change.object
                    && last.operation == change.operation =>
            {
                *count += 1;
            }
            _ => rows.push((change, 1)),
        }
    }
    rows
}

/// A table of changes.
pub fn table(changes: &[ChangeItem], links: &dyn Links) -> Markup {
    html! {
        div.scroll {
            table {
                caption.hidden { "Changes, the newest first" }
                thead {
                    tr {
                        th scope="col" { "When" } th scope="col" { "Operation" } th scope="col" { "Resource" }
                        th scope="col" { "Provider" } th scope="col" { "Result" } th scope="col" { "Cause" } th scope="col" { "Run" }
                    }
                }
                tbody {
                    @for (change, count) in retries(changes) {
                        tr class=(if change.error.is_some() { "fail" } else { "" }) {
                            th scope="row" { a href={ "/changes/" (change.id) } { (parts::when(&change.at)) } }
                            td { (change.operation) }
                            td { (parts::object(&change.object, links)) }
                            td { (change.provider) }
                            td {
                                @match &change.error {
                                    Some(error) => { span.status.fail { "failed" } " " (parts::cut(error, 200)) },
                                    None => "ok",
                                }
                                @if count > 1 { " " span.second { (count) " attempts" } }
                            }
                            td { (change.cause.as_deref().unwrap_or_default()) }
                            td { (link(change)) }
                        }
                    }
                }
            }
        }
    }
}

/// The run that a change belongs to, and how certain that is.
pub fn link(change: &ChangeItem) -> Markup {
    html! {
        @if let Some(link) = &change.link {
            (parts::run(&link.run)) " " span.dim { (link.certainty) }
        }
    }
}

/// How change logs get here.
pub fn none() -> Markup {
    parts::empty(
        "No change logs",
        &html! {
            p { "Providers that support change logs send what they did to a sidecar. A DeploymentRuntimeConfig adds it:" }
            pre { "containers:\n- name: package-runtime\n  args: [--enable-changelogs]\n  volumeMounts:\n  - name: changelogs-vol\n    mountPath: /var/run/changelogs\n- name: recorder\n  args:\n  - recorder\n  - serve\n  - --changelogs-socket=/var/run/changelogs/changelogs.sock" }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_that_fail_in_the_same_way_are_one_row() {
        let change = |id: &str, error: Option<&str>| ChangeItem {
            id: id.to_owned(),
            operation: "update".to_owned(),
            error: error.map(str::to_owned),
            ..ChangeItem::default()
        };
        let list = [
            change("4", None),
            change("3", Some("a")),
            change("2", Some("a")),
            change("1", Some("b")),
        ];
        let rows: Vec<_> = retries(&list).iter().map(|(c, count)| (c.id.clone(), *count)).collect();
        assert_eq!(rows, [("4".to_owned(), 1), ("3".to_owned(), 2), ("1".to_owned(), 1)]);
    }
}
