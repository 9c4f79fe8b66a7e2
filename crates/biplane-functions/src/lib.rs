//! The functions in the box.

pub mod dummy;

use biplane_function::Registry;

/// The functions in the box, under the names that pipelines know them by.
pub fn registry() -> Registry {
    Registry::default().with("function-dummy", dummy::Dummy)
}
