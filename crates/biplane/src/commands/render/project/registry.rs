//! Asks a registry which versions of a package there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use bollard::auth::DockerCredentials;
use jiff::Timestamp;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::cache::{Answer, Cache};
use super::versions::{self, Range};
use crate::commands::render::asynchronous;
use crate::commands::render::docker::{Environment, credentials};

/// How many tags to ask for at a time.
const PAGE: usize = 1000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// What is known about the tags of some repositories, each by itself. Registries are asked as many
/// questions at a time as is allowed, and none that was answered a moment ago with something that
/// is in the range. What takes longer than the limit is an error.
pub(super) fn tags(
    repositories: &BTreeMap<&str, &Range>,
    cache: &Cache,
    at_once: usize,
    limit: Duration,
) -> Result<BTreeMap<String, Known>> {
    // On a thread of its own, since the caller may already be waiting for something.
    let ask = || {
        let runtime = asynchronous(false)?;
        let known = runtime.block_on(ask_all(repositories, cache, at_once, limit));
        // A name server that does not answer is not waited for.
        runtime.shutdown_background();
        known
    };
    std::thread::scope(|scope| scope.spawn(ask).join())
        .map_err(|_| anyhow!("asking the registry ended early"))?
}

/// What is known about the tags of a repository.
#[derive(Debug)]
pub(super) struct Known {
    /// The tags that count.
    pub(super) tags: Result<Vec<String>>,
    /// When they were asked for, unless that was just now.
    pub(super) asked: Option<Timestamp>,
    /// Why they were not asked for anew although they are old.
    pub(super) stale: Option<Error>,
}

async fn ask_all(
    repositories: &BTreeMap<&str, &Range>,
    cache: &Cache,
    at_once: usize,
    limit: Duration,
) -> Result<BTreeMap<String, Known>> {
    let allowed = Arc::new(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS)));
    let mut asking = JoinSet::new();
    for (&repository, &range) in repositories {
        let (repository, range) = (repository.to_owned(), range.clone());
        let (cache, allowed) = (cache.clone(), allowed.clone());
        asking.spawn(async move {
            let known = tokio::time::timeout(limit, async {
                let _permit = allowed.acquire_owned().await;
                ask(&repository, &range, &cache).await
            });
            let late = |_| Known {
                tags: Err(anyhow!("context deadline exceeded")),
                asked: None,
                stale: None,
            };
            let known = known.await.unwrap_or_else(late);
            (repository, known)
        });
    }
    let mut known = BTreeMap::new();
    while let Some(answer) = asking.join_next().await {
        known.extend([answer.context("asking the registry ended early")?]);
    }
    Ok(known)
}

async fn ask(repository: &str, range: &Range, cache: &Cache) -> Known {
    let before = cache.read(repository);
    let will_do = |answer: &&Answer| {
        answer.is_fresh(Timestamp::now()) && versions::newest(&answer.tags, range).is_some()
    };
    if let Some(answer) = before.as_ref().filter(will_do) {
        let asked = Some(answer.asked);
        return Known { tags: Ok(answer.tags.clone()), asked, stale: None };
    }
    match (list(repository).await, before) {
        (Ok(tags), _) => {
            cache.write(&Answer::new(repository, tags.clone()));
            Known { tags: Ok(tags), asked: None, stale: None }
        }
        // Without a network, what was said once is better than nothing.
        (Err(error), Some(answer)) if is_out_of_reach(&error) => {
            Known { tags: Ok(answer.tags), asked: Some(answer.asked), stale: Some(error) }
        }
        (Err(error), _) => Known { tags: Err(error), asked: None, stale: None },
    }
}

/// Whether nobody answered, as opposed to someone who refused.
fn is_out_of_reach(error: &Error) -> bool {
    match error.downcast_ref() {
        Some(OciDistributionError::RequestError(error)) => error.is_connect() || error.is_timeout(),
        _ => false,
    }
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
