//! One step of a run: what it made of what it was given, and both messages.

use biplane_recorder::query::answer::{RunDetail, StepItem};
use biplane_recorder::query::time;
use maud::{Markup, html};
use serde_json::Value;

use super::run;
use crate::draw::{self, Limits, Setting};
use crate::ids;
use crate::layout::{Page, Place};
use crate::parts::{self, Links};
use crate::tree::{self, Position};

/// How much of a difference one page draws, so that the page is not larger than 100 KB.
pub const LIMITS: Limits = Limits { nodes: 50_000, lines: 250, bytes: 44 * 1024 };
/// How much of a message in one line is shown.
pub const RAW: usize = 48 * 1024;

/// What of a step is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// What it made of what it was given.
    #[default]
    Difference,
    /// What it was given.
    Request,
    /// What it answered.
    Response,
    /// What it required.
    Needs,
    /// Both messages as they are kept.
    Raw,
}

impl Tab {
    /// All tabs: the word in addresses, the key and the label.
    pub const ALL: [(Self, &str, &str, &str); 5] = [
        (Self::Difference, "", "d", "Difference"),
        (Self::Request, "request", "q", "Request"),
        (Self::Response, "response", "s", "Response"),
        (Self::Needs, "needs", "e", "Needs"),
        (Self::Raw, "raw", "w", "Raw"),
    ];

    /// The tab of a word in an address.
    pub fn of_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, word, ..)| *word == text).map(|(tab, ..)| tab)
    }
}

/// What the page is asked to show.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The number of the step, with that of the call if the address has it.
    pub step: String,
    /// The tab.
    pub tab: Tab,
    /// The part of a message.
    pub position: Position,
    /// Where a long list or difference goes on.
    pub from: usize,
}

/// A step, with as much of its messages as the tab shows.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The step.
    pub item: StepItem,
    /// What happened.
    pub sentence: String,
    /// The sizes of the request and the response.
    pub bytes: (Option<usize>, Option<usize>),
    /// How many values are redacted. The step names them, unless its messages are large.
    pub redacted: usize,
}

/// The page. `None` if the message has no such part.
pub fn page(
    detail: &RunDetail,
    shown: &Shown,
    asked: &Asked,
    is_late: &dyn Fn() -> bool,
    links: &dyn Links,
) -> Option<Page> {
    let Shown { item: step, sentence, .. } = shown;
    let id = ids::trace(&detail.item.run);
    let base = format!("/runs/{id}/{}", asked.step);
    let title = format!("Step {} of run {id}", step.step.label());
    let content = match asked.tab {
        Tab::Difference => difference(step, &base, asked.from, is_late),
        Tab::Request => message(step.request.as_ref(), "request", &base, asked)?,
        Tab::Response => message(step.response.as_ref(), "response", &base, asked)?,
        Tab::Needs => needs(detail, step, links),
        Tab::Raw => raw(shown),
    };
    let fatal = step.results.iter().find(|result| result.severity == "fatal");
    let sentence = match fatal {
        Some(result) => {
            let (label, message) = (step.step.label(), parts::cut(&result.message, 300));
            format!("Step {label} returned a fatal result: \"{message}\".")
        }
        None => sentence.clone(),
    };
    let body = html! {
        (head(detail, shown, id))
        (parts::lead(run::lead_tone(step.outcome, false), &sentence))
        (results(step))
        (tabs(&base, asked.tab))
        (content)
        @if shown.redacted > 0 {
            details {
                summary { (parts::counted(i64::try_from(shown.redacted).unwrap_or_default(), "redacted value")) }
                ul.plain.data {
                    @for path in step.redacted.iter().take(200) { li { (path) } }
                    @if step.redacted.is_empty() { li.dim { "The messages are large. The command below names them." } }
                    @if step.redacted.len() > 200 { li.dim { (step.redacted.len() - 200) " more" } }
                }
            }
        }
    };
    let verb = if asked.tab == Tab::Difference { "diff" } else { "steps" };
    let mut page = Page::new(Place::Runs, title, body)
        .command(format!("biplane inspector {verb} {id}/{}", asked.step));
    page.run = Some(id.to_owned());
    Some(page)
}

