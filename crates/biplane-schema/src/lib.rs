//! What an API server decides about objects: whether they fit their schema, what a write does to
//! them, and what the rules in their schemas say.
//!
//! Everything here is a pure function of its arguments.

pub mod cel;
pub mod merge;
pub mod structural;
pub mod value;
