//! Selects the Composition, and the revision of it, that a composite resource uses.

use std::collections::BTreeMap;

use biplane_cluster::{EventType, List, Query, ReadError, Source};
use biplane_model::composition::{API_VERSION as GROUP, is_revision_of, number};
use biplane_model::selection::{Selection as Preference, composes};
use biplane_model::{Gvk, Object, ObjectId, labels};

use super::behaviour::Selection;
use super::pass::{Pass, XR};
use super::revision::Revision;
use crate::failure::{Attempted, Failure};

const AUTOMATIC: &str = "Automatic";
const MANUAL: &str = "Manual";

/// Reads an object of the control plane's own kinds. What does not exist is named by its kind, as in
/// an answer from a cache, wherever the answer came from.
pub(super) async fn get(pass: &Pass<'_>, id: &ObjectId) -> Result<Object, ReadError> {
    let found = pass.cluster().get(id, Source::Cache, pass.by).await;
    found.map_err(|error| match error {
        ReadError::NotFound(_) => {
            ReadError::NotFound(format!("{} \"{}\" not found", id.gvk.group_kind(), id.name))
        }
        other => other,
    })
}

/// The definition (XRD), if Compositions are selected as it says.
pub(super) async fn definition(pass: &Pass<'_>) -> Result<Option<Object>, Failure> {
    let xrd = match &pass.behaviour().selection {
        Selection::Live { xrd } if !xrd.is_empty() => xrd,
        _ => return Ok(None),
    };
    let id = ObjectId::new(Gvk::new(GROUP, "CompositeResourceDefinition"), "", xrd);
    let found = get(pass, &id).await;
    found.attempted("cannot get composite resource definition").map(Some)
}

fn say(pass: &Pass<'_>, xr: &XR, message: &str) {
    let annotations = BTreeMap::new();
    pass.event_with(xr, EventType::Normal, "CompositionSelection", message, annotations);
}

/// Selects a Composition: the enforced one, else the one that is set, else the default, else any
/// one that matches the labels.
pub(super) async fn composition(
    pass: &Pass<'_>,
    xr: &mut XR,
    definition: Option<&Object>,
) -> Result<(), Failure> {
    let layout = pass.layout();
    if let Selection::Given { composition, .. } = &pass.behaviour().selection {
        // A composite resource whose spec is not an object is rendered as it is.
        let _ = layout.set_composition(&mut xr.object, composition);
        return Ok(());
    }
    let labels = match Preference::of(&xr.object, layout, definition) {
        Preference::Enforced(name) => {
            if layout.composition(&xr.object).is_none_or(|current| current.name != name) {
                layout.set_composition(&mut xr.object, &name)?;
                say(pass, xr, "Enforced composition has been selected");
                xr.changed();
            }
            return Ok(());
        }
        Preference::Named(_) => return Ok(()),
        Preference::Default(name) => {
            layout.set_composition(&mut xr.object, &name)?;
            say(pass, xr, "Default composition has been selected");
            xr.changed();
            return Ok(());
        }
        Preference::Labels(labels) => labels,
    };
    let indexed = pass.index().and_then(|index| index.compositions(&labels, &xr.object));
    let mut fitting = match indexed {
        Some(names) => names,
        None => list_compositions(pass, &xr.object, labels).await?,
    };
    if fitting.is_empty() {
        return Err(Failure::new("no compatible Compositions found"));
    }
    let number = pass.context().ids.number();
    let chosen = fitting.swap_remove((number % fitting.len() as u64) as usize);
    layout.set_composition(&mut xr.object, &chosen)?;
    xr.changed();
    Ok(())
}

/// The names of the Compositions with these labels for this kind of composite resource.
async fn list_compositions(
    pass: &Pass<'_>,
    xr: &Object,
    labels: BTreeMap<String, String>,
) -> Result<Vec<String>, Failure> {
    let kind = Gvk::new(GROUP, "Composition");
    let all = pass.cluster().list(&kind, &Query::labels(labels), &List::cached(), pass.by).await;
    let all = all.attempted("cannot list Compositions")?.objects;
    let fitting = all.iter().filter(|composition| composes(composition, xr));
    Ok(fitting.map(|composition| composition.name().to_owned()).collect())
}

