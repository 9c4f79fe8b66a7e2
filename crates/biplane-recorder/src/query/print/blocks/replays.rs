//! What tables and reports say of functions that were asked again.

use super::super::super::answer::{Replay, Replays, Skipped, WhatIf, WhatIfNeed, WhatIfStep};
use super::super::super::record::Outcome;
use super::super::super::table::Block;
use super::super::Options;
use super::{field_lines, id, one_line, redacted, slot_lines};
use crate::query::sentence;

/// How an answer differs, a line each.
pub(super) fn difference(replay: &Replay, options: Options) -> Vec<String> {
    let mut lines = Vec::new();
    for slot in &replay.resources {
        slot_lines(slot, options, &mut lines);
    }
    for field in &replay.fields {
        field_lines(field, &mut lines);
    }
    lines
}

pub(super) fn of_replays(replays: &Replays, options: Options) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading(format!("{} -> {}", replays.function, replays.target)),
        Block::Text(replays.sentence.clone()),
    ];
    for group in &replays.groups {
        let requests = sentence::counted(group.requests, "request");
        let calls = sentence::counted(usize::try_from(group.calls).unwrap_or(0), "call");
        let examples = group.examples.join(", ");
        blocks.push(Block::Heading(format!("{requests} ({calls}), such as {examples}")));
        blocks.push(Block::Difference(group.shape.clone()));
        let lines = match &group.first.error {
            Some(error) => vec![format!("! {}", one_line(error))],
            None => difference(&group.first, options),
        };
        let first = group.examples.first().cloned().unwrap_or_default();
        blocks.push(Block::Text(format!("In {first}:")));
        blocks.push(Block::Difference(lines));
    }
    if !replays.skipped.is_empty() {
        let row = |skipped: &Skipped| {
            vec![skipped.requests.to_string(), skipped.reason.clone(), skipped.example.clone()]
        };
        let rows = replays.skipped.iter().map(row).collect();
        blocks.push(Block::table(&["REQUESTS", "NOT JUDGED BECAUSE", "SUCH AS"], rows));
    }
    if !replays.redacted.is_empty() {
        let text = "The function was given markers in the place of these values:";
        blocks.push(Block::Text(text.to_owned()));
        let rows = replays.redacted.iter().map(|r| vec![r.path.clone(), r.requests.to_string()]);
        blocks.push(Block::table(&["REDACTED", "REQUESTS"], rows.collect()));
    }
    blocks
}

pub(super) fn of_what_if(what_if: &WhatIf, options: Options) -> Vec<Block> {
    let mut title = format!("{} -> now", id(&what_if.run, false));
    if !what_if.set.is_empty() {
        title = format!("{title}, with {}", what_if.set.join(", "));
    }
    let row = |step: &WhatIfStep| {
        let ended = |outcome: Option<Outcome>| {
            outcome.map_or_else(|| "not reached".to_owned(), |outcome| outcome.name().to_owned())
        };
        let worst = |severity: &str| step.results.iter().find(|r| r.severity == severity);
        let result = worst("fatal").or_else(|| worst("warning")).or_else(|| worst("normal"));
        let said = step.error.clone().or_else(|| result.map(|result| result.message.clone()));
        vec![
            step.step.label(),
            step.step.function.clone(),
            step.target.clone(),
            step.given.clone(),
            step.answered.clone(),
            ended(step.before),
            ended(step.after),
            said.as_deref().map(one_line).unwrap_or_default(),
        ]
    };
    let columns =
        ["STEP", "FUNCTION", "RAN", "GIVEN", "ANSWERED", "OUTCOME BEFORE", "OUTCOME NOW", "RESULT"];
    let mut lines = Vec::new();
    for slot in what_if.resources.iter().filter(|slot| slot.differs()) {
        slot_lines(slot, options, &mut lines);
    }
    if !what_if.context.is_empty() {
        lines.push("~ context".to_owned());
        for field in &what_if.context {
            field_lines(field, &mut lines);
        }
    }
    lines.extend((what_if.unchanged > 0).then(|| format!("  {} unchanged", what_if.unchanged)));
    let mut blocks = vec![
        Block::Heading(title),
        Block::Text(what_if.sentence.clone()),
        Block::table(&columns, what_if.steps.iter().map(row).collect()),
        Block::Difference(lines),
    ];
    let taken = what_if.steps.iter().filter_map(|step| {
        let run = id(step.taken_from.as_deref()?, false);
        let text = format!("The input of step {} was taken from run {run}.", step.step.label());
        Some(Block::Text(text))
    });
    blocks.extend(taken);
    if !what_if.needs.is_empty() {
        let text = "These would be required, and were not recorded:".to_owned();
        blocks.push(Block::Text(text));
        let row = |need: &WhatIfNeed| vec![need.name.clone(), need.step.label()];
        let rows = what_if.needs.iter().map(row).collect();
        blocks.push(Block::table(&["NEED", "STEP"], rows));
    }
    if !what_if.redacted.is_empty() {
        let text = "Functions were given markers in the place of these values:";
        blocks.push(Block::Text(text.to_owned()));
        blocks.extend(redacted(&what_if.redacted));
    }
    blocks
}
