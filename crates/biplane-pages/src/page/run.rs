//! All about one run.

use biplane_recorder::query::answer::{RunDetail, Sign, SlotItem, StepItem};
use biplane_recorder::query::record::Outcome;
use maud::{Markup, html};

use super::changes;
use crate::ids;
use crate::layout::{Page, Place};
use crate::parts::{self, Links};

/// How many resources that differ a page of the run names.
pub const RESOURCES: usize = 100;
/// How many resources a page of their own names.
pub const RESOURCES_PAGE: usize = 200;
/// How many conditions, needs and changes are named.
const FEW: usize = 50;

/// A run in the history of its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// The trace.
    pub trace: String,
    /// When it began, in microseconds since 1970.
    pub started: i64,
    /// How long it took, in microseconds.
    pub took: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether more steps may come.
    pub open: bool,
}

/// What is around a run.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The owner's last runs, the newest first.
    pub beats: Vec<Beat>,
    /// The owner's run after.
    pub newer: Option<String>,
    /// Bytes that were received for each call, by position and call: request and response.
    pub bytes: Vec<(i64, i64)>,
}

/// The page.
pub fn page(run: &RunDetail, around: &Around, links: &dyn Links) -> Page {
    let item = &run.item;
    let id = ids::trace(&item.run);
    let owner = parts::object_name(&item.owner);
    let body = html! {
        (head(run, around, links))
        (parts::lead(lead_tone(item.outcome, item.open), &run.sentence))
        (heartbeat(&around.beats, &item.run))
        h2 { "Steps" }
        (steps(run, id))
        (resources(run, id, 0, RESOURCES, links))
        div.grid {
            (conditions(run))
            (needs(run, links))
        }
        (afterwards(run, links))
        details {
            summary { "Ids and sizes" }
            dl {
                dt { "Run" } dd.data { (item.run) }
                @for (at, step) in run.steps.iter().enumerate() {
                    dt { "Step " (step.step.number) @if step.call > 1 { ", call " (step.call) } }
                    dd.data {
                        (step.span)
                        @if let Some((request, response)) = around.bytes.get(at) {
                            " " (size(*request)) " in, " (size(*response)) " out"
                        }
                    }
                }
            }
        }
    };
    let mut page = Page::new(Place::Runs, format!("{owner}, run {id}"), body)
        .command(format!("biplane inspector run {id}"));
    page.run = Some(id.to_owned());
    page
}

fn size(bytes: i64) -> String {
    biplane_recorder::query::time::bytes(usize::try_from(bytes).unwrap_or_default())
}

/// The colour of the sentence about a run.
pub fn lead_tone(outcome: Outcome, is_open: bool) -> &'static str {
    let goes_on = is_open && outcome == Outcome::Incomplete;
    if goes_on || outcome == Outcome::Ok { "" } else { parts::tone(outcome) }
}

fn head(run: &RunDetail, around: &Around, links: &dyn Links) -> Markup {
    let item = &run.item;
    let id = ids::trace(&item.run);
    html! {
        h1 { (parts::object_name(&item.owner)) }
        p.path {
            @if let Some(href) = links.object(&item.owner) { a rel="up" href=(href) { "All about it" } }
            @if !item.owner.namespace.is_empty() { span { "Namespace " (item.owner.namespace) } }
            @if !item.composition.is_empty() { span { "Composition " (item.composition) } }
            span { "Run " span.data { (id) } }
            span { (parts::when(&item.started)) }
            @if item.took_micros.is_some() { span { (parts::took(item.took_micros)) } }
            (parts::status(item.outcome, item.open))
        }
        div.row {
            @if let Some(before) = &run.run_before {
                a rel="prev" href={ "/runs/" (ids::trace(before)) } { "‹ Older" }
            }
            @if let Some(newer) = &around.newer {
                a rel="next" href={ "/runs/" (ids::trace(newer)) } { "Newer ›" }
            }
            @if let Some(before) = &run.run_before {
                a data-key="C" href={ "/compare/" (ids::trace(before)) "/" (id) } { "Compare with the run before" }
            }
            @if !item.outcome.is_failure() {
                a data-key="d" href={ "/runs/" (id) "/diff" } { "Difference" }
                a data-key="b" href={ "/runs/" (id) "/blame" } { "Blame" }
            }
        }
    }
}

/// The owner's last runs as bars: the height is the time that each took.
pub fn heartbeat(beats: &[Beat], here: &str) -> Markup {
    if beats.len() < 2 {
        return html! {};
    }
    let slowest = beats.iter().map(|beat| beat.took).max().unwrap_or_default().max(1);
    let width = 12;
    let count = i64::try_from(beats.len()).unwrap_or_default();
    html! {
        h2 { "Heartbeat " span.dim { "the last " (beats.len()) " runs" } }
        svg width=(width * count) height="36" viewBox={ "0 0 " (width * count) " 36" } aria-hidden="true" {
            line.base x1="0" y1="34" x2=(width * count) y2="34" {}
            @for (beat, at) in beats.iter().rev().zip(0_i64..) {
                @let height = (beat.took.max(0) * 28 / slowest).max(4);
                @let class = if beat.outcome.is_failure() || beat.outcome == Outcome::Warning { parts::tone(beat.outcome) } else if beat.trace == here { "here" } else { "ok" };
                @let words = beat_words(beat);
                a href={ "/runs/" (ids::trace(&beat.trace)) } tabindex="-1" {
                    title { (words) }
                    rect class=(class) x=(at * width + 2) y=(34 - height) width=(width - 4) height=(height) {}
                    @if beat.trace == here { rect.here x=(at * width + 2) y="35" width=(width - 4) height="1" {} }
                }
            }
        }
    }
}