/// Sets the definition's default revision selector and default update policy, if the composite
/// resource has none of its own.
///
/// An API server sets the default policy when the composite resource gets its first field of the
/// control plane. That is too late: the first reconcile would not heed the selector.
pub(super) fn revision_defaults(
    pass: &Pass<'_>,
    xr: &mut XR,
    definition: Option<&Object>,
) -> Result<(), Failure> {
    let Some(definition) = definition else { return Ok(()) };
    let layout = pass.layout();
    if layout.update_policy(&xr.object).is_empty() {
        let default = definition.str_at(&["spec", "defaultCompositionUpdatePolicy"]);
        let policy = if default.is_empty() { AUTOMATIC } else { default };
        layout.set_update_policy(&mut xr.object, policy)?;
        xr.changed();
    }
    if layout.revision_selector(&xr.object).is_some() || layout.revision(&xr.object).is_some() {
        return Ok(());
    }
    let default = definition.at(&["spec", "defaultCompositionRevisionSelector"]);
    if let Some(selector) = default.filter(|v| v.is_object()) {
        layout.set_revision_selector(&mut xr.object, selector)?;
        say(pass, xr, "Default revision selector has been selected");
        xr.changed();
    }
    Ok(())
}

/// Fetches the newest revision of the Composition, or the referenced one if the update policy is
/// manual.
pub(super) async fn revision(pass: &Pass<'_>, xr: &mut XR) -> Result<Revision, Failure> {
    if let Selection::Given { revision, .. } = &pass.behaviour().selection {
        return Ok(Revision::clone(revision));
    }
    let (layout, specs) = (pass.layout(), &pass.reconciler.specs);
    let kind = Gvk::new(GROUP, "CompositionRevision");
    let current = layout.revision(&xr.object).map(|r| r.name);
    let policy = layout.update_policy(&xr.object).to_owned();
    if let (Some(name), MANUAL) = (&current, policy.as_str()) {
        if let Some(revision) = pass.index().and_then(|index| index.revision(name)) {
            return revision;
        }
        let id = ObjectId::new(kind, "", name);
        let found = get(pass, &id).await;
        return specs.revision(found.attempted("cannot get CompositionRevision")?);
    }
    let name = layout.composition(&xr.object).unwrap_or_default().name;
    let mut labels = BTreeMap::from([(labels::COMPOSITION_NAME.to_owned(), name.clone())]);
    // Only an automatic policy uses the selector.
    if policy == AUTOMATIC {
        labels.extend(layout.revision_selector(&xr.object).unwrap_or_default());
    }
    let indexed = pass.index().and_then(|index| {
        let uid = index.composition_uid(&name)?;
        index.newest(&name, &uid, &labels)
    });
    let newest = match indexed {
        Some(revision) => revision?,
        None => specs.revision(newest(pass, &name, labels).await?)?,
    };
    if current.as_deref() != Some(newest.object.name()) {
        layout.set_revision(&mut xr.object, newest.object.name())?;
        xr.changed();
    }
    Ok(newest)
}

/// The newest revision of a Composition with these labels.
async fn newest(
    pass: &Pass<'_>,
    name: &str,
    labels: BTreeMap<String, String>,
) -> Result<Object, Failure> {
    let id = ObjectId::new(Gvk::new(GROUP, "Composition"), "", name);
    let found = get(pass, &id).await;
    let composition = found.attempted("cannot get Composition")?;
    let kind = Gvk::new(GROUP, "CompositionRevision");
    let all = pass.cluster().list(&kind, &Query::labels(labels), &List::cached(), pass.by).await;
    all.attempted("cannot list CompositionRevisions")
        .attempted("cannot fetch composition revision")?
        .objects
        .into_iter()
        .filter(|r| is_revision_of(r, composition.uid()) && number(r) > 0)
        .max_by_key(number)
        .ok_or_else(|| Failure::new("no compatible CompositionRevisions found"))
}
