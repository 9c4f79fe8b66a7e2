//! `render`: shows what the control plane would do, from files, without a cluster.
//!
//! This module has the flags of the two commands; [`biplane_render`] does the work.

mod composition;
mod flags;
mod operation;

pub use composition::CompositionRender;
pub use operation::OperationRender;

use biplane_console::error::INTERRUPTED;
use biplane_render::Watched;

use crate::exit::{Exit, USAGE_ERROR};

/// A usage error.
fn refuse<T>(text: impl Into<String>) -> Result<T, Exit> {
    Err(Exit { code: USAGE_ERROR, text: text.into() })
}

/// Fails if `--watch` is combined with standard input, which can only be read once.
fn check_watch(reads_stdin: bool) -> Result<(), Exit> {
    if reads_stdin { refuse("--watch can't be used with standard input") } else { Ok(()) }
}

/// The result of a command that watches files until it is interrupted.
fn end_of_watch(watched: Watched) -> Result<(), Exit> {
    match watched {
        Watched::Interrupted => Err(Exit { code: INTERRUPTED, text: String::new() }),
        Watched::Unread => Ok(()),
    }
}
