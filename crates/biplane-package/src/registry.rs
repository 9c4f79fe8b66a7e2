//! Lists the versions of packages in a registry.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use jiff::Timestamp;
use oci_client::Reference;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::credentials::{self, Credentials};
use crate::tag_cache::{CachedTags, TagCache};
use crate::versions::{self, Range};

/// The number of tags per request.
const PAGE: usize = 1000;
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// How to query registries.
#[derive(Clone, Debug)]
pub struct Client {
    /// The cache of earlier responses.
    pub cache: TagCache,
    /// The file with logins, if there is one.
    pub auth_file: Option<PathBuf>,
    /// The maximum number of concurrent requests.
    pub max_concurrency: usize,
}

/// The tags of several repositories, each with its own result. A repository is not queried if a
/// recent cached response has a tag in the range. A query that exceeds the time limit is an error.
pub fn tags(
    client: &Client,
    repositories: &BTreeMap<&str, &Range>,
    limit: Duration,
) -> Result<BTreeMap<String, Tags>> {
    // On a separate thread, since the caller may already be inside an asynchronous runtime.
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let known = runtime.block_on(ask_all(client, repositories, limit));
        // Does not wait for a name server that does not respond.
        runtime.shutdown_background();
        known
    };
    std::thread::scope(|scope| scope.spawn(ask).join())
        .map_err(|_| anyhow!("asking the registry ended early"))?
}

/// The known tags of a repository.
#[derive(Debug)]
pub struct Tags {
    /// The tags.
    pub tags: Result<Vec<String>>,
    /// When the registry was queried, if the tags are from the cache.
    pub asked: Option<Timestamp>,
    /// The error because of which an old response is used.
    pub stale: Option<Error>,
}

async fn ask_all(
    client: &Client,
    repositories: &BTreeMap<&str, &Range>,
    limit: Duration,
) -> Result<BTreeMap<String, Tags>> {
    let allowed = Arc::new(Semaphore::new(client.max_concurrency.min(Semaphore::MAX_PERMITS)));
    let mut asking = JoinSet::new();
    for (&repository, &range) in repositories {
        let (repository, range) = (repository.to_owned(), range.clone());
        let (client, allowed) = (client.clone(), allowed.clone());
        asking.spawn(async move {
            let known = tokio::time::timeout(limit, async {
                let _permit = allowed.acquire_owned().await;
                client.ask(&repository, &range).await
            });
            let late = |_| Tags {
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

impl Client {
    async fn ask(&self, repository: &str, range: &Range) -> Tags {
        let before = self.cache.read(repository);
        let will_do = |answer: &&CachedTags| {
            answer.is_fresh(now()) && versions::newest(&answer.tags, range).is_some()
        };
        if let Some(answer) = before.as_ref().filter(will_do) {
            let asked = Some(answer.asked);
            return Tags { tags: Ok(answer.tags.clone()), asked, stale: None };
        }
        match (self.list(repository).await, before) {
            (Ok(tags), _) => {
                self.cache.write(&CachedTags::new(repository, now(), tags.clone()));
                Tags { tags: Ok(tags), asked: None, stale: None }
            }
            // Without a network, an old response is better than none.
            (Err(error), Some(answer)) if is_out_of_reach(&error) => {
                Tags { tags: Ok(answer.tags), asked: Some(answer.asked), stale: Some(error) }
            }
            (Err(error), _) => Tags { tags: Err(error), asked: None, stale: None },
        }
    }

    async fn list(&self, repository: &str) -> Result<Vec<String>> {
        let Some((registry, path)) = repository.split_once('/') else {
            bail!("the repository names no registry");
        };
        // Fails if a provider is installed already; every caller installs the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let protocol =
            if is_loopback(registry) { ClientProtocol::Http } else { ClientProtocol::Https };
        let client = oci_client::Client::try_from(ClientConfig {
            protocol,
            connect_timeout: Some(CONNECT_TIMEOUT),
            read_timeout: Some(READ_TIMEOUT),
            ..ClientConfig::default()
        })?;
        let image = Reference::with_tag(registry.to_owned(), path.to_owned(), "latest".to_owned());
        let auth = self.login(registry).await;
        let mut tags = BTreeSet::new();
        let mut last: Option<String> = None;
        loop {
            let page = client.list_tags(&image, &auth, Some(PAGE), last.as_deref()).await?.tags;
            last = page.last().cloned();
            let known = tags.len();
            tags.extend(page);
            // The registry has no more tags, or it does not support pages.
            if tags.len() == known {
                return Ok(tags.into_iter().collect());
            }
        }
    }

    async fn login(&self, registry: &str) -> RegistryAuth {
        match credentials::find(self.auth_file.as_deref(), registry).await {
            Ok(Some(found)) => auth(found),
            _ => RegistryAuth::Anonymous,
        }
    }
}

/// The current time. It decides how long a response is cached, never what is rendered.
#[allow(clippy::disallowed_methods)] // see above
fn now() -> Timestamp {
    Timestamp::now()
}

/// Whether the registry is unreachable, as opposed to a rejected request.
fn is_out_of_reach(error: &Error) -> bool {
    match error.downcast_ref() {
        Some(OciDistributionError::RequestError(error)) => error.is_connect() || error.is_timeout(),
        _ => false,
    }
}

/// Local registries have no certificates.
pub(crate) fn is_loopback(registry: &str) -> bool {
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

/// The login that Docker stores for a registry. If it is missing or unreadable, public packages are
/// still available.
pub(crate) fn auth(found: Credentials) -> RegistryAuth {
    match (found.registry_token, found.username, found.password) {
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
        let none = Credentials::default;
        let named = Credentials { username: text("me"), password: text("secret"), ..none() };
        assert_eq!(auth(named.clone()), RegistryAuth::Basic("me".to_owned(), "secret".to_owned()));
        let token = Credentials { registry_token: text("t"), ..named };
        assert_eq!(auth(token), RegistryAuth::Bearer("t".to_owned()));
        let other = Credentials { identity_token: text("t"), ..none() };
        assert_eq!(auth(other), RegistryAuth::Anonymous);
    }
}
