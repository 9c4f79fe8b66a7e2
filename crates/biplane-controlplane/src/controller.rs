//! What a controller is: a reconciler, the watches that wake it, and the limits of its queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use biplane_cluster::{Change, Form, Query};
use biplane_engine::{ReconcileError, Requeue};
use biplane_model::owner::controller_of;
use biplane_model::{Gvk, Object};

use crate::breaker::Breaker;
use crate::queue::{Key, Limits};
use crate::seen::Seen;

/// Reconciles the objects of a controller.
#[async_trait]
pub trait Reconcile: Send + Sync {
    /// Brings one object closer to its desired state.
    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError>;
    /// Takes note of an object that exists, before [`Reconcile::warm_up`].
    fn expect(&self, _object: &Object) {}
    /// Prepares for the objects that exist, before the first of them is reconciled.
    async fn warm_up(&self) {}
    /// A reconcile of an object has ended, and has seen this.
    async fn ended(&self, _key: &Key, _seen: &Seen) {}
    /// An object does not exist any more.
    fn gone(&self, _last: &Object) {}
    /// Drops what is not needed any more. This is called once a minute.
    fn tidy(&self) {}
    /// The breaker that holds changes back.
    fn breaker(&self) -> Option<&Breaker> {
        None
    }
    /// How many objects an object depends on.
    fn dependencies(&self, _key: &Key) -> usize {
        0
    }
}

/// Maps changes to the objects that are reconciled because of them.
pub trait Mapping: Send + Sync {
    /// The keys of the objects to reconcile. A mapping is also told that all is there, or that
    /// something was missed; then no object is meant.
    fn keys(&self, change: &Change) -> BTreeSet<Key>;
    /// The watch has ended by itself. Returns whether to watch again, and otherwise which objects
    /// to reconcile.
    fn ended(&self) -> Result<(), BTreeSet<Key>> {
        Ok(())
    }
}

/// Maps each state of an object by a function.
struct Each<F>(F);

impl<F: Fn(&Object) -> Vec<Key> + Send + Sync> Mapping for Each<F> {
    fn keys(&self, change: &Change) -> BTreeSet<Key> {
        states(change).flat_map(|object| (self.0)(object)).collect()
    }
}

/// Observes changes, and wakes nobody.
struct Observer<F>(F);

impl<F: Fn(&Change) + Send + Sync> Mapping for Observer<F> {
    fn keys(&self, change: &Change) -> BTreeSet<Key> {
        (self.0)(change);
        BTreeSet::new()
    }
}

/// The states of the object that a change is about: before and after.
pub fn states(change: &Change) -> impl Iterator<Item = &Object> {
    let (before, after) = match change {
        Change::Changed { object, before } => (before.as_ref(), Some(object)),
        Change::Gone { last } => (Some(last), None),
        Change::Synced | Change::Missed => (None, None),
    };
    before.into_iter().chain(after)
}

/// What a controller watches.
#[derive(Clone)]
pub struct Watch {
    /// The type of the watch, in metrics.
    pub r#type: &'static str,
    /// The kind.
    pub gvk: Gvk,
    /// Which objects of the kind.
    pub query: Query,
    /// How much of them.
    pub form: Form,
    /// Whether these are the objects that the controller reconciles.
    pub own: bool,
    /// Maps changes to keys.
    pub mapping: Arc<dyn Mapping>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("gvk", &self.gvk)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Watches the objects that the controller reconciles.
    pub fn own(r#type: &'static str, gvk: Gvk) -> Self {
        let mut watch = Self::mapped(r#type, gvk, |object| vec![Key::from(&object.id())]);
        watch.own = true;
        watch
    }

    /// Watches other objects. Each state of an object is mapped to keys.
    pub fn mapped(
        r#type: &'static str,
        gvk: Gvk,
        keys: impl Fn(&Object) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        Self {
            r#type,
            gvk,
            query: Query::default(),
            form: Form::Whole,
            own: false,
            mapping: Arc::new(Each(keys)),
        }
    }

    /// Watches the objects that objects of the controller own. `kind` is the kind of the owners,
    /// which are cluster-scoped.
    pub fn owned(r#type: &'static str, gvk: Gvk, kind: &'static str) -> Self {
        Self::mapped(r#type, gvk, move |object| {
            let owner = controller_of(object).filter(|owner| owner.kind == kind);
            owner.map(|owner| Key::new("", &owner.name)).into_iter().collect()
        })
    }

    /// Observes other objects, and wakes nobody.
    pub fn observed(
        r#type: &'static str,
        gvk: Gvk,
        observe: impl Fn(&Change) + Send + Sync + 'static,
    ) -> Self {
        let mut watch = Self::mapped(r#type, gvk, |_| Vec::new());
        watch.mapping = Arc::new(Observer(observe));
        watch
    }

    /// Watches the objects that match.
    #[must_use]
    pub fn matching(self, query: Query) -> Self {
        Self { query, ..self }
    }

    /// Watches metadata only.
    #[must_use]
    pub fn metadata(self) -> Self {
        Self { form: Form::Metadata, ..self }
    }
}

/// A controller.
#[derive(Clone)]
pub struct Controller {
    /// Its name, in metrics and logs.
    pub name: String,
    /// What it does.
    pub reconciler: Arc<dyn Reconcile>,
    /// What wakes it. The objects that it reconciles come first.
    pub watches: Vec<Watch>,
    /// The limits of its queue.
    pub limits: Limits,
    /// Whether objects are also reconciled when they do not exist any more.
    pub reconciles_gone: bool,
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Calls an asynchronous function for each key.
struct Function<F>(F);

#[async_trait]
impl<F, R> Reconcile for Function<F>
where
    F: Fn(Key) -> R + Send + Sync,
    R: Future<Output = Result<Requeue, ReconcileError>> + Send,
{
    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        (self.0)(key.clone()).await
    }
}

impl Controller {
    /// A controller that calls an asynchronous function for each key.
    pub fn new<R>(
        name: &str,
        watches: Vec<Watch>,
        limits: Limits,
        reconcile: impl Fn(Key) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Result<Requeue, ReconcileError>> + Send + 'static,
    {
        Self::of(name, watches, limits, Function(reconcile))
    }

    /// A controller that runs a reconciler.
    pub fn of(
        name: &str,
        watches: Vec<Watch>,
        limits: Limits,
        reconciler: impl Reconcile + 'static,
    ) -> Self {
        let (name, reconciler) = (name.to_owned(), Arc::new(reconciler));
        Self { name, reconciler, watches, limits, reconciles_gone: false }
    }

    /// Also reconciles objects that do not exist any more, once.
    #[must_use]
    pub fn also_gone(self) -> Self {
        Self { reconciles_gone: true, ..self }
    }

    /// A controller that reconciles nothing and only observes changes.
    pub fn observing(name: &str, watches: Vec<Watch>) -> Self {
        let nothing = |_| std::future::ready(Ok(Requeue::No));
        Self::new(name, watches, Limits { concurrent: 1, ..Limits::default() }, nothing)
    }
}
