//! Asks a registry which versions of a package there are.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use bollard::auth::DockerCredentials;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};

use crate::commands::render::asynchronous;
use crate::commands::render::docker::{Environment, credentials};

/// How many tags to ask for at a time.
const PAGE: usize = 1000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// All tags of a repository.
pub(super) fn tags(repository: &str) -> Result<Vec<String>> {
    // On a thread of its own, since the caller may already be waiting for something.
    std::thread::scope(|scope| {
        scope.spawn(|| asynchronous(false)?.block_on(list(repository))).join()
    })
    .map_err(|_| anyhow!("asking the registry ended early"))?
    .with_context(|| format!("cannot list versions for {repository}"))
}

async fn list(repository: &str) -> Result<Vec<String>> {
    let Some((registry, path)) = repository.split_once('/') else {
        bail!("the repository names no registry");
    };
    // Whoever comes first decides; all of them want the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let protocol = if is_loopback(registry) { ClientProtocol::Http } else { ClientProtocol::Https };
    let client = Client::try_from(ClientConfig {
        protocol,
        connect_timeout: Some(CONNECT_TIMEOUT),
        read_timeout: Some(READ_TIMEOUT),
        ..ClientConfig::default()
    })?;
    let image = Reference::with_tag(registry.to_owned(), path.to_owned(), "latest".to_owned());
    let auth = login(registry).await;
    let mut tags = BTreeSet::new();
    let mut last: Option<String> = None;
    loop {
        let page = client.list_tags(&image, &auth, Some(PAGE), last.as_deref()).await?.tags;
        last = page.last().cloned();
        let known = tags.len();
        tags.extend(page);
        // A registry that has no more, or that does not know pages, has nothing new.
        if tags.len() == known {
            return Ok(tags.into_iter().collect());
        }
    }
}

/// Registries on this machine have no certificates.
fn is_loopback(registry: &str) -> bool {
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

/// The login that Docker keeps for a registry. Without one, or where it cannot be read, whatever is
/// open to everyone may still do.
async fn login(registry: &str) -> RegistryAuth {
    let file = Environment::of_process().auth_file;
    match credentials(file.as_deref(), registry).await {
        Ok(Some(found)) => auth(found),
        _ => RegistryAuth::Anonymous,
    }
}

fn auth(found: DockerCredentials) -> RegistryAuth {
    match (found.registrytoken, found.username, found.password) {
        (Some(token), _, _) => RegistryAuth::Bearer(token),
        (None, Some(name), Some(password)) => RegistryAuth::Basic(name, password),
        _ => RegistryAuth::Anonymous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_names_with_passwords_or_tokens() {
        let text = |text: &str| Some(text.to_owned());
        let none = DockerCredentials::default;
        let named = DockerCredentials { username: text("me"), password: text("secret"), ..none() };
        assert_eq!(auth(named.clone()), RegistryAuth::Basic("me".to_owned(), "secret".to_owned()));
        let token = DockerCredentials { registrytoken: text("t"), ..named };
        assert_eq!(auth(token), RegistryAuth::Bearer("t".to_owned()));
        let other = DockerCredentials { identitytoken: text("t"), ..none() };
        assert_eq!(auth(other), RegistryAuth::Anonymous);
    }
}
