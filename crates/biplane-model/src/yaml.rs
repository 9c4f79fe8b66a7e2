//! YAML as Kubernetes tools mean it: YAML 1.1 scalars on the way in, the layout that `kubectl`
//! prints on the way out, and JSON values in between.
//!
//! Reading goes from parser events straight to values. What is bounded is what hostile input
//! could blow up: nesting and the expansion of aliases. Writing is a closed problem, since only
//! JSON values are ever printed, so the printer here knows nothing of anchors, tags or flow style
//! beyond `[]` and `{}`.

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
