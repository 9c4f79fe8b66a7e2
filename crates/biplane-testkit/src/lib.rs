//! Shared test support: fixtures, recordings and their replay, and in-process servers.

pub mod certs;
pub mod compare;
pub mod echo;
pub mod mutate;
pub mod peers;
pub mod player;
pub mod random;
pub mod recording;

pub use mutate::mutate;
pub use player::Player;
pub use random::Random;
pub use recording::Recording;
