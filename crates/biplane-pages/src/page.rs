//! The pages: each is a function from answers to what the reader sees.

pub mod at;
pub mod change;
pub mod changes;
pub mod compare;
pub mod composite;
pub mod composites;
pub mod failure;
pub mod help;
pub mod resource;
pub mod run;
pub mod runs;
pub mod search;
pub mod status;
pub mod step;
pub mod warnings;
pub mod why;
