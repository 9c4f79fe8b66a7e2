//! The model, as seen from outside.

mod damaged_merges;
mod damaged_yaml;
