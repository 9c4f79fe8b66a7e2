//! The annotations of a Function that configure its container.

use std::sync::Arc;

use anyhow::{Result, bail};
use biplane_go::fmt::quote;

use crate::build_spec::BuildSpec;
use crate::function::Function;

const CLEANUP: &str = "render.crossplane.io/runtime-docker-cleanup";
const ENV: &str = "render.crossplane.io/runtime-docker-env";
const IMAGE: &str = "render.crossplane.io/runtime-docker-image";
const NAME: &str = "render.crossplane.io/runtime-docker-name";
pub(super) const NETWORK: &str = "render.crossplane.io/runtime-docker-network";
const PUBLISH_ADDRESS: &str = "render.crossplane.io/runtime-docker-publish-address";
const PULL_POLICY: &str = "render.crossplane.io/runtime-docker-pull-policy";
const TARGET: &str = "render.crossplane.io/runtime-docker-target";

/// How a container is cleaned up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cleanup {
    /// It is stopped and removed.
    #[default]
    Remove,
    /// It is stopped.
    Stop,
    /// It keeps running.
    Orphan,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PullPolicy {
    /// Even if it is present.
    Always,
    /// Not even if it is missing.
    Never,
    /// If it is missing.
    #[default]
    IfNotPresent,
}

/// How a function's container is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub image: String,
    pub name: Option<String>,
    pub cleanup: Cleanup,
    pub pull: PullPolicy,
    pub env: Vec<String>,
    /// How many variables had no value. Their text may be part of a secret.
    pub ignored_env: usize,
    pub publish_address: String,
    /// The address at which to call it, if not the published port.
    pub target: Option<String>,
    pub network: Option<String>,
    /// How the image is built, if there is none yet.
    pub build: Option<Arc<BuildSpec>>,
}

impl Options {
    /// The options that a Function sets, with defaults.
    pub(crate) fn of(function: &Function) -> Result<Self> {
        let set = |key| Some(function.annotation(key)).filter(|value| !value.is_empty());
        let cleanup = match set(CLEANUP) {
            None | Some("Remove") => Cleanup::Remove,
            Some("Stop") => Cleanup::Stop,
            Some("Orphan") => Cleanup::Orphan,
            Some(other) => return unknown(function, "cleanup policy", CLEANUP, other),
        };
        let pull = match set(PULL_POLICY) {
            None | Some("IfNotPresent") => PullPolicy::IfNotPresent,
            Some("Always") => PullPolicy::Always,
            Some("Never") => PullPolicy::Never,
            Some(other) => return unknown(function, "pull policy", PULL_POLICY, other),
        };
        let (env, ignored): (Vec<&str>, Vec<&str>) =
            set(ENV).into_iter().flat_map(|text| text.split(',')).partition(|e| e.contains('='));
        let owned = |key| set(key).map(str::to_owned);
        Ok(Self {
            image: owned(IMAGE).unwrap_or_else(|| function.package.clone()),
            name: owned(NAME),
            cleanup,
            pull,
            env: env.into_iter().map(str::to_owned).collect(),
            ignored_env: ignored.len(),
            publish_address: owned(PUBLISH_ADDRESS).unwrap_or_else(|| "127.0.0.1".to_owned()),
            target: owned(TARGET),
            network: network(function).map(str::to_owned),
            build: function.build.clone().filter(|_| set(IMAGE).is_none()),
        })
    }
}

/// The network that a Function asks for.
pub fn network(function: &Function) -> Option<&str> {
    Some(function.annotation(NETWORK)).filter(|network| !network.is_empty())
}

/// The container name that a Function asks for. Other Functions may ask for the same one.
pub fn name(function: &Function) -> Option<&str> {
    Some(function.annotation(NAME)).filter(|name| !name.is_empty())
}

fn unknown<T>(function: &Function, what: &str, key: &str, value: &str) -> Result<T> {
    bail!(
        "cannot get {what} for Function {}: unsupported {key:?} annotation value {} (unknown {what})",
        quote(&function.name),
        quote(value)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(annotations: &[(&str, &str)]) -> Options {
        let annotations = annotations.iter();
        let function = Function {
            name: "fn".into(),
            package: "example.org/fn:v1".into(),
            annotations: annotations
                .map(|(k, v)| (format!("render.crossplane.io/runtime-docker-{k}"), (*v).into()))
                .collect(),
            build: None,
        };
        Options::of(&function).unwrap()
    }

    fn usual() -> Options {
        Options {
            image: "example.org/fn:v1".into(),
            name: None,
            cleanup: Cleanup::Remove,
            pull: PullPolicy::IfNotPresent,
            env: Vec::new(),
            ignored_env: 0,
            publish_address: "127.0.0.1".into(),
            target: None,
            network: None,
            build: None,
        }
    }

    /// RT-1, RT-2, T-13
    #[test]
    fn what_is_unset_or_empty_is_as_usual() {
        assert_eq!(options(&[]), usual());
        let keys =
            ["cleanup", "pull-policy", "image", "name", "publish-address", "target", "network"];
        assert_eq!(options(&keys.map(|key| (key, ""))), usual());
    }

    /// RT-1
    #[test]
    fn every_annotation_is_heeded() {
        let found = options(&[
            ("cleanup", "Orphan"),
            ("pull-policy", "Always"),
            ("image", "other:v2"),
            ("name", "warm"),
            ("env", "A=1"),
            ("publish-address", "0.0.0.0"),
            ("target", "docker.example.org"),
            ("network", "mine"),
        ]);
        let want = Options {
            image: "other:v2".into(),
            name: Some("warm".into()),
            cleanup: Cleanup::Orphan,
            pull: PullPolicy::Always,
            env: vec!["A=1".into()],
            ignored_env: 0,
            publish_address: "0.0.0.0".into(),
            target: Some("docker.example.org".into()),
            network: Some("mine".into()),
            build: None,
        };
        assert_eq!(found, want);
    }

    /// RT-3, T-12
    #[test]
    fn variables_without_a_value_are_ignored() {
        let found = options(&[("env", "BAD,K=V=W")]);
        assert_eq!((found.env, found.ignored_env), (vec!["K=V=W".to_owned()], 1));
    }
}
