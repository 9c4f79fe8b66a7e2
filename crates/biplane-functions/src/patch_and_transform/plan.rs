//! The prepared input: validated, with inlined patch sets and parsed paths and patterns.

use std::collections::BTreeMap;
use std::sync::Arc;

use biplane_go::json;
use biplane_model::fieldpath::{FieldPath, MergeOptions, ParseError};
use biplane_model::object::memory;
use biplane_model::{Map, Object, Value, fieldpath};

use super::document::{has_kind, missing_kind};
use super::input::{self, Input};
use super::transform::{Patterns, Transform};
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
    patches: Vec<Patches>,
    pub(super) connection_details: Vec<ConnectionDetail>,
    pub(super) readiness_checks: Vec<ReadinessCheck>,
}

/// One patch, or all patches of a set, which templates share.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // most patches are not in sets
enum Patches {
    One(Patch),
    Set(Arc<[Patch]>),
}

impl Template {
    /// Returns all patches, with those of sets.
    pub(super) fn patches(&self) -> impl Iterator<Item = &Patch> {
        self.patches.iter().flat_map(|patches| match patches {
            Patches::One(patch) => std::slice::from_ref(patch),
            Patches::Set(set) => set,
        })
    }
}

#[derive(Debug)]
pub(super) struct SecretRef {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) patches: Vec<Patch>,
}

/// A parsed path, or the parse error, which matters only when the patch runs.
pub(super) type Path = Result<FieldPath, ParseError>;

#[derive(Debug)]
pub(super) struct Patch {
    pub(super) kind: PatchKind,
    /// The kind in result messages.
    pub(super) kind_name: String,
    pub(super) source: Source,
    pub(super) transforms: Vec<Transform>,
    pub(super) to: Path,
    pub(super) to_text: String,
    pub(super) merge: Result<Option<MergeOptions>, String>,
    pub(super) policy: FromPolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchKind {
    FromComposite,
    ToComposite,
    FromEnvironment,
    ToEnvironment,
    /// Only patches of connection secret references can have another kind.
    Other,
}

impl PatchKind {
    /// Whether the composed resource is written, not read.
    pub(super) fn to_composed(self) -> bool {
        matches!(self, Self::FromComposite | Self::FromEnvironment)
    }
}

#[derive(Debug)]
pub(super) enum Source {
    Field(Path),
    Combine { variables: Vec<Path>, format: Result<String, String> },
}

/// How a missing source is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FromPolicy {
    Optional,
    Required,
    /// A value that was not validated.
    Other,
}

#[derive(Debug)]
pub(super) struct ConnectionDetail {
    pub(super) name: String,
    pub(super) from: DetailSource,
}

#[derive(Debug)]
pub(super) enum DetailSource {
    Value(String),
    Key(String),
    Field(Path),
}

#[derive(Debug)]
pub(super) enum ReadinessCheck {
    None,
    NonEmpty(Path),
    String(Path, String),
    /// The number is not stored, because it never matches.
    Integer(Path),
    Bool(Path, bool),
    Condition(Option<(String, String)>),
}

