//! Lists of runs, one run, and two runs side by side.

use std::cell::RefCell;

use biplane_recorder::query::answer::{Answer, RunDetail};
use biplane_recorder::query::archive::{Archive as _, RunFilter, Scope, kind_and_group};
use biplane_recorder::query::ask::{self, Named, Question};
use biplane_recorder::query::blame::{self, Stamp};
use biplane_recorder::query::compare::step_ref;
use biplane_recorder::query::outline::Bodies;
use biplane_recorder::query::record::{ObjectRef, Run};
use biplane_recorder::query::sentence::lists::RunCounts;
use biplane_recorder::query::time;
use biplane_recorder::store::rows;
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

use super::{Context, Reply, Result, by_id, outcome, run_row};
use crate::draw::{self, SetBy, Setting, Stamps};
use crate::http::Request;
use crate::ids::{self, Ended, Filter, SINCE};
use crate::layout::{Page, Place};
use crate::links::object_ref;
use crate::page::failure::Failure;
use crate::page::run::{Around, Beat};
use crate::page::runs::{Bar, Choices, Runs};
use crate::page::{compare as compare_page, resource, run as run_page, runs as runs_page, step};
use crate::parts::{self, Links as _};

/// How many runs a list has.
const LIMIT: usize = 25;
/// How many runs of an owner are drawn as bars.
pub(super) const BEATS: usize = 60;
/// How many names each filter offers.
const CHOICES: usize = 200;
/// How many labels there can be to choose from.
const LABELS: usize = 200;
/// How many bars a time has at most.
const BARS: i64 = 72;
/// The seconds that counts are kept for.
const BUCKET: i64 = 300;
const DAY: i64 = 86_400;
/// How many fields a page of blame has.
const FIELDS: usize = 80;
/// How many resources it has.
const BLAMED: usize = 100;
/// How many runs of a wider filter are counted.
const WIDER: usize = 20;

/// The filter with names instead of keys, and the owner that it names.
pub(super) fn named(
    context: &Context<'_>,
    filter: &Filter,
) -> Result<(RunFilter, Option<ObjectRef>)> {
    let store = context.stored.store();
    let word = |key: Option<i64>| -> Result<Option<String>> {
        let Some(key) = key else { return Ok(None) };
        let gone = || Failure::NotFound("what the filter names is no longer kept".to_owned());
        Ok(Some(store.word_text(key)?.ok_or_else(gone)?))
    };
    let owner = match filter.object {
        None => None,
        Some(key) => {
            let gone = || Failure::NotFound("the composite resource is no longer kept".to_owned());
            Some(object_ref(&store.object(key)?.ok_or_else(gone)?))
        }
    };
    let seconds = |at: Option<i64>| at.and_then(|at| Timestamp::from_second(at).ok());
    let since = filter.since.as_deref().and_then(|since| time::back(since, context.now));
    let namespace = match &owner {
        Some(owner) if !owner.namespace.is_empty() => Some(owner.namespace.clone()),
        _ => word(filter.namespace)?,
    };
    let labels = match &filter.label {
        None => Vec::new(),
        Some(label) => {
            let known = store.user_labels(LABELS)?.into_iter();
            let found: Vec<_> =
                known.filter(|(key, value)| ids::label(key, value) == *label).collect();
            if found.is_empty() {
                let reason = "the label that the filter names is no longer kept";
                return Err(Failure::NotFound(reason.to_owned()));
            }
            found
        }
    };
    let named = RunFilter {
        kind: owner.as_ref().map(kind_and_group),
        name: owner.as_ref().map(|owner| owner.name.clone()),
        namespace,
        composition: word(filter.composition)?,
        function: word(filter.function)?,
        outcomes: filter.ended.map(Ended::outcomes).unwrap_or_default(),
        labels,
        since: since.or(seconds(filter.from)),
        until: seconds(filter.until),
        changed: filter.changed,
    };
    Ok((named, owner))
}

/// The list.
pub(super) fn list(context: &Context<'_>, request: &Request) -> Result<Reply> {
    let filter = Filter::of_text(request.query("f").unwrap_or_default());
    let (filter_named, owner) = named(context, &filter)?;
    let question = Question::Runs {
        filter: filter_named.clone(),
        limit: LIMIT,
        after: request.query("after").map(str::to_owned),
    };
    let Answer::Runs(list) = context.ask(&question)? else { return Err(Failure::NoPage) };
    let store = context.stored.store();
    let mut runs = Runs {
        wider: if list.runs.is_empty() { wider(context, &filter)? } else { Vec::new() },
        choices: Choices {
            compositions: store.compositions(CHOICES)?,
            functions: store.functions(CHOICES)?,
            namespaces: store.namespaces(CHOICES)?,
            labels: store.user_labels(LABELS)?,
        },
        nothing_received: filter.is_empty() && list.runs.is_empty(),
        list,
        named: filter_named,
        owner,
        filter,
        ..Runs::default()
    };
    if runs.filter.is_time_only() {
        overview(context, &mut runs)?;
    }
    Ok(runs_page::page(&runs, &context.links).into())
}

