//! Tests of the conversions.

#![allow(clippy::unwrap_used)] // clippy.toml covers test functions only, not their helpers

mod comments;
mod faults;
mod properties;
mod recordings;
mod runtime;

use biplane_convert::Functions;

/// What a Composition becomes with the usual names of Functions.
fn pipeline(text: &str) -> String {
    let converted = biplane_convert::pipeline_composition(text.as_bytes(), Functions::default());
    converted.expect("converted").expect("changed")
}

/// The error of a conversion to a pipeline, with its causes.
fn refusal(text: &str) -> String {
    let converted = biplane_convert::pipeline_composition(text.as_bytes(), Functions::default());
    format!("{:#}", converted.expect_err("refused"))
}