fn beat_words(beat: &Beat) -> String {
    let time = jiff::Timestamp::from_microsecond(beat.started).unwrap_or_default();
    let shown = biplane_recorder::query::time::date(time);
    format!("{shown}, {}, {}", beat.outcome.name(), parts::took(Some(beat.took)))
}

fn steps(run: &RunDetail, id: &str) -> Markup {
    let start = |step: &StepItem| step.started.parse::<jiff::Timestamp>().ok();
    let first = run.steps.iter().filter_map(start).min().unwrap_or_default();
    let offset = |step: &StepItem| {
        start(step).map_or(0, |at| at.as_microsecond() - first.as_microsecond()).max(0)
    };
    let end = |step: &StepItem| offset(step) + step.took_micros.unwrap_or_default();
    let whole = run.steps.iter().map(end).max().unwrap_or_default().max(1);
    let is_timed = run.steps.iter().any(|step| step.took_micros.is_some());
    let many_calls = run.steps.iter().any(|step| step.call > 1);
    let last = run.steps.last().map_or(0, |step| step.step.number);
    html! {
        div.scroll {
            table {
                caption.hidden { "Steps in order" }
                thead {
                    tr {
                        th scope="col" { "Step" }
                        th scope="col" { "Function" }
                        @if is_timed { th scope="col" { "Time" } th.number scope="col" { "Took" } }
                        th scope="col" { "Resources" }
                        th scope="col" { "Outcome" }
                    }
                }
                tbody {
                    @for step in &run.steps {
                        @let number = step.step.number;
                        @let address = if many_calls { format!("/runs/{id}/{number}.{}", step.call) } else { format!("/runs/{id}/{number}") };
                        @let key = (!many_calls && number < 10).then(|| number.to_string());
                        tr class=(if step.outcome.is_failure() { parts::tone(step.outcome) } else { "" }) {
                            th scope="row" {
                                (parts::step(&step.step)) " "
                                a href=(address) data-key=[key] { (name(step)) }
                                @if many_calls { " " span.dim { "call " (step.call) } }
                            }
                            td { (step.step.function) @if let Some(revision) = &step.revision { " " span.dim { (revision) } } }
                            @if is_timed {
                                td { (waterfall(offset(step), step.took_micros.unwrap_or_default(), whole, number)) }
                                td.number { (parts::took(step.took_micros)) @if step.cached == Some(true) { " " span.chip { "cached" } } }
                            }
                            td.nowrap { (counts(step)) }
                            td { (parts::status(step.outcome, false)) (said(step, &address)) }
                        }
                    }
                    @for missed in run.item.pipeline.iter().filter(|step| step.number > last) {
                        tr {
                            th scope="row" {
                                span.step.missed { (missed.number) } " "
                                (if missed.name.is_empty() { &missed.function } else { &missed.name })
                            }
                            td { (missed.function) }
                            td.second colspan=(if is_timed { "4" } else { "2" }) { "not reached" }
                        }
                    }
                }
            }
        }
    }
}

fn name(step: &StepItem) -> &str {
    if step.step.name.is_empty() { &step.step.function } else { &step.step.name }
}

fn waterfall(offset: i64, took: i64, whole: i64, number: i64) -> Markup {
    let at = |micros: i64| micros.clamp(0, whole) * 240 / whole;
    let width = at(took).clamp(2, 240);
    html! {
        svg width="240" height="12" viewBox="0 0 240 12" aria-hidden="true" {
            line.base x1="0" y1="11" x2="240" y2="11" {}
            rect class=(parts::hue(number)) x=(at(offset).min(240 - width)) y="1" width=(width) height="8" {}
        }
    }
}

fn counts(step: &StepItem) -> Markup {
    let part = |count: usize, sign: &str, word: &str| {
        html! {
            @if count > 0 {
                span aria-hidden="true" { (sign) (count) " " } span.hidden { (count) " " (word) " " }
            }
        }
    };
    html! {
        (part(step.added, "+", "added"))
        (part(step.changed, "~", "changed"))
        (part(step.removed, "−", "removed"))
    }
}

