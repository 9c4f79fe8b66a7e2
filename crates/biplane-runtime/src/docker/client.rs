//! Connects to the Docker engine that the environment names.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use bollard::{API_DEFAULT_VERSION, Docker, errors::Error};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Uri};

use super::environment::Environment;
use biplane_console::os::reason;

const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";
/// In seconds. Longer operations have their own deadline.
const TIMEOUT: u64 = 120;

/// The address of an engine.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Socket(String),
    Plain(String),
    Tls(String, PathBuf),
}

/// Connects, and negotiates a version of the API.
pub(super) async fn connect(environment: &Environment) -> Result<Docker> {
    let host = environment.host.as_deref().unwrap_or(DEFAULT_HOST);
    let unreachable = |error: &Error| unreachable(host, error);
    let docker = match place(host, environment.cert_path.clone())? {
        Place::Socket(path) => Docker::connect_with_unix(&path, TIMEOUT, API_DEFAULT_VERSION),
        Place::Plain(address) => Docker::connect_with_http(&address, TIMEOUT, API_DEFAULT_VERSION),
        Place::Tls(address, certificates) => {
            let [ca, certificate, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| {
                let file = certificates.join(name);
                // The client would only notice this during the handshake, or not at all.
                std::fs::File::open(&file)
                    .map_err(|error| anyhow!("open {}: {}", file.display(), reason(&error)))?;
                Ok::<_, anyhow::Error>(file)
            });
            let (ca, certificate, key) = (ca?, certificate?, key?);
            // Fails if a provider is installed already; every caller installs the same one.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let version = API_DEFAULT_VERSION;
            // Linked functions may bring a second provider, so one of them must be chosen
            // explicitly.
            let _ = rustls::crypto::ring::default_provider().install_default();
            Docker::connect_with_ssl(&address, &key, &certificate, &ca, TIMEOUT, version)
        }
    };
    let docker = docker.map_err(|error| unreachable(&error))?;
    let version = if let Some(version) = &environment.api_version {
        version.trim_start_matches('v').to_owned()
    } else {
        let server = docker.version().await.map_err(|error| unreachable(&error))?;
        negotiate(server.api_version.as_deref().unwrap_or_default())
    };
    Ok(docker.with_request_modifier(move |request| adjust(request, &version)))
}

fn place(host: &str, certificates: Option<PathBuf>) -> Result<Place> {
    let Some((scheme, rest)) = host.split_once("://") else {
        bail!("unable to parse docker host `{host}`");
    };
    match (scheme, certificates) {
        ("unix", _) => Ok(Place::Socket(rest.to_owned())),
        ("tcp" | "https", Some(certificates)) => {
            Ok(Place::Tls(format!("tcp://{rest}"), certificates))
        }
        ("tcp" | "http", _) => Ok(Place::Plain(format!("tcp://{rest}"))),
        _ => bail!(
            "cannot reach a Docker engine at `{host}`: only unix:// and tcp:// are supported, https with DOCKER_CERT_PATH"
        ),
    }
}

/// The older of both versions, since only that one is supported by both sides.
fn negotiate(server: &str) -> String {
    let ours = (API_DEFAULT_VERSION.major_version, API_DEFAULT_VERSION.minor_version);
    let (major, minor) = server
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .map_or(ours, |theirs| ours.min(theirs));
    format!("{major}.{minor}")
}

/// Adds what the client leaves out: the API version in the path, and credentials in the base64
/// alphabet that engines accept.
fn adjust<B>(mut request: Request<B>, version: &str) -> Request<B> {
    let mut parts = request.uri().clone().into_parts();
    let path = parts.path_and_query.as_ref().map_or("/", PathAndQuery::as_str);
    if let Ok(path) = format!("/v{version}{path}").parse() {
        parts.path_and_query = Some(path);
    }
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    if let Some(credentials) = request.headers_mut().get_mut("x-registry-auth") {
        let text = credentials.to_str().unwrap_or_default().replace('+', "-").replace('/', "_");
        if let Ok(mut value) = HeaderValue::from_str(&text) {
            value.set_sensitive(true);
            *credentials = value;
        }
    }
    request
}

