//! Renders composite resources and Operations from files: shows what the control plane would do
//! with them.
//!
//! Files become a request to the render engine, functions are started, and the engine's response
//! becomes documents. [`composition`] and [`operation`] are the two entry points.

mod apply;
pub mod composition;
mod context;
mod engine;
mod file_stamps;
mod functions;
mod hints;
pub mod operation;
pub mod options;
pub mod print;
mod summary;
mod v1;
mod warm;
mod watch_files;

pub use options::{Format, FunctionOptions, OutputOptions};
pub use watch_files::Watched;

use anyhow::Context as _;
use biplane_console::{Interrupts, logging};
use biplane_model::Object;
use biplane_proto::Struct;
use biplane_runtime::Runners;

/// The current time of every render, so that the output is the same every time.
const RENDER_TIME: &str = "2024-01-01T00:00:00Z";
/// The API version of printed documents that are not objects of the user.
const API_VERSION: &str = "render.crossplane.io/v1beta1";

fn structs(objects: impl IntoIterator<Item = Object>) -> Vec<Struct> {
    objects.into_iter().map(Struct::from).collect()
}

/// The asynchronous runtime of a render. One thread is enough for one composite resource. With
/// `threads`, renders run on their own threads and another thread drives the runtime.
fn asynchronous(threads: bool) -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = if threads {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1);
        builder
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    logging::on_threads(&mut builder)
        .enable_all()
        .build()
        .context("cannot start the asynchronous runtime")
}

/// Ends the functions and returns what was rendered with them. From then on there is nothing to clean
/// up, so that a signal ends the process.
fn end_functions<T>(
    runtime: &tokio::runtime::Runtime,
    runners: Runners,
    rendered: anyhow::Result<T>,
) -> anyhow::Result<T> {
    let interrupts = runners.interrupted.clone();
    runtime.block_on(runners.end());
    let rendered = rendered?;
    interrupts.iter().for_each(Interrupts::end_at_once);
    Ok(rendered)
}
