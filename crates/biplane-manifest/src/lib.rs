//! Reads manifests from files, with errors that point at file, document, line and column.
//!
//! [`loader`] turns files into objects, [`fit`] checks that a composite resource and a Composition
//! belong together, [`defaults`] applies the defaults of a definition, and [`v1_validation`]
//! validates a Composition with the rules of Crossplane v1.

pub mod defaults;
pub mod fit;
pub mod line;
pub mod loader;
pub mod misfit;
pub mod v1_validation;

pub use line::Line;
pub use loader::{Loader, Origin, Read, STDIN};
pub use misfit::Misfit;
