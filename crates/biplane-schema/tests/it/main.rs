//! Integration tests of the API server's rules.

mod damaged_merges;
mod verdicts;
