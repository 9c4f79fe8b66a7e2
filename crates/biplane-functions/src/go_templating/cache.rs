//! A cache of decoded inputs and parsed templates.

use std::sync::Arc;

use biplane_model::object::memory_of_map;
use biplane_proto::Struct;
use biplane_template::{Delimiters, ParseError, Template};

use super::input::{Input, InputError};
use crate::kept::{self, Kept};

/// The bytes of all inputs, and of all templates.
const MAX_BYTES: usize = 32 << 20;

/// The number of each: more than the Compositions of one control plane have steps.
const MAX_ENTRIES: usize = 256;

/// A decoded input has about as many bytes as the input itself.
const PER_INPUT: usize = 2;

/// The latest inputs and templates.
#[derive(Debug)]
pub(super) struct Templates {
    inputs: Kept<Struct, Input>,
    /// A template knows its text.
    parsed: Kept<Arc<Delimiters>, Template>,
}

impl Default for Templates {
    fn default() -> Self {
        let (inputs, parsed) =
            (Kept::new(MAX_BYTES, MAX_ENTRIES), Kept::new(MAX_BYTES, MAX_ENTRIES));
        Self { inputs, parsed }
    }
}

impl Templates {
    /// Decodes an input, or returns what was decoded before.
    pub(super) fn input(&self, input: Option<&Struct>) -> Result<Arc<Input>, InputError> {
        let Some(input) = input else { return Input::read(None).map(Arc::new) };
        // Inputs from the same process are often the same allocation. Over the wire they are only
        // equal.
        if let Some(decoded) = self.inputs.find(|known| known.same(input)) {
            return Ok(decoded);
        }
        let hash = kept::hash(&**input.object());
        if let Some((known, decoded)) = self.inputs.find_hash(hash)
            && known == *input
        {
            return Ok(decoded);
        }
        let decoded = Arc::new(Input::read(Some(input))?);
        let bytes = PER_INPUT * memory_of_map(input);
        self.inputs.keep(hash, input.clone(), Arc::clone(&decoded), bytes);
        Ok(decoded)
    }

    /// Parses a text, or returns what was parsed before.
    pub(super) fn parsed(
        &self,
        text: &str,
        delimiters: &Delimiters,
    ) -> Result<Template, ParseError> {
        let hash = kept::hash(&(text, &delimiters.left, &delimiters.right));
        if let Some((known, template)) = self.parsed.find_hash(hash)
            && *known == *delimiters
            && template.source() == text
        {
            return Ok(Template::clone(&template));
        }
        let template = super::parse(text, delimiters)?;
        let bytes = template.size() + delimiters.left.len() + delimiters.right.len();
        let key = Arc::new(delimiters.clone());
        self.parsed.keep(hash, key, Arc::new(template.clone()), bytes);
        Ok(template)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use biplane_model::Object;
    use serde_json::json;

    use super::*;

    fn count<K: Clone, V>(kept: &Kept<K, V>) -> usize {
        let count = Cell::new(0);
        let _ = kept.find(|_| {
            count.set(count.get() + 1);
            false
        });
        count.get()
    }

    fn input(template: &str) -> Struct {
        let input = json!({"source": "Inline", "inline": {"template": template}});
        Object::from_value(input).unwrap().into()
    }

    #[test]
    fn a_template_is_parsed_once_and_old_ones_are_forgotten() {
        let templates = Templates::default();
        let default = Delimiters::default();
        for _ in 0..3 {
            templates.parsed("{{ 1 }}", &default).unwrap();
        }
        assert_eq!(count(&templates.parsed), 1);
        let square = Delimiters { left: "[[".to_owned(), right: "]]".to_owned() };
        templates.parsed("{{ 1 }}", &square).unwrap();
        assert_eq!(count(&templates.parsed), 2);
        for number in 0..1000 {
            templates.parsed(&format!("{{{{ {number} }}}}"), &default).unwrap();
        }
        assert_eq!(count(&templates.parsed), MAX_ENTRIES);
    }

    #[test]
    fn an_input_is_decoded_once() {
        let templates = Templates::default();
        let first = templates.input(Some(&input("a"))).unwrap();
        let second = templates.input(Some(&input("a"))).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &templates.input(Some(&input("b"))).unwrap()));
    }

    #[test]
    fn failures_are_not_kept() {
        let templates = Templates::default();
        templates.parsed("{{ nothing }}", &Delimiters::default()).unwrap_err();
        let mut wrong = input("a");
        wrong.make_mut().insert("inline".into(), 1.into());
        templates.input(Some(&wrong)).unwrap_err();
        assert_eq!((count(&templates.parsed), count(&templates.inputs)), (0, 0));
    }

    #[test]
    fn templates_of_a_megabyte_do_not_add_up() {
        let templates = Templates::default();
        for number in 0..40 {
            let text = format!("{number}{}", "x".repeat(1 << 20));
            templates.parsed(&text, &Delimiters::default()).unwrap();
            templates.input(Some(&input(&text))).unwrap();
        }
        for left in [count(&templates.parsed), count(&templates.inputs)] {
            assert!((5..=16).contains(&left), "{left} are left");
        }
        templates.parsed(&"y".repeat(4 << 20), &Delimiters::default()).unwrap();
        assert!(count(&templates.parsed) <= 16);
    }
}
