//! Runs all steps of a recorded run again, each with what the step before it answers now.

use anyhow::{Context as _, Result};
use biplane_console::Streams;
use biplane_proto::json;
use biplane_proto::redact::Mode;
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::ask::{find, success_before};
use biplane_recorder::query::replay::pipeline::Rerun;

use super::start::Started;
use super::target::{Target, Targets};
use super::{Replay, read_request};
use crate::commands::records::{differs, failed, now, usage};
use crate::commands::sidecar;
use crate::environment::Environment;

pub(super) fn run(
    replay: &Replay,
    address: &str,
    targets: &Targets,
    environment: &Environment,
    streams: &mut Streams<'_>,
) -> Result<()> {
    let archive = replay.one.source.archive(streams)?;
    let found = find(archive.as_ref(), &replay.one.named(address), now()).map_err(failed)?;
    let run = archive.load(&found.head).map_err(failed)?;
    if found.step(&run).map_err(failed)?.is_some() {
        return Err(usage("a pipeline is run as a whole: name the run without a step").into());
    }
    let success = if run.head.outcome.is_failure() {
        let before = success_before(archive.as_ref(), &run.head).map_err(failed)?;
        before.map(|head| archive.load(&head)).transpose().map_err(failed)?
    } else {
        None
    };
    let redactor = sidecar::redactor(Mode::Deep);
    let trace = run.head.trace.clone();
    let supplied = replay.supplied()?;
    let mut rerun = Rerun::new(run, success, replay.set.clone(), supplied, redactor);
    let names = rerun.functions();
    if names.is_empty() {
        return Err(usage("no step of this run was recorded").into());
    }
    if names.len() > 1 && targets.has_general() {
        let names = names.join(", ");
        let text = format!("say which function runs there, FUNCTION=TARGET: one of {names}");
        return Err(usage(&text).into());
    }
    let functions: Vec<(String, Target)> = names
        .into_iter()
        .map(|name| targets.of(&name).map(|target| (name, target)))
        .collect::<Result<_>>()?;
    let started = Started::new(&functions, replay.timeout, 1, environment, streams)?;
    let mut steps = || -> Result<()> {
        while let Some(asking) = rerun.ask().map_err(failed)? {
            let request = read_request(asking.request)?;
            let answer = started.call(&asking.step, &trace, request)?;
            let answer = match answer {
                Ok(response) => {
                    Ok(json::to_value(&response).context("the answer has no JSON form")?)
                }
                Err(error) => Err(error.to_string()),
            };
            let target = functions.iter().find(|(name, _)| *name == asking.step.function);
            let target = target.map(|(_, target)| target.words()).unwrap_or_default();
            rerun.answered(&target, answer);
        }
        Ok(())
    };
    let done = steps();
    started.end();
    done?;
    let answer = rerun.finish();
    let is_other = answer.differs;
    replay.one.output.show(&Answer::WhatIf(Box::new(answer)), streams)?;
    differs(is_other)
}
