//! The command line, run as users run it.

#![allow(clippy::unwrap_used)] // clippy.toml reaches test functions only, not their helpers

mod advice;
mod claims;
mod conformance;
mod documented;
mod engines;
mod fed_back;
mod files;
mod fits;
mod guide;
mod kept_up;
mod lists;
mod many;
mod mistakes;
mod output;
mod owned;
mod places;
mod processes;
mod program;
mod progress;
mod project;
mod reach;
mod registry;
mod resolving;
mod secrets;
mod stable;
mod stuck;
mod support;
mod tree;
mod usage;
mod v1;
mod watch;
mod write_a_function;
