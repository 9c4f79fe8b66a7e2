//! The objects that every control plane begins with, and the packages to begin with.

use anyhow::{Context as _, Result};
use biplane_cluster::{
    Delete, List, Optional as _, Part, Patch, Precondition, Query, Source, Write,
};
use biplane_model::{Gvk, Object, Value};
use biplane_package::reference::{Reference, dns_label, repository_path};
use serde_json::json;

use super::{MANAGER, Options, Target, cluster_scoped, object, soon};

/// Webhooks of earlier releases. Nothing answers them any more, so they would refuse every write.
const OLD_WEBHOOKS: [&str; 2] = [
    "compositeresourcedefinitions.apiextensions.crossplane.io",
    "compositions.apiextensions.crossplane.io",
];

/// Removes the webhooks of earlier releases.
pub(super) async fn remove_old_webhooks(target: &Target<'_>) -> Result<()> {
    let kind = "ValidatingWebhookConfiguration";
    let id = cluster_scoped("admissionregistration.k8s.io/v1", kind, "crossplane");
    let attempted = || format!("cannot remove old webhooks from {id}");
    let Some(live) = target.find(&id).await.with_context(attempted)? else { return Ok(()) };
    let all = live.get("webhooks").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_old = |webhook: &Value| {
        let name = webhook.get("name").and_then(Value::as_str);
        name.is_some_and(|name| OLD_WEBHOOKS.contains(&name))
    };
    let kept: Vec<Value> = all.iter().filter(|webhook| !is_old(webhook)).cloned().collect();
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

/// Creates the default objects and the packages that do not exist yet.
pub(super) async fn ensure(target: &Target<'_>, options: &Options) -> Result<()> {
    let lock = object(json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "Lock", "metadata": {"name": "lock"},
    }));
    target.ensure(lock).await.context("cannot apply lock object")?;
    let packages = &options.packages;
    for (kind, images) in [
        ("Provider", &packages.providers),
        ("Configuration", &packages.configurations),
        ("Function", &packages.functions),
    ] {
        install(target, kind, images).await.context("cannot install packages")?;
    }
    if !packages.providers.is_empty() || !packages.configurations.is_empty() {
        tracing::warn!(
            "providers and configurations are recorded, but this control plane does not install \
             them yet"
        );
    }
    let config = object(json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": "default"},
    }));
    target.ensure(config).await.context("cannot create default deployment runtime config")?;
    if options.activate.is_empty() {
        return Ok(());
    }
    tracing::warn!(
        "the activation policy is recorded, but this control plane does not activate managed \
         resources yet"
    );
    let policy = object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1alpha1",
        "kind": "ManagedResourceActivationPolicy",
        "metadata": {"name": "default"},
        "spec": {"activate": options.activate},
    }));
    target.ensure(policy).await.context("cannot create default managed resource activation policy")
}

/// Creates or updates packages. A package that is installed under another name keeps its name.
async fn install(target: &Target<'_>, kind: &str, images: &[String]) -> Result<()> {
    if images.is_empty() {
        return Ok(());
    }
    let gvk = Gvk::new("pkg.crossplane.io/v1", kind);
    let list = List { source: Source::Live, ..List::default() };
    let installed = target.cluster.list(&gvk, &Query::default(), &list, soon()).await?.objects;
    for image in images {
        let wanted = Reference::parse_complete(image)
            .with_context(|| format!("cannot parse package {image}"))?;
        let is_same = |package: &&Object| {
            Reference::parse(package.str_at(&["spec", "package"]))
                .is_ok_and(|present| present.name == wanted.name)
        };
        let Some(present) = installed.iter().find(is_same) else {
            let name = dns_label(repository_path(&wanted.name));
            let package = object(json!({
                "apiVersion": gvk.api_version(), "kind": kind, "metadata": {"name": name},
                "spec": {"package": image},
            }));
            target.create(package).await.with_context(|| format!("cannot create {kind} {name}"))?;
            continue;
        };
        if present.str_at(&["spec", "package"]) != image {
            let patch = Patch::Merge(json!({"spec": {"package": image}}));
            let how = Write::by(MANAGER).only_if(Precondition::same(present));
            let patched =
                target.cluster.patch(&present.id(), Part::Main, &patch, &how, soon()).await;
            patched.with_context(|| format!("cannot update {}", present.id()))?;
            tracing::info!(object = %present.id(), image, "updated");
        }
    }
    Ok(())
}
