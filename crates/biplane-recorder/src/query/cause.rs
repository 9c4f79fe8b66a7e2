//! Finds why a step did something else than in the run before: what differs in what it was given, or
//! that nothing does.

use serde_json::Value;

use super::answer::{Cause, Evidence, EvidenceKind, FieldItem, Reason, Sign, StepRef};
use super::compare::{self, aligned, step_ref};
use super::difference::{self, NODES};
use super::record::{Head, ObjectRef, Run, Step};
use super::sentence;
use super::state;

/// How many differences are shown as evidence.
const SHOWN: usize = 5;

/// Why a step did something else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Root {
    /// The cause.
    pub reason: Reason,
    /// How the difference came from earlier steps: what differs in what each was given, the step
    /// that decided first.
    pub chain: Vec<Cause>,
    /// The step where the difference began.
    pub step: StepRef,
    /// What differs in what that step was given, the likeliest cause first.
    pub inputs: Vec<Cause>,
    /// How the pipeline differs.
    pub pipeline: Option<String>,
    /// The revision of the function before and after, if it differs.
    pub revision: Option<(String, String)>,
}

/// The values of something before and after. Whatever has the same is its likeliest cause.
pub type Values<'a> = Option<(Option<&'a Value>, Option<&'a Value>)>;

/// Finds why a step of a run did something else than in another run before.
pub fn root(before: &Run, after: &Run, step: &Step, values: Values<'_>) -> Root {
    let mut nodes = NODES;
    let (was, is) = (before.last_calls(), after.last_calls());
    let pairs = aligned(&was, &is);
    let mut root =
        Root { pipeline: pipeline_difference(&before.head, &after.head), ..Root::default() };
    let mut at = pairs.iter().position(|(_, is)| is.is_some_and(|is| is.index == step.index));
    loop {
        let Some((Some(was), Some(is))) = at.and_then(|at| pairs.get(at)) else {
            root.step = step_ref(Some(step));
            root.reason = Reason::CompositionChanged;
            return root;
        };
        root.step = step_ref(Some(is));
        let mut given = differences(was, is, &mut nodes);
        given.sort_by_key(|cause| rank(cause, values));
        let made = |cause: &Cause| matches!(cause.part.as_str(), "context" | "desired");
        if let Some(first) = given.first().filter(|first| made(first)) {
            let earlier = pairs.iter().take(at.unwrap_or(0));
            let answers = earlier.map(|pair| match pair {
                (Some(was), Some(is)) => compare::answered(was, is, &mut nodes)
                    .iter()
                    .any(|cause| cause.part == first.part),
                _ => true,
            });
            let source = answers.collect::<Vec<_>>().into_iter().position(|answers| answers);
            if let Some(source) = source {
                root.chain.push(first.clone());
                at = Some(source);
                continue;
            }
        }
        root.revision = revisions(was, is);
        root.reason = match given.first() {
            Some(first) if first.part == "input" => Reason::CompositionChanged,
            Some(_) => Reason::InputDiffers,
            None if was.function != is.function || root.pipeline.is_some() => {
                Reason::CompositionChanged
            }
            None if root.revision.is_some() => Reason::FunctionReplaced,
            // What is redacted may differ: the tag is a hash of all of it.
            None if hides_something(was, is) => Reason::Unknown,
            None => Reason::SameInput,
        };
        root.inputs = given;
        return root;
    }
}

fn revisions(was: &Step, is: &Step) -> Option<(String, String)> {
    let pair = was.revision.clone().zip(is.revision.clone());
    pair.filter(|(was, is)| was != is)
}

fn hides_something(was: &Step, is: &Step) -> bool {
    let tag = |step: &Step| step.request.as_ref().and_then(|r| r.pointer("/meta/tag")).cloned();
    let is_redacted =
        |step: &Step| step.request.as_ref().is_some_and(|r| !super::replay::redacted(r).is_empty());
    (is_redacted(was) || is_redacted(is)) && (tag(was).is_none() || tag(was) != tag(is))
}

