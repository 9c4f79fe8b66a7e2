//! Go's rules, as seen from outside.

mod damaged;
