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
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A registry that knows one repository, in pages of two tags.
    fn registry(tags: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request = lines.next().unwrap().unwrap();
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                let (status, body) = if request.contains(" /v2/acme/fn/tags/list?") {
                    let last =
                        request.split("last=").nth(1).and_then(|s| s.split([' ', '&']).next());
                    let start = tags.iter().position(|tag| Some(*tag) == last).map_or(0, |i| i + 1);
                    let page: Vec<_> = tags.iter().skip(start).take(2).collect();
                    ("200 OK", serde_json::json!({"name": "acme/fn", "tags": page}).to_string())
                } else if request.starts_with("GET /v2/ ") {
                    ("200 OK", "{}".to_owned())
                } else {
                    (
                        "404 Not Found",
                        r#"{"errors":[{"code":"NAME_UNKNOWN","message":"no"}]}"#.to_owned(),
                    )
                };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
            }
        });
        address
    }

    /// RX-5
    #[test]
    fn all_pages_of_tags_are_read() {
        let address = registry(&["latest", "v1.0.0", "v1.1.0", "v1.2.0", "v2.0.0"]);
        let found = tags(&format!("{address}/acme/fn")).unwrap();
        assert_eq!(found, ["latest", "v1.0.0", "v1.1.0", "v1.2.0", "v2.0.0"]);
        let error = format!("{:#}", tags(&format!("{address}/acme/other")).unwrap_err());
        assert!(
            error.starts_with(&format!("cannot list versions for {address}/acme/other: ")),
            "{error}"
        );
    }

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