/// Counts the runs of the time of a list.
fn overview(context: &Context<'_>, runs: &mut Runs) -> Result<()> {
    let store = context.stored.store();
    let now = context.now.as_second();
    let until = runs.filter.until.unwrap_or(now + 1);
    let since = runs.named.since.map_or(now - DAY, Timestamp::as_second);
    let span = (until - since).clamp(BUCKET, 8 * DAY);
    let width = (span / BARS).div_euclid(BUCKET).max(0) * BUCKET + BUCKET;
    let first = (until - span).div_euclid(BUCKET) * BUCKET;
    let count = (until - first).div_euclid(width) + 1;
    let mut bars: Vec<Bar> = (0..count)
        .map(|at| first + at * width)
        .map(|from| Bar { from, until: from + width, ..Bar::default() })
        .collect();
    let mut add = |second: i64, change: &dyn Fn(&mut Bar)| {
        let at = usize::try_from((second - first).div_euclid(width)).unwrap_or(usize::MAX);
        if let Some(bar) = bars.get_mut(at) {
            change(bar);
        }
    };
    let (from_micros, until_micros) = (first * 1_000_000, until * 1_000_000);
    for tally in store.tallies(from_micros, until_micros)? {
        let failed = if outcome(tally.outcome).is_failure() { tally.runs } else { 0 };
        add(tally.at.div_euclid(1_000_000), &|bar| {
            bar.runs += tally.runs;
            bar.failed += failed;
        });
    }
    for loss in store.losses(from_micros, until_micros)? {
        add(loss.at.div_euclid(1_000_000), &|bar| bar.lost += loss.emissions);
    }
    let sum = |part: fn(&Bar) -> i64| bars.iter().map(part).sum::<i64>();
    let (total, failed) = (sum(|bar| bar.runs), sum(|bar| bar.failed));
    let changed = store.changed_runs(from_micros, until_micros)?;
    let latest = store.latest_start()?.and_then(|at| Timestamp::from_microsecond(at).ok());
    runs.counts = RunCounts {
        window: window(&runs.filter),
        runs: total,
        failed,
        failed_in: failed_in(runs, failed),
        repeated: (total - changed).max(0),
        lost: sum(|bar| bar.lost),
        latest,
    };
    runs.bars = bars;
    Ok(())
}

fn window(filter: &Filter) -> String {
    if let Some((_, words)) = SINCE.iter().find(|(text, _)| filter.since.as_deref() == Some(*text))
    {
        return format!("in the {}", words.to_lowercase());
    }
    match (filter.from, filter.until) {
        (None, None) => "in the last 24 hours".to_owned(),
        _ => "in this time".to_owned(),
    }
}

/// The step and the Composition of all failures, if the list has them all and it is one.
fn failed_in(runs: &Runs, failed: i64) -> Option<(String, String)> {
    let places: Vec<(String, String)> = runs
        .list
        .runs
        .iter()
        .filter(|run| run.outcome.is_failure())
        .filter_map(|run| {
            let step = run.pipeline.get(run.reached.checked_sub(1)?)?;
            let name = if step.name.is_empty() { &step.function } else { &step.name };
            Some((name.clone(), run.composition.clone()))
        })
        .collect();
    let first = places.first()?.clone();
    let is_one = places.iter().all(|place| *place == first);
    let is_all = i64::try_from(places.len()).unwrap_or_default() == failed;
    (is_one && is_all && !first.1.is_empty()).then_some(first)
}

/// How many runs wider filters have.
fn wider(context: &Context<'_>, filter: &Filter) -> Result<Vec<(String, String)>> {
    let any_time = Filter { since: None, from: None, until: None, ..filter.clone() };
    let candidates = [
        ("at any time", any_time.clone()),
        ("with any outcome", Filter { ended: None, ..filter.clone() }),
        ("that also changed nothing", Filter { changed: false, ..filter.clone() }),
        (
            "of any Composition, function and namespace",
            Filter {
                composition: None,
                function: None,
                namespace: None,
                label: None,
                object: None,
                ..filter.clone()
            },
        ),
    ];
    let mut found = Vec::new();
    for (words, candidate) in candidates {
        if candidate == *filter {
            continue;
        }
        let (named, _) = named(context, &candidate)?;
        let count = context.stored.runs(&named, WIDER, None)?.len();
        if count > 0 {
            let or_more = if count == WIDER { " or more" } else { "" };
            let words = format!("{count}{or_more} runs {words}");
            found.push((candidate.href("/runs"), words));
        }
    }
    Ok(found)
}

