//! The control plane: wires cluster, functions and controllers, and runs them.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::{Change, Cluster, Events, Quiet, Recorder, Skipping};
use biplane_engine::requirements::ClusterRequirements;
use biplane_engine::{Clock, Context, Ids, SystemClock, SystemIds};
use biplane_function::metrics::Metrics;
use biplane_model::Gvk;
use biplane_runner::FunctionRunner;

use crate::composite::{Composites, Perform, Settings};
use crate::controller::{Controller, Watch};
use crate::definitions;
use crate::dispatcher::{Dispatcher, Limit, Stability};
use crate::functions::{self, Functions, Housekeeping, LoadError};
use crate::metrics::PlaneMetrics;
use crate::queue::Key;
use crate::registry::{Registry, StartError};
use crate::scraped;
use crate::seen::Noting;
use crate::timeline::{JumpingClock, Timeline};

/// What the names of the controllers of composite resources begin with.
const COMPOSITE: &str = "composite/";

/// How a control plane runs.
#[derive(Clone)]
pub struct Options {
    /// How composite resources are reconciled.
    pub composites: Settings,
    /// What happens to writes that would change nothing.
    pub skipping: Skipping,
    /// How often every object is looked at although nothing happened to it, if at all.
    pub sync_interval: Option<Duration>,
    /// How functions are run.
    pub functions: functions::Options,
    /// Runs functions instead, if it is set. It fetches no requirements by itself.
    pub runner: Option<Arc<dyn FunctionRunner>>,
    /// Performs the reconciles of composite resources, if it is set.
    pub perform: Option<Arc<dyn Perform>>,
    /// The metrics of the process.
    pub metrics: Metrics,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// The source of unique ids.
    pub ids: Arc<dyn Ids>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            composites: Settings::default(),
            skipping: Skipping::default(),
            sync_interval: None,
            functions: functions::Options::default(),
            runner: None,
            perform: None,
            metrics: Metrics::default(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("composites", &self.composites)
            .field("functions", &self.functions)
            .finish_non_exhaustive()
    }
}

struct Shared(Arc<dyn Clock>);

impl Clock for Shared {
    fn now(&self) -> jiff::Timestamp {
        self.0.now()
    }
}

/// A control plane.
#[derive(Debug)]
pub struct ControlPlane {
    composites: Composites,
    dispatcher: Dispatcher,
    /// Controllers that run as long as the control plane does.
    always: Vec<Controller>,
    housekeeping: Option<Housekeeping>,
    timeline: Timeline,
    when_ready: Vec<WhenReady>,
}

/// Called once when all controllers have started.
struct WhenReady(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for WhenReady {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WhenReady")
    }
}

impl ControlPlane {
    /// Wires a control plane on a cluster. Events are deduplicated before they reach `events`.
    pub fn new(
        cluster: Arc<dyn Cluster>,
        events: Arc<dyn Events>,
        options: Options,
    ) -> Result<Self, LoadError> {
        let metrics = PlaneMetrics::new(&options.metrics);
        let timeline = Timeline::default();
        let registry = Registry::new(Arc::clone(&cluster), metrics, timeline.clone())
            .sync_every(options.sync_interval);
        let quiet = Arc::new(Quiet::new(cluster, options.skipping));
        scraped::add(&options.metrics, registry.downgrade(), &quiet);
        let noting: Arc<dyn Cluster> = Arc::new(Noting::new(quiet.clone()));
        let requirements = Arc::new(ClusterRequirements(Arc::clone(&noting)));
        let mut always = vec![schemas(&quiet)];
        let (runner, housekeeping) = if let Some(runner) = options.runner {
            (biplane_runner::stack::of_reconciler(runner, requirements.clone()), None)
        } else {
            let functions = Functions::new(options.functions, &options.metrics)?;
            always.push(Controller::observing("functions", functions.watches()));
            let (runner, housekeeping) = functions.runner(requirements.clone(), &options.metrics);
            (runner, Some(housekeeping))
        };
        let clock = JumpingClock { clock: Shared(options.clock), timeline: timeline.clone() };
        let context = Context {
            cluster: noting,
            events: Arc::new(Recorder::new(events)),
            runner,
            requirements,
            clock: Arc::new(clock),
            ids: options.ids,
        };
        let (settings, index) = (options.composites, Arc::default());
        let perform = options.perform;
        let composites = Composites { registry, context, quiet, index, settings, perform };
        // First, so that it knows all Compositions when composite resources begin.
        always.insert(0, composites.indexing());
        Ok(Self {
            dispatcher: Dispatcher::new(composites.registry.clone()),
            composites,
            always,
            housekeeping,
            timeline,
            when_ready: Vec::new(),
        })
    }

