//! What a render has to do for Compositions that are composed by the control plane itself: of mode
//! Resources, and with environments.

use biplane_engine::composite::Release;
use biplane_go::fmt::quote;
use biplane_manifest::Line;
use biplane_model::Object;
use biplane_model::composition::{is_of_resources_mode, uses_environment};
use biplane_runtime::Engine;

use super::CompositionRender;
use crate::engine::Manner;

impl CompositionRender {
    /// How a Composition is rendered. Other engines know only what the protocol says.
    ///
    /// The v1 line composed templates, and had environments up to v1.17. Its command line did
    /// neither, so that these are rendered as its control plane composed them.
    pub(super) fn manner(&self, composition: &Object) -> Manner {
        if self.engine != Engine::BuiltIn {
            return Manner::default();
        }
        let environments = self.environments || uses_environment(composition);
        let resources_mode = self.output.line == Line::V1 && is_of_resources_mode(composition);
        let release = match (self.output.line, environments, resources_mode) {
            (Line::V1, true, _) => Release::V1_17,
            (Line::V1, false, true) => Release::V1_20,
            _ => Release::V2,
        };
        Manner { release, resources_mode, environments }
    }
}

/// Says that a Composition is of the deprecated mode.
pub(super) fn deprecated(composition: &Object) -> String {
    format!(
        "Composition {} is of mode Resources, which is deprecated: use mode Pipeline with \
         function-patch-and-transform",
        quote(composition.name())
    )
}
