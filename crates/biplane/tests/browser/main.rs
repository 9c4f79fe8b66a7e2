//! Proves in a real Chromium that the pages of the recorder answer what people ask: by mouse and by
//! keyboard alone, with and without scripts, on wide and narrow screens, in light and dark.

#![allow(clippy::unwrap_used)] // clippy.toml covers test functions only, not their helpers

mod driver;
mod gallery;
mod lines;
mod stories;
mod world;