fn head(detail: &RunDetail, shown: &Shown, id: &str) -> Markup {
    let step = &shown.item;
    let beside = |by: i64| {
        let number = step.step.number + by;
        detail.steps.iter().rev().find(|other| other.step.number == number)
    };
    let link = |other: &StepItem| format!("/runs/{id}/{}", other.step.number);
    html! {
        h1 { (parts::step(&step.step)) " " (if step.step.name.is_empty() { &step.step.function } else { &step.step.name }) }
        p.path {
            a rel="up" href={ "/runs/" (id) } { (parts::object_name(&detail.item.owner)) ", run " (id) }
            span { (step.step.function) @if let Some(revision) = &step.revision { " " (revision) } }
            @if step.call > 1 { span { "call " (step.call) } }
            span { (parts::when(&step.started)) }
            @if step.took_micros.is_some() { span { (parts::took(step.took_micros)) } }
            @if let Some(size) = shown.bytes.0 { span { (time::bytes(size)) " in" } }
            @if let Some(size) = shown.bytes.1 { span { (time::bytes(size)) " out" } }
            @match step.cached {
                Some(true) => span { "from a cache" },
                Some(false) => span { "not cached" },
                None => "",
            }
            (parts::status(step.outcome, false))
        }
        div.row {
            @if let Some(before) = beside(-1) { a rel="prev" href=(link(before)) { "‹ Step " (before.step.label()) } }
            @if let Some(after) = beside(1) { a rel="next" href=(link(after)) { "Step " (after.step.label()) " ›" } }
        }
    }
}

fn results(step: &StepItem) -> Markup {
    html! {
        @if let Some(error) = &step.error { section.box { h2 { "The call failed" } pre { (limited(error)) } } }
        @if !step.results.is_empty() {
            ul.plain {
                @for result in step.results.iter().take(50) {
                    @let tone = match result.severity.as_str() { "fatal" => "fail", "warning" => "warn", _ => "ok" };
                    li {
                        span class={ "status " (tone) } { (result.severity) } " "
                        (limited(&result.message))
                        @if !result.reason.is_empty() { " " span.second { (result.reason) } }
                    }
                }
                @if step.results.len() > 50 { li.dim { (step.results.len() - 50) " more" } }
            }
        }
    }
}

fn limited(text: &str) -> String {
    const MOST: usize = 2_000;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(MOST).collect::<String>())
}

fn tabs(base: &str, current: Tab) -> Markup {
    html! {
        nav aria-label="Parts of the step" {
            ul.tabs {
                @for (tab, word, key, label) in Tab::ALL {
                    li {
                        a href=(if word.is_empty() { base.to_owned() } else { format!("{base}/{word}") })
                            data-key=(key) aria-current=[(tab == current).then_some("page")] { (label) }
                    }
                }
            }
        }
    }
}

fn difference(step: &StepItem, base: &str, from: usize, is_late: &dyn Fn() -> bool) -> Markup {
    let none = Value::Object(serde_json::Map::new());
    match &step.response {
        None => parts::empty(
            "No difference",
            &html! {
                p { "The step has no answer, so there is nothing to compare with what it was given." }
                p { a href={ (base) "/request" } { "What it got" } }
            },
        ),
        Some(response) => {
            let next = |line: usize| format!("{base}?o={line}");
            let setting =
                Setting { limits: LIMITS, from, next: &next, is_late, ..Setting::default() };
            draw::step(step.request.as_ref().unwrap_or(&none), response, &setting)
        }
    }
}

fn message(value: Option<&Value>, word: &str, base: &str, asked: &Asked) -> Option<Markup> {
    let Some(value) = value else {
        let what = if word == "request" { "What it was given" } else { "What it answered" };
        return Some(parts::empty("Not recorded", &html! { p { (what) " was not recorded." } }));
    };
    tree::document(value, &asked.position, asked.from, &format!("{base}/{word}"))
}

fn needs(detail: &RunDetail, step: &StepItem, links: &dyn Links) -> Markup {
    let needs: Vec<_> =
        detail.needs.iter().filter(|need| need.step.number == step.step.number).cloned().collect();
    if needs.is_empty() {
        return parts::empty("No needs", &html! { p { "The step required no resources." } });
    }
    run::needs(&RunDetail { needs, ..RunDetail::default() }, links)
}

fn raw(shown: &Shown) -> Markup {
    let step = &shown.item;
    let part = |title: &str, value: Option<&Value>, size: Option<usize>| {
        let text = value.map(biplane_go::json::to_string).unwrap_or_default();
        let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= RAW / 2);
        html! {
            h2 { (title) }
            @if text.is_empty() { p.dim { "Not recorded." } } @else {
                pre.box { (text.get(..end.unwrap_or(text.len())).unwrap_or_default()) }
                @if end.is_some() { p { "The first " (time::bytes(RAW / 2)) " of " (time::bytes(text.len().max(size.unwrap_or_default()))) ". The command below prints all of it." } }
            }
        }
    };
    html! {
        (part("Request", step.request.as_ref(), shown.bytes.0))
        (part("Response", step.response.as_ref(), shown.bytes.1))
    }
}
