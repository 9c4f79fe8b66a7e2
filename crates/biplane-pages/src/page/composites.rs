//! The list of composite resources and Operations.

use biplane_recorder::query::record::{ObjectRef, Outcome};
use maud::html;

use crate::ids;
use crate::layout::{Page, Place};
use crate::parts;

/// One of them with its last run.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// The key of the object.
    pub key: i64,
    /// The object.
    pub object: ObjectRef,
    /// The trace of its last run, when it began in microseconds since 1970, and how it ended.
    pub last: Option<(String, i64, Outcome, bool)>,
}

/// The page. `more` is where the list goes on.
pub fn page(items: &[Item], more: Option<i64>) -> Page {
    let failing = items
        .iter()
        .filter(|item| item.last.as_ref().is_some_and(|(.., outcome, _)| outcome.is_failure()))
        .count();
    let count = i64::try_from(items.len()).unwrap_or_default();
    let sentence = match (count, failing) {
        (0, _) => "No composite resource has a run that is kept.".to_owned(),
        (count, 0) => {
            format!("{}. The last run of none failed.", parts::counted(count, "composite resource"))
        }
        (count, failing) => {
            format!(
                "{}. The last run of {failing} failed.",
                parts::counted(count, "composite resource")
            )
        }
    };
    let body = html! {
        h1 { "Resources" }
        (parts::lead(if failing > 0 { "fail" } else { "" }, &sentence))
        @if !items.is_empty() {
            div.scroll {
                table {
                    caption.hidden { "Composite resources and Operations" }
                    thead { tr { th scope="col" { "Composite" } th scope="col" { "Namespace" } th scope="col" { "Last run" } th scope="col" { "Outcome" } } }
                    tbody {
                        @for item in items {
                            tr class=(item.last.as_ref().filter(|(.., outcome, _)| outcome.is_failure()).map_or("", |(.., outcome, _)| parts::tone(*outcome))) {
                                th scope="row" { a href={ "/x/" (ids::text(item.key)) } { (parts::object_name(&item.object)) } }
                                td { (item.object.namespace) }
                                @match &item.last {
                                    Some((trace, at, outcome, open)) => {
                                        td { a href={ "/runs/" (ids::trace(trace)) } { (parts::when_micros(*at)) } }
                                        td { (parts::status(*outcome, *open)) }
                                    },
                                    None => td colspan="2" { span.dim { "none is kept" } },
                                }
                            }
                        }
                    }
                }
            }
        }
        @if let Some(key) = more { p.pages { a rel="next" href={ "/x?after=" (ids::text(key)) } { "More" } } }
    };
    Page::new(Place::Resources, "Resources", body).command("biplane inspector runs")
}
