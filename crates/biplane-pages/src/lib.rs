//! The recorder in a browser: pages that say what happened in a control plane, and the evidence.
//!
//! Pages are pure functions from the recorder's answers to HTML. They are complete without
//! scripts, and everything that they need is embedded in the program.

pub mod draw;
pub mod layout;
pub mod single;
pub mod tokens;
