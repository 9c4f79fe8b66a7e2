//! Tells what the functions in the box would refuse, ignore or stumble over, with its place in the
//! Composition.

use biplane_manifest::Loader;
use biplane_model::Object;
use biplane_schema::xcrd;
use biplane_validate::advice::{self, Composite, Known};

use super::CompositionRender;
use super::inputs::Inputs;

impl CompositionRender {
    /// Warns of what is odd about the Composition.
    pub(super) fn advise(
        &self,
        inputs: &Inputs,
        composites: &[Object],
        loader: &mut Loader<'_, '_>,
    ) {
        if !self.advice.unwrap_or_else(|| loader.streams().stderr.is_terminal()) {
            return;
        }
        let composite = inputs.definition.as_ref().and_then(|xrd| xcrd::composite(xrd).ok());
        let crds: Vec<Object> = composite.into_iter().collect();
        let of = |object| {
            let observed = inputs.ownership.get(&Object::id(object));
            Composite { object, existing: advice::names_of(observed.into_iter().flatten()) }
        };
        // What a composite resource lacks now, it may have after the first round.
        let composites = if self.until_stable.is_some() { &[] } else { composites };
        let options = &self.function;
        let known = Known {
            crds: &crds,
            composites: composites.iter().map(of).collect(),
            has_context: !options.context_files.is_empty() || !options.context_values.is_empty(),
        };
        for remark in advice::of_composition(&inputs.composition, &known) {
            let path: Vec<&str> = remark.path.iter().map(String::as_str).collect();
            let shown = match &inputs.origin {
                Some(origin) => format!("{:#}", origin.complain(&path, &remark.text)),
                None => remark.text,
            };
            loader.warn(&shown);
        }
    }
}
