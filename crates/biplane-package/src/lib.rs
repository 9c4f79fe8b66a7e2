//! Packages and the registries that they come from.
//!
//! A package is an OCI image. [`reference`] takes its name apart, [`versions`] knows the ranges that
//! projects write, [`registry`] asks which versions there are, [`tag_cache`] remembers the answers for a
//! while, and [`credentials`] finds the login that `docker login` left.

pub mod credentials;
pub mod reference;
pub mod registry;
pub mod tag_cache;
pub mod versions;

pub use credentials::Credentials;
pub use reference::Reference;
pub use registry::{Tags, tags};
pub use tag_cache::TagCache;
pub use versions::Range;
