//! The objects that every control plane begins with, and the packages to begin with.

use anyhow::{Context as _, Result};
use biplane_cluster::{List, Part, Patch, Precondition, Query, Source, Write};
use biplane_model::{Gvk, Object};
use biplane_package::reference::{Reference, dns_label, repository_path};
use serde_json::json;

use super::{MANAGER, Options, Target, object, soon};

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
