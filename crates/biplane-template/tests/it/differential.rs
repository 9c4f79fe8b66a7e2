//! Compares templates with recordings of Go's `text/template`.

use std::io::BufReader;

use biplane_template::Delimiters;
use flate2::read::GzDecoder;
use serde_json::Value as Json;

use crate::engine::{data, render};

/// Cases that differ from a recording, as text.
fn differences(recording: impl std::io::BufRead) -> (usize, Vec<String>) {
    let mut count = 0;
    let mut different = Vec::new();
    for line in recording.lines() {
        let case: Json = serde_json::from_str(&line.unwrap()).unwrap();
        let text = case["t"].as_str().unwrap();
        let missing = case["k"].as_str().unwrap_or_default();
        let delimiter = |side: &str| case[side].as_str().unwrap_or_default();
        let delimiters = Delimiters::new(delimiter("l"), delimiter("r"));
        let got = match render(text, missing, &delimiters, &data()) {
            Ok(output) => match String::from_utf8(output) {
                Ok(output) => format!("o: {output}"),
                Err(error) => format!("b: {}", base64(error.as_bytes())),
            },
            Err(error) => format!("e: {error}"),
        };
        let wanted = ["o", "b", "e"]
            .iter()
            .find_map(|key| Some(format!("{key}: {}", case[*key].as_str()?)))
            .unwrap();
        count += 1;
        if got != wanted {
            different.push(format!("{text:?} ({missing})\n  want {wanted:?}\n  got  {got:?}"));
        }
    }
    (count, different)
}

/// Standard base64, as the recording writes bytes that are no text.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * index) & 63) as usize];
            out.push(if index <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[test]
fn templates_do_what_go_does() {
    let recording = &include_bytes!("../data/go.jsonl.gz")[..];
    let (count, different) = differences(BufReader::new(GzDecoder::new(recording)));
    assert!(count > 1000, "the recording is there");
    let shown = different.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{} of {count} differ:\n{shown}", different.len());
}
