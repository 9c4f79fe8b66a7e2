//! Keeps what the functions saw, value by value, and tells what the recorder should answer.

use std::collections::{BTreeMap, BTreeSet};

use biplane_recorder::query::answer::Sign;
use serde_json::{Map, Value, json};

use super::plan::{Ending, Leaves, STEPS, State};
use crate::travel::whole;

/// A value, and the step that last set it.
type Stamped = BTreeMap<String, (Value, String)>;

/// A resource while a run goes on.
#[derive(Clone, Debug, Default)]
struct Desired {
    created: String,
    removed: Option<String>,
    fields: Stamped,
}

/// What there was in a run.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) trace: String,
    /// When its first step was called, in microseconds.
    pub(super) at: i64,
    pub(super) ending: Ending,
    observed: Value,
    desired: BTreeMap<String, Desired>,
}

impl Ran {
    /// What was desired in the end.
    fn state(&self) -> State {
        let there = self.desired.iter().filter(|(_, resource)| resource.removed.is_none());
        let plain = |fields: &Stamped| {
            fields.iter().map(|(path, (value, _))| (path.clone(), value.clone())).collect()
        };
        there.map(|(name, resource)| (name.clone(), plain(&resource.fields))).collect()
    }

    /// The documents that were desired in the end, by resource.
    pub(super) fn desired(&self) -> BTreeMap<String, Value> {
        self.state().iter().map(|(name, leaves)| (name.clone(), document(leaves))).collect()
    }

    /// The documents that were observed, by resource.
    pub(super) fn observed(&self) -> BTreeMap<String, Value> {
        let composite = [(String::new(), &self.observed["composite"])];
        let composed = self.observed["resources"].as_object().into_iter().flatten();
        let composed = composed.map(|(name, resource)| (name.clone(), resource));
        let all = composite.into_iter().chain(composed);
        all.map(|(name, resource)| (name, whole(resource["resource"].clone()))).collect()
    }
}

/// What is told of a resource of a run.
#[derive(Debug, PartialEq)]
pub(super) struct Resource {
    pub(super) created: Option<String>,
    pub(super) removed: Option<String>,
    pub(super) since: Option<String>,
    /// The value, the step that set it, and the run since which it is so.
    pub(super) fields: BTreeMap<String, (Value, Option<String>, Option<String>)>,
}

/// The documents at a time, each with the run since which it is so.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Moment {
    pub(super) observed: BTreeMap<String, (Value, String)>,
    pub(super) desired: BTreeMap<String, (Value, String)>,
}

/// How a resource differs: as a whole, and each plain value before and after.
#[derive(Debug, PartialEq)]
pub(super) struct Changes {
    pub(super) sign: Sign,
    pub(super) fields: BTreeMap<String, (Option<Value>, Option<Value>)>,
}

/// All runs, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    pub(super) runs: Vec<Ran>,
    /// When the run that is about to be begun was emitted.
    begins: i64,
}

impl Oracle {
    /// A function was asked. Returns what it was given as desired, which is what the one before
    /// answered.
    pub(super) fn asked(&mut self, trace: &str, index: usize, request: &Value) -> State {
        if index == 0 {
            let ran = Ran {
                trace: trace.to_owned(),
                at: self.begins,
                ending: Ending::Ok,
                observed: request["observed"].clone(),
                desired: BTreeMap::new(),
            };
            self.runs.push(ran);
        }
        let ran = self.runs.last().unwrap();
        assert_eq!((trace, &request["observed"]), (ran.trace.as_str(), &ran.observed));
        let given = documents(&request["desired"]);
        assert_eq!(given, ran.desired(), "the engine hands on what was answered");
        ran.state()
    }

    /// The first step of a run is emitted with this time.
    pub(super) fn begins(&mut self, at: i64) {
        self.begins = at;
    }

    /// The function could not be called.
    pub(super) fn failed(&mut self) {
        self.runs.last_mut().unwrap().ending = Ending::Error;
    }

    /// A function makes this of what is desired. Returns its answer.
    pub(super) fn answered(&mut self, step: &str, state: &State, ending: Ending) -> Value {
        let ran = self.runs.last_mut().unwrap();
        if ending != Ending::Ok {
            ran.ending = ending;
        }
        for (name, resource) in &mut ran.desired {
            if resource.removed.is_none() && !state.contains_key(name) {
                resource.removed = Some(step.to_owned());
            }
        }
        for (name, leaves) in state {
            let new = || Desired { created: step.to_owned(), ..Desired::default() };
            let resource = ran.desired.entry(name.clone()).or_insert_with(new);
            if resource.removed.is_some() {
                *resource = new();
            }
            let before = std::mem::take(&mut resource.fields);
            for (path, value) in leaves {
                let was = before.get(path).filter(|(was, _)| was == value);
                let by = was.map_or_else(|| step.to_owned(), |(_, by)| by.clone());
                resource.fields.insert(path.clone(), (value.clone(), by));
            }
        }
        let mut desired = json!({"resources": {}});
        for (name, document) in ran.desired() {
            let place = if name.is_empty() {
                &mut desired["composite"]
            } else {
                &mut desired["resources"][&name]
            };
            *place = json!({"resource": document});
            if !name.is_empty() && step == STEPS[2] {
                place["ready"] = json!("READY_TRUE");
            }
        }
        let severity = match ending {
            Ending::Warning => "SEVERITY_WARNING",
            Ending::Fatal => "SEVERITY_FATAL",
            Ending::Ok | Ending::Error => "SEVERITY_NORMAL",
        };
        let results = json!([{"severity": severity, "message": format!("{step} was here")}]);
        json!({"desired": desired, "results": results})
    }

