//! Takes payloads apart into what is stored: bodies, states, results and conditions, each with its
//! hash.
//!
//! What has not the expected form stays in the rest, so that putting the parts together again gives
//! exactly what came in.

mod identity;
mod parts;

use biplane_go::json::Style;
use biplane_proto::redact::{MARKER_BASE64, Redacted};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

pub use identity::{Composite, Identity, links};
pub use parts::{Condition, ResultOf, conditions_value, results_value, severity_number};

/// The first 16 bytes of SHA-256.
pub type Hash = [u8; 16];

/// A hash over the bytes of several parts, each with its length.
#[derive(Clone, Debug)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Begins a hash of one kind of thing.
    pub fn new(kind: &str) -> Self {
        let mut hasher = Self(Sha256::new());
        hasher.add(kind.as_bytes());
        hasher
    }

    /// Adds a part.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// Adds a part that may be absent.
    pub fn add_or(&mut self, part: Option<&[u8]>) {
        match part {
            Some(part) => self.add(part),
            None => self.0.update(u64::MAX.to_be_bytes()),
        }
    }

    /// The hash.
    pub fn finish(self) -> Hash {
        short(&self.0.finalize())
    }
}

fn short(bytes: &[u8]) -> Hash {
    let mut hash = Hash::default();
    for (to, from) in hash.iter_mut().zip(bytes) {
        *to = *from;
    }
    hash
}

/// One resource or one Struct as canonical JSON: sorted keys, no spaces, numbers as Go prints them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The JSON.
    pub text: String,
    /// Its hash.
    pub hash: Hash,
}

impl Body {
    fn new(value: &Value) -> Self {
        let text = biplane_go::json::to_string_with(value, Style::PROTOJSON);
        let hash = Self::hash_of(&text);
        Self { text, hash }
    }

    /// The hash of a body with this text.
    pub fn hash_of(text: &str) -> Hash {
        let mut hasher = Hasher::new("body");
        hasher.add(text.as_bytes());
        hasher.finish()
    }
}

/// One resource of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the slot, `''` for the composite resource, or the name of a requirement.
    pub name: String,
    /// The position among the items of a requirement.
    pub item: Option<u32>,
    /// The readiness as the number of the enum.
    pub ready: Option<u8>,
    /// The keys of the connection details. Their values are not stored.
    pub keys: Option<Vec<String>>,
    /// The resource.
    pub body: Option<Body>,
}

/// The names of readiness, by number.
pub const READY: [&str; 3] = ["READY_UNSPECIFIED", "READY_TRUE", "READY_FALSE"];

/// A sorted list of resources: observed, desired or required.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The resources.
    pub entries: Vec<Entry>,
    /// Whether there is a composite resource.
    pub has_composite: bool,
    /// Whether there is a list of composed resources, be it empty.
    pub has_resources: bool,
    /// The hash over all of it.
    pub hash: Hash,
}

impl State {
    fn new(entries: Vec<Entry>, has_composite: bool, has_resources: bool) -> Self {
        let mut hasher = Hasher::new("state");
        hasher.add(&[u8::from(has_composite), u8::from(has_resources)]);
        for entry in &entries {
            hasher.add(entry.name.as_bytes());
            hasher.add_or(entry.item.map(u32::to_be_bytes).as_ref().map(|item| &item[..]));
            hasher.add_or(entry.ready.as_ref().map(std::slice::from_ref));
            let keys = entry.keys.as_ref().map(|keys| keys.join("\0"));
            hasher.add_or(keys.as_ref().map(String::as_bytes));
            hasher.add_or(entry.body.as_ref().map(|body| &body.hash[..]));
        }
        Self { entries, has_composite, has_resources, hash: hasher.finish() }
    }
}

