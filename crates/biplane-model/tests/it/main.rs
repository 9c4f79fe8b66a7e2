//! The model, as seen from outside.

mod damaged_paths;
mod damaged_yaml;
