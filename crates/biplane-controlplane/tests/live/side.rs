//! One side of a comparison: the objects of a scenario's stages, with everything that varies between
//! runs made equal.
//!
//! A UID becomes the object that has it, a derived name becomes what it was derived from, and times
//! and versions are dropped. Managed fields become the set of fields that the control plane owns.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use biplane_model::{Map, Value};
use regex::{Captures, Regex};
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// The objects of a stage, by the kind of file.
pub(crate) type Stage = BTreeMap<String, Vec<Value>>;

static UID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b").unwrap()
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\b").unwrap());
static NAMED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"setResourceNameAnnotation\s+"([^"]+)""#).unwrap());
/// Events that come and go with timing.
static TRANSIENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        "cannot create object: .* already exists|pipeline status unknown",
        "|the object has been modified; please apply your changes to the latest version"
    ))
    .unwrap()
});

/// Names are learned in this order, so that those made of others' UIDs are known.
const ORDER: [&str; 6] = ["xrd", "xr", "claim", "crd", "composition", "compositionrevision"];
const RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";

/// One side of a comparison.
pub(crate) struct Side {
    scenario: String,
    /// What varies, and what it becomes.
    words: BTreeMap<String, String>,
    uids: BTreeMap<String, String>,
    unknown: RefCell<BTreeMap<String, String>>,
    /// The names of Compositions and revisions.
    compositions: BTreeSet<String>,
}

impl Side {
    pub(crate) fn new(scenario: &str, stages: &[(String, Stage)]) -> Self {
        let mut side = Self {
            scenario: scenario.to_owned(),
            words: BTreeMap::new(),
            uids: BTreeMap::new(),
            unknown: RefCell::default(),
            compositions: BTreeSet::new(),
        };
        let mut files: Vec<(usize, &str, &str, &Vec<Value>)> = Vec::new();
        for (stage, docs) in stages {
            for (file, docs) in docs {
                let rank = ORDER.iter().position(|name| name == file).unwrap_or(ORDER.len());
                files.push((rank, stage, file, docs));
            }
        }
        files.sort_by_key(|(rank, stage, file, _)| (*rank, *stage, *file));
        let all: Vec<&Value> = files.iter().flat_map(|(.., docs)| docs.iter()).collect();
        side.learn(&all);
        side
    }

    fn learn(&mut self, all: &[&Value]) {
        let mut names = BTreeSet::new();
        for object in all {
            if let Some(name) = object["metadata"]["annotations"][RESOURCE_NAME].as_str() {
                names.insert(name.to_owned());
            }
            if matches!(text_at(object, "kind"), "Composition" | "CompositionRevision")
                && !self.is_foreign(object)
            {
                names.extend(resource_names(object));
                self.compositions.insert(name_of(object).to_owned());
            }
            // The names of XRs that were made for claims end with five random characters.
            let (name, claim) = (name_of(object), &object["spec"]["claimRef"]["name"]);
            if let Some(claim) = claim.as_str()
                && let Some(random) = name.strip_prefix(claim).and_then(|r| r.strip_prefix('-'))
                && random.len() == 5
            {
                self.words.insert(name.to_owned(), format!("{claim}-{{random}}"));
            }
        }
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for object in all {
            let Some(uid) = object["metadata"]["uid"].as_str() else { continue };
            if self.uids.contains_key(uid) || object["kind"] == "Event" {
                continue;
            }
            let group = group(object);
            if group.contains(".golden.example.org") {
                let (kind, name) = (text_at(object, "kind"), name_of(object));
                let (who, shown) = (self.identity(object), self.text(name));
                for resource in &names {
                    let hash = sha256(&format!("{uid}{resource}"));
                    let symbol = format!("{{name of {who}: {resource}}}");
                    self.words.insert(hash[..12].to_owned(), symbol);
                }
                let manager = sha256(&format!("{name}{kind}.{group}"));
                self.words.insert(manager, format!("{{manager of {kind}/{shown}}}"));
            }
            let identity = self.identity(object);
            let count = seen.entry(identity.clone()).or_default();
            *count += 1;
            let again = if *count == 1 { String::new() } else { format!("#{count}") };
            self.uids.insert(uid.to_owned(), format!("{{uid {identity}{again}}}"));
        }
    }

