//! All about a run in one document, for those who cannot reach the records: Markdown for an issue, and
//! what a page of its own is made of.

use std::fmt::Write as _;

use biplane_model::yaml;
use jiff::Timestamp;
use serde_json::Value;

use super::answer::{Answer, FieldItem, RunDetail, SlotItem, StepItem};
use super::archive::{Archive, Error};
use super::ask::{self, Named, Question};
use super::print::{self, Format, Options, whole_numbers};

/// All about a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The run.
    pub run: RunDetail,
    /// Its calls.
    pub steps: Vec<ReportStep>,
    /// The command that says the same where the records are.
    pub command: String,
}

/// A call with what it was given and what it answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportStep {
    /// The call, with its payloads.
    pub item: StepItem,
    /// The resources that it desired differently.
    pub resources: Vec<SlotItem>,
    /// What it changed in the context.
    pub context: Vec<FieldItem>,
}

/// Gathers all about a run.
pub fn report(archive: &dyn Archive, named: &Named, now: Timestamp) -> Result<Report, Error> {
    let head = ask::find(archive, named, now)?.head;
    let whole = Named { address: head.trace.clone(), namespace: None };
    let Answer::Run(run) = ask::answer(archive, &Question::Run(whole), now)? else {
        return Err(Error::Failed("the run cannot be read".to_owned()));
    };
    let mut steps = Vec::new();
    for item in &run.steps {
        let address = format!("{}/{}.{}", head.trace, item.step.number, item.call);
        let one = Named { address, namespace: None };
        let answer = ask::answer(archive, &Question::Steps(one.clone()), now)?;
        let found = match answer {
            Answer::Steps(list) => list.steps.into_iter().next(),
            _ => None,
        };
        let mut step = ReportStep { item: found.unwrap_or_default(), ..ReportStep::default() };
        if step.item.response.is_some() {
            let question = Question::Diff { before: one, after: None, observed: false };
            if let Answer::Diff(diff) = ask::answer(archive, &question, now)? {
                step.resources = diff.resources;
                step.context = diff.context;
            }
        }
        for payload in [&mut step.item.request, &mut step.item.response] {
            payload.iter_mut().for_each(whole_numbers);
        }
        steps.push(step);
    }
    let short: String = head.trace.chars().take(8).collect();
    Ok(Report { run: *run, steps, command: format!("biplane inspector run {short}") })
}

/// How much of a payload an issue gets. Services limit its size.
const LONGEST: usize = 12_000;

/// Markdown for an issue: what happened, and the payloads of the step that failed.
pub fn markdown(report: &Report) -> String {
    let options = Options { format: Format::Markdown, bookkeeping: false };
    let mut text = print::print(&Answer::Run(Box::new(report.run.clone())), options);
    let failed = report.steps.iter().filter(|step| step.item.outcome.is_failure());
    for step in failed {
        let label = step.item.step.label();
        for (what, payload) in
            [("was given", &step.item.request), ("answered", &step.item.response)]
        {
            if let Some(payload) = payload {
                let title = format!("What step {label} {what}");
                text.push_str(&folded(&title, payload));
            }
        }
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n`{}` prints this where the records are.", report.command);
    let count: usize = report.steps.iter().map(|step| step.item.redacted.len()).sum();
    if count > 0 {
        text.push_str("Secrets are redacted.\n");
    }
    text
}

/// A payload that is folded away.
fn folded(title: &str, payload: &Value) -> String {
    let yaml = yaml::to_string(payload);
    let (shown, is_cut) = match yaml.char_indices().nth(LONGEST) {
        Some((end, _)) => (yaml.get(..end).unwrap_or_default(), true),
        None => (yaml.as_str(), false),
    };
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let cut = if is_cut { "\nThe rest is left out.\n" } else { "" };
    let end = if shown.ends_with('\n') { "" } else { "\n" };
    let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "\n<details><summary>{title}</summary>\n\n{fence}yaml\n{shown}{end}{fence}\n{cut}\n</details>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn payloads_cannot_end_their_fence_and_are_cut() {
        let text = folded("a <b>", &json!({"x": "```` `"}));
        assert!(text.contains("<summary>a &lt;b&gt;</summary>"), "{text}");
        assert!(text.contains("\n`````yaml\n") && text.contains("\n`````\n"), "{text}");
        let text = folded("long", &json!({"x": "y".repeat(LONGEST * 2)}));
        assert!(text.contains("The rest is left out.") && text.len() < LONGEST + 200);
    }
}
