//! A session with a Docker engine for one command. Everything that is started is recorded here and
//! cleaned up when the session is dropped, however the command ends.

mod build;
mod client;
mod container;
mod create;
mod environment;
mod image_file;
mod options;
mod own_address;
mod pull;
mod python;
mod run;
mod strays;

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
use tokio::task::{JoinHandle, JoinSet};

pub use environment::Environment;
pub use options::{PullPolicy, name, network};
pub use run::Ran;

pub(crate) use options::Options;

/// The time limit for each part of the cleanup, independent of the command's deadline.
const CLEANUP: Duration = Duration::from_secs(5);
/// How long a container may take to stop by itself, in seconds. It leaves enough time to kill the
/// container.
const GRACE: i32 = 2;
/// How the names of everything begin that a command creates for itself alone.
const NAME_PREFIX: &str = "crossplane-render-";

/// A connection to a Docker engine, with everything that one command has created there.
#[derive(Debug)]
pub struct Session {
    docker: Docker,
    environment: Environment,
    verbose: bool,
    left: Mutex<Left>,
    pulled: Mutex<BTreeMap<String, Arc<OnceCell<()>>>>,
    cancel: watch::Sender<Option<Cancelled>>,
    /// The name of this machine inside containers, determined when it is first needed.
    host: OnceCell<&'static str>,
    /// Removes what other commands left behind.
    sweeping: Mutex<Option<JoinHandle<Vec<String>>>>,
}

/// What needs to be cleaned up.
#[derive(Debug, Default)]
struct Left {
    containers: Vec<Container>,
    /// Names of containers that were requested but not confirmed by the engine yet.
    asked_for: BTreeMap<usize, String>,
    /// The network of this command, if it created one.
    network: Option<Network>,
}

/// A network, and whether the engine has confirmed that it exists.
#[derive(Debug)]
struct Network {
    name: String,
    exists: bool,
}

/// A container, and how it is cleaned up.
#[derive(Clone, Debug)]
struct Container {
    id: String,
    /// The function that it belongs to.
    function: String,
    /// The address at which it is called.
    target: String,
    cleanup: options::Cleanup,
    /// Whether it is stopped gracefully before it is removed.
    gently: bool,
}

/// Why work was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The command was interrupted.
    Interrupted,
    /// The deadline has passed.
    Deadline,
    /// Something else failed, so that the result is not needed.
    Pointless,
}

impl Cancelled {
    /// The error for work that was cancelled.
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
        let docker = client::connect(&environment).await?;
        let sweeping = tokio::spawn(strays::remove(docker.clone()));
        Ok(Arc::new(Self {
            docker,
            environment,
            verbose,
            left: Mutex::default(),
            pulled: Mutex::default(),
            cancel: watch::Sender::new(None),
            host: OnceCell::new(),
            sweeping: Mutex::new(Some(sweeping)),
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

    /// Cancels long-running work. Requests that create something are always completed.
    pub fn cancel(&self, reason: Cancelled) {
        self.cancel.send_if_modified(|set| set.is_none() && set.replace(reason).is_none());
    }

    /// Returns once work is cancelled.
    async fn cancelled(&self) -> anyhow::Error {
        let mut cancel = self.cancel.subscribe();
        let reason = cancel.wait_for(Option::is_some).await.ok().and_then(|reason| *reason);
        match reason {
            Some(reason) => reason.error(),
            None => std::future::pending().await,
        }
    }

    /// Whether a network is removed at the end of this command.
    fn is_own(&self, network: &str) -> bool {
        self.left().network.as_ref().is_some_and(|own| own.name == network)
    }

    /// Records a container. Functions may share a container, which is cleaned up once.
    fn own(&self, container: Container) {
        let mut left = self.left();
        if !left.containers.iter().any(|known| known.id == container.id) {
            left.containers.push(container);
        }
    }

    /// Records the address at which a container is called.
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
    /// Cleans up without blocking other tasks.
    pub async fn close(self) {
        let left = std::mem::take(&mut *self.left());
        let mut failures = clean_up(self.docker.clone(), left).await;
        let sweeping = self.sweeping.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sweeping) = sweeping
            && let Ok(Ok(failed)) = tokio::time::timeout(CLEANUP, sweeping).await
        {
            failures.extend(failed);
        }
        self.report(&failures);
    }

    /// Cleans up all containers except those of some functions, so that others can be started.
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
        // Cancelled work has ended, and a pulled tag may refer to another image by now.
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
        // The caller's thread may be busy driving other tasks, or may itself be a task.
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

/// A unique name.
fn unique_name() -> String {
    #[allow(clippy::disallowed_methods)] // it does not affect the output
    let id = uuid::Uuid::new_v4().to_string();
    format!("{NAME_PREFIX}{}", id.get(..8).unwrap_or(&id))
}

/// Cleans up all containers concurrently, then their network.
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
                // A container that does not stop is removed anyway.
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
        // A container that is kept must not depend on a network that is removed.
        let Some(network) = network else { return Ok(()) };
        let request = NetworkDisconnectRequest { container: self.id.clone(), force: Some(true) };
        let _ = docker.disconnect_network(&network, request).await;
        Ok(())
    }
}

/// Waits for a part of the cleanup. Objects that no longer exist have already been cleaned up.
async fn done(part: impl Future<Output = Result<(), bollard::errors::Error>>) -> Result<()> {
    match tokio::time::timeout(CLEANUP, part).await {
        Err(_) => Err(anyhow!("context deadline exceeded")),
        Ok(Err(error)) if client::status(&error) == Some(404) => Ok(()),
        Ok(done) => done.map_err(|error| client::explain(&error)),
    }
}
