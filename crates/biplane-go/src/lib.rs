//! Go's rules: how the language and its libraries read, print and compare.
//!
//! Everything here is the way it is because Go does it that way, and what Go prints or decides
//! reaches users: error texts, formatted values, names, hashes. Nothing here knows of Kubernetes
//! objects, except for the tables in [`types`] of what their Go structs hold.

pub mod base64;
pub mod fmt;
pub mod json;
pub mod num;
pub mod quantity;
pub mod regex;
pub mod text;
pub mod time;
pub mod types;