/// A filter that was posted: leads to its address, which has ids.
pub(super) fn filtered(context: &Context<'_>, request: &Request) -> Result<Reply> {
    let key = |name: &str| ids::key(&request.field(name));
    let name = request.field("name");
    let mut filter = Filter {
        composition: key("composition"),
        function: key("function"),
        namespace: key("namespace"),
        label: Some(request.field("label")).filter(|label| !label.is_empty()),
        ended: Ended::of_text(&request.field("outcome")),
        since: Some(request.field("since")).filter(|since| !since.is_empty()),
        changed: request.field("changed") == "1",
        ..Filter::default()
    };
    // Only what can be read again stands in an address.
    filter = Filter::of_text(&filter.text());
    if name.is_empty() {
        return Ok(Reply::Redirect(filter.href("/runs")));
    }
    let store = context.stored.store();
    let mut owners = Vec::new();
    for row in store.objects(None, None, None, Some(&name))? {
        let of_owner = rows::RunFilter { owner: Some(row.id), ..rows::RunFilter::default() };
        if !store.runs(&of_owner, 1, None)?.is_empty() {
            owners.push(row);
        }
    }
    match owners.as_slice() {
        [one] => {
            filter.object = Some(one.id);
            Ok(Reply::Redirect(filter.href("/runs")))
        }
        // Several, or none: the search says which.
        _ => super::search::search(context, &name),
    }
}

/// Runs that were typed to be compared.
pub(super) fn chosen(context: &Context<'_>, request: &Request) -> Result<Reply> {
    let id = |name: &str| -> Result<String> {
        Ok(ids::trace(&run_row(context, &request.field(name))?.trace).to_owned())
    };
    Ok(Reply::Redirect(format!("/compare/{}/{}", id("before")?, id("after")?)))
}

fn detail(context: &Context<'_>, run: &str) -> Result<Box<RunDetail>> {
    match context.ask(&Question::Run(by_id(run)?))? {
        Answer::Run(detail) => Ok(detail),
        _ => Err(Failure::NoPage),
    }
}

/// The last runs of an owner.
pub(super) fn beats(context: &Context<'_>, owner: i64) -> Result<Vec<Beat>> {
    let filter = rows::RunFilter { owner: Some(owner), ..rows::RunFilter::default() };
    let rows = context.stored.store().runs(&filter, BEATS, None)?;
    let beat = |row: &rows::RunRow| Beat {
        trace: row.trace.clone(),
        started: row.started,
        took: row.took,
        outcome: outcome(row.outcome),
        open: row.open,
    };
    Ok(rows.iter().map(beat).collect())
}

/// One run.
pub(super) fn one(context: &Context<'_>, run: &str) -> Result<Reply> {
    let row = run_row(context, run)?;
    let detail = detail(context, &row.trace)?;
    let store = context.stored.store();
    let around = Around {
        beats: beats(context, row.owner.id)?,
        newer: store.run_after(&row)?.map(|row| row.trace),
        bytes: store.steps(row.id)?.iter().map(|step| step.bytes).collect(),
    };
    Ok(run_page::page(&detail, &around, &context.links).into())
}

/// The resources of a run that differ.
pub(super) fn resources(context: &Context<'_>, run: &str, from: usize) -> Result<Reply> {
    Ok(run_page::resources_page(&*detail(context, run)?, from, &context.links).into())
}

/// What a run changed.
pub(super) fn diff(context: &Context<'_>, run: &str, from: usize) -> Result<Reply> {
    let stored = context.stored;
    let (diff, mut was, mut is) = ask::changed_by(stored, &by_id(run)?, context.now)?;
    let row = run_row(context, run)?;
    let head = stored.head(&row)?;
    let bodies = Bodies::new(stored);
    let is_redacted = stored.is_redacted(&head)?;
    bodies.common(was.as_mut(), is.as_mut(), draw::NAMED, is_redacted)?;
    let id = ids::trace(&row.trace);
    let next = |line: usize| format!("/runs/{id}/diff?o={line}");
    let mut after = stored.outline(&head, Scope::Messages)?;
    let drawn = states(context, &bodies, &mut after, (was.as_ref(), is.as_ref()), from, &next)?;
    let title = format!("What run {id} changed");
    let body = html! {
        h1 { (title) }
        p.path {
            a rel="up" href={ "/runs/" (id) } { "The run" }
            @if diff.before != "nothing" { span { "compared with run " (parts::run(&diff.before)) } }
            span { (parts::object(&head.owner, &context.links)) }
        }
        (parts::lead("", &diff.sentence))
        (drawn)
    };
    let mut page =
        Page::new(Place::Runs, title, body).command(format!("biplane inspector diff {id}"));
    page.run = Some(id.to_owned());
    Ok(page.into())
}

