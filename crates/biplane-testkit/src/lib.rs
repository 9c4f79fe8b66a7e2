//! Fixtures, the player of recordings, in-process servers.

pub mod recording;

pub use recording::Recording;
