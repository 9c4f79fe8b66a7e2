//! Containers for one command: whatever is started in a Docker engine is recorded here, and cleaned
//! up when the record goes away, however the command ends.

mod build;
mod client;
mod container;
mod create;
mod environment;
mod image_file;
mod options;
mod pull;
mod python;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use biplane_console::{Interrupted, logging};
use biplane_go::fmt::quote;
use bollard::Docker;
use bollard::models::NetworkDisconnectRequest;
use bollard::query_parameters::{RemoveContainerOptions, StopContainerOptions};
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinSet;

pub use environment::Environment;
pub use options::{PullPolicy, name, network};
pub use run::Ran;

pub(crate) use options::Options;

/// How long each part of cleaning up may take, whatever the command's own time is.
const CLEANUP: Duration = Duration::from_secs(5);
/// How long a container has to stop by itself, in seconds: so that there is time left to kill it.
const GRACE: i32 = 2;

/// A Docker engine, and what one command has there.
#[derive(Debug)]
pub struct Session {
    docker: Docker,
    environment: Environment,
    verbose: bool,
    left: Mutex<Left>,
    pulled: Mutex<BTreeMap<String, Arc<OnceCell<()>>>>,
    cancel: watch::Sender<Option<Cancelled>>,
    /// What containers call this machine, once somebody wants to know.
    host: OnceCell<&'static str>,
}

/// What is to be cleaned up.
#[derive(Debug, Default)]
struct Left {
    containers: Vec<Container>,
    /// Containers that the engine has been asked for, by name, and has not answered yet.
    asked_for: BTreeMap<usize, String>,
    /// The network of this command, if it has one of its own.
    network: Option<Network>,
}

/// A network, and whether the engine has said that it is there.
#[derive(Debug)]
struct Network {
    name: String,
    exists: bool,
}

/// A container, and what becomes of it.
#[derive(Clone, Debug)]
struct Container {
    id: String,
    /// Whom it belongs to.
    function: String,
    /// Where it is called.
    target: String,
    cleanup: options::Cleanup,
    /// Whether it is asked to stop before it is removed.
    gently: bool,
}

/// Why work was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// Someone asked to stop.
    Interrupted,
    /// There is no time left.
    Deadline,
    /// Something else failed, so that the work is of no use.
    Pointless,
}

impl Cancelled {
    /// What there is to say about work that was given up.
    pub fn error(self) -> anyhow::Error {
        match self {
            Self::Interrupted => Interrupted.into(),
            Self::Deadline => anyhow!("context deadline exceeded"),
            Self::Pointless => anyhow!("context canceled"),
        }
    }
}

impl Session {
    /// Connects to the engine that the environment names.
    pub async fn open(environment: Environment, verbose: bool) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            docker: client::connect(&environment).await?,
            environment,
            verbose,
            left: Mutex::default(),
            pulled: Mutex::default(),
            cancel: watch::Sender::new(None),
            host: OnceCell::new(),
        }))
    }

    fn docker(&self) -> &Docker {
        &self.docker
    }

    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pulled(&self) -> MutexGuard<'_, BTreeMap<String, Arc<OnceCell<()>>>> {
        self.pulled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what takes long. What leaves something behind is always finished.
    pub fn cancel(&self, reason: Cancelled) {
        self.cancel.send_if_modified(|set| set.is_none() && set.replace(reason).is_none());
    }

    /// Returns once work is given up.
    async fn cancelled(&self) -> anyhow::Error {
        let mut cancel = self.cancel.subscribe();
        let reason = cancel.wait_for(Option::is_some).await.ok().and_then(|reason| *reason);
        match reason {
            Some(reason) => reason.error(),
            None => std::future::pending().await,
        }
    }

    /// Whether a network goes away with this command.
    fn is_own(&self, network: &str) -> bool {
        self.left().network.as_ref().is_some_and(|own| own.name == network)
    }

    /// Records a container. Functions may share one, which is cleaned up once.
    fn own(&self, container: Container) {
        let mut left = self.left();
        if !left.containers.iter().any(|known| known.id == container.id) {
            left.containers.push(container);
        }
    }

    /// Remembers where a container is called.
    fn set_target(&self, id: &str, target: &str) {
        for container in self.left().containers.iter_mut().filter(|c| c.id == id) {
            target.clone_into(&mut container.target);
        }
    }

    fn disown(&self, id: &str) {
        self.left().containers.retain(|container| container.id != id);
    }
}

impl Session {
    /// Cleans up, and lets others work meanwhile.
    pub async fn close(self) {
        let left = std::mem::take(&mut *self.left());
        let failures = clean_up(self.docker.clone(), left).await;
        self.report(&failures);
    }

