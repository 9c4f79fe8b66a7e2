//! The model, as seen from outside.

mod damaged_yaml;
