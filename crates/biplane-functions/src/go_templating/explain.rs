//! Remembers where templates failed, to show it to people.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use biplane_function::Explanation;
use biplane_template::Place;

use super::input::{Inline, Input};
use super::{Failure, MAX_MESSAGE};

/// How many failures are remembered.
const CAPACITY: usize = 16;

/// The latest failures by the hashes of their messages.
#[derive(Debug, Default)]
pub(super) struct Explained(Mutex<Vec<(u64, Explanation)>>);

impl Explained {
    /// Remembers where an inline template failed.
    pub(super) fn keep(&self, message: &str, failure: &Failure, input: &Input) {
        if message.len() > MAX_MESSAGE {
            return;
        }
        let place = match failure {
            Failure::Message(_) => None,
            Failure::Parse(error) => Some(error.place()),
            Failure::Run(error) => error.place(),
        };
        let inline = input.inline.as_ref().filter(|_| input.source == "Inline");
        let Some(explanation) =
            place.zip(inline).and_then(|(place, inline)| explain(place, inline))
        else {
            return;
        };
        let hash = hash(message);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| *other != hash);
        if known.len() >= CAPACITY {
            drop(known.remove(0));
        }
        known.push((hash, explanation));
    }

    pub(super) fn find(&self, message: &str) -> Option<Explanation> {
        if message.len() > MAX_MESSAGE {
            return None;
        }
        let hash = hash(message);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().rev().find(|(other, _)| *other == hash);
        found.map(|(_, explanation)| explanation.clone())
    }
}

fn hash(message: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    hasher.finish()
}

fn explain(place: &Place, inline: &Inline) -> Option<Explanation> {
    let mut line = place.line;
    let (path, text) = if inline.template.is_empty() {
        // A separator line stands between two templates.
        let (index, text) = inline.templates.iter().enumerate().find(|(_, text)| {
            let lines = text.split('\n').count();
            let is_here = line <= lines;
            if !is_here {
                line = line.saturating_sub(lines + 1);
            }
            is_here
        })?;
        (vec!["inline".to_owned(), "templates".to_owned(), index.to_string()], text)
    } else {
        (vec!["inline".to_owned(), "template".to_owned()], &inline.template)
    };
    let shown = text.split('\n').nth(line.checked_sub(1)?)?;
    let before = shown.as_bytes().get(..place.column).unwrap_or(shown.as_bytes());
    let column = String::from_utf8_lossy(before).chars().count();
    Some(Explanation { path, line, column, advice: advice(place) })
}

fn advice(place: &Place) -> Option<String> {
    let misspelt = place.misspelt.as_ref()?;
    let near: Vec<String> = place.near.iter().map(|name| format!("`{name}`")).collect();
    match near.as_slice() {
        [] => None,
        [one] => Some(format!("There is no `{misspelt}`. Did you mean {one}?")),
        [first @ .., last] => {
            Some(format!("There is no `{misspelt}`. Did you mean {} or {last}?", first.join(", ")))
        }
    }
}
