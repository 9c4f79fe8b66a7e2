//! Decodes JSON like Go, with Go's error messages.

use serde_json::{Map, Number, Value};

use crate::fmt::quote_bytes;

/// How deeply arrays and objects may nest.
const MAX_DEPTH: usize = 500;

const END: &str = "unexpected end of JSON input";

/// Decodes a value in which every number is a double. The second part is an error about its content
/// if only the syntax is valid.
pub fn decode(text: &[u8]) -> Result<(Value, Option<String>), String> {
    let mut decoder = Decoder { text, at: 0, integers: false, too_large: None };
    let value = decoder.value(0)?;
    decoder.skip_space();
    match decoder.peek() {
        None => Ok((value, decoder.too_large)),
        Some(_) => Err(decoder.unexpected("after top-level value")),
    }
}

/// A value of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    pub value: Value,
    /// The bytes of the value.
    pub start: usize,
    pub end: usize,
    /// An error about its content.
    pub error: Option<String>,
}

/// Why a stream does not go on with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// Only whitespace follows.
    End,
    /// The text ends within a value.
    UnexpectedEnd,
    /// The message, and the number of bytes up to and with the one that is wrong.
    Syntax(String, usize),
}

/// Decodes the value that follows at an offset. Numbers without fraction and exponent are integers
/// if they fit, as Kubernetes reads them.
pub fn decode_next(text: &[u8], at: usize) -> Result<Next, StreamError> {
    let mut decoder = Decoder { text, at, integers: true, too_large: None };
    decoder.skip_space();
    let start = decoder.at;
    if decoder.peek().is_none() {
        return Err(StreamError::End);
    }
    match decoder.value(0) {
        Ok(value) => Ok(Next { value, start, end: decoder.at, error: decoder.too_large }),
        Err(_) if decoder.at >= text.len() => Err(StreamError::UnexpectedEnd),
        Err(message) => Err(StreamError::Syntax(message, decoder.at + 1)),
    }
}

struct Decoder<'a> {
    text: &'a [u8],
    at: usize,
    /// Whether integers are kept.
    integers: bool,
    /// The first number that does not fit into a double.
    too_large: Option<String>,
}

impl Decoder<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte that is not whitespace. Fails at the end of the input.
    fn next(&mut self) -> Result<u8, String> {
        self.skip_space();
        self.peek().ok_or_else(|| END.to_owned())
    }

    /// The error for an unexpected next byte. Go appends a space to the input, and reports that
    /// space if it is invalid there.
    fn unexpected(&self, context: &str) -> String {
        let shown = match self.peek().unwrap_or(b' ') {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            byte => {
                let quoted = quote_bytes(char::from(byte).to_string().as_bytes());
                format!("'{}'", quoted.get(1..quoted.len() - 1).unwrap_or_default())
            }
        };
        format!("invalid character {shown} {context}")
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err("exceeded max depth".into());
        }
        match self.next()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Value::String),
            b't' => self.literal("true", Value::Bool(true)),
            b'f' => self.literal("false", Value::Bool(false)),
            b'n' => self.literal("null", Value::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, String> {
        for letter in word.bytes() {
            if self.peek() != Some(letter) {
                let expected = char::from(letter);
                let context = format!("in literal {word} (expecting '{expected}')");
                return Err(self.unexpected(&context));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn digits(&mut self, context: &str) -> Result<(), String> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.unexpected(context));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = String::from_utf8_lossy(self.text.get(start..self.at).unwrap_or_default());
        if self.integers
            && let Ok(integer) = text.parse::<i64>()
        {
            return Ok(Value::from(integer));
        }
        if let Some(number) = text.parse().ok().and_then(Number::from_f64) {
            return Ok(Value::Number(number));
        }
        self.too_large.get_or_insert_with(|| {
            format!("json: cannot unmarshal number {text} into Go value of type float64")
        });
        Ok(Value::Null)
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            match self.peek() {
                None => return Err(END.to_owned()),
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(&mut out)?;
                }
                Some(0..=0x1f) => return Err(self.unexpected("in string literal")),
                Some(byte) => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        let text = crate::text::runes(&out);
        Ok(text.map(|(c, _)| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode_escape(out),
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        out.push(byte);
        Ok(())
    }

    /// One escaped code, or two that form one character. An unpaired surrogate becomes a
    /// replacement character.
    fn unicode_escape(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        let code = self.code()?;
        let mut c = char::from_u32(code);
        if (0xd800..0xdc00).contains(&code) && self.text.get(self.at..self.at + 2) == Some(b"\\u") {
            let before = self.at;
            self.at += 1;
            let low = self.code()?;
            if (0xdc00..0xe000).contains(&low) {
                c = char::from_u32(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
            } else {
                self.at = before;
            }
        }
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// `uXXXX`.
    fn code(&mut self) -> Result<u32, String> {
        self.at += 1;
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            code = code << 4 | digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        if self.next()? == b']' {
            self.at += 1;
            return Ok(items.into());
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.next()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return Err(self.unexpected("after array element")),
            }
        }
        self.at += 1;
        Ok(items.into())
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut map = Map::new();
        if self.next()? == b'}' {
            self.at += 1;
            return Ok(map.into());
        }
        loop {
            if self.next()? != b'"' {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let key = self.string()?;
            if self.next()? != b':' {
                return Err(self.unexpected("after object key"));
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            map.insert(key, value);
            match self.next()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => return Err(self.unexpected("after object key:value pair")),
            }
        }
        self.at += 1;
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_doubles_and_the_last_of_equal_keys_counts() {
        for (text, want) in [
            ("1", json!(1.0)),
            (" -0 ", json!(-0.0)),
            ("9007199254740993", json!(9_007_199_254_740_992.0)),
            (r#"{"a":1,"a":[null,true]}"#, json!({"a": [null, true]})),
            (r#""\ud800\u00e9\ud83d\ude00""#, json!("\u{fffd}é\u{1f600}")),
        ] {
            assert_eq!(decode(text.as_bytes()), Ok((want, None)), "{text}");
        }
    }

    #[test]
    fn a_stream_is_decoded_value_by_value() {
        let text = br#" {"a":1} [1.0, 12345678901234567890]x"#;
        let first = decode_next(text, 0).unwrap();
        assert_eq!((first.value, first.start, first.end), (json!({"a": 1}), 1, 8));
        let second = decode_next(text, 8).unwrap();
        assert_eq!(second.value, json!([1.0, 12_345_678_901_234_567_890.0]));
        let message = "invalid character 'x' looking for beginning of value";
        let wrong = StreamError::Syntax(message.to_owned(), second.end + 1);
        assert_eq!(decode_next(text, second.end), Err(wrong));
        assert_eq!(decode_next(b" \n", 0), Err(StreamError::End));
        for text in [&b"{"[..], b"{\"a", b"[1,", b"tru"] {
            assert_eq!(decode_next(text, 0), Err(StreamError::UnexpectedEnd));
        }
    }

    #[test]
    fn says_what_is_wrong_as_go_does() {
        for (text, want) in [
            ("", "unexpected end of JSON input"),
            ("[1", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("'x'", r"invalid character '\'' looking for beginning of value"),
            ("01", "invalid character '1' after top-level value"),
            ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
            ("nil", "invalid character 'i' in literal null (expecting 'u')"),
        ] {
            assert_eq!(decode(text.as_bytes()), Err(want.to_owned()), "{text}");
        }
        let (value, error) = decode(b"1e400").unwrap();
        assert_eq!(value, Value::Null);
        let want = "json: cannot unmarshal number 1e400 into Go value of type float64";
        assert_eq!(error.as_deref(), Some(want));
    }
}
