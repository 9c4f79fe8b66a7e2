//! Creates containers and networks such that none is left behind.
//!
//! An engine completes a request even if the client no longer waits for the response. So every
//! object gets a name and is recorded before it is requested. If no response arrived, it is looked
//! up by that name during cleanup.

use std::time::Duration;

use anyhow::{Context, Result};
use biplane_go::fmt::quote;
use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, NetworkCreateRequest};
use bollard::query_parameters::{CreateContainerOptions, RemoveContainerOptions};
use tokio::time::Instant;

use super::client::{explain, status};
use super::options::Cleanup;
use super::strays::{LABEL, Owner};
use super::{CLEANUP, Container, NAME_PREFIX, Network, Session, done, unique_name};

/// How long an engine may still take to respond after the work was cancelled.
const LATE: Duration = Duration::from_secs(2);
/// How often to look for an object that may appear at any time.
const PAUSE: Duration = Duration::from_millis(50);

/// Why a container was not created.
#[derive(Debug)]
pub(super) enum NotCreated {
    /// The engine rejected the request.
    Refused(Error),
    /// The engine has not responded, and the work was cancelled.
    GivenUp(anyhow::Error),
}

impl NotCreated {
    /// The complete error; `refused` formats the error of a rejected request.
    pub(super) fn or(self, refused: impl FnOnce(&Error) -> anyhow::Error) -> anyhow::Error {
        match self {
            Self::Refused(error) => refused(&error),
            Self::GivenUp(reason) => reason,
        }
    }
}

impl Session {
    /// Creates a container, and records it by its id.
    pub(super) async fn create_container(
        &self,
        name: &str,
        mut body: ContainerCreateBody,
        record: Container,
    ) -> Result<String, NotCreated> {
        // What users name or keep is theirs, whatever happens to this process.
        if record.cleanup == Cleanup::Remove && name.starts_with(NAME_PREFIX) {
            body.labels = owner().map(|owner| [owner].into());
        }
        let place = {
            let mut left = self.left();
            let place = left.asked_for.last_key_value().map_or(0, |(last, _)| last + 1);
            left.asked_for.insert(place, name.to_owned());
            place
        };
        let named = CreateContainerOptions {
            name: Some(name.to_owned()),
            ..CreateContainerOptions::default()
        };
        let created = tokio::select! {
            created = self.docker().create_container(Some(named), body) => created,
            reason = self.given_up() => return Err(NotCreated::GivenUp(reason)),
        };
        self.left().asked_for.remove(&place);
        let id = created.map_err(NotCreated::Refused)?.id;
        self.own(Container { id: id.clone(), ..record });
        Ok(id)
    }

    /// Creates a network for this command.
    pub(crate) async fn create_network(&self) -> Result<String> {
        let name = unique_name();
        let request = NetworkCreateRequest {
            name: name.clone(),
            driver: Some("bridge".to_owned()),
            labels: owner().map(|owner| [owner].into()),
            ..NetworkCreateRequest::default()
        };
        self.left().network = Some(Network { name: name.clone(), exists: false });
        let created = tokio::select! {
            created = self.docker().create_network(request) => created,
            reason = self.given_up() => return Err(reason),
        };
        let exists = created.is_ok();
        self.left().network = exists.then(|| Network { name: name.clone(), exists });
        created
            .map_err(|error| explain(&error))
            .with_context(|| format!("cannot create Docker network {}", quote(&name)))?;
        Ok(name)
    }

    /// Returns once work is cancelled and the engine has had time to respond anyway. Objects with a
    /// response do not need to be looked up.
    async fn given_up(&self) -> anyhow::Error {
        let reason = self.cancelled().await;
        tokio::time::sleep(LATE).await;
        reason
    }
}

/// The label that says whose something is.
fn owner() -> Option<(String, String)> {
    Some((LABEL.to_owned(), Owner::this()?.to_string()))
}

/// Removes a container that may not exist yet.
pub(super) async fn remove_late(docker: &Docker, name: &str) -> Result<()> {
    let force = || RemoveContainerOptions { force: true, ..RemoveContainerOptions::default() };
    done(appearing(|| docker.remove_container(name, Some(force())))).await
}

/// Removes a network that may not exist yet.
pub(super) async fn remove_network(docker: &Docker, name: &str, exists: bool) -> Result<()> {
    if exists {
        return done(docker.remove_network(name)).await;
    }
    done(appearing(|| docker.remove_network(name))).await
}

/// Retries until the object appears, or until it is unlikely to appear.
async fn appearing<F>(mut attempt: impl FnMut() -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>>,
{
    let end = Instant::now() + CLEANUP - 2 * PAUSE;
    loop {
        match attempt().await {
            Err(error) if status(&error) == Some(404) && Instant::now() < end => {
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}
