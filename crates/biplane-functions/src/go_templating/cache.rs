//! A cache of decoded inputs and parsed templates.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use biplane_proto::Struct;
use biplane_template::{Delimiters, ParseError, Template};

use super::input::{Input, InputError};

/// The number of cached entries: more than the Compositions of one control plane have steps.
const CAPACITY: usize = 128;
/// The limit for the text of all cached templates.
const MAX_BYTES: usize = 8 << 20;

type Decoded = Result<Arc<Input>, InputError>;

/// A parsed text.
struct Parsed {
    text: Box<str>,
    delimiters: Delimiters,
    template: Result<Template, ParseError>,
}

/// The latest inputs and templates, newest last.
#[derive(Default)]
pub(super) struct Templates {
    inputs: Mutex<Vec<(Struct, Decoded)>>,
    parsed: Mutex<Vec<Parsed>>,
}

impl Templates {
    /// Decodes an input, or returns what was decoded before.
    pub(super) fn input(&self, input: Option<&Struct>) -> Decoded {
        let Some(input) = input else { return Input::read(None).map(Arc::new) };
        let mut known = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        // Inputs from the same process are often the same allocation. Over the wire they are only
        // equal.
        let same = known.iter().rposition(|(one, _)| one.same(input));
        if let Some(found) = same.or_else(|| known.iter().rposition(|(one, _)| one == input)) {
            let entry = known.remove(found);
            let decoded = entry.1.clone();
            known.push(entry);
            return decoded;
        }
        drop(known);
        let decoded = Input::read(Some(input)).map(Arc::new);
        let size = |input: &Input| {
            let inline = input.inline.as_ref();
            inline.map_or(0, |inline| {
                inline.template.len() + inline.templates.iter().map(String::len).sum::<usize>()
            })
        };
        if decoded.as_ref().is_ok_and(|input| size(input) > MAX_BYTES / CAPACITY) {
            return decoded;
        }
        let mut known = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CAPACITY {
            drop(known.remove(0));
        }
        known.push((input.clone(), decoded.clone()));
        decoded
    }

    /// Parses a text, or returns what was parsed before.
    pub(super) fn parsed(
        &self,
        text: &str,
        delimiters: &Delimiters,
    ) -> Result<Template, ParseError> {
        let mut known = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &Parsed| *one.text == *text && one.delimiters == *delimiters;
        if let Some(found) = known.iter().rposition(is_it) {
            let entry = known.remove(found);
            let template = entry.template.clone();
            known.push(entry);
            return template;
        }
        drop(known);
        // Parsed without the lock, because long templates take time.
        let template = super::parse(text, delimiters);
        if text.len() > MAX_BYTES / 4 {
            return template;
        }
        let mut known = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = |known: &[Parsed]| known.iter().map(|one| one.text.len()).sum::<usize>();
        while !known.is_empty()
            && (known.len() >= CAPACITY || bytes(&known) + text.len() > MAX_BYTES)
        {
            drop(known.remove(0));
        }
        let (text, delimiters) = (text.into(), delimiters.clone());
        known.push(Parsed { text, delimiters, template: template.clone() });
        template
    }
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Templates").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(templates: &Templates) -> (usize, usize) {
        let known = templates.parsed.lock().unwrap();
        (known.len(), known.iter().map(|one| one.text.len()).sum())
    }

    #[test]
    fn a_template_is_parsed_once_and_old_ones_are_forgotten() {
        let templates = Templates::default();
        let default = Delimiters::default();
        for _ in 0..3 {
            templates.parsed("{{ 1 }}", &default).unwrap();
        }
        assert_eq!(kept(&templates), (1, 7));
        let square = Delimiters { left: "[[".to_owned(), right: "]]".to_owned() };
        templates.parsed("{{ 1 }}", &square).unwrap();
        assert_eq!(kept(&templates).0, 2);
        for number in 0..1000 {
            templates.parsed(&format!("{{{{ {number} }}}}"), &default).unwrap();
        }
        assert_eq!(kept(&templates).0, CAPACITY);
    }

    #[test]
    fn the_size_of_all_templates_is_bounded() {
        let templates = Templates::default();
        for number in 0..40 {
            let text = format!("{number}{}", "x".repeat(1 << 20));
            templates.parsed(&text, &Delimiters::default()).unwrap();
        }
        assert!(kept(&templates).1 <= MAX_BYTES);
        templates.parsed(&"y".repeat(4 << 20), &Delimiters::default()).unwrap();
        assert!(kept(&templates).1 <= MAX_BYTES);
    }
}
