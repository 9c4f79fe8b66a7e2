//! What an API server decides about objects: whether they fit their schema, what a write changes,
//! and the results of the rules in their schemas.
//!
//! Everything here is a pure function of its arguments.

pub mod cel;
pub mod crd;
pub mod custom_resource;
mod definition;
pub mod merge;
pub mod openapi;
pub mod own_kinds;
pub mod rules;
pub mod structural;
pub mod value;
pub mod xcrd;