    /// Whether a Composition belongs to a scenario whose name starts with this one's.
    pub(crate) fn is_foreign(&self, composition: &Value) -> bool {
        let api_version = composition["spec"]["compositeTypeRef"]["apiVersion"].as_str();
        let group = api_version.unwrap_or_default().rsplit_once('/').map_or("", |(group, _)| group);
        group.ends_with(".golden.example.org")
            && group != format!("{}.golden.example.org", self.scenario)
    }

    /// Whether a Composition or revision of this name belongs to the scenario.
    pub(crate) fn has_composition(&self, name: &str) -> bool {
        self.compositions.contains(name)
    }

    /// Whether a text has names that are different in each run.
    pub(crate) fn varies(&self, text: &str) -> bool {
        self.with_words(text) != text
    }

    /// A text of one run as a text of another, whose names are different.
    pub(crate) fn translate(&self, text: &str, into: &Self) -> String {
        let mut text = self.with_words(text);
        let mut back: Vec<(&String, &String)> = into.words.iter().map(|(w, s)| (s, w)).collect();
        back.sort_by_key(|(symbol, _)| std::cmp::Reverse(symbol.len()));
        for (symbol, word) in back {
            text = text.replace(symbol.as_str(), word);
        }
        text
    }

    /// A text without what varies.
    pub(crate) fn text(&self, text: &str) -> String {
        let text = self.with_words(text);
        let uid = |found: &Captures<'_>| {
            let uid = &found[0];
            if let Some(known) = self.uids.get(uid) {
                return known.clone();
            }
            let mut unknown = self.unknown.borrow_mut();
            let number = unknown.len() + 1;
            unknown.entry(uid.to_owned()).or_insert_with(|| format!("{{uid ?{number}}}")).clone()
        };
        let text = UID.replace_all(&text, uid);
        TIME.replace_all(&text, "{time}").into_owned()
    }

    fn with_words(&self, text: &str) -> String {
        if self.words.is_empty() {
            return text.to_owned();
        }
        let (mut out, mut rest, mut before) = (String::new(), text, ' ');
        while let Some(next) = rest.chars().next() {
            if !before.is_ascii_alphanumeric() {
                let is_here = |word: &str| {
                    let after = rest.strip_prefix(word).map(|after| after.chars().next());
                    after.is_some_and(|after| after.is_none_or(|c| !c.is_ascii_alphanumeric()))
                };
                let found = self.words.iter().filter(|(word, _)| is_here(word));
                if let Some((word, symbol)) = found.max_by_key(|(word, _)| word.len()) {
                    out += symbol;
                    before = 'x';
                    rest = &rest[word.len()..];
                    continue;
                }
            }
            out.push(next);
            before = next;
            rest = &rest[next.len_utf8()..];
        }
        out
    }

    fn identity(&self, object: &Value) -> String {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        format!("{}/{namespace}/{}", text_at(object, "kind"), self.text(name_of(object)))
    }

    /// The objects of a file, by what identifies them.
    pub(crate) fn objects(&self, docs: &[Value]) -> Value {
        let mut docs: Vec<&Value> = docs.iter().filter(|doc| !self.is_foreign(doc)).collect();
        docs.sort_by_key(|doc| self.identity(doc));
        docs.into_iter().map(|doc| (self.identity(doc), self.object(doc))).collect()
    }

    fn plain(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.plain(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(k, v)| (self.text(k), self.plain(v))).collect()
            }
            other => other.clone(),
        }
    }

    fn object(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let metadata = object["metadata"].as_object_mut().unwrap();
        let generation = metadata.remove("generation").and_then(|g| g.as_i64());
        metadata.remove("resourceVersion");
        let managed = metadata.remove("managedFields");
        if let Some(status) = object.get_mut("status") {
            relative(status, generation);
            if let Some(conditions) = status.get_mut("conditions").filter(|c| c.is_array()) {
                *conditions = by_type(conditions);
            }
        }
        let mut object = self.plain(&object);
        let metadata = &mut object["metadata"];
        if let Some(owners) = metadata.get_mut("ownerReferences") {
            let key = |r: &Value| {
                format!("{}/{} {}", text_at(r, "kind"), text_at(r, "name"), text_at(r, "uid"))
            };
            *owners = owners.as_array().unwrap().iter().map(|r| (key(r), r.clone())).collect();
        }
        for pointer in
            ["/metadata/finalizers", "/spec/resourceRefs", "/spec/crossplane/resourceRefs"]
        {
            sort(&mut object, pointer);
        }
        if let Some(Value::Array(managers)) = managed {
            let mut own = Map::new();
            let mut composed = Map::new();
            for entry in &managers {
                let manager = text_at(entry, "manager");
                let ours = manager == "crossplane"
                    || manager.starts_with("apiextensions.crossplane.io/")
                    || manager.starts_with("ops.crossplane.io/");
                if ours {
                    self.leaves(&entry["fieldsV1"], String::new(), &mut own);
                }
                if manager.starts_with("apiextensions.crossplane.io/composed/") {
                    composed.insert(self.text(manager), Value::Null);
                }
            }
            object["metadata"]["owned fields"] = Value::Object(own);
            object["metadata"]["composed managers"] = Value::Object(composed);
        }
        object
    }

    fn leaves(&self, fields: &Value, at: String, into: &mut Map<String, Value>) {
        let below: Vec<_> =
            fields.as_object().into_iter().flatten().filter(|(key, _)| *key != ".").collect();
        if below.is_empty() {
            into.insert(at, Value::Null);
            return;
        }
        for (key, fields) in below {
            self.leaves(fields, format!("{at}/{}", self.text(key)), into);
        }
    }

    /// The events of a stage, as a set.
    pub(crate) fn events(&self, docs: &[Value]) -> Value {
        let mut events = Map::new();
        for event in docs {
            let (about, kind) = (&event["involvedObject"], &event["involvedObject"]["kind"]);
            let name = text_at(about, "name");
            let is_composition = kind == "Composition" || kind == "CompositionRevision";
            if is_composition && !self.has_composition(name) {
                continue;
            }
            let (r#type, reason) = (text_at(event, "type"), text_at(event, "reason"));
            let (kind, name) = (text_at(about, "kind"), self.text(name));
            let message = self.text(text_at(event, "message"));
            let line = format!("{type} | {reason} | {kind}/{name} | {message}");
            if !TRANSIENT.is_match(&line) {
                events.insert(line, Value::Null);
            }
        }
        Value::Object(events)
    }
}

