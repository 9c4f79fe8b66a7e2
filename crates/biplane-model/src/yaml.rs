//! Reads YAML like Kubernetes tools, with YAML 1.1 scalars, into JSON values, and prints JSON
//! values in the layout of `kubectl`.
//!
//! Parser events are turned directly into values. Nesting and the expansion of aliases are limited,
//! because hostile input could make them grow without bound. Only JSON values are printed, so the
//! printer supports no anchors, no tags, and no flow style except `[]` and `{}`.

mod analyse;
mod decode;
mod error;
mod lines;
mod order;
mod place;
mod read;
mod resolve;
mod stream;
mod timestamp;
mod write;

#[cfg(test)]
mod tests;

pub use decode::{NotText, decode_text};
pub use error::{Problem, YamlError};
pub use place::Place;
pub use read::{Document, MAX_DEPTH, parse_documents, parse_one};
pub use write::{to_string, write_documents};
