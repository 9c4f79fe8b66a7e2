//! What an API server decides, as seen from outside.

mod damaged_merges;
