//! Fixtures, the player of recordings, in-process servers.