    /// What reconcilers work with.
    pub fn context(&self) -> &Context {
        &self.composites.context
    }

    /// The running controllers.
    pub fn registry(&self) -> &Registry {
        &self.composites.registry
    }

    /// Starts and stops controllers of composite resources.
    pub fn composites(&self) -> &Composites {
        &self.composites
    }

    /// The cluster that does not send what would change nothing, with its counters.
    pub fn quiet(&self) -> &Quiet {
        &self.composites.quiet
    }

    /// The time of the control plane.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The number of reconciles that were started.
    pub fn reconciles(&self) -> usize {
        self.dispatcher.reconciles()
    }

    /// Adds the controllers of definitions, claims, Compositions and revisions.
    pub fn add_definitions(&mut self, options: &definitions::Options) {
        self.always.extend(definitions::controllers(&self.composites, options));
    }

    /// Calls `call` once, when all controllers that run as long as the control plane does have seen
    /// what exists.
    pub fn when_ready(&mut self, call: impl FnOnce() + Send + 'static) {
        self.when_ready.push(WhenReady(Box::new(call)));
    }

    /// Adds a controller that runs as long as the control plane does.
    pub fn add(&mut self, controller: Controller) {
        self.always.push(controller);
    }

    /// Runs until `shutdown` is ready. Then nothing is started any more, and running reconciles get
    /// ten seconds to end.
    ///
    /// A controller starts as soon as everything that it watches can be watched.
    pub async fn run(&mut self, shutdown: impl Future<Output = ()>) {
        let mut background = tokio::task::JoinSet::new();
        let (registry, when_ready) =
            (self.composites.registry.clone(), std::mem::take(&mut self.when_ready));
        let starts = std::mem::take(&mut self.always).into_iter().map(|controller| {
            let registry = registry.clone();
            async move { registry.ensure_eventually("", controller).await }
        });
        let starts: Vec<_> = starts.collect();
        background.spawn(async move {
            futures_util::future::join_all(starts).await;
            for WhenReady(call) in when_ready {
                call();
            }
        });
        if let Some(housekeeping) = self.housekeeping.clone() {
            background.spawn(async move {
                loop {
                    tokio::time::sleep(Duration::from_mins(1)).await;
                    housekeeping.tidy().await;
                }
            });
        }
        self.dispatcher.run(shutdown).await;
        background.shutdown().await;
    }

    /// Runs until nothing is due, except objects that are looked at regularly, or until a limit is
    /// reached. Reconciles run one after the other, and time passes in jumps.
    pub async fn run_until_stable(&mut self, limit: &Limit) -> Result<Stability, StartError> {
        self.start().await?;
        Ok(self.dispatcher.run_until_stable(limit).await)
    }

    /// Starts the controllers that run as long as the control plane does, if they do not run yet.
    async fn start(&mut self) -> Result<(), StartError> {
        for controller in std::mem::take(&mut self.always) {
            self.composites.registry.ensure("", controller).await?;
        }
        Ok(())
    }

    /// The composite resources that are due, with the names of their controllers, after everything
    /// else that was due. See [`Dispatcher::due`]. From the first call on, time passes in jumps alone.
    pub async fn due(&mut self, patience: Duration) -> Result<Vec<(String, Key)>, StartError> {
        self.timeline.stop();
        self.start().await?;
        Ok(self.dispatcher.due(&is_composite, patience).await)
    }

    /// Reconciles a composite resource if it is still due, and then everything else that is due.
    pub async fn step(&mut self, controller: &str, key: &Key) -> bool {
        self.dispatcher.step(controller, key, &is_composite).await
    }
}

/// Whether a controller is one of composite resources.
fn is_composite(controller: &str) -> bool {
    controller.starts_with(COMPOSITE)
}

/// Sends everything once more when the schema of a kind has changed: who owns what depends on it.
fn schemas(quiet: &Arc<Quiet>) -> Controller {
    let quiet = Arc::clone(quiet);
    let kind = Gvk::new("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let watch = Watch::observed("CustomResourceDefinition", kind, move |change| {
        if let Change::Changed { object, before: Some(before) } = change
            && object.generation() != before.generation()
        {
            quiet.distrust();
        }
    });
    Controller::observing("schemas", vec![watch.metadata()])
}
