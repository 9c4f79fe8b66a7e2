//! The templates of a Composition, prepared once for all reconciles.

use biplane_go::json;
use biplane_model::{Map, Object, Value, fieldpath};
use biplane_patch::Dialect;
use biplane_patch::config::{self, Fields};
use biplane_patch::document::{has_kind, missing_kind};
use biplane_patch::prepared::{ConnectionDetail, Inlined, PatchSets, ReadinessCheck};
use biplane_patch::transform::Patterns;

use crate::failure::Failure;

/// The templates of a Composition, or why they cannot be used.
#[derive(Debug)]
pub(crate) struct Plan(Result<Vec<Template>, String>);

/// The template of one composed resource.
#[derive(Debug)]
pub(crate) struct Template {
    /// Its name. Empty if it is anonymous.
    pub(crate) name: String,
    /// What the resource starts from, or why it is not an object.
    pub(crate) base: Result<Object, String>,
    /// Patches, with those of sets.
    pub(crate) patches: Inlined,
    /// Connection details, or what is missing to them.
    pub(crate) details: Vec<Result<ConnectionDetail, String>>,
    /// Readiness checks.
    pub(crate) checks: Vec<ReadinessCheck>,
}

impl Plan {
    /// Prepares the templates of a Composition or a revision. There are none in mode Pipeline.
    pub(crate) fn of(composition: &Object) -> Self {
        const DIALECT: Dialect = Dialect::COMPOSITION;
        let spec = Fields(composition.get("spec").and_then(Value::as_object));
        let patterns = Patterns::default();
        let mut sets = spec.list("patchSets", config::patch_set);
        for patch in sets.iter_mut().flat_map(|set| &mut set.patches) {
            patch.set_defaults();
        }
        let sets = PatchSets::new(&sets, &patterns, DIALECT);
        let templates = spec.list("resources", config::template).into_iter().map(|mut template| {
            template.set_defaults();
            let details = template.connection_details.iter();
            Ok(Template {
                name: template.name.clone(),
                base: base(template.base.as_ref()),
                patches: sets.inline(&template.patches, &patterns, DIALECT)?,
                details: details.filter_map(ConnectionDetail::inferred).collect(),
                checks: template
                    .readiness_checks
                    .iter()
                    .map(ReadinessCheck::of_composition)
                    .collect(),
            })
        });
        Self(templates.collect())
    }

    /// The templates.
    pub(crate) fn templates(&self) -> Result<&[Template], Failure> {
        self.0.as_deref().map_err(|why| Failure::new(why.clone()))
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.0, Ok(templates) if templates.is_empty())
    }
}

fn base(base: Option<&Value>) -> Result<Object, String> {
    let kind = match base {
        Some(Value::Object(map)) => return object(map),
        None | Some(Value::Null) => return Err("unexpected end of JSON input".to_owned()),
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
    };
    Err(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
}

fn object(map: &Map<String, Value>) -> Result<Object, String> {
    if !has_kind(map) {
        return Err(missing_kind(&json::object_to_string(map, json::Style::MARSHAL)));
    }
    let mut map = map.clone();
    fieldpath::normalize_map(&mut map);
    Ok(map.into())
}
