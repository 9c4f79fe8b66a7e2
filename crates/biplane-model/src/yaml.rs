//! Reads YAML like Kubernetes tools, with YAML 1.1 scalars, into JSON values, and prints JSON
//! values in the layout of `kubectl`.
//!
//! Kubernetes tools use two versions of go-yaml, see [`Dialect`]. The scanner and the parser follow
//! libyaml, on which both are based, so that problems have the same names and locations. Nesting and
//! the expansion of aliases are limited, because hostile input could make them grow without bound.
//! The printer supports no anchors, no tag except `!!binary`, and no flow style except `[]` and `{}`.

mod analyse;
mod build;
mod compose;
mod data;
mod decode;
mod error;
mod lines;
mod order;
mod parse;
mod place;
mod read;
mod resolve;
mod scan;
mod stream;
mod timestamp;
mod write;
mod written;

#[cfg(test)]
mod tests;

pub use compose::MAX_DEPTH;
pub use data::Data;
pub use decode::{NotText, decode_text};
pub use error::{Problem, YamlError};
pub use place::Place;
pub use read::{Document, Unreadable, decode_document, parse_documents, parse_one, read_document};
pub use write::{encode_document, to_string, write_documents};
pub use written::{Change, Moved, Written};

/// The two versions of go-yaml. They differ in words that are booleans, in keys that are given
/// twice, in the lines of problems and in the layout that they print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Reads and prints manifests, behind sigs.k8s.io/yaml.
    V2,
    /// Reads and prints values in templates.
    V3,
}
