//! The controllers that make a control plane: of definitions (XRDs), Compositions, their revisions
//! and Functions in this process; and the controllers that definitions start and stop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use biplane_cluster::{Change, Quiet};
use biplane_engine::composite::CompositionIndex;
use biplane_engine::controllers::{
    ClaimController, Controller as Wanted, ControllerError, Controllers,
};
use biplane_engine::{
    Context, ReconcileError, Requeue, claim, definition, in_process, offered, pipeline_check,
    revision,
};
use biplane_model::claim::claim_of;
use biplane_model::pipeline::function_names;
use biplane_model::{Gvk, Object, composition, labels};
use biplane_schema::xcrd;

use crate::composite::{CompositeSpec, Composites, Perform, Settings};
use crate::controller::{Controller, Mapping, Reconcile, Watch, states};
use crate::queue::{Key, Limits};
use crate::registry::{Registry, StartError, WeakRegistry};

/// How definitions, claims and Compositions are treated.
#[derive(Clone, Debug)]
pub struct Options {
    /// How claims are synced with their composite resources.
    pub claims: claim::Syncing,
    /// How many revisions of a Composition that nothing uses are kept. Zero keeps all.
    pub revision_history: usize,
    /// How many objects of a kind are reconciled at a time.
    pub concurrent: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { claims: claim::Syncing::ServerSide, revision_history: 0, concurrent: 100 }
    }
}

/// Runs what definitions want to run.
struct Defined {
    registry: WeakRegistry,
    context: Context,
    quiet: Arc<Quiet>,
    index: Arc<CompositionIndex>,
    settings: Settings,
    perform: Option<Arc<dyn Perform>>,
    options: Options,
}

impl Defined {
    fn registry(&self) -> Result<Registry, ControllerError> {
        let ends = || ControllerError::Start("the control plane ends".to_owned());
        self.registry.upgrade().ok_or_else(ends)
    }

    /// The controller of claims.
    fn claims(&self, wanted: &ClaimController) -> Controller {
        let name = wanted.definition.name();
        let live = claim::Behaviour::live(wanted.gvk.clone(), wanted.composite.clone(), name);
        let behaviour = claim::Behaviour { syncing: self.options.claims, ..live };
        let controller = behaviour.controller.clone();
        let reconciler = claim::Reconciler { context: self.context.clone(), behaviour };
        let kind = wanted.gvk.clone();
        let watches = vec![
            Watch::own("Claim", wanted.gvk.clone()),
            Watch::mapped("CompositeResource", wanted.composite.clone(), move |xr| {
                let claim = claim_of(xr).filter(|c| Gvk::new(&c.api_version, &c.kind) == kind);
                claim.map(|claim| Key::new(&claim.namespace, &claim.name)).into_iter().collect()
            }),
        ];
        Controller::of(&controller, watches, self.limits(), reconciler)
    }

    fn limits(&self) -> Limits {
        Limits { concurrent: self.options.concurrent, ..Limits::default() }
    }
}

/// What the controller of a definition does depends on this.
fn specification(definition: &Object, kinds: [&Gvk; 2], generation: i64) -> String {
    format!("{} {generation} {kinds:?}", definition.uid())
}