/// Conditions by their types, without times.
fn by_type(conditions: &Value) -> Value {
    let entry = |condition: &Value| {
        let mut condition = condition.as_object().unwrap().clone();
        condition.remove("lastTransitionTime");
        let r#type = condition.remove("type").unwrap_or_default();
        (r#type.as_str().unwrap_or("?").to_owned(), Value::Object(condition))
    };
    conditions.as_array().unwrap().iter().map(entry).collect()
}

/// Says of each observed generation whether it is current.
fn relative(value: &mut Value, generation: Option<i64>) {
    match value {
        Value::Object(fields) => {
            if let Some(observed) = fields.get_mut("observedGeneration")
                && let Some(number) = observed.as_i64()
            {
                *observed = json!(match generation {
                    Some(current) if number == current => "current",
                    Some(current) if number > current => "ahead",
                    _ => "behind",
                });
            }
            for value in fields.values_mut() {
                relative(value, generation);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relative(item, generation)),
        _ => {}
    }
}

fn sort(object: &mut Value, pointer: &str) {
    if let Some(Value::Array(items)) = object.pointer_mut(pointer) {
        items.sort_by_key(Value::to_string);
    }
}

/// The names of resources in the inputs of functions.
fn resource_names(composition: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for step in composition["spec"]["pipeline"].as_array().into_iter().flatten() {
        let input = &step["input"];
        let desired = input["response"]["desired"]["resources"].as_object();
        names.extend(desired.into_iter().flat_map(|resources| resources.keys().cloned()));
        let resources = input["resources"].as_array().into_iter().flatten();
        names.extend(resources.filter_map(|r| r["name"].as_str().map(str::to_owned)));
        let text = input.to_string().replace("\\\"", "\"");
        names.extend(NAMED.captures_iter(&text).map(|found| found[1].to_owned()));
    }
    names
}

fn text_at<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn group(object: &Value) -> &str {
    text_at(object, "apiVersion").rsplit_once('/').map_or("", |(group, _)| group)
}

fn sha256(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The differences of two values, one line each. A missing field and `null` are different.
pub(crate) fn differences(place: &str, expected: &Value, got: &Value, into: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let place = format!("{place}.{key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => differences(&place, a, b, into),
                    (Some(a), None) => into.push(format!("{place}: expected {a} got nothing")),
                    (None, Some(b)) => into.push(format!("{place}: expected nothing got {b}")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{place}[{index}]"), a, b, into);
            }
        }
        (a, b) if a == b => {}
        (a, b) => into.push(format!("{place}: expected {a} got {b}")),
    }
}
