//! Functions that can be called, wherever they run, for as long as a command needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use biplane_runner::{FunctionRunner, Named};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::docker::Session;
use super::interrupt::{self, Interrupted, Interrupts};
use super::watched::{self, Ended};
use crate::progress::Progress;

/// Functions that can be called, by name. What was started for them ends with the last copy.
#[derive(Clone, Debug, Default)]
pub(super) struct Runners {
    by_name: BTreeMap<String, Running>,
    /// Hears when someone asks to stop; unset when the process may simply die of it.
    pub interrupted: Option<Interrupts>,
    /// The Docker engine, if anything runs there. Cleaned up after the programs have ended.
    pub session: Option<Arc<Session>>,
    /// The Docker network of the engine, if it is a container.
    pub network: Option<String>,
    /// What of the command's time it took to start them.
    pub spent: Duration,
}

/// A function that can be called.
#[derive(Clone)]
pub(super) struct Running {
    pub runner: Arc<dyn FunctionRunner>,
    /// The gRPC target, if it has one.
    pub target: Option<String>,
    /// Of a program or a container: what there is to say once it has ended.
    pub ended: Option<Ended>,
}

impl Running {
    /// Something that is called without a network.
    pub(super) fn in_process(runner: Arc<dyn FunctionRunner>) -> Self {
        Self { runner, target: None, ended: None }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Runners {
    /// None yet. On a terminal, a line may have to be taken away when someone asks to stop.
    pub(super) fn none(progress: &Progress) -> Result<Self> {
        let listen = || Interrupts::listen(progress, false);
        let interrupted = progress.is_on().then(listen).transpose()?;
        Ok(Self { interrupted, ..Self::default() })
    }

    pub(super) fn insert(&mut self, name: String, running: Running) {
        self.by_name.insert(name, running);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Running)> {
        self.by_name.iter()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Running> {
        self.by_name.values_mut()
    }

    /// Whether there is a function of a name, and it has not ended.
    pub(super) fn is_up(&self, name: &str) -> bool {
        let has_ended = |ended: &Ended| ended.borrow().is_some();
        let running = self.by_name.get(name);
        running.is_some_and(|running| !running.ended.as_ref().is_some_and(has_ended))
    }

    /// What functions run in and on, without the functions.
    pub(super) fn place(&self) -> Self {
        Self { by_name: BTreeMap::new(), ..self.clone() }
    }

    /// Takes functions that run in the same place, but for those that it has anew.
    pub(super) fn join(&mut self, others: Self) {
        for (name, running) in others.by_name {
            self.by_name.entry(name).or_insert(running);
        }
    }

    /// Calls functions by name.
    pub(super) fn named(&self) -> Named {
        self.by_name.iter().fold(Named::default(), |named, (name, running)| {
            named.with(name, running.runner.clone())
        })
    }

    /// Returns with the words of the first function that ends.
    pub(super) async fn first_end(&self) -> String {
        let mut ends = JoinSet::new();
        for ended in self.by_name.values().filter_map(|running| running.ended.clone()) {
            ends.spawn(watched::end_of(ended));
        }
        match ends.join_next().await {
            Some(Ok(end)) => end,
            _ => std::future::pending().await,
        }
    }

    /// Ends what was started, while there is someone to say goodbye: a server that is asked to stop
    /// waits for those who are connected, who must be able to leave.
    pub(super) async fn end(self) {
        let Self { by_name, session, .. } = self;
        drop(by_name);
        if let Some(session) = session.and_then(Arc::into_inner) {
            session.close().await;
        }
    }

    /// Ends all functions but some. What is left can be joined by others.
    pub(super) async fn keep(mut self, names: &BTreeSet<String>) -> Self {
        if names.is_empty() {
            self.end().await;
            return Self::default();
        }
        self.by_name.retain(|name, _| names.contains(name));
        if let Some(session) = &self.session {
            session.keep(names).await;
        }
        self
    }

    /// Does something that may never end, such as to write.
    pub(super) fn while_stuck<T>(self, runtime: &Runtime, work: impl FnOnce() -> T) -> (T, Self) {
        match self.interrupted.clone() {
            Some(interrupted) => interrupted.while_stuck(runtime, self, work),
            None => (work(), self),
        }
    }

    /// Works until someone asks to stop: what was started must not outlive the command.
    pub(super) async fn unless_interrupted<T>(
        &self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            done = work => done,
            () = interrupt::requested(self.interrupted.as_ref()) => Err(Interrupted.into()),
        }
    }
}
