//! Reads the rendered text: a stream of YAML or JSON documents.

use biplane_function::Budget;
use biplane_go::fmt::quote;
use biplane_go::json::{self, StreamError};
use biplane_model::object::memory_of_map;
use biplane_model::yaml;
use biplane_model::{Map, Value};

use super::data;
use super::documents::{NAME_ANNOTATION, text_of};
use super::typed;

/// How much of the text decides between JSON and YAML.
const LOOKED_AT: usize = 1024;
/// How much of a line is shown.
const SHOWN: usize = 80;
const SEPARATOR: &[u8] = b"---";
const TARGET: &str = "map[string]interface {}";

/// The limit for the text of one document. An API server accepts 3 MiB.
const MAX_DOCUMENT: usize = 4 << 20;

/// The limit for the memory of all documents.
const MAX_MEMORY: usize = 256 << 20;

/// Reads all documents. Every one is an object with a kind.
pub(super) fn read(text: &[u8], budget: &Budget) -> Result<Vec<Map<String, Value>>, String> {
    let mut stream = Stream::new(text);
    let mut lines = Lines::new(text);
    let mut documents = Vec::new();
    let mut memory = 0;
    while let Some(document) = stream.next() {
        let document = document
            .map_err(|error| format!("cannot decode manifest: {}", lines.explain(error)))?;
        let Some(document) = document else { continue };
        budget.check().map_err(|exceeded| exceeded.to_string())?;
        memory += memory_of_map(&document);
        if memory > MAX_MEMORY {
            return Err(format!(
                "the rendered documents need more than {MAX_MEMORY} bytes of memory"
            ));
        }
        check_annotations(&document)?;
        documents.push(document);
        lines.next_document();
    }
    Ok(documents)
}

/// Why a document cannot be read.
#[derive(Debug)]
enum Unreadable {
    Message(String),
    /// go-yaml's message, which may have a line number.
    Yaml(String),
}

type Document = Result<Option<Map<String, Value>>, Unreadable>;

/// The documents of a text. It may turn out that what looks like JSON is YAML.
struct Stream<'text> {
    text: &'text [u8],
    at: usize,
    json: bool,
    /// The number of documents so far. After two, it is known that this is JSON.
    count: usize,
    /// The text of the document that is read.
    document: Vec<u8>,
    ended: bool,
}

impl<'text> Stream<'text> {
    fn new(text: &'text [u8]) -> Self {
        let start = text.get(..LOOKED_AT).unwrap_or(text);
        // A character at the end may be incomplete.
        let start = String::from_utf8_lossy(start);
        let json = start.trim_start_matches(is_space).starts_with('{');
        Self { text, at: 0, json, count: 0, document: Vec::new(), ended: false }
    }

    fn next(&mut self) -> Option<Document> {
        if self.ended {
            return None;
        }
        let document = if self.json { self.next_json() } else { self.next_yaml() };
        match &document {
            Some(Ok(_)) => self.count += 1,
            _ => self.ended = true,
        }
        document
    }

    fn next_json(&mut self) -> Option<Document> {
        let (bare, with_offset) = match json::decode_next(self.text, self.at) {
            Err(StreamError::End) => return None,
            Ok(next) if next.end - next.start > MAX_DOCUMENT => return Some(Err(too_large())),
            Ok(next) => match next.error.map_or_else(
                || {
                    object(next.value, |_| {
                        let bytes = self.text.get(next.start..next.end).unwrap_or_default();
                        String::from_utf8_lossy(bytes).into_owned()
                    })
                },
                Err,
            ) {
                Ok(document) => {
                    self.at = next.end;
                    return Some(Ok(document));
                }
                Err(error) => (error.clone(), error),
            },
            Err(StreamError::UnexpectedEnd) => {
                ("unexpected EOF".to_owned(), "unexpected EOF".to_owned())
            }
            Err(StreamError::Syntax(error, offset)) => {
                let with_offset = format!("json: offset {offset}: {error}");
                (error, with_offset)
            }
        };
        if self.count > 1 {
            return Some(Err(Unreadable::Message(bare)));
        }
        self.json = false;
        if self.skip_space() {
            match self.next_yaml() {
                Some(Err(_)) => {}
                document => return document,
            }
        }
        Some(Err(Unreadable::Message(with_offset)))
    }

