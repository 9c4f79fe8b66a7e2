//! The list of runs.

use std::fmt::Write as _;

use biplane_recorder::query::answer::{Loss, RunItem, RunList};
use biplane_recorder::query::archive::{RunFilter, kind_and_group};
use biplane_recorder::query::record::ObjectRef;
use biplane_recorder::query::sentence;
use biplane_recorder::query::sentence::lists::RunCounts;
use maud::{Markup, html};

use crate::ids::{self, Ended, Filter, SINCE};
use crate::layout::{Page, Place};
use crate::parts::{self, Links};

/// What filters can be set to.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// Keys and names of Compositions.
    pub compositions: Vec<(i64, String)>,
    /// Keys and names of functions.
    pub functions: Vec<(i64, String)>,
    /// Keys and names of namespaces.
    pub namespaces: Vec<(i64, String)>,
    /// Keys and values of labels.
    pub labels: Vec<(String, String)>,
}

/// The runs of a short time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    /// When it begins, in seconds since 1970.
    pub from: i64,
    /// When it ends.
    pub until: i64,
    /// How many runs ended.
    pub runs: i64,
    /// How many of them failed.
    pub failed: i64,
    /// How many emissions were lost.
    pub lost: i64,
}

/// All that the page shows.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The runs.
    pub list: RunList,
    /// The filter as it stands in the address.
    pub filter: Filter,
    /// The filter with names.
    pub named: RunFilter,
    /// The owner that the filter names.
    pub owner: Option<ObjectRef>,
    /// What filters can be set to.
    pub choices: Choices,
    /// How many runs there were.
    pub counts: RunCounts,
    /// The same over time.
    pub bars: Vec<Bar>,
    /// How many runs wider filters have, if this one has none: address, words.
    pub wider: Vec<(String, String)>,
    /// Whether there is no run at all.
    pub nothing_received: bool,
}

/// The page.
pub fn page(runs: &Runs, links: &dyn Links) -> Page {
    let tone = if runs.counts.failed > 0 { "fail" } else { "" };
    let body = html! {
        h1 { "Runs" }
        @if runs.nothing_received {
            (nothing_received())
        } @else {
            (parts::lead(tone, &sentence(runs)))
            (bars(&runs.bars, &runs.filter))
            (filters(runs))
            button #news .news type="button" hidden {}
            @if runs.list.runs.is_empty() {
                (no_match(&runs.wider))
            } @else {
                (table(&runs.list.runs, &runs.list.losses, links))
                @if let Some(more) = &runs.list.more {
                    @let sign = if runs.filter.is_empty() { '?' } else { '&' };
                    p.pages { a rel="next" href={ (runs.filter.href("/runs")) (sign) "after=" (more) } { "Older runs" } }
                }
            }
        }
    };
    let mut page = Page::new(Place::Runs, "Runs", body).command(command(runs));
    page.events = Some(runs.filter.href("/events"));
    page
}

fn sentence(runs: &Runs) -> String {
    if runs.filter.is_time_only() {
        return sentence::lists::runs(&runs.counts);
    }
    let failed = runs.list.runs.iter().filter(|run| run.outcome.is_failure()).count();
    let (count, more) = (runs.list.runs.len(), runs.list.more.is_some());
    let count = match (count, more) {
        (0, _) => return "No run fits the filter.".to_owned(),
        (1, false) => "1 run fits the filter".to_owned(),
        (count, false) => format!("{count} runs fit the filter"),
        (count, true) => format!("The last {count} runs that fit the filter"),
    };
    match failed {
        0 => format!("{count}. None failed."),
        failed => format!("{count}. {failed} failed."),
    }
}

/// The bars of a time, each of which leads to its runs.
pub fn bars(bars: &[Bar], filter: &Filter) -> Markup {
    let most = bars.iter().map(|bar| bar.runs).max().unwrap_or_default();
    if most == 0 && bars.iter().all(|bar| bar.lost == 0) {
        return html! {};
    }
    let count = i64::try_from(bars.len()).unwrap_or(1).max(1);
    let width = 960 / count;
    html! {
        svg width="960" height="44" viewBox={ "0 0 " (width * count) " 44" } aria-hidden="true" {
            line.base x1="0" y1="42" x2=(width * count) y2="42" {}
            @for (bar, at) in bars.iter().zip(0_i64..) {
                @let height = if bar.runs == 0 { 0 } else { (bar.runs * 38 / most.max(1)).max(3) };
                @let red = if bar.failed == 0 { 0 } else { (bar.failed * 38 / most.max(1)).max(3).min(height) };
                @let link = Filter { since: None, from: Some(bar.from), until: Some(bar.until), ..filter.clone() };
                @if bar.runs > 0 || bar.lost > 0 {
                    a href=(link.href("/runs")) tabindex="-1" {
                        title { (words(bar)) }
                        rect.ok x=(at * width + 1) y=(42 - height) width=((width - 2).max(1)) height=(height) {}
                        @if red > 0 { rect.fail x=(at * width + 1) y=(42 - red) width=((width - 2).max(1)) height=(red) {} }
                        @if bar.lost > 0 { rect.lost x=(at * width + 1) y="0" width=((width - 2).max(1)) height="3" {} }
                    }
                }
            }
        }
    }
}

