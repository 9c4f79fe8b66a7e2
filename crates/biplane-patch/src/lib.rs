//! Patches and transforms: how a value gets from one object into another, and on the way becomes
//! another value.
//!
//! function-patch-and-transform and Compositions of mode Resources use the same ones. Where the two
//! differ, the difference is data: see [`Dialect`]. What is decoded ([`config`]) is prepared once
//! ([`prepared`]) and then run ([`patch`]) on [`document`]s, which know the types of their numbers.

pub mod config;
pub mod connection;
mod dialect;
pub mod document;
pub mod error;
pub mod patch;
pub mod prepared;
pub mod readiness;
pub mod transform;
pub mod validate;
pub mod value;

pub use dialect::{Dialect, Join};
