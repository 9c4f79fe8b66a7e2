//! How Go and its libraries read, print and compare values.
//!
//! Users see what Go prints and decides: error messages, formatted values, names and hashes. This
//! crate reproduces those rules. It knows nothing about Kubernetes objects, except for the tables
//! in [`types`], which list the fields of their Go structs.

pub mod base64;
mod digits;
pub mod fmt;
pub mod json;
pub mod num;
pub mod quantity;
pub mod regex;
pub mod text;
pub mod time;
pub mod types;
