//! Tests the command line as users run it.

#![allow(clippy::unwrap_used)] // clippy.toml covers test functions only, not their helpers

mod advice;
mod claims;
mod command_tree;
mod conformance;
mod control_plane;
mod convert;
mod core_init;
mod engines;
mod error_locations;
mod fixtures;
mod foreign_owner;
mod guide;
mod interrupted_while_blocked;
mod kubernetes_lists;
mod limited_files;
mod many_composites;
mod mismatched_files;
mod mistakes;
mod needed_compositions;
mod output;
mod output_as_input;
mod pages;
mod processes;
mod program;
mod progress;
mod project;
mod records;
mod registry;
mod replays;
mod resolving;
mod secrets;
mod sidecars;
mod support;
mod until_stable;
mod usage;
mod v1;
mod v1_documented_example;
mod v1_modes;
mod validate;
mod warm_functions;
mod watch;
mod write_a_function;