impl Plan {
    /// Decodes, validates and prepares the input. The error is the whole message of a fatal result.
    pub(super) fn new(input: &Map<String, Value>) -> Result<Self, String> {
        let input =
            Input::read(input).map_err(|error| format!("cannot get Function input: {error}"))?;
        validate::input(&input).map_err(|error| format!("invalid Function input: {error}"))?;
        let patterns = Patterns::default();
        let patches = |patches: &[input::Patch]| -> Vec<Patch> {
            patches.iter().map(|item| patch(item, &patterns)).collect()
        };
        // Of two sets with the same name, the later one is used.
        let sets: BTreeMap<&str, Arc<[Patch]>> = input
            .patch_sets
            .iter()
            .map(|set| (set.name.as_str(), patches(&set.patches).into()))
            .collect();
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
    template: &input::Template,
    sets: &BTreeMap<&str, Arc<[Patch]>>,
    patterns: &Patterns,
) -> Result<Template, String> {
    let mut patches = Vec::new();
    for item in &template.patches {
        match (item.kind.as_str(), item.set_name.as_deref().unwrap_or_default()) {
            ("PatchSet", name) => match sets.get(name) {
                Some(set) => patches.push(Patches::Set(Arc::clone(set))),
                None => return Err(format!("cannot find PatchSet by name {name}")),
            },
            _ => patches.push(Patches::One(patch(item, patterns))),
        }
    }
    Ok(Template {
        name: template.name.clone(),
        base: template.base.as_ref().map(base),
        base_size: template.base.as_ref().map_or(0, memory),
        patches,
        connection_details: template.connection_details.iter().filter_map(detail).collect(),
        readiness_checks: template.readiness_checks.iter().filter_map(check).collect(),
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

fn patch(patch: &input::Patch, patterns: &Patterns) -> Patch {
    let (kind, combines) = match patch.kind.as_str() {
        "FromCompositeFieldPath" => (PatchKind::FromComposite, false),
        "CombineFromComposite" => (PatchKind::FromComposite, true),
        "ToCompositeFieldPath" => (PatchKind::ToComposite, false),
        "CombineToComposite" => (PatchKind::ToComposite, true),
        "FromEnvironmentFieldPath" => (PatchKind::FromEnvironment, false),
        "CombineFromEnvironment" => (PatchKind::FromEnvironment, true),
        "ToEnvironmentFieldPath" => (PatchKind::ToEnvironment, false),
        "CombineToEnvironment" => (PatchKind::ToEnvironment, true),
        _ => (PatchKind::Other, false),
    };
    let source = if combines {
        match &patch.combine {
            Some(combine) => Source::Combine {
                variables: combine.variables.iter().map(|path| FieldPath::parse(path)).collect(),
                format: format(combine),
            },
            // Validation ensures this, except for connection secret references.
            None => Source::Combine {
                variables: Vec::new(),
                format: Err("combine must be set to combine variables".into()),
            },
        }
    } else {
        Source::Field(FieldPath::parse(patch.source_path()))
    };
    Patch {
        kind,
        kind_name: patch.kind.clone(),
        source,
        transforms: patch.transforms.iter().map(|item| Transform::new(item, patterns)).collect(),
        to: FieldPath::parse(patch.target_path()),
        to_text: patch.target_path().to_owned(),
        merge: merge(patch.policy.as_ref().map_or("Replace", |policy| &policy.to)),
        policy: match patch.policy.as_ref().map_or("Optional", |policy| &policy.from) {
            "Optional" => FromPolicy::Optional,
            "Required" => FromPolicy::Required,
            _ => FromPolicy::Other,
        },
    }
}

fn format(combine: &input::Combine) -> Result<String, String> {
    match (combine.strategy.as_str(), &combine.format) {
        ("string", Some(format)) => Ok(format.clone()),
        ("string", None) => Err("given combine strategy string requires configuration".into()),
        (other, _) => Err(format!("combine strategy {other} is not supported")),
    }
}

fn merge(policy: &str) -> Result<Option<MergeOptions>, String> {
    let (keep_map_values, append_slice) = match policy {
        "Replace" => return Ok(None),
        "MergeObjects" | "MergeObject" => (Some(true), None),
        "MergeObjectsAppendArrays" => (Some(true), Some(true)),
        "ForceMergeObjects" => (Some(false), None),
        "ForceMergeObjectsAppendArrays" | "AppendArray" => (None, Some(true)),
        other => return Err(format!("invalid patch policy {other}")),
    };
    Ok(Some(MergeOptions { keep_map_values, append_slice }))
}

fn detail(detail: &input::ConnectionDetail) -> Option<ConnectionDetail> {
    let from = match detail.kind.as_str() {
        "FromValue" => DetailSource::Value(detail.value.clone()?),
        "FromConnectionSecretKey" => DetailSource::Key(detail.key.clone()?),
        _ => DetailSource::Field(FieldPath::parse(detail.path.as_ref()?)),
    };
    Some(ConnectionDetail { name: detail.name.clone(), from })
}

fn check(check: &input::ReadinessCheck) -> Option<ReadinessCheck> {
    let path = || check.path.as_ref().map(|path| FieldPath::parse(path));
    Some(match check.kind.as_str() {
        "NonEmpty" => ReadinessCheck::NonEmpty(path()?),
        "MatchString" => ReadinessCheck::String(path()?, check.string.clone()?),
        "MatchInteger" => ReadinessCheck::Integer(path()?),
        "MatchTrue" => ReadinessCheck::Bool(path()?, true),
        "MatchFalse" => ReadinessCheck::Bool(path()?, false),
        "MatchCondition" => ReadinessCheck::Condition(check.condition.clone()),
        _ => ReadinessCheck::None,
    })
}
