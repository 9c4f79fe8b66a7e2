//! Tells the API server which webhooks to ask about Compositions and definitions, or to ask none.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_cluster::{Delete, Optional as _, Part, Patch, Precondition, Write, WriteError};
use biplane_model::{Object, ObjectId, Value};
use serde_json::json;

use super::{Address, MANAGER, Target, cluster_scoped, object, soon};
use crate::webhooks;

/// The configuration has this name since Crossplane v1.
const CONFIGURATION: &str = "crossplane";
/// The webhooks: name, resource and path.
const WEBHOOKS: [(&str, &str, &str); 2] = [
    (
        "compositeresourcedefinitions.apiextensions.crossplane.io",
        "compositeresourcedefinitions",
        webhooks::DEFINITIONS,
    ),
    ("compositions.apiextensions.crossplane.io", "compositions", webhooks::COMPOSITIONS),
];
/// How often the configuration is looked at again after somebody else wrote it.
const ATTEMPTS: usize = 5;

/// The URL at which webhooks are served, without their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl {
    text: String,
    host: String,
}

impl WebhookUrl {
    /// The name or the address of its host.
    pub fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for WebhookUrl {
    type Err = String;

    /// The API server accepts no other URLs.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?} is no URL of webhooks: {why}");
        let Some(rest) = text.strip_prefix("https://") else {
            return Err(wrong("it does not begin with https://"));
        };
        if rest.contains(['?', '#', '@']) || rest.contains(char::is_whitespace) {
            return Err(wrong("it may have a host, a port and a path, and nothing else"));
        }
        let authority = rest.split('/').next().unwrap_or_default();
        let (host, port) = match authority.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((address, port))) => (address, port.strip_prefix(':')),
            Some(None) => return Err(wrong("its address does not end")),
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(wrong("its port is no port"));
        }
        Ok(Self { text: text.trim_end_matches('/').to_owned(), host: host.to_owned() })
    }
}

fn id() -> ObjectId {
    let kind = "ValidatingWebhookConfiguration";
    cluster_scoped("admissionregistration.k8s.io/v1", kind, CONFIGURATION)
}

fn is_ours(webhook: &Value) -> bool {
    let name = webhook.get("name").and_then(Value::as_str);
    WEBHOOKS.iter().any(|(ours, ..)| name == Some(*ours))
}

fn webhooks_of(configuration: &Object) -> Vec<Value> {
    configuration.get("webhooks").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Removes the webhooks. Nothing may answer them, and then every write would be refused.
pub(super) async fn remove(target: &Target<'_>) -> Result<()> {
    let id = id();
    let attempted = || format!("cannot remove old webhooks from {id}");
    let Some(live) = target.find(&id).await.with_context(attempted)? else { return Ok(()) };
    let all = webhooks_of(&live);
    let kept: Vec<Value> = all.iter().filter(|webhook| !is_ours(webhook)).cloned().collect();
    if kept.len() == all.len() {
        return Ok(());
    }
    let only_if = Precondition::unchanged(&live);
    if kept.is_empty() {
        let how = Delete { only_if, ..Delete::default() };
        let deleted = target.cluster.delete(&id, &how, soon()).await.optional();
        deleted.with_context(attempted)?;
    } else {
        let patch = Patch::Merge(json!({"webhooks": kept}));
        let how = Write::by(MANAGER).only_if(only_if);
        let patched = target.cluster.patch(&id, Part::Main, &patch, &how, soon()).await;
        patched.with_context(attempted)?;
    }
    tracing::info!(object = %id, "removed the webhooks of an earlier release");
    Ok(())
}

/// Makes the API server ask the webhooks at an address, which it trusts by certificates in PEM.
pub(super) async fn ensure(target: &Target<'_>, at: &Address, authority: &[u8]) -> Result<()> {
    let id = id();
    let attempted = || format!("cannot apply webhook configuration {}", id.name);
    let wanted: Vec<Value> =
        WEBHOOKS.map(|(name, resource, path)| webhook(name, resource, path, at, authority)).into();
    for _ in 0..ATTEMPTS {
        let Some(live) = target.find(&id).await.with_context(attempted)? else {
            let configuration = object(json!({
                "apiVersion": id.gvk.api_version(), "kind": id.gvk.kind,
                "metadata": {"name": id.name}, "webhooks": wanted,
            }));
            if target.create(configuration).await.with_context(attempted)? {
                return Ok(());
            }
            continue;
        };
        let all = webhooks_of(&live);
        let (ours, others): (Vec<Value>, Vec<Value>) = all.into_iter().partition(is_ours);
        if ours.len() == wanted.len()
            && wanted.iter().all(|wanted| ours.iter().any(|live| is_same(live, wanted)))
        {
            return Ok(());
        }
        let all = [others, wanted.clone()].concat();
        let patch = Patch::Merge(json!({"webhooks": all}));
        let how = Write::by(MANAGER).only_if(Precondition::unchanged(&live));
        match target.cluster.patch(&id, Part::Main, &patch, &how, soon()).await {
            Ok(_) => {
                tracing::info!(object = %id, "updated");
                return Ok(());
            }
            Err(WriteError::Conflict(_) | WriteError::NotFound(_)) => {}
            Err(error) => return Err(error).with_context(attempted),
        }
    }
    anyhow::bail!("{}: others keep changing it", attempted())
}

fn webhook(name: &str, resource: &str, path: &str, at: &Address, authority: &[u8]) -> Value {
    let bundle = STANDARD.encode(authority);
    let client = match at {
        Address::Service { name, namespace, port } => json!({
            "caBundle": bundle,
            "service": {"name": name, "namespace": namespace, "path": path, "port": port},
        }),
        Address::Url(url) => json!({"caBundle": bundle, "url": format!("{url}{path}")}),
    };
    json!({
        "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Fail", "clientConfig": client,
        "rules": [{
            "apiGroups": ["apiextensions.crossplane.io"], "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"], "resources": [resource],
        }],
    })
}

/// Whether a webhook is as wanted. The server adds defaults, but none to how it is reached.
fn is_same(live: &Value, wanted: &Value) -> bool {
    covers(live, wanted) && live.get("clientConfig") == wanted.get("clientConfig")
}

/// Whether a value has everything that another has.
fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| live.get(key).is_some_and(|live| covers(live, wanted))),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        _ => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_those_that_an_api_server_accepts() {
        for (text, host) in [
            ("https://localhost:9443", "localhost"),
            ("https://127.0.0.1:9443/", "127.0.0.1"),
            ("https://[::1]:9443/hooks", "::1"),
            ("https://hooks.example.org", "hooks.example.org"),
        ] {
            let url: WebhookUrl = text.parse().unwrap();
            assert_eq!((url.host(), &*url.to_string()), (host, text.trim_end_matches('/')));
        }
        for (text, why) in [
            ("http://localhost", "does not begin with https"),
            ("https://", "no host"),
            ("https://:9443", "no host"),
            ("https://localhost:port", "its port is no port"),
            ("https://[::1", "does not end"),
            ("https://me@localhost", "nothing else"),
            ("https://localhost/?a=b", "nothing else"),
        ] {
            let error = text.parse::<WebhookUrl>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