    /// Cleans up all containers but those of some functions, for others to be started.
    pub async fn keep(&self, functions: &BTreeSet<String>) {
        let (containers, asked_for, network) = {
            let left = &mut *self.left();
            let stays = |container: &Container| functions.contains(&container.function);
            let (stay, go) = std::mem::take(&mut left.containers).into_iter().partition(stays);
            left.containers = stay;
            let network = left.network.as_ref().map(|network| network.name.clone());
            (go, std::mem::take(&mut left.asked_for), network)
        };
        let failures = clean_up_containers(&self.docker, containers, asked_for, network).await;
        self.report(&failures);
        // What was given up has ended, and what was pulled may be another image by now.
        self.cancel.send_replace(None);
        self.pulled().clear();
    }

    fn report(&self, failures: &[String]) {
        for failure in failures.iter().filter(|_| self.verbose) {
            let line = logging::debug_line("Cannot clean up", &[("error", failure)]);
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let left = std::mem::take(&mut *self.left());
        if left.containers.is_empty() && left.asked_for.is_empty() && left.network.is_none() {
            return;
        }
        let docker = self.docker.clone();
        // The caller's thread may be busy driving other work, or itself be driven.
        let cleaner = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(clean_up(docker, left)),
                Err(error) => vec![error.to_string()],
            }
        });
        self.report(&cleaner.join().unwrap_or_default());
    }
}

/// A name that nothing else has.
fn unique_name() -> String {
    #[allow(clippy::disallowed_methods)] // nothing that is printed depends on it
    let id = uuid::Uuid::new_v4().to_string();
    format!("crossplane-render-{}", id.get(..8).unwrap_or(&id))
}

/// Deals with all containers at once, then with the network that they were on.
async fn clean_up(docker: Docker, left: Left) -> Vec<String> {
    let Left { containers, asked_for, network } = left;
    let on = network.as_ref().map(|network| network.name.clone());
    let mut failures = clean_up_containers(&docker, containers, asked_for, on).await;
    if let Some(Network { name, exists }) = network {
        let removed = create::remove_network(&docker, &name, exists).await;
        if let Err(error) = removed.context("cannot remove Docker network") {
            failures.push(format!("{error:#}"));
        }
    }
    failures
}

async fn clean_up_containers(
    docker: &Docker,
    containers: Vec<Container>,
    asked_for: BTreeMap<usize, String>,
    network: Option<String>,
) -> Vec<String> {
    let mut failures = Vec::new();
    let mut cleaning = JoinSet::new();
    for name in asked_for.into_values() {
        let docker = docker.clone();
        cleaning.spawn(async move {
            let removed = create::remove_late(&docker, &name).await;
            removed.with_context(|| format!("cannot remove Docker container {}", quote(&name)))
        });
    }
    for container in containers {
        let (docker, network) = (docker.clone(), network.clone());
        cleaning.spawn(async move {
            let cleaned = container.clean_up(&docker, network).await;
            let Container { function, target, .. } = &container;
            let (function, target) = (quote(function), quote(target));
            cleaned.with_context(|| {
                format!("cannot stop function {function} runtime (target {target})")
            })
        });
    }
    while let Some(cleaned) = cleaning.join_next().await {
        if let Ok(Err(error)) = cleaned {
            failures.push(format!("{error:#}"));
        }
    }
    failures
}

impl Container {
    async fn clean_up(&self, docker: &Docker, network: Option<String>) -> Result<()> {
        let stop = async || {
            let options =
                StopContainerOptions { t: Some(GRACE), ..StopContainerOptions::default() };
            let stop = docker.stop_container(&self.id, Some(options));
            done(stop).await.context("cannot stop Docker container")
        };
        match self.cleanup {
            options::Cleanup::Remove => {
                // One that does not stop is removed all the same.
                let stopped = if self.gently { stop().await } else { Ok(()) };
                let force =
                    RemoveContainerOptions { force: true, ..RemoveContainerOptions::default() };
                let remove = docker.remove_container(&self.id, Some(force));
                done(remove).await.context("cannot remove Docker container")?;
                return stopped;
            }
            options::Cleanup::Stop => stop().await?,
            options::Cleanup::Orphan => {}
        }
        // A container that stays must not depend on a network that does not.
        let Some(network) = network else { return Ok(()) };
        let request = NetworkDisconnectRequest { container: self.id.clone(), force: Some(true) };
        let _ = docker.disconnect_network(&network, request).await;
        Ok(())
    }
}

/// Waits for a part of cleaning up. What is gone already was cleaned up by someone else.
async fn done(part: impl Future<Output = Result<(), bollard::errors::Error>>) -> Result<()> {
    match tokio::time::timeout(CLEANUP, part).await {
        Err(_) => Err(anyhow!("context deadline exceeded")),
        Ok(Err(error)) if client::status(&error) == Some(404) => Ok(()),
        Ok(done) => done.map_err(|error| client::explain(&error)),
    }
}
