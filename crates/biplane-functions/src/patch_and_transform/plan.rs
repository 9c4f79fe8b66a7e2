//! The prepared input: validated, with inlined patch sets and parsed paths and patterns.

use biplane_go::json;
use biplane_model::object::memory;
use biplane_model::{Map, Object, Value, fieldpath};
use biplane_patch::config;
use biplane_patch::document::{has_kind, missing_kind};
use biplane_patch::prepared::{ConnectionDetail, Inlined, Patch, PatchSets, ReadinessCheck};
use biplane_patch::transform::Patterns;

use super::DIALECT;
use super::input::Input;
use super::validate;

/// The plan for all requests with the same input.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) environment: Vec<Patch>,
    pub(super) templates: Vec<Template>,
    pub(super) secret: Option<SecretRef>,
    /// About how many bytes the compiled patterns take.
    pub(super) patterns_size: usize,
}

#[derive(Debug)]
pub(super) struct Template {
    pub(super) name: String,
    /// The base template. Without it, the resource of an earlier function is used.
    pub(super) base: Option<Result<Object, String>>,
    /// About how many bytes the base takes.
    pub(super) base_size: usize,
    pub(super) patches: Inlined,
    pub(super) connection_details: Vec<ConnectionDetail>,
    pub(super) readiness_checks: Vec<ReadinessCheck>,
}

#[derive(Debug)]
pub(super) struct SecretRef {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) patches: Vec<Patch>,
}

impl Plan {
    /// Decodes, validates and prepares the input. The error is the whole message of a fatal result.
    pub(super) fn new(input: &Map<String, Value>) -> Result<Self, String> {
        let input =
            Input::read(input).map_err(|error| format!("cannot get Function input: {error}"))?;
        validate::input(&input).map_err(|error| format!("invalid Function input: {error}"))?;
        let patterns = Patterns::default();
        let patches = |patches: &[config::Patch]| -> Vec<Patch> {
            patches.iter().map(|item| Patch::new(item, &patterns, DIALECT)).collect()
        };
        let sets = PatchSets::new(&input.patch_sets, &patterns, DIALECT);
        let templates = input.resources.iter().map(|item| template(item, &sets, &patterns));
        Ok(Self {
            templates: templates
                .collect::<Result<_, _>>()
                .map_err(|error: String| format!("cannot resolve PatchSets: {error}"))?,
            environment: patches(&input.environment),
            secret: input.secret.as_ref().map(|secret| SecretRef {
                name: secret.name.clone(),
                namespace: secret.namespace.clone(),
                patches: patches(&secret.patches),
            }),
            patterns_size: patterns.kept_size(),
        })
    }
}

fn template(
    template: &config::Template,
    sets: &PatchSets<'_>,
    patterns: &Patterns,
) -> Result<Template, String> {
    Ok(Template {
        name: template.name.clone(),
        base: template.base.as_ref().map(base),
        base_size: template.base.as_ref().map_or(0, memory),
        patches: sets.inline(&template.patches, patterns, DIALECT)?,
        connection_details: template
            .connection_details
            .iter()
            .filter_map(ConnectionDetail::new)
            .collect(),
        readiness_checks: template
            .readiness_checks
            .iter()
            .filter_map(ReadinessCheck::new)
            .collect(),
    })
}

fn base(base: &Value) -> Result<Object, String> {
    let Value::Object(map) = base else {
        let kind = match base {
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            _ => "array",
        };
        return Err(format!(
            "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        ));
    };
    if !has_kind(map) {
        return Err(missing_kind(&json::object_to_string(map, json::Style::PROTOJSON)));
    }
    let mut map = map.clone();
    fieldpath::normalize_map(&mut map);
    Ok(map.into())
}
