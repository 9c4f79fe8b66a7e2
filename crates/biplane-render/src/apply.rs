//! Applies a composed resource to the existing object, as an API server does with server-side
//! apply.

use biplane_engine::composite::composed_manager;
use biplane_model::Object;
use biplane_schema::merge::{ApplyError, FieldManager, FieldSet, OneVersion, TypeRef};

use crate::{RENDER_TIME, print};

/// The object after the apply, with its field managers.
pub(crate) fn apply(
    composite: &Object,
    live: Option<&Object>,
    intent: &Object,
) -> Result<Object, ApplyError> {
    let versions = OneVersion {
        api_version: intent.api_version().to_owned(),
        type_ref: TypeRef::of_unknown_resource(),
    };
    let manager = FieldManager {
        versions: &versions,
        gvk: &intent.gvk(),
        subresource: "",
        ignored: &FieldSet::default(),
        now: RENDER_TIME,
    };
    Ok(manager.apply(live, intent, &composed_manager(composite), true)?.object)
}

/// Whether the apply changes the object. A failing apply counts as a change.
pub(crate) fn changes(composite: &Object, live: &Object, intent: &Object) -> bool {
    let mut intent = intent.clone();
    if intent.namespace().is_empty() {
        intent.set_meta("namespace", live.namespace());
    }
    let Ok(mut after) = apply(composite, Some(live), &intent) else { return true };
    let mut before = live.clone();
    for object in [&mut before, &mut after] {
        object.remove_at(&["metadata", "managedFields"]);
        print::fix_times(object);
    }
    before != after
}
