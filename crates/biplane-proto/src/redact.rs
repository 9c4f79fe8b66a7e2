//! Removes secrets from what leaves the process: emissions, lines on standard output, stored runs.
//!
//! Only this module makes a [`Redacted`] value, so a function that takes one cannot be given a
//! secret by mistake. Messages and parsed JSON are redacted by the same rules.

mod json;
mod message;
mod object;
mod path;
mod payload;
mod tag;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::changelogs::ChangeLogEntry;
use crate::function::v1::{RunFunctionRequest, RunFunctionResponse};

pub use payload::EncodedObserved;
pub use tag::TagKey;

use path::{At, Found};

/// What a redacted value of a Secret becomes. Bytes fields hold the same text as bytes.
pub const MARKER: &str = "**REDACTED**";

/// The marker of a bytes field in JSON, which is base64.
pub const MARKER_BASE64: &str = "KipSRURBQ1RFRCoq";

/// What is redacted, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Values of credentials, of connection details and of Secrets become the marker. Keys stay.
    #[default]
    Shipped,
    /// The same, and Secrets are found at any depth, also in last-applied annotations.
    Deep,
    /// The fields of [`Mode::Shipped`] are removed with their keys.
    Clear,
    /// Nothing is redacted. Only for lines that somebody asked for.
    None,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Shipped, Self::Deep, Self::Clear, Self::None];

    /// The name that flags use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::Deep => "deep",
            Self::Clear => "clear",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| {
            format!("unknown redaction {text}: expected shipped, deep, clear or none")
        })
    }
}

/// A value without secrets, and where they were.
#[derive(Clone, Debug, PartialEq)]
pub struct Redacted<T> {
    value: T,
    paths: Vec<String>,
}

impl<T> Redacted<T> {
    /// The value.
    pub fn get(&self) -> &T {
        &self.value
    }

    /// Converts to the value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The field paths of everything that was redacted, sorted.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Whether anything was redacted.
    pub fn is_redacted(&self) -> bool {
        !self.paths.is_empty()
    }

    /// The same content in another form. The closure must not add content.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Redacted<U> {
        Redacted { value: convert(self.value), paths: self.paths }
    }
}

/// The two halves of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Half {
    /// What the function was given.
    Request,
    /// What it answered.
    Response,
}

/// Redacts with one mode and one key for tags.
#[derive(Clone, Debug)]
pub struct Redactor {
    mode: Mode,
    key: TagKey,
}

impl Redactor {
    /// Creates a redactor. The key must be random and must not be stored.
    pub fn new(mode: Mode, key: TagKey) -> Self {
        Self { mode, key }
    }

    /// What it redacts.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Redacts a request. The tag is a hash of the whole request, so it becomes a keyed hash if
    /// anything was redacted.
    pub fn request(&self, mut request: RunFunctionRequest) -> Redacted<RunFunctionRequest> {
        let mut found = Found::default();
        message::request(&mut request, self.mode, &mut found);
        if let Some(meta) = request.meta.as_mut().filter(|_| found.any()) {
            self.key.replace(&mut meta.tag);
        }
        found.of(request)
    }

    /// Redacts a response. A function returns the tag of its request, so the tag is also replaced
    /// if only the request was redacted.
    pub fn response(
        &self,
        mut response: RunFunctionResponse,
        request_is_redacted: bool,
    ) -> Redacted<RunFunctionResponse> {
        let mut found = Found::default();
        message::response(&mut response, self.mode, &mut found);
        if let Some(meta) = response.meta.as_mut().filter(|_| found.any() || request_is_redacted) {
            self.key.replace(&mut meta.tag);
        }
        found.of(response)
    }

    /// Redacts a request or a response in JSON, as [`Redactor::request`] and
    /// [`Redactor::response`] do. Fields may be spelled in either way of protobuf.
    pub fn json(&self, half: Half, mut value: Value, request_is_redacted: bool) -> Redacted<Value> {
        let mut found = Found::default();
        json::message(&mut value, half, self.mode, &mut found);
        let of_request = half == Half::Response && request_is_redacted;
        if (found.any() || of_request)
            && let Some(Value::String(tag)) = value.pointer_mut("/meta/tag")
        {
            self.key.replace(tag);
        }
        found.of(value)
    }

    /// Reads a payload of the Pipeline Inspector as the reference sidecar does, and redacts it. No
    /// bytes are null. What is not JSON is a string: nothing is known about it, so nothing in it
    /// can be redacted.
    pub fn line_payload(
        &self,
        half: Half,
        payload: &[u8],
        request_is_redacted: bool,
    ) -> Redacted<Value> {
        match biplane_go::json::decode(payload) {
            Ok((value, None)) => self.json(half, value, request_is_redacted),
            _ if payload.is_empty() => Found::default().of(Value::Null),
            _ => Found::default().of(String::from_utf8_lossy(payload).into_owned().into()),
        }
    }

    /// Redacts the snapshot of a change log entry.
    pub fn entry(&self, mut entry: ChangeLogEntry) -> Redacted<ChangeLogEntry> {
        let mut found = Found::default();
        let at = At::root("snapshot");
        message::structure(entry.snapshot.as_mut(), self.mode, &at, &mut found);
        found.of(entry)
    }

    /// Redacts a change log entry in JSON.
    pub fn entry_json(&self, mut entry: Value) -> Redacted<Value> {
        let mut found = Found::default();
        if let Some(Value::Object(snapshot)) = entry.get_mut("snapshot") {
            object::redact(snapshot, self.mode, &At::root("snapshot"), &mut found);
        }
        found.of(entry)
    }
}

#[cfg(test)]
mod tests;