/// A request in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// What exists.
    pub observed: Option<State>,
    /// What the steps before desired.
    pub desired: Option<State>,
    /// The resources that were required.
    pub required: Option<State>,
    /// The same under its old name.
    pub extra: Option<State>,
    /// The context.
    pub context: Option<Body>,
    /// The input of the step.
    pub input: Option<Body>,
    /// The schemas that were required.
    pub schemas: Option<Body>,
    /// The credentials without their values.
    pub credentials: Option<Body>,
    /// What is left.
    pub rest: Option<Body>,
    /// The tag.
    pub tag: Option<String>,
}

/// A response in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// What is desired now.
    pub desired: Option<State>,
    /// The context.
    pub context: Option<Body>,
    /// What the function requires.
    pub requirements: Option<Body>,
    /// The output of an Operation's function.
    pub output: Option<Body>,
    /// What is left.
    pub rest: Option<Body>,
    /// The tag.
    pub tag: Option<String>,
    /// How long the answer may be cached, in milliseconds.
    pub ttl: Option<i64>,
    /// The results. They are in the rest, too, if they have an unexpected form.
    pub results: Vec<ResultOf>,
    /// The conditions, likewise.
    pub conditions: Vec<Condition>,
}

/// A payload in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<T> {
    /// There is none.
    Empty,
    /// It is no JSON object. Nothing can be redacted in it, so it is not stored.
    Opaque {
        /// Its size.
        bytes: u64,
        /// Its hash.
        hash: Hash,
    },
    /// A message.
    Parts(Box<T>),
}

impl<T> Content<T> {
    /// The parts, if it is a message.
    pub fn parts(&self) -> Option<&T> {
        match self {
            Self::Parts(parts) => Some(parts),
            Self::Empty | Self::Opaque { .. } => None,
        }
    }
}

/// Takes a payload apart. `None` if it is not JSON.
fn content<T>(
    payload: &[u8],
    value: Redacted<Value>,
    split: impl FnOnce(Map<String, Value>) -> T,
) -> Content<T> {
    match value.into_inner() {
        Value::Object(map) => Content::Parts(Box::new(split(map))),
        Value::Null => Content::Empty,
        _ => Content::Opaque { bytes: payload.len() as u64, hash: short(&Sha256::digest(payload)) },
    }
}

/// Takes a request apart. The value is the redacted payload.
pub fn request(payload: &[u8], value: Redacted<Value>) -> Content<Request> {
    content(payload, value, |mut map| Request {
        observed: taken(&mut map, "observed", state),
        desired: taken(&mut map, "desired", state),
        required: taken(&mut map, "requiredResources", required),
        extra: taken(&mut map, "extraResources", required),
        context: taken(&mut map, "context", body),
        input: taken(&mut map, "input", body),
        schemas: taken(&mut map, "requiredSchemas", body),
        credentials: taken(&mut map, "credentials", body),
        tag: tag(&mut map),
        rest: rest(map),
    })
}

/// Takes a response apart. The value is the redacted payload.
pub fn response(payload: &[u8], value: Redacted<Value>) -> Content<Response> {
    content(payload, value, |mut map| {
        let (results, regular) = parts::results(map.get("results"));
        if regular {
            map.remove("results");
        }
        let (conditions, regular) = parts::conditions(map.get("conditions"));
        if regular {
            map.remove("conditions");
        }
        Response {
            desired: taken(&mut map, "desired", state),
            context: taken(&mut map, "context", body),
            requirements: taken(&mut map, "requirements", body),
            output: taken(&mut map, "output", body),
            tag: tag(&mut map),
            ttl: ttl(&mut map),
            rest: rest(map),
            results,
            conditions,
        }
    })
}