/// What differs in what a step was given. Required resources are told by their names.
fn differences(was: &Step, is: &Step, nodes: &mut usize) -> Vec<Cause> {
    let mut found: Vec<Cause> = compare::given(was, is, nodes)
        .into_iter()
        .filter(|cause| !matches!(cause.part.as_str(), "requiredResources" | "extraResources"))
        .map(|cause| Cause {
            field: cause.field.clone().or_else(|| came_or_went(was, is, &cause)),
            ..cause
        })
        .collect();
    let objects = |step: &Step| -> Vec<(ObjectRef, Value)> {
        let parts = ["requiredResources", "extraResources"];
        let parts = parts.iter().filter_map(|part| step.request.as_ref()?.get(*part)?.as_object());
        let items =
            parts.flat_map(|part| part.values()).filter_map(|one| one.get("items")?.as_array());
        items
            .flatten()
            .map(|item| (ObjectRef::of_object(state::body(item)), state::body(item).clone()))
            .collect()
    };
    let (before, after) = (objects(was), objects(is));
    let cause = |object: &ObjectRef, field: Option<FieldItem>| Cause {
        step: step_ref(Some(is)),
        half: "given".to_owned(),
        part: "required".to_owned(),
        resource: Some(format!("{}/{}", object.kind, object.name)),
        field,
    };
    let whole = |object: &ObjectRef, change| {
        let field = FieldItem { path: ".".to_owned(), change, ..FieldItem::default() };
        cause(object, Some(field))
    };
    for (object, body) in &after {
        match before.iter().find(|(other, _)| other.is_same(object)) {
            Some((_, old)) => {
                let changes = difference::within(old, body, nodes).changes;
                let own = changes.iter().filter(|change| !change.path.is_bookkeeping());
                found.extend(own.map(|change| cause(object, Some(change.into()))));
            }
            None => found.push(whole(object, Sign::Added)),
        }
    }
    let gone = before.iter().filter(|(object, _)| !after.iter().any(|(o, _)| o.is_same(object)));
    found.extend(gone.map(|(object, _)| whole(object, Sign::Removed)));
    found
}

/// Whether a resource of a state is new or gone.
fn came_or_went(was: &Step, is: &Step, cause: &Cause) -> Option<FieldItem> {
    let name = cause.resource.as_deref()?;
    let has = |step: &Step| {
        let state = step.request.as_ref().and_then(|request| request.get(cause.part.as_str()));
        state::slot(state, name).is_some()
    };
    let change = match (has(was), has(is)) {
        (false, true) => Sign::Added,
        (true, false) => Sign::Removed,
        _ => return None,
    };
    Some(FieldItem { path: ".".to_owned(), change, ..FieldItem::default() })
}

/// The smaller, the likelier a difference is a cause. What people wrote comes before what the world
/// made of it.
fn rank(cause: &Cause, values: Values<'_>) -> (bool, u8) {
    let field = cause.field.as_ref();
    let has_same_values = matches!((values, field), (Some((before, after)), Some(field))
        if (before, after) == (field.before.as_ref(), field.after.as_ref())
            && (before.is_some() || after.is_some()));
    (!has_same_values, kind_rank(cause))
}

fn kind_rank(cause: &Cause) -> u8 {
    let field = cause.field.as_ref();
    let path = field.map_or("", |field| field.path.as_str());
    let of = |name: &str| is_below(path, name);
    match (cause.part.as_str(), cause.resource.as_deref()) {
        ("observed", Some("")) if of("spec") => 1,
        ("required", _) => 2,
        ("input" | "credentials" | "requiredSchemas", _) => 3,
        ("observed", Some("")) if of("metadata") => 4,
        ("context", _) => 5,
        ("desired", _) => 6,
        ("observed", Some("")) => 8,
        ("observed", _) if of("spec") || path == "." => 7,
        _ => 9,
    }
}

/// Whether a path is another, or below it.
pub fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// How the pipeline of a run differs from that of the run before. Runs that did not get to their end
/// say nothing about the steps that they did not reach.
pub fn pipeline_difference(before: &Head, after: &Head) -> Option<String> {
    if before.composition != after.composition {
        return Some(format!("composition {} -> {}", before.composition, after.composition));
    }
    let name = |(index, name, function): &(i32, String, String)| match name.as_str() {
        "" => format!("{} {function}", index + 1),
        name => name.to_owned(),
    };
    for step in &after.steps {
        match before.steps.iter().find(|other| name(other) == name(step)) {
            None if before.outcome.is_failure() => {}
            None => return Some(format!("step {} is new", name(step))),
            Some(other) if other.2 != step.2 => {
                return Some(format!("function of step {}: {} -> {}", name(step), other.2, step.2));
            }
            Some(_) => {}
        }
    }
    let gone = before.steps.iter().find(|step| !after.steps.iter().any(|o| name(o) == name(step)));
    gone.filter(|_| !after.outcome.is_failure()).map(|step| format!("step {} is gone", name(step)))
}

