//! How the recorder and its store are.

use biplane_recorder::query::answer::{Loss, Verify};
use biplane_recorder::query::sentence::lists::{self, StoreState};
use maud::html;

use crate::layout::{Page, Place};
use crate::parts;

/// Who sends.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// `inspector` or `changelogs`.
    pub kind: String,
    /// Its name, with the cluster if it has one.
    pub name: String,
    /// How many entries of change logs it has sent.
    pub entries: i64,
    /// When it last sent something, in microseconds since 1970.
    pub last: i64,
}

/// All that the page shows.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The sentence's values.
    pub state: StoreState,
    /// Which database it is.
    pub engine: &'static str,
    /// Who sends.
    pub sources: Vec<Source>,
    /// What was lost, the oldest first.
    pub losses: Vec<Loss>,
    /// Whether the chains are whole, if it was asked.
    pub verify: Option<Verify>,
}

/// The page.
pub fn page(status: &Status) -> Page {
    let is_broken = status.verify.as_ref().is_some_and(|verify| !verify.whole);
    let tone = if status.state.trouble.is_some() || is_broken {
        "fail"
    } else if status.state.lost > 0 {
        "lost"
    } else {
        ""
    };
    let body = html! {
        h1 { "Status" }
        (parts::lead(tone, &lists::store(&status.state)))
        dl {
            dt { "Store" } dd { (status.engine) }
            @if let Some(oldest) = status.state.oldest { dt { "Oldest run" } dd { (parts::when(&oldest.to_string())) } }
        }
        h2 { "Who sends" }
        @if status.sources.is_empty() { p.dim { "Nobody has sent anything." } } @else {
            div.scroll {
                table {
                    caption.hidden { "Sources" }
                    thead { tr { th scope="col" { "Source" } th scope="col" { "Sends" } th.number scope="col" { "Entries" } th scope="col" { "Last" } } }
                    tbody {
                        @for source in status.sources.iter().take(200) {
                            tr {
                                th scope="row" { (source.name) }
                                td { (if source.kind == "changelogs" { "change logs" } else { "runs" }) }
                                td.number { @if source.kind == "changelogs" { (parts::number(source.entries)) } }
                                td { (parts::when_micros(source.last)) }
                            }
                        }
                    }
                }
            }
        }
        h2 { "Lost" }
        @if status.losses.is_empty() { p.dim { "Nothing in the last 24 hours." } } @else {
            ul.plain {
                @for loss in status.losses.iter().rev().take(100) {
                    li { (parts::when(&loss.from)) " to " (parts::when(&loss.until)) ": " (parts::counted(loss.emissions, "emission")) ", " (loss.reason) }
                }
            }
            p { "The queue was full: the store is too slow, or " code { "--queue-size" } " too small. The disk was full: " code { "--retain-size" } " says how much is kept." }
        }
        h2 { "Chains of change logs" }
        @match &status.verify {
            None => p { a href="/status/verify" { "Check that no entry was changed" } },
            Some(verify) => {
                p { @if verify.whole { "All are whole: no entry was changed after it was received." } @else { span.status.fail { "broken" } } }
                ul.plain {
                    @for source in verify.sources.iter().take(200) {
                        li {
                            (source.source) ": " @if source.entries == 1 { "1 entry" } @else { (parts::number(source.entries)) " entries" }
                            @if source.removed > 0 { ", " (parts::number(source.removed)) " removed by retention" }
                            @for broken in source.broken.iter().take(20) { div { span.status.fail { "broken" } " " (broken) } }
                        }
                    }
                }
            },
        }
    };
    Page::new(Place::Elsewhere, "Status", body).command("biplane changelogs verify")
}