    /// Skips whitespace up to the end of the line. Returns whether there may be YAML.
    fn skip_space(&mut self) -> bool {
        /// The reader wants this many bytes at once, and gives up if there are fewer.
        const WINDOW: usize = 4;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(window) = rest.get(..WINDOW) else { return false };
            let Some(c) = String::from_utf8_lossy(window).chars().next() else { return false };
            if c == char::REPLACEMENT_CHARACTER {
                return false;
            }
            if !is_space(c) {
                return true;
            }
            self.at += c.len_utf8();
            if c == '\n' {
                return true;
            }
        }
    }

    fn next_yaml(&mut self) -> Option<Document> {
        let document = &mut self.document;
        document.clear();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                return (!document.is_empty()).then(|| of_yaml(document));
            }
            let end = memchr::memchr(b'\n', rest);
            let (line, next) = match end {
                Some(end) => (rest.get(..end).unwrap_or_default(), end + 1),
                None => (rest, rest.len()),
            };
            let line = if end.is_some() { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
            self.at += next;
            if let Some(behind) = line.strip_prefix(SEPARATOR) {
                let behind = String::from_utf8_lossy(behind);
                let behind = behind.trim_matches(is_space);
                if !behind.is_empty() && !behind.starts_with('#') {
                    let error = format!("invalid Yaml document separator: {behind}");
                    return Some(Err(Unreadable::Message(error)));
                }
                if !document.is_empty() {
                    return Some(of_yaml(document));
                }
            }
            if document.len() + line.len() > MAX_DOCUMENT {
                return Some(Err(too_large()));
            }
            document.extend_from_slice(line);
            document.push(b'\n');
        }
    }
}

fn too_large() -> Unreadable {
    Unreadable::Message(format!("a document is larger than {MAX_DOCUMENT} bytes"))
}

/// Go's whitespace.
fn is_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ' | '\u{85}' | '\u{a0}') || (c > '\u{ff}' && c.is_whitespace())
}

fn of_yaml(text: &[u8]) -> Document {
    let mut value = yaml::read_document(text)
        .map_err(|error| Unreadable::Yaml(format!("error converting YAML to JSON: {error}")))?;
    whole(&mut value);
    object(value, |map| json::to_string(&Value::Object(map))).map_err(|error| {
        Unreadable::Message(format!("error unmarshaling JSON: while decoding JSON: {error}"))
    })
}

/// Numbers pass through JSON, where whole doubles have no fraction and are read as integers.
fn whole(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = biplane_go::num::format_float(number.as_f64().unwrap_or_default());
            if let Ok(integer) = text.parse::<i64>() {
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(map) => map.values_mut().for_each(whole),
        _ => {}
    }
}

/// The object with a kind, or nothing for null.
fn object(
    value: Value,
    text: impl FnOnce(Map<String, Value>) -> String,
) -> Result<Option<Map<String, Value>>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Object(map) => {
            // A malformed version hides the kind.
            let known = text_of(&map, "apiVersion").matches('/').count() <= 1;
            if text_of(&map, "kind").is_empty() || !known {
                return Err(format!("Object 'Kind' is missing in '{}'", text(map)));
            }
            Ok(Some(map))
        }
        other => Err(typed::mismatch(&other, TARGET)),
    }
}

