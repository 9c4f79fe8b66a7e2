//! Answers questions about what was recorded: which step failed, what it was given, what it answered,
//! which step set each field, and what the providers did afterwards.
//!
//! The parts below `query` that compute something work on values alone. `archive` is where the
//! values come from.

pub mod address;
pub mod answer;
pub mod archive;
pub mod ask;
pub mod blame;
pub mod case;
pub mod cause;
pub mod changes;
pub mod compare;
pub mod difference;
pub mod export;
mod findings;
pub mod import;
pub mod lines;
pub mod links;
pub mod otlp;
pub mod outline;
pub mod path;
pub mod print;
pub mod record;
pub mod replay;
pub mod report;
pub mod sentence;
pub mod state;
pub mod stored;
pub mod table;
pub mod time;