/// Takes a field out if it has the expected form.
fn taken<T>(
    map: &mut Map<String, Value>,
    key: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Option<T> {
    let part = read(map.get(key)?)?;
    map.remove(key);
    Some(part)
}

#[allow(clippy::unnecessary_wraps)] // a body may have any form, as other parts may not
fn body(value: &Value) -> Option<Body> {
    Some(Body::new(value))
}

/// Whatever no other part has. An empty object is the usual case.
fn rest(map: Map<String, Value>) -> Option<Body> {
    (!map.is_empty()).then(|| Body::new(&Value::Object(map)))
}

/// The tag. The object it is in stays, also if it is empty then.
fn tag(map: &mut Map<String, Value>) -> Option<String> {
    let meta = map.get_mut("meta")?.as_object_mut()?;
    match meta.get("tag") {
        Some(Value::String(_)) => match meta.remove("tag") {
            Some(Value::String(tag)) => Some(tag),
            _ => None,
        },
        _ => None,
    }
}

/// The time to live, if it has the form that protobuf's JSON gives it.
fn ttl(map: &mut Map<String, Value>) -> Option<i64> {
    let meta = map.get_mut("meta")?.as_object_mut()?;
    let text = meta.get("ttl")?.as_str()?;
    let milliseconds = milliseconds(text)?;
    if ttl_text(milliseconds) != text {
        return None;
    }
    meta.remove("ttl");
    Some(milliseconds)
}

fn milliseconds(text: &str) -> Option<i64> {
    let text = text.strip_suffix('s')?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "000"));
    if fraction.len() != 3 {
        return None;
    }
    let seconds: i64 = seconds.parse().ok()?;
    seconds.checked_mul(1000)?.checked_add(fraction.parse().ok()?)
}

/// How protobuf's JSON prints a number of milliseconds.
pub fn ttl_text(milliseconds: i64) -> String {
    match (milliseconds / 1000, milliseconds % 1000) {
        (seconds, 0) => format!("{seconds}s"),
        (seconds, fraction) => format!("{seconds}.{fraction:03}s"),
    }
}

/// A state, if it has nothing but resources of the expected form.
fn state(value: &Value) -> Option<State> {
    let map = value.as_object()?;
    if map.keys().any(|key| key != "composite" && key != "resources") {
        return None;
    }
    let composite = map.get("composite");
    let resources = map.get("resources").map(Value::as_object);
    let mut entries = Vec::new();
    if let Some(composite) = composite {
        entries.push(entry("", None, composite)?);
    }
    if let Some(resources) = resources {
        for (name, resource) in resources? {
            // The empty name is the composite resource's.
            if name.is_empty() {
                return None;
            }
            entries.push(entry(name, None, resource)?);
        }
    }
    Some(State::new(entries, composite.is_some(), resources.is_some()))
}

/// Required resources: items by name.
fn required(value: &Value) -> Option<State> {
    let mut entries = Vec::new();
    for (name, found) in value.as_object()? {
        let found = found.as_object()?;
        if found.keys().any(|key| key != "items") {
            return None;
        }
        match found.get("items") {
            // A requirement that nothing met has an entry without a position.
            None => entries.push(Entry {
                name: name.clone(),
                item: None,
                ready: None,
                keys: None,
                body: None,
            }),
            Some(items) => {
                let items = items.as_array().filter(|items| !items.is_empty())?;
                for (at, item) in items.iter().enumerate() {
                    entries.push(entry(name, Some(u32::try_from(at).ok()?), item)?);
                }
            }
        }
    }
    Some(State::new(entries, false, true))
}

fn entry(name: &str, item: Option<u32>, value: &Value) -> Option<Entry> {
    let mut entry = Entry { name: name.to_owned(), item, ready: None, keys: None, body: None };
    for (key, value) in value.as_object()? {
        match key.as_str() {
            "resource" => entry.body = Some(Body::new(value)),
            "ready" => {
                let name = value.as_str()?;
                entry.ready = Some(READY.iter().position(|ready| *ready == name)? as u8);
            }
            "connectionDetails" => {
                let details = value.as_object()?;
                if details.values().any(|value| value != MARKER_BASE64) {
                    return None;
                }
                entry.keys = Some(details.keys().cloned().collect());
            }
            _ => return None,
        }
    }
    Some(entry)
}
