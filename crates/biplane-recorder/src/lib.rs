//! Receives what control planes and providers report: what functions were given and what they
//! answered (the Pipeline Inspector), and what providers did to the outside world (Change Logs).

pub mod api;
pub mod digest;
pub mod disk;
pub mod emission;
pub mod http;
mod inbox;
mod intake;
pub mod line;
mod losses;
pub mod metrics;
pub mod otlp;
pub mod output;
pub mod print;
pub mod query;
pub mod receive;
pub mod recorder;
pub mod serve;
pub mod store;
mod trust;
mod writer;

pub use emission::{Dialect, Emission};
pub use line::Format;
pub use output::Output;
pub use print::{ChangePrinter, EmissionPrinter};
pub use receive::{Changes, Receiver, TakeChange, TakeEmission};
pub use recorder::Recorder;
pub use writer::Now;
