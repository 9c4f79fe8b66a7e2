//! Small parts that pages share: times, objects, outcomes, steps, folds and empty states.

use std::collections::BTreeMap;

use biplane_recorder::query::answer::{Sign, StepRef};
use biplane_recorder::query::record::{ObjectRef, Outcome};
use biplane_recorder::query::time;
use maud::{Markup, html};

use crate::ids;

/// Where objects and composed resources have their pages. Addresses have ids, so they are looked up.
pub trait Links {
    /// The page of an object.
    fn object(&self, object: &ObjectRef) -> Option<String>;
    /// The id of a composed resource of an owner, by its name there.
    fn slot(&self, owner: &ObjectRef, name: &str) -> Option<String>;
}

/// Links that are known beforehand.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// By kind, namespace and name.
    pub objects: BTreeMap<(String, String, String), String>,
    /// By the owner's name and that of the resource.
    pub slots: BTreeMap<(String, String), String>,
}

impl Links for Known {
    fn object(&self, object: &ObjectRef) -> Option<String> {
        let name = (object.kind.clone(), object.namespace.clone(), object.name.clone());
        self.objects.get(&name).cloned()
    }

    fn slot(&self, owner: &ObjectRef, name: &str) -> Option<String> {
        self.slots.get(&(owner.name.clone(), name.to_owned())).cloned()
    }
}

/// A time of RFC 3339 to the second.
pub fn when(text: &str) -> Markup {
    let Ok(at) = text.parse() else { return html! { (text) } };
    let shown = time::date(at);
    let (day, clock) = shown.split_once(' ').unwrap_or((&shown, ""));
    html! { time.nowrap datetime=(text) title=(text) { span.day { (day) } " " (clock) } }
}

/// A time in microseconds since 1970.
pub fn when_micros(at: i64) -> Markup {
    when(&rfc3339(at))
}

/// A time in microseconds since 1970 as RFC 3339.
pub fn rfc3339(at: i64) -> String {
    time::rfc3339(jiff::Timestamp::from_microsecond(at).unwrap_or_default())
}

/// How long something took. Nothing if it is unknown.
pub fn took(micros: Option<i64>) -> String {
    micros.map(time::took).unwrap_or_default()
}

/// Kind and name of an object.
pub fn object_name(object: &ObjectRef) -> String {
    match (object.kind.as_str(), object.name.as_str()) {
        ("", name) => name.to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, name) => format!("{kind} {name}"),
    }
}

/// An object with a link to its page, if it has one, and its namespace.
pub fn object(object: &ObjectRef, links: &dyn Links) -> Markup {
    let name = object_name(object);
    html! {
        @match links.object(object) {
            Some(href) => a href=(href) { (name) },
            None => span { (name) },
        }
        @if !object.namespace.is_empty() { " " span.dim { (object.namespace) } }
    }
}

/// The class of an outcome.
pub fn tone(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Warning => "warn",
        Outcome::Fatal | Outcome::Error => "fail",
        Outcome::Incomplete => "lost",
    }
}

fn icon(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "✓",
        Outcome::Warning => "!",
        Outcome::Fatal | Outcome::Error => "✕",
        Outcome::Incomplete => "?",
    }
}

/// An outcome as a sign and a word.
pub fn status(outcome: Outcome, is_open: bool) -> Markup {
    if is_open && outcome <= Outcome::Warning {
        return html! { span.status.running { span aria-hidden="true" { "… " } "open" } };
    }
    html! {
        span class={ "status " (tone(outcome)) } {
            span aria-hidden="true" { (icon(outcome)) " " } (outcome.name())
        }
    }
}

/// The class of a step's colour.
pub fn hue(number: i64) -> String {
    format!("step-{}", (number - 1).rem_euclid(8) + 1)
}

/// The number of a step in its colour.
pub fn step(step: &StepRef) -> Markup {
    html! {
        span class={ "step " (hue(step.number)) } title=(step.label()) {
            span.hidden { "step " } (step.number)
        }
    }
}

/// Number and name of a step.
pub fn step_name(of: &StepRef) -> Markup {
    let name = if of.name.is_empty() { &of.function } else { &of.name };
    html! { (step(of)) " " (name) }
}

/// The sign of a difference, with its word for those who do not see it.
pub fn sign(change: Sign) -> Markup {
    let (sign, class, word) = match change {
        Sign::Added => ("+", "added", "added"),
        Sign::Removed => ("−", "removed", "removed"),
        Sign::Changed => ("~", "changed", "changed"),
        Sign::Moved => (">", "moved", "moved"),
        Sign::Unchanged => ("=", "", "unchanged"),
    };
    html! { span class={ "sign " (class) } { span aria-hidden="true" { (sign) } span.hidden { (word) " " } } }
}

/// The sentence that a page begins with.
pub fn lead(tone: &str, sentence: &str) -> Markup {
    html! {
        p class={ "lead " (tone) } {
            @if tone == "fail" { span.mark aria-hidden="true" { "✕ " } }
            (sentence)
        }
    }
}

/// Why there is nothing, and what to do next.
pub fn empty(title: &str, body: &Markup) -> Markup {
    html! { section.empty { h2 { (title) } (body) } }
}

/// The short id of a run as a link.
pub fn run(trace: &str) -> Markup {
    let id = ids::trace(trace);
    html! { a.data href={ "/runs/" (id) } { (id) } }
}

pub use biplane_recorder::query::sentence::lists::{many as counted, separated as number};

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/:@-+=,%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A text on one line, not longer than this.
pub fn cut(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let start: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators() {
        for (count, want) in [(0, "0"), (999, "999"), (1_204, "1,204"), (-1_234_567, "-1,234,567")]
        {
            assert_eq!(number(count), want);
        }
        assert_eq!(counted(1, "run"), "1 run");
        assert_eq!(counted(1204, "run"), "1,204 runs");
        assert_eq!(quoted("a-b/c"), "a-b/c");
        assert_eq!(quoted("a'; rm"), "'a'\\''; rm'");
    }

    #[test]
    fn names_and_times_are_escaped() {
        let object = ObjectRef { kind: "<b>".into(), name: "\"x".into(), ..ObjectRef::default() };
        let drawn = super::object(&object, &Known::default()).into_string();
        assert_eq!(drawn, "<span>&lt;b&gt; &quot;x</span>");
        assert_eq!(when("<now>").into_string(), "&lt;now&gt;");
    }
}
