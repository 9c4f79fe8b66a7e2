//! Answers as people and programs read them.

mod blocks;
mod reasons;

use std::str::FromStr;

use serde_json::Value;

use super::answer::Answer;
use super::table;

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Tables and sentences.
    #[default]
    Table,
    /// The same with more columns.
    Wide,
    /// What `/api/v1` answers.
    Json,
    /// The same as YAML.
    Yaml,
    /// Names alone, a line each, to hand to another command.
    Name,
    /// Markdown, for reports.
    Markdown,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "table" => Ok(Self::Table),
            "wide" => Ok(Self::Wide),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            "name" => Ok(Self::Name),
            "md" => Ok(Self::Markdown),
            other => Err(format!("expected table, wide, json, yaml, name or md but got {other:?}")),
        }
    }
}

/// How much is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The form.
    pub format: Format,
    /// Also fields that servers keep for themselves.
    pub bookkeeping: bool,
}

/// Prints an answer. It ends with a line break, unless it is empty.
pub fn print(answer: &Answer, options: Options) -> String {
    match options.format {
        Format::Json => {
            let text = serde_json::to_string_pretty(&value(answer)).unwrap_or_default();
            format!("{text}\n")
        }
        Format::Yaml => biplane_model::yaml::to_string(&value(answer)),
        Format::Name => table::each_line(&names(answer)),
        Format::Table | Format::Wide => table::text(&blocks_of(answer, options)),
        Format::Markdown => table::markdown(&blocks_of(answer, options)),
    }
}

fn blocks_of(answer: &Answer, options: Options) -> Vec<table::Block> {
    let wide = options.format == Format::Wide;
    match answer {
        Answer::Why(why) => reasons::of_why(why, wide),
        Answer::At(at) => reasons::of_at(at, options),
        Answer::Warnings(list) => reasons::of_warnings(list, wide),
        Answer::Warning(warning) => reasons::of_warning(warning),
        answer => blocks::of(answer, options),
    }
}

/// An answer as JSON.
pub fn value(answer: &Answer) -> Value {
    // Answers have no maps with keys that are not text, so this cannot fail.
    let mut value = serde_json::to_value(answer).unwrap_or_default();
    whole_numbers(&mut value);
    value
}

/// A payload as YAML.
pub fn yaml(value: &Value) -> String {
    let mut value = value.clone();
    whole_numbers(&mut value);
    biplane_model::yaml::to_string(&value)
}

/// Writes numbers without a fraction as such. Numbers of payloads are all floating point.
pub(crate) fn whole_numbers(value: &mut Value) {
    /// All whole numbers up to here are exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            if let Some(float) = float.filter(|f| f.fract() == 0.0 && f.abs() < EXACT) {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

fn names(answer: &Answer) -> Vec<String> {
    let step = |run: &str, item: &super::answer::StepItem| {
        let short: String = run.chars().take(8).collect();
        match item.call {
            1 => format!("{short}/{}", item.step.number),
            call => format!("{short}/{}.{call}", item.step.number),
        }
    };
    match answer {
        Answer::Runs(list) => list.runs.iter().map(|run| run.run.clone()).collect(),
        Answer::Run(run) => vec![run.item.run.clone()],
        Answer::Steps(list) => list.steps.iter().map(|item| step(&list.run, item)).collect(),
        Answer::Diff(diff) => {
            let differing = diff.resources.iter().filter(|slot| slot.differs());
            differing.map(|slot| slot.resource.clone()).collect()
        }
        Answer::Blame(blame) => {
            let paths = |item: &super::answer::BlameItem| {
                let name = item.resource.clone();
                let paths: Vec<String> =
                    item.fields.iter().map(|field| format!("{name}:{}", field.path)).collect();
                paths
            };
            blame.resources.iter().flat_map(paths).collect()
        }
        Answer::Compare(compare) => {
            let is_other = |step: &&super::answer::CompareStep| {
                step.given != "same" || step.answered != "same"
            };
            compare.steps.iter().filter(is_other).map(|step| step.step.label()).collect()
        }
        Answer::Changes(list) => list.changes.iter().map(|change| change.id.clone()).collect(),
        Answer::Change(change) => vec![change.item.id.clone()],
        Answer::Verify(verify) => verify.sources.iter().map(|s| s.source.clone()).collect(),
        Answer::Replay(replay) => replay.resources.iter().map(|s| s.resource.clone()).collect(),
        Answer::Replays(replays) => {
            replays.groups.iter().flat_map(|group| group.examples.clone()).collect()
        }
        Answer::WhatIf(what_if) => what_if.resources.iter().map(|s| s.resource.clone()).collect(),
        Answer::Import(_) => Vec::new(),
        Answer::Why(why) => vec![why.reason.name()],
        Answer::At(at) => at.resources.iter().map(|item| item.resource.clone()).collect(),
        Answer::Warnings(list) => list.warnings.iter().map(|w| w.id.clone()).collect(),
        Answer::Warning(warning) => vec![warning.item.id.clone()],
    }
}
