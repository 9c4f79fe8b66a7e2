//! Reading and printing, each rule with its traps.

use super::*;
use crate::Value;

mod decoding;
mod judged;
mod places;
mod properties;
mod reading;
mod recorded;
mod words;
mod writing;

/// The value of a text with a single document.
fn read(text: &str) -> Value {
    parse_one("test.yaml", text).expect("readable").value
}

/// What is wrong with a text, in the words a person sees.
fn refusal(text: &str) -> String {
    parse_documents("test.yaml", text).expect_err("unreadable").to_string()
}

/// Only the problem, without the place.
fn problem(text: &str) -> Problem {
    parse_documents("test.yaml", text).expect_err("unreadable").problem
}
