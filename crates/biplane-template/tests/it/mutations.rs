//! Damaged and arbitrary texts end in output or an error, never in a panic.

use std::io::{BufRead as _, BufReader};

use biplane_template::budget::Limits;
use biplane_template::{Delimiters, MissingKey, Template};
use flate2::read::GzDecoder;
use proptest::prelude::*;

use crate::engine::{Nowhere, data, functions};

const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{{-",
    "-}}",
    " -}}",
    "(",
    ")",
    "|",
    ":=",
    "=",
    ",",
    "$",
    "$x",
    ".",
    "..",
    "\"",
    "`",
    "'",
    "/*",
    "*/",
    "\n",
    "end",
    "else",
    "if",
    "range",
    "with",
    "define",
    "template",
    "block",
    "break",
    "continue",
    "nil",
    "true",
    "0x",
    "1e",
    "1i",
    "%",
    "printf",
    "index",
    "slice",
    "日",
    "\u{0}",
    "\u{1}",
    "_",
    "-",
    "+",
    "{{end}}",
    "{{else}}",
    "include",
    "999999999999999999999",
];

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

fn damage(text: &str, numbers: &mut Numbers) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(chars.len() + 1);
        match numbers.below(4) {
            0 => chars.truncate(at),
            1 if at < chars.len() => {
                chars.remove(at);
            }
            2 => {
                let from = numbers.below(chars.len() + 1);
                let part: Vec<char> = chars.iter().skip(from).take(20).copied().collect();
                chars.splice(at..at, part);
            }
            _ => {
                let piece = PIECES[numbers.below(PIECES.len())];
                chars.splice(at..at, piece.chars());
            }
        }
    }
    chars.into_iter().collect()
}

fn survive(text: &str) {
    let limits = Limits { steps: 20_000, output: 1 << 20, memory: 1 << 22, depth: 1000 };
    let Ok(template) = Template::parse("t", text, &functions(), &Delimiters::default()) else {
        return;
    };
    // Whatever it is, it is an answer.
    let _ = template.run(&data(), MissingKey::Zero, &Nowhere, limits);
}

#[test]
fn damaged_templates_do_not_panic() {
    let recording = &include_bytes!("../data/go.jsonl.gz")[..];
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for line in BufReader::new(GzDecoder::new(recording)).lines() {
        let case: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = case["t"].as_str().unwrap();
        for _ in 0..2 {
            survive(&damage(text, &mut numbers));
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_texts_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        survive(&text);
        survive(&format!("{{{{{text}}}}}"));
    }

    #[test]
    fn arbitrary_sequences_of_tokens_do_not_panic(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..30)
    ) {
        survive(&pieces.join(" "));
        survive(&format!("{{{{ {} }}}}", pieces.concat()));
    }
}
