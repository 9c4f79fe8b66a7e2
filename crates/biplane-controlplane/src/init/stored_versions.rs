//! Migrates objects that are stored in old versions of their kinds.
//!
//! A version can be removed from a CRD only when no object is stored in it any more.

use anyhow::{Context as _, Result};
use biplane_cluster::{Form, List, Optional as _, Part, Patch, Precondition, Query, Source, Write};
use biplane_model::{Gvk, Object, Value};
use serde_json::json;

use super::{MANAGER, Target, definitions, soon};

/// How many objects are listed at a time.
const PAGE: usize = 500;

/// Stores all objects of these CRDs in the current version.
pub(super) async fn migrate(target: &Target<'_>, crds: &[Object]) -> Result<()> {
    for crd in crds {
        let attempted = || format!("cannot migrate the stored versions of CRD {}", crd.name());
        let live = target.find(&crd.id()).await.with_context(attempted)?;
        if let Some(live) = live
            && let Some(version) = outdated(&live)
        {
            one(target, &live, version).await.with_context(attempted)?;
        }
    }
    Ok(())
}

/// The version to store objects in, if some may be stored in others.
fn outdated(crd: &Object) -> Option<&str> {
    let current = definitions::versions(crd)
        .find(|version| version.get("storage") == Some(&Value::Bool(true)))
        .and_then(|version| version.get("name")?.as_str())?;
    let stored = crd.at(&["status", "storedVersions"])?.as_array()?;
    stored.iter().any(|version| version.as_str() != Some(current)).then_some(current)
}

async fn one(target: &Target<'_>, crd: &Object, version: &str) -> Result<()> {
    let gvk = Gvk {
        group: crd.str_at(&["spec", "group"]).to_owned(),
        version: version.to_owned(),
        kind: crd.str_at(&["spec", "names", "kind"]).to_owned(),
    };
    let mut list =
        List { source: Source::Live, form: Form::Metadata, limit: PAGE, ..List::default() };
    let mut count = 0;
    loop {
        let page = target.cluster.list(&gvk, &Query::default(), &list, soon()).await?;
        for object in &page.objects {
            // The server stores every object that is written in the current version, also if
            // nothing else changes.
            let id = biplane_model::ObjectId::new(gvk.clone(), object.namespace(), object.name());
            let patch = Patch::Merge(json!({}));
            let how = Write::by(MANAGER);
            let patched = target.cluster.patch(&id, Part::Main, &patch, &how, soon()).await;
            patched.optional().with_context(|| format!("cannot write {id}"))?;
            count += 1;
        }
        if page.next.is_empty() {
            break;
        }
        list.next = page.next;
    }
    let patch = Patch::Merge(json!({"status": {"storedVersions": [version]}}));
    let how = Write::by(MANAGER).only_if(Precondition::unchanged(crd));
    target.cluster.patch(&crd.id(), Part::Status, &patch, &how, soon()).await?;
    tracing::info!(crd = crd.name(), version, objects = count, "migrated the stored version");
    Ok(())
}
