//! Tests of files in each supported encoding.

use serde_json::json;

use crate::yaml::{NotText, decode_text, parse_one};

/// Encodes text in UTF-16 with a byte order mark, in both byte orders.
fn utf16(text: &str) -> [Vec<u8>; 2] {
    let units = || std::iter::once(0xfeff).chain(text.encode_utf16());
    [units().flat_map(u16::to_le_bytes).collect(), units().flat_map(u16::to_be_bytes).collect()]
}

fn refused(bytes: &[u8]) -> (&'static str, usize, usize) {
    let NotText { encoding, place } = decode_text(bytes.to_vec()).expect_err("no text");
    (encoding, place.line, place.column)
}

#[test]
fn text_is_read_in_every_encoding() {
    let text = "a: é\nb: \u{1f600}\n";
    let [little, big] = utf16(text);
    for bytes in [text.as_bytes().to_vec(), format!("\u{feff}{text}").into_bytes(), little, big] {
        let decoded = decode_text(bytes.clone()).expect("text");
        let document = parse_one("f", &decoded).expect("readable");
        assert_eq!(document.value, json!({"a": "é", "b": "\u{1f600}"}), "{bytes:?}");
    }
    assert_eq!(decode_text(vec![0xff, 0xfe]), Ok(String::new()));
    assert_eq!(decode_text(Vec::new()), Ok(String::new()));
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    assert_eq!(refused(b"a: b\nc: \xe9\n"), ("UTF-8", 2, 4));
    assert_eq!(refused(b"\xe9"), ("UTF-8", 1, 1));
    // UTF-16 without its byte order mark.
    assert_eq!(refused(b"a\0:\0 \0\xe9\0"), ("UTF-8", 1, 7));
    for mut bytes in utf16("a: b\nc") {
        bytes.push(b'!');
        assert_eq!(refused(&bytes), ("UTF-16", 2, 2), "half a unit");
    }
    // Unpaired surrogates: a high one at the end, a low one alone, a high one before a letter.
    for unit in [&[0xd83d][..], &[0xde00], &[0xd83d, 0x0061]] {
        let bytes = [&[0xfeff, 0x0061][..], unit].concat();
        let bytes: Vec<u8> = bytes.into_iter().flat_map(u16::to_be_bytes).collect();
        assert_eq!(refused(&bytes), ("UTF-16", 1, 2), "{unit:x?}");
    }
}
