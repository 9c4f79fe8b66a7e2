//! The controllers that definitions (XRDs) start and stop: one for the composite resources of each
//! definition, and one for its claims.
//!
//! A control plane implements [`Controllers`]. The reconcilers of definitions only say what shall
//! run.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_model::layout::Layout;
use biplane_model::{Gvk, Object, Value};
use biplane_schema::structural::Schema;
use biplane_schema::xcrd;

use crate::composite::Behaviour;

/// A controller of a kind that a definition defines.
#[derive(Clone, Debug)]
pub enum Controller {
    /// Reconciles composite resources.
    Composite(CompositeController),
    /// Reconciles claims.
    Claim(ClaimController),
}

/// The controller of the composite resources of a definition.
#[derive(Clone, Debug)]
pub struct CompositeController {
    /// The definition.
    pub definition: Object,
    /// The kind of the composite resources.
    pub gvk: Gvk,
    /// The layout of the composite resources.
    pub layout: Layout,
    /// The schema of the composite resources.
    pub schema: Arc<Schema>,
}

/// The controller of the claims of a definition.
#[derive(Clone, Debug)]
pub struct ClaimController {
    /// The definition.
    pub definition: Object,
    /// The kind of the claims.
    pub gvk: Gvk,
    /// The kind of the composite resources.
    pub composite: Gvk,
}

impl Controller {
    /// The name under which it runs.
    pub fn name(&self) -> String {
        match self {
            Self::Composite(it) => composite_name(it.definition.name()),
            Self::Claim(it) => claim_name(it.definition.name()),
        }
    }

    /// Whether a controller that runs like `self` also does what `wanted` shall do. Otherwise it
    /// must be replaced.
    pub fn does_the_same_as(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            // Any change of a definition can concern its composite resources.
            (Self::Composite(running), Self::Composite(wanted)) => {
                running.gvk == wanted.gvk
                    && running.definition.uid() == wanted.definition.uid()
                    && running.definition.generation() == wanted.definition.generation()
            }
            (Self::Claim(running), Self::Claim(wanted)) => {
                (&running.gvk, &running.composite) == (&wanted.gvk, &wanted.composite)
                    && running.definition.uid() == wanted.definition.uid()
            }
            _ => false,
        }
    }
}

impl CompositeController {
    /// The controller of a definition, or why its schema cannot be used.
    pub fn of(definition: &Object) -> Result<Self, xcrd::DefinitionError> {
        let gvk = xcrd::composite_gvk(definition);
        Ok(Self {
            schema: Arc::new(xcrd::schema(definition, &gvk.api_version())?),
            layout: xcrd::Scope::of(definition).layout(),
            definition: definition.clone(),
            gvk,
        })
    }

    /// The behaviour of a live control plane for these composite resources.
    pub fn behaviour(&self) -> Behaviour {
        let keys = self.definition.at(&["spec", "connectionSecretKeys"]).and_then(Value::as_array);
        let keys = keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        Behaviour {
            publish: (self.layout == Layout::Legacy).then(|| keys.collect()),
            schema: Some(Arc::clone(&self.schema)),
            ..Behaviour::live(self.gvk.clone(), self.layout, self.definition.name())
        }
    }
}

impl ClaimController {
    /// The controller of a definition.
    pub fn of(definition: &Object) -> Self {
        Self {
            definition: definition.clone(),
            gvk: xcrd::claim_gvk(definition),
            composite: xcrd::composite_gvk(definition),
        }
    }
}

/// The name of the controller of composite resources.
pub fn composite_name(definition: &str) -> String {
    format!("composite/{definition}")
}

/// The name of the controller of claims.
pub fn claim_name(definition: &str) -> String {
    format!("claim/{definition}")
}

/// Why a controller could not be started or stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControllerError {
    /// It could not be started.
    #[error("{0}")]
    Start(String),
    /// Its watches could not be started.
    #[error("{0}")]
    Watch(String),
    /// It could not be stopped.
    #[error("{0}")]
    Stop(String),
}

/// Runs controllers.
#[async_trait]
pub trait Controllers: Send + Sync {
    /// Starts a controller and its watches, unless it is running. A running one that does something
    /// else ([`Controller::does_the_same_as`]) is stopped first.
    ///
    /// This is called on every reconcile of a definition, so it must be cheap if nothing is to do.
    async fn ensure(&self, wanted: Controller) -> Result<(), ControllerError>;
    /// Stops a controller and its watches, and waits until it has ended. Nothing happens if it is
    /// not running.
    async fn stop(&self, name: &str) -> Result<(), ControllerError>;
}