/// Draws what a run changed, with the step that set each field. Only of what is drawn is that found
/// out.
pub(super) fn states(
    context: &Context<'_>,
    bodies: &Bodies<'_>,
    run: &mut Run,
    (was, is): (Option<&Value>, Option<&Value>),
    from: usize,
    next: &dyn Fn(usize) -> String,
) -> Result<Markup> {
    let (run, failed) = (RefCell::new(run), RefCell::new(None));
    let stamps = Stamps::new(|slot| {
        set_by(bodies, &mut run.borrow_mut(), slot).unwrap_or_else(|failure| {
            failed.borrow_mut().get_or_insert(failure);
            SetBy::new()
        })
    });
    let is_late = || context.is_late();
    let setting = Setting {
        stamps: Some(&stamps),
        limits: step::LIMITS,
        from,
        next,
        is_late: &is_late,
        ..Setting::default()
    };
    let drawn = draw::states(was, is, &setting);
    drop(stamps);
    failed.into_inner().map_or(Ok(drawn), Err)
}

/// The step of a run that set each field of one of its resources.
fn set_by(bodies: &Bodies<'_>, run: &mut Run, slot: &str) -> Result<SetBy> {
    bodies.everywhere(run, slot)?;
    let calls = run.last_calls();
    let step = |stamp: Stamp| match stamp {
        Stamp::Step(at) => calls.get(at).map(|step| step_ref(Some(step))),
        Stamp::Given | Stamp::Between(_) => None,
    };
    let fields = blame::of(run, &|name| name == slot).into_iter().flat_map(|slot| slot.fields);
    Ok(fields.filter_map(|(path, _, stamp)| Some((path.to_string(), step(stamp)?))).collect())
}

/// Who set what in a run.
pub(super) fn blame(context: &Context<'_>, run: &str) -> Result<Reply> {
    let head = context.stored.head(&run_row(context, run)?)?;
    let blame = ask::blame_first(context.stored, &head, BLAMED, FIELDS)?;
    let id = ids::trace(&blame.run).to_owned();
    let mut left = FIELDS;
    let mut drawn = Vec::new();
    for item in &blame.resources {
        let slot = context.links.slot(&blame.owner, &item.resource);
        let label = if item.resource.is_empty() { "composite" } else { &item.resource };
        let is_shown = item.fields.len() <= left;
        left = left.saturating_sub(item.fields.len());
        drawn.push(html! {
            section {
                h2 {
                    @match &slot {
                        Some(key) => a href={ "/runs/" (id) "/r/" (key) } { (label) },
                        None => (label),
                    }
                    " " span.dim { (parts::object_name(&item.object)) }
                }
                @if let Some(step) = &item.created_by { p { "Created by " (parts::step_name(step)) } }
                @if let Some(step) = &item.removed_by { p { "Removed by " (parts::step_name(step)) } }
                @if is_shown { (resource::blame(item)) }
                @else { p.dim { (parts::counted(i64::try_from(item.fields.len()).unwrap_or_default(), "field")) } }
            }
        });
        if drawn.len() >= BLAMED {
            break;
        }
    }
    let resources = i64::try_from(blame.resources.len()).unwrap_or_default();
    let sentence =
        format!("The steps of this run decided about {}.", parts::counted(resources, "resource"));
    let title = format!("Who set what in run {id}");
    let body = html! {
        h1 { (title) }
        p.path {
            a rel="up" href={ "/runs/" (id) } { "The run" }
            span { (parts::object(&blame.owner, &context.links)) }
        }
        (parts::lead("", &sentence))
        @for section in &drawn { (section) }
        @if drawn.len() < blame.resources.len() { p.dim { (blame.resources.len() - drawn.len()) " more resources" } }
    };
    let mut page =
        Page::new(Place::Runs, title, body).command(format!("biplane inspector blame {id}"));
    page.run = Some(id);
    Ok(page.into())
}

/// Two runs side by side.
pub(super) fn compare(context: &Context<'_>, before: &str, after: &str) -> Result<Reply> {
    let Named { address: after, .. } = by_id(after)?;
    let question = Question::Compare { before: by_id(before)?, after: Some(after) };
    let Answer::Compare(compare) = context.ask(&question)? else { return Err(Failure::NoPage) };
    Ok(compare_page::page(&compare, &context.links).into())
}
