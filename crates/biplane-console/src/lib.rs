//! What all commands share: their input and output streams, logging, progress and error reports,
//! deadlines, and the handling of interrupts.

pub mod deadline;
pub mod error;
pub mod files;
pub mod interrupt;
pub mod logging;
pub mod notes;
pub mod os;
pub mod progress;
pub mod signals;
pub mod stderr;
pub mod streams;
pub mod terminal;

pub use deadline::Deadline;
pub use interrupt::{Interrupted, Interrupts};
pub use logging::Log;
pub use notes::{Note, Notes};
pub use progress::Progress;
pub use stderr::Stderr;
pub use streams::Streams;
