//! Finds credentials for registries where Docker stores them: in its configuration file, or in the
//! credential helpers that the file names.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_model::Value;
use tokio::io::AsyncWriteExt;

use crate::reference::HUB;

/// The key of the default registry's credentials.
const HUB_KEY: &str = "https://index.docker.io/v1/";
/// The user name that marks the secret as a token.
const TOKEN: &str = "<token>";

/// The login for a registry.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name.
    pub username: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// A token that is exchanged for another one.
    pub identity_token: Option<String>,
    /// A token that the registry accepts directly.
    pub registry_token: Option<String>,
    /// The key of the login in the file.
    pub server_address: Option<String>,
}

/// Shows which fields are set, never their values.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("username", &self.username)
            .field("server_address", &self.server_address)
            .finish_non_exhaustive()
    }
}

/// The file with logins, found with the variables that Docker and Podman read.
pub fn auth_file(
    variable: impl Fn(&str) -> Option<String>,
    exists: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let variable = |key: &str| variable(key).filter(|value| !value.is_empty());
    let below = |folder: Option<String>, file: &str| folder.map(|f| Path::new(&f).join(file));
    let files = [
        below(variable("DOCKER_CONFIG"), "config.json")
            .or_else(|| below(variable("HOME"), ".docker/config.json")),
        variable("REGISTRY_AUTH_FILE").map(PathBuf::from),
        below(variable("XDG_RUNTIME_DIR"), "containers/auth.json"),
    ];
    files.into_iter().flatten().find(|path| exists(path))
}

/// Finds the login for a registry in a file.
pub async fn find(file: Option<&Path>, registry: &str) -> Result<Option<Credentials>> {
    let Some(file) = file else { return Ok(None) };
    let text = tokio::fs::read_to_string(file).await;
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    // The parser's error would quote the file.
    let config: Value = serde_json::from_str(&text)
        .map_err(|e| anyhow!("{} is not JSON (line {})", file.display(), e.line()))?;
    match source(&config, registry) {
        Source::Program(name) => ask(name, key(registry)).await,
        Source::File(entry) => {
            from_entry(entry, registry).with_context(|| format!("cannot read {}", file.display()))
        }
        Source::Nowhere => Ok(None),
    }
}

#[derive(Debug, PartialEq)]
enum Source<'a> {
    Program(&'a str),
    File(&'a Value),
    Nowhere,
}

fn source<'a>(config: &'a Value, registry: &str) -> Source<'a> {
    let key = key(registry);
    let text = |value: Option<&'a Value>| value.and_then(Value::as_str).filter(|s| !s.is_empty());
    let helpers = config.get("credHelpers");
    let helper = |key| text(helpers.and_then(|helpers| helpers.get(key)));
    if let Some(name) = helper(key).or_else(|| helper(registry)) {
        return Source::Program(name);
    }
    if let Some(name) = text(config.get("credsStore")) {
        return Source::Program(name);
    }
    let Some(entries) = config.get("auths").and_then(Value::as_object) else {
        return Source::Nowhere;
    };
    let exact = entries.get(key);
    let found = exact.or_else(|| {
        // Some programs store URLs, others store hosts.
        entries.iter().find(|(entry, _)| host(entry) == registry).map(|(_, value)| value)
    });
    found.map_or(Source::Nowhere, Source::File)
}

fn key(registry: &str) -> &str {
    if registry == HUB { HUB_KEY } else { registry }
}

fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

fn from_entry(entry: &Value, registry: &str) -> Result<Option<Credentials>> {
    let field = |name: &str| {
        entry.get(name).and_then(Value::as_str).filter(|s| !s.is_empty()).map(str::to_owned)
    };
    let (mut username, mut password) = (field("username"), field("password"));
    if let Some(auth) = field("auth") {
        let invalid = || anyhow!("the credentials of {registry} are malformed");
        let decoded = STANDARD.decode(auth).map_err(|_| invalid())?;
        let decoded = String::from_utf8(decoded).map_err(|_| invalid())?;
        let (user, secret) = decoded.split_once(':').ok_or_else(invalid)?;
        username = Some(user.to_owned());
        password = Some(secret.trim_end_matches('\0').to_owned());
    }
    let credentials = Credentials {
        username,
        password,
        identity_token: field("identitytoken"),
        registry_token: field("registrytoken"),
        ..Credentials::default()
    };
    if credentials == Credentials::default() {
        return Ok(None);
    }
    Ok(Some(Credentials { server_address: Some(key(registry).to_owned()), ..credentials }))
}

/// Runs a credential helper.
async fn ask(name: &str, server: &str) -> Result<Option<Credentials>> {
    let program = format!("docker-credential-{name}");
    if name.contains('/') {
        bail!("{program:?} is not the name of a program");
    }
    let attempted = || format!("cannot ask {program} for the credentials of {server}");
    let mut child = tokio::process::Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(attempted)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A helper that does not read stdin reports that by its exit status.
        let _ = stdin.write_all(server.as_bytes()).await;
    }
    let output = child.wait_with_output().await.with_context(attempted)?;
    let answer = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        if answer.contains("credentials not found") {
            return Ok(None);
        }
        bail!("{}: {}: {}", attempted(), output.status, answer.trim());
    }
    from_answer(&answer, server).with_context(attempted)
}

fn from_answer(answer: &str, server: &str) -> Result<Option<Credentials>> {
    let answer: Value =
        serde_json::from_str(answer).map_err(|_| anyhow!("its answer is not JSON"))?;
    let field = |name: &str| {
        answer.get(name).and_then(Value::as_str).filter(|s| !s.is_empty()).map(str::to_owned)
    };
    let (username, secret) = (field("Username"), field("Secret"));
    if username.is_none() && secret.is_none() {
        return Ok(None);
    }
    let server_address = Some(server.to_owned());
    let credentials = Credentials { server_address, ..Credentials::default() };
    Ok(Some(if username.as_deref() == Some(TOKEN) {
        Credentials { identity_token: secret, ..credentials }
    } else {
        Credentials { username, password: secret, ..credentials }
    }))
}

#[cfg(test)]
mod tests;
