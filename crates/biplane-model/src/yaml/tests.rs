//! Tests of reading and printing YAML.

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
mod written;

/// The value of a text with one document.
fn read(text: &str) -> Value {
    parse_one("test.yaml", text).expect("readable").value
}

/// The full error message.
fn refusal(text: &str) -> String {
    parse_documents("test.yaml", text).expect_err("unreadable").to_string()
}

/// The problem without its location.
fn problem(text: &str) -> Problem {
    parse_documents("test.yaml", text).expect_err("unreadable").problem
}
