//! Runs the functions of a control plane: finds each by its FunctionRevision and calls it over gRPC,
//! or computes it in this process.
//!
//! [`stack::of_control_plane`] puts the wrappers around it. Here is the bound on the calls of each
//! function.

mod certificates;
mod index;
mod pool;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use biplane_function::metrics::Metrics;
use biplane_function::{Function, Registry, status};
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::cached::{CacheMetrics, Now};
use biplane_runner::grpc::Security;
use biplane_runner::inspected;
use biplane_runner::packaged::CallMetrics;
use biplane_runner::stack::{self, AnswerCache};
use biplane_runner::{Cached, Call, FunctionRunner, Inspection, Packaged, Requirements, RunError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::controller::Watch;
use biplane_engine::in_process::{Runtime, repository};
use certificates::Credentials;
pub use certificates::{CertificateSource, LoadError};
use index::{Index, Targets};
use pool::Pool;

/// How many calls of one function run at a time.
const CALLS: usize = 64;
/// How often clients of functions that are not installed any more are closed.
const CLOSE_CLIENTS: Duration = Duration::from_mins(10);

/// How functions are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The functions in this process.
    pub built_in: Registry,
    /// Whether functions run in this process where it has them. Otherwise only those that say so.
    pub in_process: bool,
    /// How many functions compute in this process at a time.
    pub threads: usize,
    /// Where the client's certificates come from. Without them, connections are not secured.
    pub certificates: Option<CertificateSource>,
    /// The time limit of one step.
    pub step_limit: Option<Duration>,
    /// Where responses are kept.
    pub cache: Option<Cache>,
    /// Emits what functions are given and what they answer, if that is wanted.
    pub inspection: Option<Inspect>,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            built_in: Registry::default(),
            in_process: false,
            threads,
            certificates: None,
            step_limit: None,
            cache: None,
            inspection: None,
        }
    }
}

/// How functions are inspected.
#[derive(Clone, Debug)]
pub struct Inspect {
    /// Where emissions go, and what they are about.
    pub options: inspected::Options,
    /// The sources of time and randomness.
    pub sources: inspected::Sources,
}

/// Where responses are kept.
#[derive(Clone)]
pub struct Cache {
    /// The folder.
    pub folder: PathBuf,
    /// The longest time that a response is kept. Zero for as long as its function allows.
    pub max_ttl: Duration,
    /// The source of the current time.
    pub now: Now,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The functions of a control plane.
pub struct Functions {
    options: Options,
    index: Arc<Index>,
    credentials: Credentials,
    packaged: Packaged<Targets>,
    pool: Pool,
    slots: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    closed: Mutex<Instant>,
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Functions").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Functions {
    /// Prepares to run functions. Fails if the certificates are files that cannot be used.
    pub fn new(options: Options, metrics: &Metrics) -> Result<Arc<Self>, LoadError> {
        let index = Arc::new(Index::default());
        let credentials = Credentials::new(options.certificates.clone());
        let packaged = Packaged::new(
            Targets(Arc::clone(&index)),
            Security::Plaintext,
            CallMetrics::new(metrics),
        );
        if let Some(security) = credentials.load()? {
            packaged.set_security(security);
        }
        Ok(Arc::new(Self {
            pool: Pool::new(options.threads),
            index,
            credentials,
            packaged,
            slots: Mutex::default(),
            closed: Mutex::new(Instant::now()),
            options,
        }))
    }

    /// What to watch, to know which functions are installed and which certificates to show.
    pub fn watches(self: &Arc<Self>) -> Vec<Watch> {
        let mut watches = self.index.watches();
        let functions = Arc::clone(self);
        watches.extend(self.credentials.watch(move |security| {
            functions.packaged.set_security(security);
        }));
        watches
    }

