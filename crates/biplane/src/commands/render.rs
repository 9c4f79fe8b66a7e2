//! `render`: shows what the control plane would do, from files, without a cluster.
//!
//! This module has the flags of the two commands; [`biplane_render`] does the work.

mod composition;
mod flags;
mod operation;

pub use composition::CompositionRender;
pub use operation::OperationRender;

use biplane_console::Streams;
use biplane_console::error::INTERRUPTED;
use biplane_render::Watched;
use biplane_runner::Inspection;

use crate::exit::{Exit, USAGE_ERROR};
use flags::{EngineFlags, FunctionFlags};

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

/// Fails if `--inspect` is combined with another engine, which would call functions itself.
fn check_inspect(functions: &FunctionFlags, engine: &EngineFlags) -> Result<(), Exit> {
    match engine.chosen_with() {
        Some(flag) if functions.inspect.is_some() => {
            refuse(format!("--inspect and {flag} can't be used together"))
        }
        _ => Ok(()),
    }
}

/// Says which emissions did not arrive. They do not fail a render.
fn report_emissions(inspection: Option<&Inspection>, streams: &mut Streams<'_>) {
    let Some(failures) = inspection.map(Inspection::failures).filter(|f| f.count > 0) else {
        return;
    };
    let s = if failures.count == 1 { "" } else { "s" };
    streams.say(&format!("{} emission{s} did not arrive: {}", failures.count, failures.last));
}
