//! Fixtures, the player of recordings, in-process servers.

pub mod mutate;
pub mod recording;

pub use mutate::mutate;
pub use recording::Recording;