/// Go cannot read annotations that are not strings.
fn check_annotations(document: &Map<String, Value>) -> Result<(), String> {
    let wrong = |what: &Value, path: &str| {
        let (shown, go_type) = described(what);
        format!("{path} accessor error: {shown} is of the type {go_type}, expected {TARGET_SHORT}")
    };
    let error = match document.get("metadata") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(metadata)) => match metadata.get("annotations") {
            None => return Ok(()),
            Some(Value::Object(annotations)) => {
                let Some((key, value)) = annotations.iter().find(|(_, value)| !value.is_string())
                else {
                    return Ok(());
                };
                let (shown, go_type) = described(value);
                format!(
                    ".metadata.annotations accessor error: contains non-string value in the map \
                     under key {}: {shown} is of the type {go_type}, expected string",
                    quote(key)
                )
            }
            Some(other) => wrong(other, ".metadata.annotations"),
        },
        Some(other) => wrong(other, ".metadata.annotations"),
    };
    let name = document.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let name = name.and_then(|annotations| annotations.get(NAME_ANNOTATION));
    let (name, _) = described(name.unwrap_or(&Value::Null));
    let (group, version) = match text_of(document, "apiVersion").split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", text_of(document, "apiVersion")),
    };
    let kind = text_of(document, "kind");
    Err(format!(
        "invalid annotations in resource '{group}/{version}, Kind={kind} resource-name={name}': \
         {error}"
    ))
}

const TARGET_SHORT: &str = "map[string]interface{}";

/// A value and its type as Go prints them.
fn described(value: &Value) -> (String, String) {
    let value = data::of_json(value);
    let shown = String::from_utf8_lossy(&value.display_in_message()).into_owned();
    (shown, value.type_name())
}

/// Finds lines of the text for error messages, with upstream's arithmetic.
struct Lines<'text> {
    text: &'text [u8],
    /// The number of documents that were read.
    documents: usize,
}

impl<'text> Lines<'text> {
    fn new(text: &'text [u8]) -> Self {
        Self { text, documents: 0 }
    }

    fn next_document(&mut self) {
        self.documents += 1;
    }

    /// The number of lines before the document that is read: those up to its separator, if there is
    /// one that stands alone in its line.
    fn start(&self) -> usize {
        let (_, mut rest) = first_line(self.text);
        let mut start = 1;
        for _ in 0..=self.documents {
            let mut below = 0;
            while let Some(text) = rest {
                let (line, behind) = first_line(text);
                rest = behind;
                below += 1;
                if memchr::memmem::find(line, SEPARATOR).is_some() && trim(line) == "---" {
                    start += below;
                    break;
                }
            }
        }
        start
    }

    fn explain(&self, error: Unreadable) -> String {
        let text = match error {
            Unreadable::Message(text) => return text,
            Unreadable::Yaml(text) => text,
        };
        let with_line = text.strip_prefix("error converting YAML to JSON: yaml: line ");
        let parts = with_line.and_then(|rest| rest.split_once(':'));
        let Some((line, problem)) =
            parts.and_then(|(line, problem)| Some((line.parse::<usize>().ok()?, problem.trim())))
        else {
            return text;
        };
        let absolute = self.start() + line;
        let mut lines = self.text.split(|byte| *byte == b'\n');
        let Some(context) = absolute.checked_sub(1).and_then(|at| lines.nth(at)) else {
            return text;
        };
        let context = trim(context);
        // The cut may split a character, and messages are text.
        let shown = match context.as_bytes().get(..SHOWN) {
            Some(cut) if context.len() > SHOWN => format!("{}...", String::from_utf8_lossy(cut)),
            _ => context,
        };
        let document = self.documents + 1;
        format!(
            "error converting YAML to JSON: yaml: line {absolute} (document {document}, line \
             {line}) near: '{shown}': {problem}"
        )
    }
}

/// The first line, and what is behind it.
fn first_line(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'\n', text) {
        Some(end) => (text.get(..end).unwrap_or_default(), text.get(end + 1..)),
        None => (text, None),
    }
}

fn trim(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_matches(is_space).to_owned()
}
