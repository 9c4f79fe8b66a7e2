//! Integration tests of Go's rules.

mod damaged;
