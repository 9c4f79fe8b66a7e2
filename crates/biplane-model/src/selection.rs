//! Which Composition a composite resource uses, as far as it can be told from the composite
//! resource and its definition.

use std::collections::BTreeMap;

use crate::layout::Layout;
use crate::{Object, Value};

/// How the Composition of a composite resource is found. The first of these that applies counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The definition enforces the Composition with this name.
    Enforced(String),
    /// The composite resource names it.
    Named(String),
    /// The composite resource selects nothing, and the definition names a default.
    Default(String),
    /// It is one of those with these labels.
    Labels(BTreeMap<String, String>),
}

impl Selection {
    /// How the Composition of `xr` is found.
    pub fn of(xr: &Object, layout: Layout, definition: Option<&Object>) -> Self {
        let by_definition = |field| {
            let name = definition?.at(&["spec", field])?.as_object()?.get("name");
            Some(name.and_then(Value::as_str).unwrap_or_default().to_owned())
        };
        if let Some(name) = by_definition("enforcedCompositionRef") {
            return Self::Enforced(name);
        }
        if let Some(reference) = layout.composition(xr) {
            return Self::Named(reference.name);
        }
        let default = by_definition("defaultCompositionRef").filter(|name| !name.is_empty());
        match (layout.composition_selector(xr), default) {
            (Some(labels), _) => Self::Labels(labels),
            (None, Some(name)) => Self::Default(name),
            (None, None) => Self::Labels(BTreeMap::new()),
        }
    }
}

/// Whether a Composition is one for a composite resource of this kind.
pub fn composes(composition: &Object, xr: &Object) -> bool {
    let type_ref = |key: &str| composition.str_at(&["spec", "compositeTypeRef", key]);
    type_ref("kind") == xr.kind() && type_ref("apiVersion") == xr.api_version()
}