fn words(bar: &Bar) -> String {
    let at = |seconds: i64| {
        let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
        time.strftime("%H:%M").to_string()
    };
    let mut words =
        format!("{} to {}: {}", at(bar.from), at(bar.until), parts::counted(bar.runs, "run"));
    if bar.failed > 0 {
        let _ = write!(words, ", {} failed", parts::number(bar.failed));
    }
    if bar.lost > 0 {
        let _ = write!(words, ", {} lost", parts::counted(bar.lost, "emission"));
    }
    words
}

fn filters(runs: &Runs) -> Markup {
    let Runs { filter, choices, .. } = runs;
    let select = |name: &str, label: &str, any: &str, list: &[(String, String)], chosen: &str| {
        html! {
            label {
                (label)
                select name=(name) {
                    option value="" selected[chosen.is_empty()] { (any) }
                    @for (value, text) in list {
                        option value=(value) selected[value == chosen] { (parts::cut(text, 60)) }
                    }
                }
            }
        }
    };
    let keyed = |list: &[(i64, String)]| -> Vec<(String, String)> {
        list.iter().map(|(key, text)| (ids::text(*key), text.clone())).collect()
    };
    let key = |key: Option<i64>| key.map(ids::text).unwrap_or_default();
    let since: Vec<_> = SINCE.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let ended: Vec<_> =
        Ended::ALL.iter().map(|(_, a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    html! {
        form.filters method="post" action="/runs" aria-label="Filter" {
            (select("since", "Time", "Any time", &since, filter.since.as_deref().unwrap_or_default()))
            (select("outcome", "Outcome", "Any outcome", &ended, filter.ended.map_or("", Ended::text)))
            (select("composition", "Composition", "Any", &keyed(&choices.compositions), &key(filter.composition)))
            (select("function", "Function", "Any", &keyed(&choices.functions), &key(filter.function)))
            (select("namespace", "Namespace", "Any", &keyed(&choices.namespaces), &key(filter.namespace)))
            @if !choices.labels.is_empty() {
                @let labels: Vec<_> = choices.labels.iter().map(|(key, value)| (ids::label(key, value), format!("{key}={value}"))).collect();
                (select("label", "Label", "Any", &labels, filter.label.as_deref().unwrap_or_default()))
            }
            label {
                "Name"
                @let name = runs.owner.as_ref().map(|owner| owner.name.clone()).unwrap_or_default();
                input type="text" name="name" maxlength="253" autocomplete="off" value=(name);
            }
            label.check { input type="checkbox" name="changed" value="1" checked[filter.changed]; "Hide unchanged" }
            button type="submit" { "Show" }
            @if !filter.is_empty() { a href="/runs" { "Clear" } }
        }
    }
}

/// A row of the list.
enum Row<'a> {
    Run(&'a RunItem),
    /// Runs in a row that did the same, the newest first.
    Same(&'a [RunItem]),
    Loss(&'a Loss),
}

/// Runs of the same owner, one after the other, that did the same as the run before are one row.
fn rows<'a>(runs: &'a [RunItem], losses: &'a [Loss]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut losses = losses.iter().rev().peekable();
    let mut rest = runs;
    while let Some(first) = rest.first() {
        while let Some(loss) = losses.next_if(|loss| loss.until > first.started) {
            rows.push(Row::Loss(loss));
        }
        let is_like = |run: &&RunItem| run.same && run.owner == first.owner;
        let count = if first.same { rest.iter().take_while(is_like).count() } else { 1 };
        let (group, after) = rest.split_at(count.max(1));
        rows.push(match group {
            [one] => Row::Run(one),
            several => Row::Same(several),
        });
        rest = after;
    }
    rows.extend(losses.map(Row::Loss));
    rows
}

/// A table of runs.
pub fn table(runs: &[RunItem], losses: &[Loss], links: &dyn Links) -> Markup {
    html! {
        div.scroll {
            table {
                caption.hidden { "Runs, the newest first" }
                thead {
                    tr {
                        th scope="col" { "When" }
                        th scope="col" { "Composite" }
                        th scope="col" { "Composition" }
                        th scope="col" { "Steps" }
                        th.number scope="col" { "Took" }
                        th scope="col" { "What happened" }
                    }
                }
                tbody {
                    @for row in rows(runs, losses) {
                        @match row {
                            Row::Run(run) => (one(run, links)),
                            Row::Same(group) => (same(group, links)),
                            Row::Loss(loss) => (lost(loss)),
                        }
                    }
                }
            }
        }
    }
}

fn one(run: &RunItem, links: &dyn Links) -> Markup {
    let tone = if run.outcome.is_failure() { parts::tone(run.outcome) } else { "" };
    html! {
        tr class=(tone) {
            th scope="row" { a href={ "/runs/" (ids::trace(&run.run)) } { (parts::when(&run.started)) } }
            td { (parts::object(&run.owner, links)) }
            td { (run.composition) }
            td.nowrap { (steps(run)) }
            td.number { (parts::took(run.took_micros)) }
            td { (parts::status(run.outcome, run.open)) " " (parts::cut(&run.summary, 160)) }
        }
    }
}

fn same(group: &[RunItem], links: &dyn Links) -> Markup {
    let (Some(newest), Some(oldest)) = (group.first(), group.last()) else { return html! {} };
    html! {
        tr {
            th scope="row" {
                a href={ "/runs/" (ids::trace(&oldest.run)) } { (parts::when(&oldest.started)) }
                " to "
                a href={ "/runs/" (ids::trace(&newest.run)) } { (parts::when(&newest.started)) }
            }
            td { (parts::object(&newest.owner, links)) }
            td { (newest.composition) }
            td.nowrap { (steps(newest)) }
            td.number { (parts::took(newest.took_micros)) }
            td.second { (group.len()) " runs, nothing changed" }
        }
    }
}

fn lost(loss: &Loss) -> Markup {
    html! {
        tr.lost {
            th scope="row" { (parts::when(&loss.from)) }
            td colspan="4" { (parts::counted(loss.emissions, "emission")) " lost: " (loss.reason) }
            td { a href="/status" { "Why" } }
        }
    }
}

/// The steps of a run: numbers of those that were reached, and dots for the others.
fn steps(run: &RunItem) -> Markup {
    const MOST: usize = 12;
    html! {
        @for (at, step) in run.pipeline.iter().enumerate().take(MOST) {
            @if at < run.reached { (parts::step(step)) } @else {
                span.step.missed title={ (step.label()) ", not reached" } {
                    span aria-hidden="true" { "·" } span.hidden { "step " (step.number) " not reached" }
                }
            }
            " "
        }
        @if run.pipeline.len() > MOST { span.dim { "of " (run.pipeline.len()) } }
    }
}

fn nothing_received() -> Markup {
    html! {
        (parts::lead("", "Nothing was received yet."))
        (parts::empty("How runs get here", &html! {
            p { "A control plane sends what its functions are given and answer to the recorder's socket." }
            h2 { "Crossplane, with its Helm chart" }
            pre { "args:\n- --enable-pipeline-inspector\n- --pipeline-inspector-socket=/var/run/pipeline-inspector/socket" }
            h2 { "Biplane" }
            pre { "biplane core start --enable-pipeline-inspector --pipeline-inspector-socket=SOCKET" }
            h2 { "A render on this machine" }
            pre { "biplane render xr.yaml composition.yaml functions.yaml --inspect=SOCKET" }
            p { "SOCKET is what " code { "biplane recorder serve --inspector-socket" } " says. " a href="/status" { "Status" } " shows who has sent something." }
        }))
    }
}

fn no_match(wider: &[(String, String)]) -> Markup {
    parts::empty(
        "No run fits the filter",
        &html! {
            @if wider.is_empty() { p { a href="/runs" { "Show all runs" } } }
            @else {
                p { "Wider filters:" }
                ul.plain { @for (href, words) in wider { li { a href=(href) { (words) } } } }
            }
        },
    )
}

fn command(runs: &Runs) -> String {
    let mut words = vec!["biplane inspector runs".to_owned()];
    let named = &runs.named;
    if let Some(owner) = &runs.owner {
        words.push(parts::quoted(&format!("{}/{}", kind_and_group(owner), owner.name)));
    }
    let mut flag = |name: &str, value: Option<&String>| {
        words.extend(value.map(|value| format!("--{name}={}", parts::quoted(value))));
    };
    flag("namespace", named.namespace.as_ref());
    flag("composition", named.composition.as_ref());
    flag("function", named.function.as_ref());
    let label = named.labels.first().map(|(key, value)| format!("{key}={value}"));
    flag("selector", label.as_ref());
    flag("since", runs.filter.since.as_ref());
    if runs.filter.since.is_none() {
        let time = |time: &jiff::Timestamp| time.to_string();
        flag("since-time", named.since.as_ref().map(time).as_ref());
    }
    flag("until-time", named.until.as_ref().map(ToString::to_string).as_ref());
    match runs.filter.ended {
        Some(Ended::Failed) => words.push("--failed".to_owned()),
        Some(Ended::As(outcome)) => words.push(format!("--outcome={}", outcome.name())),
        None => {}
    }
    words.extend(runs.filter.changed.then(|| "--changed".to_owned()));
    words.join(" ")
}