    /// The functions as reconcilers call them, and what must be tidied up.
    pub fn runner(
        self: &Arc<Self>,
        requirements: Arc<dyn Requirements>,
        metrics: &Metrics,
    ) -> (Arc<dyn FunctionRunner>, Housekeeping) {
        let inspection = self.options.inspection.as_ref().map(|Inspect { options, sources }| {
            Inspection::over_socket(options, sources.clone(), Some(metrics))
        });
        let cached = |functions| {
            let Cache { folder, max_ttl, now } = self.options.cache.as_ref()?;
            let metrics = CacheMetrics::new(metrics);
            Some(Arc::new(Cached::new(functions, folder, *max_ttl, now.clone(), metrics)))
        };
        let (runner, cache) = stack::of_control_plane(
            Arc::clone(self) as Arc<dyn FunctionRunner>,
            requirements,
            cached,
            self.options.step_limit,
            inspection.as_ref(),
        );
        (runner, Housekeeping { functions: Arc::clone(self), cache })
    }

    /// The built-in function that runs in this process for a function of the control plane, if one
    /// does.
    fn built_in(&self, function: &str) -> Result<Option<Arc<dyn Function>>, RunError> {
        let Some((runtime, package)) = self.index.runtime(function) else { return Ok(None) };
        let wanted = match runtime {
            Some(Runtime::InProcess) => true,
            Some(Runtime::Other) => false,
            None => self.options.in_process,
        };
        if !wanted {
            return Ok(None);
        }
        let built_in = &self.options.built_in;
        let found = built_in.get(repository(&package)).or_else(|| built_in.get(function));
        match found {
            Some(found) => Ok(Some(Arc::clone(found))),
            None if runtime == Some(Runtime::InProcess) => Err(RunError::NoClient {
                function: function.to_owned(),
                source: "its runtime is InProcess, but this program does not have it".into(),
            }),
            None => Ok(None),
        }
    }

    /// Waits until a function may be called once more.
    async fn slot(&self, call: &Call) -> Result<OwnedSemaphorePermit, RunError> {
        let slots = {
            let mut all = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            let slots = all.entry(call.function.clone());
            Arc::clone(slots.or_insert_with(|| Arc::new(Semaphore::new(CALLS))))
        };
        let acquired = match call.deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, slots.acquire_owned()).await,
            None => Ok(slots.acquire_owned().await),
        };
        let late = |_| RunError::Installed {
            function: call.function.clone(),
            status: status::deadline_exceeded(),
        };
        acquired.map_err(late)?.map_err(|error| RunError::Other(error.to_string()))
    }
}

#[async_trait]
impl FunctionRunner for Functions {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let built_in = self.built_in(&call.function)?;
        let _slot = self.slot(call).await?;
        if let Some(function) = built_in {
            return self.pool.run(function, call, request).await;
        }
        self.credentials.check().map_err(|error| RunError::NoClient {
            function: call.function.clone(),
            source: error.into(),
        })?;
        self.packaged.run(call, request).await
    }
}

/// Drops what is not needed any more.
#[derive(Clone)]
pub struct Housekeeping {
    functions: Arc<Functions>,
    cache: Option<AnswerCache>,
}

impl std::fmt::Debug for Housekeeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Housekeeping")
    }
}

impl Housekeeping {
    /// Reads certificates that have changed, deletes expired responses, and closes clients of
    /// functions that are not installed any more. This is meant to be called once a minute.
    pub async fn tidy(&self) {
        let functions = &self.functions;
        match functions.credentials.load() {
            Ok(Some(security)) => functions.packaged.set_security(security),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "keeping the earlier certificates"),
        }
        {
            let mut slots = functions.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.retain(|_, slots| Arc::strong_count(slots) > 1);
        }
        if let Some(cache) = &self.cache
            && let Err(error) = cache.collect_garbage().await
        {
            tracing::warn!(%error, "cannot delete expired responses");
        }
        let due = {
            let mut closed = functions.closed.lock().unwrap_or_else(PoisonError::into_inner);
            let due = closed.elapsed() >= CLOSE_CLIENTS;
            if due {
                *closed = Instant::now();
            }
            due
        };
        if due && let Err(error) = functions.packaged.collect_garbage().await {
            tracing::warn!(%error, "cannot close clients");
        }
    }
}

#[cfg(test)]
mod tests;