/// A step as sentences name it.
pub fn step_words(step: &StepRef) -> String {
    let name = if step.name.is_empty() { &step.function } else { &step.name };
    format!("step {}, {name},", step.number)
}

impl Root {
    /// The cause in words: whole sentences.
    pub fn words(&self) -> String {
        let mut sentences = Vec::new();
        for cause in &self.chain {
            sentences.push(format!(
                "Of what {} was given, what earlier steps made differs: {}.",
                step_words(&cause.step),
                sentence::cause(cause)
            ));
        }
        let step = capital(&step_words(&self.step));
        let what = match self.reason {
            Reason::CompositionChanged => match (&self.pipeline, self.inputs.first()) {
                (Some(pipeline), _) => format!("The Composition changed: {pipeline}."),
                (None, Some(input)) => {
                    let step = self.step.label();
                    format!("The Composition changed: step {step}, {}.", sentence::cause(input))
                }
                (None, None) => "The Composition changed.".to_owned(),
            },
            Reason::InputDiffers => {
                let first = self.inputs.first().map(sentence::cause).unwrap_or_default();
                let step = step_words(&self.step);
                match self.inputs.len() {
                    1 => format!("Of what {step} was given, one input differs: {first}."),
                    count => format!(
                        "Of what {step} was given, {count} inputs differ, the likeliest: {first}."
                    ),
                }
            }
            Reason::FunctionReplaced => {
                let (was, is) = self.revision.clone().unwrap_or_default();
                let function = &self.step.function;
                format!(
                    "{step} was given the same as before. {function} was replaced: revision {was} -> {is}."
                )
            }
            Reason::SameInput => format!(
                "{step} was given the same as before and answered something else: same input, different output."
            ),
            _ => format!(
                "As far as is known, {} was given the same as before; whether redacted values differ is unknown.",
                step_words(&self.step)
            ),
        };
        sentences.push(what);
        if let Some((was, is)) =
            self.revision.as_ref().filter(|_| self.reason == Reason::InputDiffers)
        {
            sentences.push(format!("Its function was replaced, too: revision {was} -> {is}."));
        }
        sentences.join(" ")
    }

    /// What the words are made from.
    pub fn evidence(&self, before: &Run, after: &Run) -> Vec<Evidence> {
        let of = |kind, text: String| Evidence {
            run: Some(after.head.trace.clone()),
            step: Some(self.step.clone()),
            ..Evidence::new(kind, text)
        };
        let mut found = Vec::new();
        if let Some(pipeline) = &self.pipeline {
            found.push(Evidence { step: None, ..of(EvidenceKind::Pipeline, pipeline.clone()) });
        }
        for cause in self.chain.iter().chain(self.inputs.iter().take(SHOWN)) {
            let kind = match cause.part.as_str() {
                "required" => EvidenceKind::Requirement,
                _ => EvidenceKind::Input,
            };
            found.push(Evidence {
                step: Some(cause.step.clone()),
                part: Some(cause.part.clone()),
                resource: cause.resource.clone(),
                field: cause.field.clone(),
                ..of(kind, sentence::cause(cause))
            });
        }
        let more = self.inputs.len().saturating_sub(SHOWN);
        if more > 0 {
            let text = format!("{} more", sentence::counted(more, "difference"));
            found.push(of(EvidenceKind::Input, text));
        }
        if let Some((was, is)) = &self.revision {
            found.push(of(EvidenceKind::Revision, format!("revision {was} -> {is}")));
        }
        if self.reason == Reason::SameInput {
            let text = "was given the same as in the run before".to_owned();
            found.push(of(EvidenceKind::Step, text));
        }
        found.push(Evidence {
            step: None,
            run: Some(before.head.trace.clone()),
            ..of(EvidenceKind::Run, "the run that it was compared with".to_owned())
        });
        found
    }
}

/// A text that begins a sentence.
pub fn capital(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