/// The message of an engine, formatted as in Docker's own programs.
pub(super) fn explain(error: &Error) -> anyhow::Error {
    match error {
        Error::DockerResponseServerError { message, .. } => {
            anyhow!("Error response from daemon: {}", message.trim_end())
        }
        Error::DockerStreamError { error } => anyhow!("{error}"),
        Error::RequestTimeoutError => anyhow!("the Docker engine does not answer"),
        other => {
            let mut causes: Vec<_> = causes(other).map(ToString::to_string).collect();
            causes.dedup();
            anyhow!("{}", causes.join(": "))
        }
    }
}

/// The engine's status code, if it responded.
pub(super) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

fn unreachable(host: &str, error: &Error) -> anyhow::Error {
    let denied = |cause: &(dyn std::error::Error + 'static)| {
        let cause = cause.downcast_ref::<std::io::Error>();
        cause.is_some_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
    };
    if causes(error).any(denied) {
        return anyhow!(
            "permission denied while trying to connect to the Docker daemon socket at {host}"
        );
    }
    // The server responds, but the TLS handshake failed.
    if let Some(cause) = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
        return anyhow!("cannot connect to the Docker daemon at {host}: {cause}");
    }
    match error {
        Error::SocketNotFoundError(_)
        | Error::HyperLegacyError { .. }
        | Error::RequestTimeoutError
        | Error::IOError { .. } => {
            anyhow!("Cannot connect to the Docker daemon at {host}. Is the docker daemon running?")
        }
        other => explain(other).context(format!("cannot connect to the Docker daemon at {host}")),
    }
}

/// An error and its causes, also where an error repeats the message of its cause.
fn causes<'a>(error: &'a Error) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    let first: &'a (dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        inner.map(|inner| inner as &(dyn std::error::Error + 'static)).or_else(|| error.source())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RT-6
    #[test]
    fn the_engine_is_where_the_environment_says() {
        let certificates = || Some(PathBuf::from("/certs"));
        for (host, certs, want) in [
            (DEFAULT_HOST, None, Ok(Place::Socket("/var/run/docker.sock".into()))),
            ("unix:///x", certificates(), Ok(Place::Socket("/x".into()))),
            ("tcp://h:1", None, Ok(Place::Plain("tcp://h:1".into()))),
            ("tcp://h:1", certificates(), Ok(Place::Tls("tcp://h:1".into(), "/certs".into()))),
            ("h:1", None, Err("unable to parse docker host `h:1`")),
            (
                "ssh://h",
                None,
                Err(
                    "cannot reach a Docker engine at `ssh://h`: only unix:// and tcp:// are supported, https with DOCKER_CERT_PATH",
                ),
            ),
        ] {
            let found = place(host, certs).map_err(|e| e.to_string());
            assert_eq!(found, want.map_err(str::to_owned), "{host}");
        }
    }

    /// RT-6
    #[test]
    fn the_older_version_of_the_api_is_spoken() {
        let ours =
            format!("{}.{}", API_DEFAULT_VERSION.major_version, API_DEFAULT_VERSION.minor_version);
        for (server, want) in [("1.41", "1.41"), ("1.9", "1.9"), ("99.0", &ours), ("", &ours)] {
            assert_eq!(negotiate(server), want);
        }
    }

    #[test]
    fn requests_name_the_version_and_keep_their_credentials_readable() {
        let request = Request::builder()
            .uri("http://h:1/images/create?fromImage=a%2Fb")
            .header("X-Registry-Auth", "ab+/")
            .body(())
            .unwrap();
        let request = adjust(request, "1.41");
        assert_eq!(request.uri(), "http://h:1/v1.41/images/create?fromImage=a%2Fb");
        assert_eq!(request.headers()["x-registry-auth"], "ab-_");
        assert!(!format!("{request:?}").contains("ab-_"));
    }
}
