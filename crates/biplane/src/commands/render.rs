//! `render`: what the control plane would do, from files, without a cluster.
//!
//! Files become a request to the render engine, functions become something that can be called,
//! and the engine's answer becomes documents. [`composition`] and [`operation`] are the two
//! commands; what they share is here and below.

mod apply;
mod archive;
mod build;
mod checks;
mod composition;
mod context;
mod defaults;
mod docker;
mod engine;
mod flags;
mod functions;
mod interrupt;
mod load;
mod notes;
mod operation;
mod print;
mod process;
mod project;
mod runners;
mod runtime;
mod start;
mod summary;
mod turns;
mod up;
mod v1;
mod waiting;
mod watch;
mod watched;

pub use composition::CompositionRender;
pub(crate) use interrupt::Interrupted;
pub use operation::OperationRender;

use anyhow::Context as _;
use biplane_model::Object;
use biplane_proto::Struct;

/// The moment at which everything is rendered, so that the output is the same every time.
const RENDER_TIME: &str = "2024-01-01T00:00:00Z";
/// The kind of everything that is printed and is no object of the user's.
const API_VERSION: &str = "render.crossplane.io/v1beta1";

fn structs(objects: impl IntoIterator<Item = Object>) -> Vec<Struct> {
    objects.into_iter().map(Struct::from).collect()
}

/// What a render runs on: this thread alone, since functions in process need no other and functions
/// elsewhere are waited for; or also a thread that waits, for renders on threads of their own.
fn asynchronous(threads: bool) -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = if threads {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1);
        builder
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    builder.enable_all().build().context("cannot start the asynchronous runtime")
}
