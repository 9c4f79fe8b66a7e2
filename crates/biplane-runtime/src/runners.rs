//! The running functions of a command.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use biplane_console::{Interrupted, Interrupts, Progress, interrupt};
use biplane_runner::{Named, supervised};
use tokio::task::JoinSet;

use crate::docker::Session;
use crate::running::Running;

/// Functions that can be called, by name. Everything that was started for them ends with the last
/// clone.
#[derive(Clone, Debug, Default)]
pub struct Runners {
    by_name: BTreeMap<String, Running>,
    /// Receives signals; unset when a signal may end the process directly.
    pub interrupted: Option<Interrupts>,
    /// The Docker session, if anything runs there. It is cleaned up after the processes have ended.
    pub session: Option<Arc<Session>>,
    /// The Docker network of the engine, if it is a container.
    pub network: Option<String>,
}

impl Runners {
    /// No functions yet. On a terminal, an interrupt must first erase the progress line.
    pub fn none(progress: &Progress) -> Result<Self> {
        let listen = || Interrupts::listen(progress, false);
        let interrupted = progress.is_on().then(listen).transpose()?;
        Ok(Self { interrupted, ..Self::default() })
    }

    /// Adds a function.
    pub fn insert(&mut self, name: String, running: Running) {
        self.by_name.insert(name, running);
    }

    /// The functions by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Running)> {
        self.by_name.iter()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Running> {
        self.by_name.values_mut()
    }

    /// Whether a function of this name is running.
    pub fn is_up(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(Running::is_up)
    }

    /// The same Docker session, network and signals without the functions.
    pub(crate) fn without_functions(&self) -> Self {
        Self { by_name: BTreeMap::new(), ..self.clone() }
    }

    /// Adds the functions of `others`, except those that were restarted.
    pub(crate) fn join(&mut self, others: Self) {
        for (name, running) in others.by_name {
            self.by_name.entry(name).or_insert(running);
        }
    }

    /// Calls functions by name.
    pub fn named(&self) -> Named {
        self.by_name.iter().fold(Named::default(), |named, (name, running)| {
            named.with(name, running.runner.clone())
        })
    }

    /// Returns the exit report of the first function that ends.
    pub async fn first_end(&self) -> String {
        let mut ends = JoinSet::new();
        for ended in self.by_name.values().filter_map(|running| running.ended.clone()) {
            ends.spawn(supervised::end_of(ended));
        }
        match ends.join_next().await {
            Some(Ok(end)) => end,
            _ => std::future::pending().await,
        }
    }

    /// Stops everything that was started. Connections are closed first, because a server that is
    /// stopping waits for its clients.
    pub async fn end(self) {
        let Self { by_name, session, .. } = self;
        drop(by_name);
        if let Some(session) = session.and_then(Arc::into_inner) {
            session.close().await;
        }
    }

    /// Stops all functions except some.
    pub async fn keep(mut self, names: &BTreeSet<String>) -> Self {
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

    /// Runs some work unless the command is interrupted.
    pub async fn unless_interrupted<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            done = work => done,
            () = interrupt::requested(self.interrupted.as_ref()) => Err(Interrupted.into()),
        }
    }
}