    /// The oldest run from which on something holds in all runs that got to their end.
    fn since(&self, index: usize, holds: impl Fn(&Ran) -> bool) -> String {
        let before = self.runs[..index].iter().rev().filter(|ran| ran.ending.is_success());
        let oldest = before.take_while(|ran| holds(ran)).last();
        oldest.unwrap_or(&self.runs[index]).trace.clone()
    }

    pub(super) fn blame(&self, index: usize) -> BTreeMap<String, Resource> {
        let of = |(name, resource): (&String, &Desired)| {
            let is_there = resource.removed.is_none();
            let field = |(path, (value, step)): (&String, &(Value, String))| {
                let since = is_there.then(|| {
                    self.since(index, |ran| {
                        let state = ran.state();
                        state.get(name).and_then(|leaves| leaves.get(path)) == Some(value)
                    })
                });
                (path.clone(), (whole(value.clone()), Some(step.clone()), since))
            };
            let since = is_there.then(|| self.since(index, |ran| ran.state().contains_key(name)));
            let resource = Resource {
                created: Some(resource.created.clone()),
                removed: resource.removed.clone(),
                since,
                fields: resource.fields.iter().map(field).collect(),
            };
            (name.clone(), resource)
        };
        self.runs[index].desired.iter().map(of).collect()
    }

    pub(super) fn moment(&self, index: usize) -> Moment {
        let ran = &self.runs[index];
        let observed = |(name, body): (String, Value)| {
            let before = self.runs[..index].iter().rev();
            let alike = |ran: &&Ran| {
                ran.observed().get(&name).is_some_and(|was| settled(was) == settled(&body))
            };
            let oldest = before.take_while(alike).last().unwrap_or(ran).trace.clone();
            (name, (body, oldest))
        };
        let last = (0..=index).rev().find(|at| self.runs[*at].ending.is_success());
        let desired = last.into_iter().flat_map(|at| {
            let all = self.runs[at].desired().into_iter();
            all.map(move |(name, body)| {
                let since = self.since(at, |ran| ran.desired().get(&name) == Some(&body));
                (name, (whole(body), since))
            })
        });
        Moment {
            observed: ran.observed().into_iter().map(observed).collect(),
            desired: desired.collect(),
        }
    }
}

/// A document without what an API server keeps for itself.
fn settled(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        for kept in ["resourceVersion", "generation", "managedFields"] {
            metadata.remove(kept);
        }
    }
    document
}

/// The documents of a state by resource.
fn documents(state: &Value) -> BTreeMap<String, Value> {
    let composite = state.get("composite").map(|composite| (String::new(), composite));
    let composed = state.get("resources").and_then(Value::as_object);
    let composed = composed.into_iter().flatten().map(|(name, value)| (name.clone(), value));
    let all = composite.into_iter().chain(composed);
    all.map(|(name, resource)| (name, whole(resource["resource"].clone()))).collect()
}

/// Makes a document of its plain values.
fn document(leaves: &Leaves) -> Value {
    let mut document = Value::Object(Map::new());
    for (path, value) in leaves {
        let mut at = &mut document;
        for segment in path.split('.') {
            let (field, item) = match segment.strip_suffix(']').and_then(|s| s.split_once("[name="))
            {
                Some((field, name)) => (field, Some(name)),
                None => (segment, None),
            };
            at = &mut at[field];
            if let Some(name) = item {
                if at.is_null() {
                    *at = json!([]);
                }
                let items = at.as_array_mut().unwrap();
                let found = items.iter().position(|item| item["name"] == name);
                let found = found.unwrap_or_else(|| {
                    items.push(json!({"name": name}));
                    items.len() - 1
                });
                at = &mut items[found];
            }
        }
        *at = whole(value.clone());
    }
    document
}

/// The plain values of a document, which is at a path.
pub(super) fn flat(path: &str, value: &Value) -> BTreeMap<String, Value> {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(fields) if !fields.is_empty() => {
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '$');
            let at = |name: &String| match (path, name.chars().all(plain)) {
                (_, false) => format!("{path}[{name}]"),
                ("", true) => name.clone(),
                (_, true) => format!("{path}.{name}"),
            };
            fields.iter().map(|(name, value)| (at(name), value)).collect()
        }
        Value::Array(items) if !items.is_empty() => {
            let key =
                ["name", "type"].into_iter().find(|key| items.iter().all(|i| i[key].is_string()));
            let at = |(index, item): (usize, &Value)| match key {
                Some(key) => format!("{path}[{key}={}]", item[key].as_str().unwrap()),
                None => format!("{path}[{index}]"),
            };
            items.iter().enumerate().map(|(index, item)| (at((index, item)), item)).collect()
        }
        // Whether something is empty or absent is not told apart.
        Value::Object(_) | Value::Array(_) => return BTreeMap::new(),
        value => return BTreeMap::from([(path.to_owned(), whole(value.clone()))]),
    };
    below.into_iter().flat_map(|(path, value)| flat(&path, value)).collect()
}

/// What differs between two states.
pub(super) fn differences(
    before: &BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
) -> BTreeMap<String, Changes> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut found = BTreeMap::new();
    for name in names {
        let (sign, fields) = match (before.get(name), after.get(name)) {
            (Some(before), Some(after)) if before == after => continue,
            (Some(before), Some(after)) => {
                let (was, is) = (flat("", before), flat("", after));
                let paths: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
                let of = |path: &String| (was.get(path).cloned(), is.get(path).cloned());
                let all = paths.into_iter().map(|path| (path.clone(), of(path)));
                (Sign::Changed, all.filter(|(_, (was, is))| was != is).collect())
            }
            (Some(_), None) => (Sign::Removed, BTreeMap::new()),
            (None, _) => (Sign::Added, BTreeMap::new()),
        };
        found.insert(name.clone(), Changes { sign, fields });
    }
    found
}
