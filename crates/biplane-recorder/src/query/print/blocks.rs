//! What tables and reports say of an answer.

mod replays;

use serde_json::Value;

use super::super::answer::{
    Answer, Blame, ChangeDetail, ChangeItem, Compare, Diff, FieldItem, Import, Replay, RunDetail,
    RunItem, Sign, SlotItem, StepItem, StepRef, Verify,
};
use super::super::blame::leaves;
use super::super::record::ObjectRef;
use super::super::table::Block;
use super::super::time;
use super::{Format, Options};
use crate::query::sentence::{self, short};

/// The most lines that an added or removed value takes.
const LINES: usize = 40;

pub(super) fn of(answer: &Answer, options: Options) -> Vec<Block> {
    let wide = options.format == Format::Wide;
    match answer {
        Answer::Runs(list) => {
            let mut blocks = vec![runs(&list.runs, wide)];
            if list.runs.is_empty() {
                blocks = vec![Block::Text("No run was found.".to_owned())];
            }
            let lost = list.losses.iter().map(|loss| {
                let emissions =
                    sentence::counted(usize::try_from(loss.emissions).unwrap_or(0), "emission");
                let (from, reason) = (&loss.from, &loss.reason);
                Block::Text(format!("{from}: {emissions} lost: {reason}"))
            });
            blocks.extend(lost);
            blocks.extend(list.more.as_ref().map(|more| more_text(more)));
            blocks
        }
        Answer::Run(run) => of_run(run, options),
        Answer::Steps(list) => {
            let mut blocks: Vec<Block> =
                list.sentence.iter().map(|text| Block::Text(text.clone())).collect();
            blocks.push(steps(&list.steps, wide));
            if let [step] = list.steps.as_slice() {
                blocks.extend(payload("REQUEST", step.request.as_ref()));
                blocks.extend(payload("RESPONSE", step.response.as_ref()));
                blocks.extend(redacted(&step.redacted));
            }
            blocks
        }
        Answer::Diff(diff) => of_diff(diff, options),
        Answer::Blame(blame) => of_blame(blame),
        Answer::Compare(compare) => of_compare(compare, wide),
        Answer::Changes(list) => {
            let mut blocks = vec![changes(&list.changes, wide)];
            if list.changes.is_empty() {
                blocks = vec![Block::Text("No change was found.".to_owned())];
            }
            blocks.extend(list.more.as_ref().map(|more| more_text(more)));
            blocks
        }
        Answer::Change(change) => of_change(change),
        Answer::Verify(verify) => of_verify(verify),
        Answer::Replay(replay) => of_replay(replay, options),
        Answer::Replays(replays) => replays::of_replays(replays, options),
        Answer::WhatIf(what_if) => replays::of_what_if(what_if, options),
        Answer::Import(import) => of_import(import),
        // These have a module of their own.
        Answer::Why(_) | Answer::At(_) | Answer::Warnings(_) | Answer::Warning(_) => Vec::new(),
    }
}

pub(super) fn more_text(more: &str) -> Block {
    Block::Text(format!("There are more: --continue={more}"))
}

fn took(took: Option<i64>) -> String {
    took.map(time::took).unwrap_or_default()
}

pub(super) fn id(trace: &str, wide: bool) -> String {
    if wide { trace.to_owned() } else { trace.chars().take(8).collect() }
}

/// A time to the second, as columns show it.
pub(super) fn when(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), time::date)
}

pub(super) fn object(object: &ObjectRef) -> String {
    match (object.kind.as_str(), object.name.as_str()) {
        ("", name) => name.to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, name) => format!("{kind}/{name}"),
    }
}

pub(super) fn runs(items: &[RunItem], wide: bool) -> Block {
    let row = |run: &RunItem| {
        let mut row = vec![
            when(&run.started),
            id(&run.run, wide),
            object(&run.owner),
            run.owner.namespace.clone(),
            run.composition.clone(),
            format!("{}/{}", run.reached, run.pipeline.len().max(run.reached)),
            took(run.took_micros),
            if run.open {
                format!("{}, open", run.outcome.name())
            } else {
                run.outcome.name().to_owned()
            },
        ];
        if wide {
            let functions: Vec<&str> =
                run.pipeline.iter().map(|step| step.function.as_str()).collect();
            row.extend([run.owner.api_version.clone(), functions.join(",")]);
        }
        row.push(run.summary.clone());
        row
    };
    let mut columns =
        vec!["STARTED", "RUN", "OWNER", "NAMESPACE", "COMPOSITION", "STEPS", "TOOK", "OUTCOME"];
    if wide {
        columns.extend(["API VERSION", "FUNCTIONS"]);
    }
    columns.push("WHAT HAPPENED");
    Block::table(&columns, items.iter().map(row).collect())
}

