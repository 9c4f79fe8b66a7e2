//! Integration tests of the model.

mod damaged_paths;
mod damaged_yaml;
