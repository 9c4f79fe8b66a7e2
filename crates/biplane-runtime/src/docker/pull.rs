//! Pulls images, each of them once, and reports it.

use std::sync::Arc;

use anyhow::{Result, bail};
use bollard::auth::DockerCredentials;
use bollard::query_parameters::CreateImageOptions;
use tokio_stream::StreamExt;

use super::Session;
use super::client::explain;
use biplane_console::Notes;
use biplane_package::{Credentials, Reference, credentials};

impl Session {
    /// Pulls an image. Concurrent requests for the same image share one pull.
    pub(super) async fn pull(&self, image: &str, notes: &Notes) -> Result<()> {
        let once = {
            let mut pulled = self.pulled();
            Arc::clone(pulled.entry(image.to_owned()).or_default())
        };
        let pull = async {
            notes.say(format!("Pulling image {image}..."));
            let outcome = tokio::select! {
                outcome = self.pull_now(image, notes) => outcome,
                reason = self.cancelled() => Err(reason),
            };
            let mark = if outcome.is_ok() { '✓' } else { '✗' };
            notes.say(format!("{mark} Pulling image {image}"));
            outcome
        };
        once.get_or_try_init(|| pull).await?;
        Ok(())
    }

    async fn pull_now(&self, image: &str, notes: &Notes) -> Result<()> {
        let credentials = match self.credentials(image).await {
            Ok(credentials) => credentials,
            Err(error) => {
                // The image may be public.
                let error = format!("{error:#}");
                notes.debug("Cannot get pull options", &[("err", &error), ("image", image)]);
                None
            }
        };
        // Without a tag, the engine would pull all versions.
        let (name, version) = match Reference::parse(image) {
            Ok(reference) => (reference.name, Some(reference.version)),
            Err(_) => (image.to_owned(), None),
        };
        let options = CreateImageOptions {
            from_image: Some(name),
            tag: version,
            ..CreateImageOptions::default()
        };
        let mut progress =
            std::pin::pin!(self.docker().create_image(Some(options), None, credentials));
        while let Some(step) = progress.next().await {
            if let Err(error) = step {
                bail!(explain(&error));
            }
        }
        Ok(())
    }

    async fn credentials(&self, image: &str) -> Result<Option<DockerCredentials>> {
        let registry = Reference::parse(image)?.registry;
        let found = credentials::find(self.environment().auth_file.as_deref(), &registry).await?;
        Ok(found.map(docker_credentials))
    }
}

/// The login as required by Docker's API.
fn docker_credentials(login: Credentials) -> DockerCredentials {
    DockerCredentials {
        username: login.username,
        password: login.password,
        identitytoken: login.identity_token,
        registrytoken: login.registry_token,
        serveraddress: login.server_address,
        ..DockerCredentials::default()
    }
}
