//! Packages and their registries.
//!
//! A package is an OCI image. [`reference`] parses its name, [`versions`] implements the version
//! ranges of projects, [`registry`] lists the versions that exist, [`tag_cache`] keeps these lists
//! for a while, [`contents`] downloads a package, and [`credentials`] finds the login stored by `docker login`.

pub mod contents;
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