#[async_trait]
impl Controllers for Defined {
    async fn ensure(&self, wanted: Wanted) -> Result<(), ControllerError> {
        let registry = self.registry()?;
        let failed = |error: StartError| ControllerError::Watch(error.source.to_string());
        match wanted {
            Wanted::Composite(wanted) => {
                let generation = wanted.definition.generation();
                let kinds = [&wanted.gvk; 2];
                let spec = CompositeSpec {
                    specification: specification(&wanted.definition, kinds, generation),
                    behaviour: wanted.behaviour(),
                };
                let composites = Composites {
                    registry,
                    context: self.context.clone(),
                    quiet: Arc::clone(&self.quiet),
                    index: Arc::clone(&self.index),
                    settings: self.settings.clone(),
                    perform: self.perform.clone(),
                };
                composites.ensure(&spec).await.map_err(failed)?;
            }
            Wanted::Claim(wanted) => {
                let kinds = [&wanted.gvk, &wanted.composite];
                let specification = specification(&wanted.definition, kinds, 0);
                let controller = self.claims(&wanted);
                registry.ensure(&specification, controller).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    async fn stop(&self, name: &str) -> Result<(), ControllerError> {
        self.registry()?.stop(name).await;
        Ok(())
    }
}

/// The controllers of definitions, Compositions and revisions. `composites` is how the definitions'
/// composite resources are reconciled.
pub fn controllers(composites: &Composites, options: &Options) -> Vec<Controller> {
    let context = composites.context.clone();
    let defined: Arc<dyn Controllers> = Arc::new(Defined {
        registry: composites.registry.downgrade(),
        context: context.clone(),
        quiet: Arc::clone(&composites.quiet),
        index: Arc::clone(&composites.index),
        settings: composites.settings.clone(),
        perform: composites.perform.clone(),
        options: options.clone(),
    });
    let limits = Limits { concurrent: options.concurrent, ..Limits::default() };
    let revisions = revision::Reconciler {
        history_limit: options.revision_history,
        ..revision::Reconciler::new(context.clone())
    };
    let of_kind = |kind| Gvk::new(composition::API_VERSION, kind);
    let defining = || {
        let crd = Gvk::new("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        vec![
            Watch::own(xcrd::KIND, of_kind(xcrd::KIND)),
            Watch::owned("CustomResourceDefinition", crd, xcrd::KIND).metadata(),
        ]
    };
    let definitions = definition::Reconciler::new(context.clone(), Arc::clone(&defined))
        .with_environments(composites.settings.environments);
    let offers = offered::Reconciler::new(context.clone(), defined);
    let owned = Watch::owned("CompositionRevision", of_kind("CompositionRevision"), "Composition");
    let compositions = vec![Watch::own("Composition", of_kind("Composition")), owned];
    let pipelines = Arc::new(Pipelines::default());
    let mut own = Watch::own("CompositionRevision", of_kind("CompositionRevision"));
    own.mapping = Arc::new(OfPipeline(Arc::clone(&pipelines)));
    let functions = Gvk::new("pkg.crossplane.io/v1", "FunctionRevision");
    let functions = Watch::mapped("FunctionRevision", functions, move |function| {
        pipelines.users(function.label(labels::PACKAGE))
    });
    let checks = pipeline_check::Reconciler::new(context);
    vec![
        Controller::of(definition::CONTROLLER, defining(), limits, definitions).also_gone(),
        Controller::of(offered::CONTROLLER, defining(), limits, offers).also_gone(),
        Controller::of(revision::CONTROLLER, compositions, limits, revisions),
        Controller::of(pipeline_check::CONTROLLER, vec![own, functions], limits, checks),
    ]
}

/// The controller of Functions in this process.
pub fn functions(reconciler: in_process::Reconciler) -> Controller {
    let kind = |kind| Gvk::new("pkg.crossplane.io/v1", kind);
    let watches = vec![
        Watch::own("Function", kind("Function")),
        Watch::owned("FunctionRevision", kind("FunctionRevision"), "Function"),
    ];
    let name = "packages/function.pkg.crossplane.io";
    Controller::of(name, watches, Limits::default(), reconciler)
}

/// The engine's reconcilers by the namespace and name of an object.
macro_rules! reconciles {
    ($($reconciler:ty),* $(,)?) => {$(
        #[async_trait]
        impl Reconcile for $reconciler {
            async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
                <$reconciler>::reconcile(self, &key.namespace, &key.name).await
            }
        }
    )*};
}

reconciles!(
    claim::Reconciler,
    definition::Reconciler,
    in_process::Reconciler,
    offered::Reconciler,
    pipeline_check::Reconciler,
    revision::Reconciler,
);

/// Which pipelines call a function.
#[derive(Default)]
struct Pipelines(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    functions: BTreeMap<Key, Vec<String>>,
    users: BTreeMap<String, BTreeSet<Key>>,
}

impl Pipelines {
    fn users(&self, function: &str) -> Vec<Key> {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.users.get(function).into_iter().flatten().cloned().collect()
    }

    fn remember(&self, key: &Key, functions: Vec<String>) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for function in calls.functions.remove(key).unwrap_or_default() {
            if let Some(users) = calls.users.get_mut(&function) {
                users.remove(key);
                if users.is_empty() {
                    calls.users.remove(&function);
                }
            }
        }
        for function in &functions {
            calls.users.entry(function.clone()).or_default().insert(key.clone());
        }
        if !functions.is_empty() {
            calls.functions.insert(key.clone(), functions);
        }
    }
}

/// Maps a change of a revision to itself.
struct OfPipeline(Arc<Pipelines>);

impl Mapping for OfPipeline {
    fn keys(&self, change: &Change) -> BTreeSet<Key> {
        let functions = match change {
            Change::Changed { object, .. } => function_names(object),
            _ => Vec::new(),
        };
        let keys: BTreeSet<_> = states(change).map(|object| Key::from(&object.id())).collect();
        for key in &keys {
            self.0.remember(key, functions.clone());
        }
        keys
    }
}