fn of_run(run: &RunDetail, options: Options) -> Vec<Block> {
    let item = &run.item;
    let mut title = vec![format!("{} {}", item.owner.kind, item.owner.name)];
    if !item.owner.namespace.is_empty() {
        title.push(format!("namespace {}", item.owner.namespace));
    }
    if !item.composition.is_empty() {
        title.push(format!("composition {}", item.composition));
    }
    let wide = options.format == Format::Wide;
    let mut blocks = vec![
        Block::Heading(title.join(", ")),
        Block::Text(format!("{}, run {}", when(&item.started), item.run)),
        Block::Text(run.sentence.clone()),
        steps(&run.steps, wide),
    ];
    let mut lines = Vec::new();
    for slot in &run.resources {
        slot_lines(slot, options, &mut lines);
    }
    if !lines.is_empty() || run.unchanged > 0 {
        lines.extend((run.unchanged > 0).then(|| format!("  {} unchanged", run.unchanged)));
        blocks.push(Block::Difference(lines));
    }
    if !run.conditions.is_empty() {
        let row = |c: &super::super::answer::Condition| {
            vec![
                c.r#type.clone(),
                c.status.clone(),
                c.reason.clone(),
                c.step.label(),
                one_line(&c.message),
            ]
        };
        let columns = ["CONDITION", "STATUS", "REASON", "STEP", "MESSAGE"];
        blocks.push(Block::table(&columns, run.conditions.iter().map(row).collect()));
    }
    if !run.needs.is_empty() {
        let row = |need: &super::super::answer::Need| {
            vec![
                need.name.clone(),
                object(&need.object),
                need.object.namespace.clone(),
                need.resource_version.clone(),
                need.step.label(),
            ]
        };
        let columns = ["NEED", "OBJECT", "NAMESPACE", "VERSION", "STEP"];
        blocks.push(Block::table(&columns, run.needs.iter().map(row).collect()));
    }
    if !run.changes.is_empty() {
        blocks.push(changes(&run.changes, wide));
    }
    blocks
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn steps(items: &[StepItem], wide: bool) -> Block {
    let many_calls = items.iter().any(|item| item.call > 1);
    let row = |item: &StepItem| {
        let worst = |severity: &str| item.results.iter().find(|r| r.severity == severity);
        let result = worst("fatal").or_else(|| worst("warning")).or_else(|| worst("normal"));
        let said = item.error.clone().or_else(|| result.map(|result| result.message.clone()));
        let count = |sign: char, count: usize| {
            if count == 0 { String::new() } else { format!("{sign}{count}") }
        };
        let counts = [count('+', item.added), count('~', item.changed), count('-', item.removed)];
        let counts: Vec<String> = counts.into_iter().filter(|count| !count.is_empty()).collect();
        let mut row = vec![
            item.step.label(),
            if many_calls { item.call.to_string() } else { String::new() },
            item.step.function.clone(),
            took(item.took_micros),
            match item.cached {
                Some(true) => "yes".to_owned(),
                _ => String::new(),
            },
            item.outcome.name().to_owned(),
            counts.join(" "),
        ];
        if wide {
            row.extend([
                item.span.clone(),
                item.started.clone(),
                item.revision.clone().unwrap_or_default(),
            ]);
        }
        row.push(said.as_deref().map(one_line).unwrap_or_default());
        row
    };
    let mut columns = vec!["STEP", "CALL", "FUNCTION", "TOOK", "CACHED", "OUTCOME", "RESOURCES"];
    if wide {
        columns.extend(["SPAN", "STARTED", "REVISION"]);
    }
    columns.push("RESULT");
    Block::table(&columns, items.iter().map(row).collect())
}

fn payload(title: &str, value: Option<&Value>) -> Vec<Block> {
    let Some(value) = value else { return Vec::new() };
    let yaml = biplane_model::yaml::to_string(value);
    let lines = yaml.lines().map(str::to_owned).collect();
    vec![Block::Heading(title.to_owned()), Block::Difference(lines)]
}

fn redacted(paths: &[String]) -> Option<Block> {
    let rows = paths.iter().map(|path| vec![path.clone()]).collect();
    (!paths.is_empty()).then(|| Block::table(&["REDACTED"], rows))
}

fn of_diff(diff: &Diff, options: Options) -> Vec<Block> {
    let mut lines = Vec::new();
    for slot in &diff.resources {
        slot_lines(slot, options, &mut lines);
    }
    if !diff.context.is_empty() {
        lines.push("~ context".to_owned());
        for field in &diff.context {
            field_lines(field, &mut lines);
        }
    }
    lines.extend((diff.unchanged > 0).then(|| format!("  {} unchanged", diff.unchanged)));
    vec![
        Block::Heading(format!("{} -> {}", diff.before, diff.after)),
        Block::Text(diff.sentence.clone()),
        Block::Difference(lines),
    ]
}

fn sign(change: Sign) -> char {
    change.mark()
}

/// A resource and what differs in it, a line each.
fn slot_lines(slot: &SlotItem, options: Options, lines: &mut Vec<String>) {
    let hidden = slot.fields.iter().filter(|field| field.bookkeeping).count();
    let shows = slot.differs() || options.bookkeeping && hidden > 0 || !slot.unknown.is_empty();
    if !shows {
        return;
    }
    let mut words = vec![format!("{} {}", sign(slot.change), slot.label())];
    let name = object(&slot.object);
    if !name.is_empty() {
        words.push(name);
    }
    words.extend(slot.step.as_ref().map(|step| format!("by {}", step.label())));
    lines.push(words.join("  "));
    if slot.coarse {
        lines.push("  ! it is too large to be compared field by field".to_owned());
    }
    for field in &slot.fields {
        if options.bookkeeping || !field.bookkeeping {
            field_lines(field, lines);
        }
    }
    if let Some((before, after)) = &slot.ready {
        lines.push(format!("  ~ ready: {before} -> {after}"));
    }
    for key in &slot.connection_details {
        lines.push(format!("  {} connection detail {}", sign(key.change), key.path));
    }
    for path in &slot.unknown {
        lines.push(format!("  ? {path}: redacted, whether it differs is unknown"));
    }
    if hidden > 0 && !options.bookkeeping {
        lines.push(format!("    {} of bookkeeping", sentence::counted(hidden, "field")));
    }
}

/// A field on one line, or each value in it if it has several.
pub(super) fn field_lines(field: &FieldItem, lines: &mut Vec<String>) {
    let mark = sign(field.change);
    let path = &field.path;
    match (field.change, &field.before, &field.after) {
        (Sign::Moved, ..) => {
            let place = |at: Option<usize>| at.map_or(0, |at| at + 1);
            let (from, to) = (place(field.from), place(field.to));
            lines.push(format!("  {mark} {path}: was item {from}, is item {to}"));
        }
        (Sign::Added, _, Some(value)) | (Sign::Removed, Some(value), _) => {
            let all = leaves(value);
            for (below, value) in all.iter().take(LINES) {
                let path = match (below.0.is_empty(), below.to_string()) {
                    (true, _) => path.clone(),
                    (false, below) if below.starts_with('[') => format!("{path}{below}"),
                    (false, below) => format!("{path}.{below}"),
                };
                lines.push(format!("  {mark} {path}: {}", short(value)));
            }
            if all.len() > LINES {
                lines.push(format!("  {mark} {path}: {} more values", all.len() - LINES));
            }
        }
        (_, before, after) => {
            let value = |value: &Option<Value>| value.as_ref().map_or("null".to_owned(), short);
            lines.push(format!("  {mark} {path}: {} -> {}", value(before), value(after)));
        }
    }
}

fn step_label(step: Option<&StepRef>) -> String {
    step.map_or_else(|| "-".to_owned(), StepRef::label)
}

fn of_blame(blame: &Blame) -> Vec<Block> {
    let mut blocks = Vec::new();
    for item in &blame.resources {
        let name = if item.resource.is_empty() { "composite" } else { &item.resource };
        let mut words = vec![name.to_owned()];
        let of = object(&item.object);
        words.extend((!of.is_empty()).then_some(of));
        words.extend(item.created_by.as_ref().map(|s| format!("created by {}", s.label())));
        words.extend(item.removed_by.as_ref().map(|s| format!("removed by {}", s.label())));
        words.extend(item.since.as_ref().map(|since| format!("since {}", when(&since.at))));
        blocks.push(Block::Heading(words.join("  ")));
        let row = |field: &super::super::answer::BlameField| {
            let since = field.since.as_ref();
            let or = if since.is_some_and(|since| since.or_earlier) { " or earlier" } else { "" };
            vec![
                field.path.clone(),
                short(&field.value),
                step_label(field.step.as_ref()),
                since.map(|since| format!("{}{or}", when(&since.at))).unwrap_or_default(),
                since.map(|since| id(&since.run, false)).unwrap_or_default(),
            ]
        };
        let columns = ["FIELD", "VALUE", "STEP", "SINCE", "RUN"];
        blocks.push(Block::table(&columns, item.fields.iter().map(row).collect()));
    }
    if blocks.is_empty() {
        blocks.push(Block::Text("No step desired a resource.".to_owned()));
    }
    blocks
}

fn of_compare(compare: &Compare, wide: bool) -> Vec<Block> {
    let row = |step: &super::super::answer::CompareStep| {
        vec![
            step.step.label(),
            step.step.function.clone(),
            step.given.clone(),
            step.answered.clone(),
            took(step.took_before_micros),
            took(step.took_after_micros),
        ]
    };
    let columns = ["STEP", "FUNCTION", "GIVEN", "ANSWERED", "TOOK BEFORE", "TOOK AFTER"];
    vec![
        Block::Text(compare.sentence.clone()),
        runs(&[compare.before.clone(), compare.after.clone()], wide),
        Block::table(&columns, compare.steps.iter().map(row).collect()),
    ]
}

fn changes(items: &[ChangeItem], wide: bool) -> Block {
    let row = |change: &ChangeItem| {
        let (run, certainty) = match &change.link {
            Some(link) => (id(&link.run, wide), link.certainty.clone()),
            None => (String::new(), String::new()),
        };
        let mut row = vec![
            when(&change.at),
            change.id.clone(),
            change.operation.clone(),
            object(&change.object),
            change.object.namespace.clone(),
            change.provider.clone(),
            change.cause.clone().unwrap_or_default(),
            run,
            certainty,
        ];
        if wide {
            let owner = change.link.as_ref().map(|link| object(&link.owner));
            row.extend([
                owner.unwrap_or_default(),
                change.link.as_ref().map(|link| link.resource.clone()).unwrap_or_default(),
                change.external_name.clone(),
            ]);
        }
        row.push(match &change.error {
            Some(error) => format!("failed: {}", one_line(error)),
            None => "ok".to_owned(),
        });
        row
    };
    let mut columns =
        vec!["AT", "ID", "OPERATION", "RESOURCE", "NAMESPACE", "PROVIDER", "CAUSE", "RUN", "LINK"];
    if wide {
        columns.extend(["OWNER", "AS", "EXTERNAL NAME"]);
    }
    columns.push("RESULT");
    Block::table(&columns, items.iter().map(row).collect())
}

fn of_change(change: &ChangeDetail) -> Vec<Block> {
    let mut blocks = vec![changes(std::slice::from_ref(&change.item), true)];
    if let Some(link) = &change.item.link {
        let owner = object(&link.owner);
        let run = &link.run;
        let how = match link.certainty.as_str() {
            "certain" => "It belongs to",
            "enforces" => "It puts back what was decided by",
            _ => "It likely belongs to",
        };
        let text = format!("{how} run {run} of {owner}, resource {}.", link.resource);
        blocks.push(Block::Text(text));
    }
    let yaml = biplane_model::yaml::to_string(&change.entry);
    blocks.push(Block::Difference(yaml.lines().map(str::to_owned).collect()));
    blocks
}

fn of_verify(verify: &Verify) -> Vec<Block> {
    let row = |source: &super::super::answer::VerifyItem| {
        let state = match source.broken.first() {
            None => "whole".to_owned(),
            Some(first) => format!("broken: {first}"),
        };
        let removed = if source.removed == 0 { String::new() } else { source.removed.to_string() };
        vec![source.source.clone(), source.entries.to_string(), removed, source.head.clone(), state]
    };
    let columns = ["SOURCE", "ENTRIES", "REMOVED", "HEAD", "CHAIN"];
    let sentence = match (verify.whole, verify.sources.is_empty()) {
        (true, true) => "There are no change logs.",
        (true, false) => "All chains are whole.",
        (false, _) => "Entries were changed after they were received.",
    };
    let mut blocks = vec![Block::Text(sentence.to_owned())];
    blocks.push(Block::table(&columns, verify.sources.iter().map(row).collect()));
    blocks
}

fn of_replay(replay: &Replay, options: Options) -> Vec<Block> {
    let lines = replays::difference(replay, options);
    let run: String = id(&replay.run, false);
    let mut blocks = vec![
        Block::Heading(format!("{run}/{} -> {}", replay.step.label(), replay.target)),
        Block::Text(replay.sentence.clone()),
        Block::Difference(lines),
    ];
    if !replay.redacted.is_empty() {
        let text = "The function was given markers in the place of these values:";
        blocks.push(Block::Text(text.to_owned()));
        blocks.extend(redacted(&replay.redacted));
    }
    blocks
}

fn of_import(import: &Import) -> Vec<Block> {
    let mut parts = Vec::new();
    if import.emissions > 0 || import.entries == 0 {
        let emissions = sentence::counted(import.emissions, "emission");
        parts.push(format!("{emissions} of {}", sentence::counted(import.runs, "run")));
    }
    if import.entries > 0 {
        let noun = if import.entries == 1 { "entry" } else { "entries" };
        parts.push(format!("{} {noun} of change logs", import.entries));
    }
    let mut blocks = vec![Block::Text(format!("Imported {}.", parts.join(" and ")))];
    let skipped = import.skipped.iter().map(|line| Block::Text(format!("Skipped {line}")));
    blocks.extend(skipped);
    blocks
}