fn said(step: &StepItem, address: &str) -> Markup {
    html! {
        @if let Some(error) = &step.error { div { (parts::cut(error, 400)) } }
        @for result in step.results.iter().filter(|result| result.severity != "normal").take(3) {
            div { span.second { (result.severity) ": " } (parts::cut(&result.message, 400)) }
        }
        @if step.results.len() > 3 { div { a href=(address) { (step.results.len()) " results" } } }
        @if step.outcome.is_failure() {
            div.row {
                a href={ (address) "/request" } { "What it got" }
                a href={ (address) "/response" } { "What it answered" }
            }
        }
    }
}

/// The resources that differ, from one of them on.
pub fn resources(run: &RunDetail, id: &str, from: usize, most: usize, links: &dyn Links) -> Markup {
    if run.item.outcome.is_failure() {
        return html! {};
    }
    let count = |sign| run.resources.iter().filter(|slot| slot.change == sign).count();
    let shown = run.resources.iter().skip(from).take(most);
    let end = (from + most).min(run.resources.len());
    html! {
        h2 {
            "Composed resources "
            span.dim {
                (count(Sign::Added)) " added, " (count(Sign::Changed)) " changed, "
                (count(Sign::Removed)) " removed, " (run.unchanged) " unchanged"
            }
        }
        @if !run.resources.is_empty() {
            div.scroll {
                table {
                    caption.hidden { "Resources that differ from the run before" }
                    thead {
                        tr {
                            th scope="col" { "Resource" }
                            th scope="col" { "Object" }
                            th scope="col" { "By" }
                            th scope="col" { "What differs" }
                        }
                    }
                    tbody { @for slot in shown { (resource(run, slot, id, links)) } }
                }
            }
        }
        @if from > 0 || end < run.resources.len() {
            p.pages {
                @if from > 0 { a rel="prev" href={ "/runs/" (id) "/resources?o=" (from.saturating_sub(RESOURCES_PAGE)) } { "Before" } }
                span.dim { (from + 1) " to " (end) " of " (run.resources.len()) }
                @if end < run.resources.len() { a rel="next" href={ "/runs/" (id) "/resources?o=" (end) } { "Next" } }
            }
        }
    }
}

fn resource(run: &RunDetail, slot: &SlotItem, id: &str, links: &dyn Links) -> Markup {
    let fields = slot.own_fields().count();
    let href = links.slot(&run.item.owner, &slot.resource);
    html! {
        tr {
            th scope="row" {
                (parts::sign(slot.change))
                @match href {
                    Some(key) => a href={ "/runs/" (id) "/r/" (key) } { (slot.label()) },
                    None => span { (slot.label()) },
                }
            }
            td { (parts::object_name(&slot.object)) }
            td.nowrap { @if let Some(step) = &slot.step { (parts::step_name(step)) } }
            td {
                @if fields > 0 { (parts::counted(i64::try_from(fields).unwrap_or_default(), "field")) ": " (paths(slot)) }
                @if let Some((before, after)) = &slot.ready { " ready " (before) " → " (after) }
                @if !slot.connection_details.is_empty() { " connection details" }
            }
        }
    }
}

fn paths(slot: &SlotItem) -> String {
    let paths: Vec<&str> = slot.own_fields().take(3).map(|field| field.path.as_str()).collect();
    parts::cut(&paths.join(", "), 160)
}

fn conditions(run: &RunDetail) -> Markup {
    if run.conditions.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Conditions" }
            ul.plain {
                @for condition in run.conditions.iter().take(FEW) {
                    li {
                        (parts::step(&condition.step)) " "
                        strong { (condition.r#type) } " " (condition.status)
                        @if !condition.reason.is_empty() { " " span.second { (condition.reason) } }
                        @if !condition.message.is_empty() { " " (parts::cut(&condition.message, 300)) }
                    }
                }
            }
            @if run.conditions.len() > FEW { p.dim { (run.conditions.len() - FEW) " more" } }
        }
    }
}

/// The resources that functions required.
pub fn needs(run: &RunDetail, links: &dyn Links) -> Markup {
    if run.needs.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Needs" }
            ul.plain {
                @for need in run.needs.iter().take(FEW) {
                    li {
                        (parts::step(&need.step)) " " (need.name) ": " (parts::object(&need.object, links))
                        @if !need.resource_version.is_empty() { " " span.dim { "version " (need.resource_version) } }
                    }
                }
            }
            @if run.needs.len() > FEW { p.dim { (run.needs.len() - FEW) " more" } }
        }
    }
}

fn afterwards(run: &RunDetail, links: &dyn Links) -> Markup {
    if run.changes.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Afterwards " span.dim { "what providers did because of it" } }
        (changes::table(&run.changes, links))
    }
}

/// The page with all resources that differ.
pub fn resources_page(run: &RunDetail, from: usize, links: &dyn Links) -> Page {
    let id = ids::trace(&run.item.run);
    let body = html! {
        h1 { "Resources of run " (id) }
        p.path { a rel="up" href={ "/runs/" (id) } { "The run" } }
        (parts::lead(lead_tone(run.item.outcome, run.item.open), &run.sentence))
        (resources(run, id, from, RESOURCES_PAGE, links))
    };
    Page::new(Place::Runs, format!("Resources of run {id}"), body)
        .command(format!("biplane inspector diff {id}"))
}
