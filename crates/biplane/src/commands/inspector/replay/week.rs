//! Asks a function every distinct request of a time, several at the same time.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use biplane_console::Streams;
use biplane_proto::redact::{Mode, Redactor};
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::archive::{Archive, Asked, Error, Recorded, RunFilter};
use biplane_recorder::query::replay::week::{Done, Gathered};
use biplane_recorder::query::replay::{self, junit};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::start::{Caller, Started};
use super::target::Targets;
use super::{Replay, read_request};
use crate::commands::records::{differs, failed};
use crate::commands::sidecar;
use crate::environment::Environment;

/// How many requests wait to be asked. They are in memory.
const WAITING: usize = 32;

/// Asks, and compares.
struct Asker {
    caller: Caller,
    target: String,
    supplied: Value,
    redactor: Redactor,
}

/// What became of a request, or why it could not be asked.
type Outcome = (Done, Option<String>);

pub(super) fn run(
    replay: &Replay,
    function: &str,
    targets: &Targets,
    environment: &Environment,
    streams: &mut Streams<'_>,
) -> Result<()> {
    let target = targets.of(function)?;
    let archive = replay.one.source.archive(streams)?;
    let (since, until) = replay.times.range()?;
    let namespace = replay.one.namespace.clone();
    let filter = RunFilter { namespace, since, until, ..RunFilter::default() };
    let requests = archive.requests(function, &filter).map_err(failed)?;
    if requests.is_empty() {
        let text = format!("no request to {function} was recorded in this time");
        return Err(failed(Error::NotFound(text)));
    }
    let words = target.words();
    let width = replay.max_concurrency;
    let functions = [(function.to_owned(), target)];
    // A thread beside this one even for one request at a time: records are read meanwhile.
    let started = Started::new(&functions, replay.timeout, 2, environment, streams)?;
    let asker = Arc::new(Asker {
        caller: started.caller(),
        target: words.clone(),
        supplied: replay.supplied()?,
        redactor: sidecar::redactor(Mode::Deep),
    });
    let (give, take) = mpsc::channel(WAITING);
    let gathered = std::thread::scope(|scope| {
        // A store blocks, so it has a thread of its own.
        let loading = scope.spawn(move || load(archive.as_ref(), &requests, &give));
        let gathered = started.wait(ask_all(take, asker, width));
        let loaded = loading.join().map_err(|_| anyhow!("cannot read the records"));
        let gathered = gathered?;
        loaded?.map_err(failed)?;
        anyhow::Ok(gathered)
    });
    started.end();
    let (answer, cases) = gathered?.finish(function, &words);
    if let Some(file) = &replay.junit {
        let report = junit::report(function, &words, &cases);
        let attempted = || format!("cannot write {}", file.display());
        std::fs::write(file, report).with_context(attempted)?;
    }
    let is_other = answer.differs;
    replay.one.output.show(&Answer::Replays(Box::new(answer)), streams)?;
    differs(is_other)
}

/// Reads requests until all are read or nobody takes them any more.
fn load(
    archive: &dyn Archive,
    requests: &[Asked],
    give: &mpsc::Sender<(Done, Recorded)>,
) -> Result<(), Error> {
    for (place, asked) in requests.iter().enumerate() {
        let recorded = archive.recorded(asked)?;
        let done = Done::of(place, asked, &recorded);
        if give.blocking_send((done, recorded)).is_err() {
            break;
        }
    }
    Ok(())
}

async fn ask_all(
    mut take: mpsc::Receiver<(Done, Recorded)>,
    asker: Arc<Asker>,
    width: usize,
) -> Result<Gathered> {
    let mut gathered = Gathered::default();
    let mut running: JoinSet<Result<Outcome>> = JoinSet::new();
    let add = |gathered: &mut Gathered, (done, reason): Outcome| match reason {
        None => gathered.add(done),
        Some(reason) => gathered.skip(done, &reason),
    };
    while let Some((done, recorded)) = take.recv().await {
        while running.len() >= width {
            if let Some(outcome) = running.join_next().await {
                add(&mut gathered, outcome.context("a call was broken off")??);
            }
        }
        let asker = Arc::clone(&asker);
        running.spawn(async move { asker.ask(done, recorded).await });
    }
    while let Some(outcome) = running.join_next().await {
        add(&mut gathered, outcome.context("a call was broken off")??);
    }
    Ok(gathered)
}

impl Asker {
    async fn ask(&self, mut done: Done, recorded: Recorded) -> Result<Outcome> {
        let Recorded { head, mut step, .. } = recorded;
        let Some(mut request) = step.request.take() else {
            return Ok((done, Some("its request was not recorded".to_owned())));
        };
        let (given, missing) = replay::supply(&mut request, &self.supplied);
        let Ok(request) = read_request(request) else {
            return Ok((done, Some("its request is not one of a function".to_owned())));
        };
        let begun = Instant::now();
        let answer = self.caller.call(&step, &head.trace, request).await;
        done.took = begun.elapsed();
        let answer = match answer {
            Ok(response) => {
                let answer = replay::as_recorded(&response, &self.redactor);
                Ok(answer.context("an answer has no JSON form")?)
            }
            Err(error) => Err(error.to_string()),
        };
        done.replay = replay::compare(&head.trace, &step, self.target.clone(), answer);
        (done.replay.supplied, done.replay.redacted) = (given, missing);
        Ok((done, None))
    }
}
