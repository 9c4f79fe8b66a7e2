//! Credentials for registries, from where Docker keeps them: its configuration file, or the programs
//! that the file names.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_model::Value;
use bollard::auth::DockerCredentials;
use tokio::io::AsyncWriteExt;

use super::reference::HUB;

/// The name under which credentials of the default registry are kept.
const HUB_KEY: &str = "https://index.docker.io/v1/";
/// The user name that says that the secret is a token.
const TOKEN: &str = "<token>";

/// Credentials for a registry, if there are any.
pub(crate) async fn find(file: Option<&Path>, registry: &str) -> Result<Option<DockerCredentials>> {
    let Some(file) = file else { return Ok(None) };
    let text = tokio::fs::read_to_string(file).await;
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    // The parser's complaint would quote the file.
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
        // Some programs write addresses where others write hosts.
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

fn from_entry(entry: &Value, registry: &str) -> Result<Option<DockerCredentials>> {
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
    let credentials = DockerCredentials {
        username,
        password,
        identitytoken: field("identitytoken"),
        registrytoken: field("registrytoken"),
        ..DockerCredentials::default()
    };
    if credentials == DockerCredentials::default() {
        return Ok(None);
    }
    Ok(Some(DockerCredentials { serveraddress: Some(key(registry).to_owned()), ..credentials }))
}

/// Asks one of the programs that keep credentials.
async fn ask(name: &str, server: &str) -> Result<Option<DockerCredentials>> {
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
        // A program that does not listen says so by its status.
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

fn from_answer(answer: &str, server: &str) -> Result<Option<DockerCredentials>> {
    let answer: Value =
        serde_json::from_str(answer).map_err(|_| anyhow!("its answer is not JSON"))?;
    let field = |name: &str| {
        answer.get(name).and_then(Value::as_str).filter(|s| !s.is_empty()).map(str::to_owned)
    };
    let (username, secret) = (field("Username"), field("Secret"));
    if username.is_none() && secret.is_none() {
        return Ok(None);
    }
    let serveraddress = Some(server.to_owned());
    let credentials = DockerCredentials { serveraddress, ..DockerCredentials::default() };
    Ok(Some(if username.as_deref() == Some(TOKEN) {
        DockerCredentials { identitytoken: secret, ..credentials }
    } else {
        DockerCredentials { username, password: secret, ..credentials }
    }))
}

#[cfg(test)]
mod tests;
