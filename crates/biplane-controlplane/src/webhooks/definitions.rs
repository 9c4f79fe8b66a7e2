//! Reviews definitions (XRDs): by their own rules, and by dry runs of the CRDs that they give.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::{Cluster, Optional as _, Part, ReadError, Source, Write, WriteError};
use biplane_model::{Gvk, Object, Value};
use biplane_schema::xcrd;
use biplane_validate::definition_rules;
use tokio::time::Instant;

use super::review::{Operation, Request, Verdict};
use super::status::{Status, Subject, aggregate};
use super::{MANAGER, Review};

/// How often a CRD is updated again that somebody else has changed meanwhile.
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Reviews definitions.
pub(super) struct Definitions {
    pub(super) cluster: Arc<dyn Cluster>,
}

#[async_trait]
impl Review for Definitions {
    async fn review(&self, request: &Request, by: Instant) -> Verdict {
        let Request { operation, object, old, .. } = request;
        let wrong = match operation {
            Operation::Create if !is_definition(object) => {
                let text = format!("supplied object was not a {}", xcrd::KIND);
                return Status::forbidden(text).into();
            }
            Operation::Update if !is_definition(object) || !is_definition(old) => {
                return Status::forbidden("unexpected type".to_owned()).into();
            }
            Operation::Create => definition_rules::on_create(object),
            Operation::Update => definition_rules::on_update(object, old),
            Operation::Delete | Operation::Connect => return Verdict::default(),
        };
        if !wrong.is_empty() {
            return Status::forbidden(aggregate(&wrong)).into();
        }
        match self.try_crds(object, *operation, by).await {
            Ok(()) => Verdict::default(),
            Err(denial) => denial.into(),
        }
    }
}

fn group() -> String {
    Gvk::new(xcrd::API_VERSION, xcrd::KIND).group
}

fn is_definition(object: &Object) -> bool {
    object.kind() == xcrd::KIND && object.gvk().group == group()
}

/// The CRDs of a definition, that of the composite resources first.
fn generated(definition: &Object) -> Result<Vec<Object>, String> {
    let failed = |what: &str, error: xcrd::DefinitionError| {
        format!("cannot get CRDs for CompositeResourceDefinition: {what}: {error}")
    };
    let composite = xcrd::composite(definition)
        .map_err(|error| failed("cannot get CRD for Composite Resource", error))?;
    let mut crds = vec![composite];
    if xcrd::offers_claim(definition) {
        let claim = xcrd::claim(definition)
            .map_err(|error| failed("cannot get Claim CRD for Composite Claim", error))?;
        crds.push(claim);
    }
    Ok(crds)
}

impl Definitions {
    /// Finds out whether the API server accepts the CRDs of a definition.
    async fn try_crds(
        &self,
        definition: &Object,
        operation: Operation,
        by: Instant,
    ) -> Result<(), Status> {
        for crd in generated(definition).map_err(Status::forbidden)? {
            let name = crd.name().to_owned();
            let tried = match operation {
                Operation::Create => self.create(crd, by).await,
                _ => self.update(crd, by).await,
            };
            tried.map_err(|refusal| {
                let subject =
                    Subject { group: &group(), kind: xcrd::KIND, name: definition.name() };
                Status::of_generated_crd(subject, &name, &refusal)
            })?;
        }
        Ok(())
    }

    async fn create(&self, crd: Object, by: Instant) -> Result<(), WriteError> {
        self.cluster.create(crd, &dry_run(), by).await.map(drop)
    }

    /// A CRD does not exist yet if the definition did not offer claims before.
    async fn update(&self, crd: Object, by: Instant) -> Result<(), WriteError> {
        let spec = crd.get("spec").cloned().unwrap_or(Value::Null);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let live = self.cluster.get(&crd.id(), Source::Live, by).await.optional();
            let Some(mut live) = live.map_err(unreadable)? else {
                return self.create(crd, by).await;
            };
            live.make_mut().insert("spec".to_owned(), spec.clone());
            match self.cluster.update(&live, Part::Main, &dry_run(), by).await {
                Err(WriteError::Conflict(_)) if attempts < ATTEMPTS => {
                    tokio::time::sleep(PAUSE).await;
                }
                updated => return updated.map(drop),
            }
        }
    }
}

fn dry_run() -> Write {
    Write { dry_run: true, ..Write::by(MANAGER) }
}

/// Why a CRD cannot be written if it cannot be read.
fn unreadable(error: ReadError) -> WriteError {
    let text = error.to_string();
    match error {
        ReadError::Forbidden(_) => WriteError::Forbidden(text),
        ReadError::Unauthorized(_) => WriteError::Unauthorized(text),
        ReadError::TimedOut(_) => WriteError::TimedOut(text),
        ReadError::Unavailable(_) => WriteError::Unavailable(text),
        ReadError::Throttled { message, after } => WriteError::Throttled { message, after },
        _ => WriteError::Internal(text),
    }
}
