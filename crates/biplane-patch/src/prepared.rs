//! Patches, connection details and readiness checks, prepared to run: with parsed paths and
//! patterns, and with inlined patch sets.

use std::collections::BTreeMap;
use std::sync::Arc;

use biplane_go::fmt::quote;
use biplane_model::fieldpath::{FieldPath, MergeOptions, ParseError};

use crate::config;
use crate::dialect::Dialect;
use crate::transform::{Patterns, Transform};

/// A parsed path, or the parse error, which matters only when the patch runs.
pub type Path = Result<FieldPath, ParseError>;

/// A prepared patch.
#[derive(Debug)]
pub struct Patch {
    /// What it reads and writes.
    pub kind: PatchKind,
    /// The kind in messages.
    pub kind_name: String,
    /// Where the value comes from.
    pub source: Source,
    /// What becomes of it on the way.
    pub transforms: Vec<Transform>,
    /// Where it goes.
    pub to: Path,
    /// The text of that path.
    pub to_text: String,
    /// The text of that path, if it was given and is not just that of the source, and if there is a
    /// policy. Such a field is also merged with a live object.
    pub merged_live: Option<String>,
    /// How it is merged with what is there.
    pub merge: Result<Option<MergeOptions>, String>,
    /// What happens if the source is missing.
    pub policy: FromPolicy,
    /// The rules that it follows.
    pub dialect: Dialect,
}

/// What a patch reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// From the composite resource to the composed resource.
    FromComposite,
    /// From the composed resource to the composite resource.
    ToComposite,
    /// From the environment to the composed resource.
    FromEnvironment,
    /// From the composed resource to the environment.
    ToEnvironment,
    /// Only patches that were not validated have another kind.
    Other,
}

impl PatchKind {
    /// Whether the composed resource is written, not read.
    pub fn to_composed(self) -> bool {
        matches!(self, Self::FromComposite | Self::FromEnvironment)
    }
}

/// Where the value of a patch comes from.
#[derive(Debug)]
pub enum Source {
    /// One field.
    Field(Path),
    /// Several fields, formatted as one text.
    Combine {
        /// The fields.
        variables: Vec<Path>,
        /// The format, or why there is none.
        format: Result<String, String>,
    },
}

/// How a missing source is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromPolicy {
    /// The patch has no effect.
    Optional,
    /// The patch fails.
    Required,
    /// A value that was not validated.
    Other,
}

impl Patch {
    /// Prepares a patch.
    pub fn new(patch: &config::Patch, patterns: &Patterns, dialect: Dialect) -> Self {
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
                    variables: combine
                        .variables
                        .iter()
                        .map(|path| FieldPath::parse(path))
                        .collect(),
                    format: format(combine, dialect),
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
        let policy = patch.policy.as_ref();
        let merge = if dialect.has_merge_options {
            Ok(policy.and_then(|policy| policy.merge_options))
        } else {
            merge(policy.map_or("Replace", |policy| &policy.to))
        };
        let transforms = patch.transforms.iter();
        Self {
            kind,
            kind_name: patch.kind.clone(),
            source,
            transforms: transforms.map(|item| Transform::new(item, patterns, dialect)).collect(),
            to: FieldPath::parse(patch.target_path()),
            to_text: patch.target_path().to_owned(),
            merged_live: policy.and(patch.to.clone()),
            merge,
            policy: match policy.map_or("Optional", |policy| &policy.from) {
                "Optional" => FromPolicy::Optional,
                "Required" => FromPolicy::Required,
                _ => FromPolicy::Other,
            },
            dialect,
        }
    }
}

fn format(combine: &config::Combine, dialect: Dialect) -> Result<String, String> {
    match (combine.strategy.as_str(), &combine.format) {
        _ if combine.variables.is_empty() && dialect == Dialect::COMPOSITION => {
            Err("combine patch types require at least one variable".into())
        }
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

/// The patches of a template, with those of patch sets.
#[derive(Debug, Default)]
pub struct Inlined(Vec<Patches>);

/// One patch, or all patches of a set, which templates share.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // most patches are not in sets
enum Patches {
    One(Patch),
    Set(Arc<[Patch]>),
}

impl Inlined {
    /// All patches, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Patch> {
        self.0.iter().flat_map(|patches| match patches {
            Patches::One(patch) => std::slice::from_ref(patch),
            Patches::Set(set) => set,
        })
    }
}

/// Patch sets by name.
#[derive(Debug)]
pub struct PatchSets<'a>(BTreeMap<&'a str, Arc<[Patch]>>);

impl<'a> PatchSets<'a> {
    /// Prepares patch sets. Of two with the same name, the later one is used.
    pub fn new(sets: &'a [config::PatchSet], patterns: &Patterns, dialect: Dialect) -> Self {
        let prepared = |patches: &[config::Patch]| -> Vec<Patch> {
            patches.iter().map(|patch| Patch::new(patch, patterns, dialect)).collect()
        };
        Self(sets.iter().map(|set| (set.name.as_str(), prepared(&set.patches).into())).collect())
    }

    /// Puts patch sets in the place of the patches that name them.
    pub fn inline(
        &self,
        patches: &[config::Patch],
        patterns: &Patterns,
        dialect: Dialect,
    ) -> Result<Inlined, String> {
        let mut inlined = Vec::new();
        for item in patches {
            match (item.kind.as_str(), item.set_name.as_deref().unwrap_or_default()) {
                ("PatchSet", name) => match self.0.get(name) {
                    Some(set) => inlined.push(Patches::Set(Arc::clone(set))),
                    None => return Err(format!("cannot find PatchSet by name {name}")),
                },
                _ => inlined.push(Patches::One(Patch::new(item, patterns, dialect))),
            }
        }
        Ok(Inlined(inlined))
    }
}

/// A prepared connection detail.
#[derive(Debug)]
pub struct ConnectionDetail {
    /// Its key.
    pub name: String,
    /// Where its value comes from.
    pub from: DetailSource,
}

/// Where the value of a connection detail comes from.
#[derive(Debug)]
pub enum DetailSource {
    /// It is given.
    Value(String),
    /// From the connection secret of the composed resource.
    Key(String),
    /// From a field of the composed resource.
    Field(Path),
}

impl ConnectionDetail {
    /// Prepares a detail that was validated.
    pub fn new(detail: &config::ConnectionDetail) -> Option<Self> {
        let from = match detail.kind.as_str() {
            "FromValue" => DetailSource::Value(detail.value.clone()?),
            "FromConnectionSecretKey" => DetailSource::Key(detail.key.clone()?),
            _ => DetailSource::Field(FieldPath::parse(detail.path.as_ref()?)),
        };
        Some(Self { name: detail.name.clone(), from })
    }

    /// Prepares a detail of a Composition, which may lack its type and its name. `None` if it has a
    /// type that does not exist.
    pub fn inferred(detail: &config::ConnectionDetail) -> Option<Result<Self, String>> {
        let kind = match detail {
            detail if !detail.kind.is_empty() => detail.kind.as_str(),
            detail if detail.value.is_some() => "FromValue",
            detail if detail.key.is_none() && detail.path.is_some() => "FromFieldPath",
            _ => "FromConnectionSecretKey",
        };
        let mut name = detail.name.clone();
        if let (true, "FromConnectionSecretKey", Some(key)) = (name.is_empty(), kind, &detail.key) {
            name.clone_from(key);
        }
        if name.is_empty() {
            return Some(Err("connection detail is missing name".to_owned()));
        }
        let unset =
            |what: &str| format!("connection detail of type {} {what} is not set", quote(kind));
        let from = match kind {
            "FromValue" => detail.value.clone().map(DetailSource::Value).ok_or("value"),
            "FromConnectionSecretKey" => detail.key.clone().map(DetailSource::Key).ok_or("key"),
            "FromFieldPath" => {
                let path = detail.path.as_ref().map(|path| FieldPath::parse(path));
                path.map(DetailSource::Field).ok_or("fromFieldPath")
            }
            _ => return None,
        };
        Some(from.map(|from| Self { name, from }).map_err(unset))
    }
}

/// A prepared readiness check.
#[derive(Debug)]
pub enum ReadinessCheck {
    /// Always passes.
    None,
    /// A field exists.
    NonEmpty(Path),
    /// A field has this text.
    String(Path, String),
    /// A field has this number. Without one no number matches.
    Integer(Path, Option<i64>),
    /// A field has this value.
    Bool(Path, bool),
    /// A condition of this type has this status.
    Condition(String, String),
    /// Fails.
    Invalid(String),
}

impl ReadinessCheck {
    /// Prepares a check that was validated.
    pub fn new(check: &config::ReadinessCheck) -> Option<Self> {
        let path = || check.path.as_ref().map(|path| FieldPath::parse(path));
        Some(match check.kind.as_str() {
            "NonEmpty" => Self::NonEmpty(path()?),
            "MatchString" => Self::String(path()?, check.string.clone()?),
            // Observed numbers are doubles, and a double never counts as an integer here.
            "MatchInteger" => Self::Integer(path()?, None),
            "MatchTrue" => Self::Bool(path()?, true),
            "MatchFalse" => Self::Bool(path()?, false),
            "MatchCondition" => match &check.condition {
                Some((kind, status)) => Self::Condition(kind.clone(), status.clone()),
                None => Self::Invalid("matchCondition must be set for type MatchCondition".into()),
            },
            _ => Self::None,
        })
    }

    /// Prepares a check of a Composition. What is empty counts as unset.
    pub fn of_composition(check: &config::ReadinessCheck) -> Self {
        let kind = check.kind.as_str();
        let requires =
            |what: &str| Self::Invalid(format!("invalid: type {} requires {what}", quote(kind)));
        let path = check.path.as_ref().filter(|path| !path.is_empty());
        let path = path.map(|path| FieldPath::parse(path)).ok_or_else(|| requires("a field path"));
        let string = check.string.clone().filter(|text| !text.is_empty());
        let integer = check.integer.filter(|number| *number != 0);
        let prepared = match (kind, string, integer, &check.condition) {
            ("None", ..) => Ok(Self::None),
            ("NonEmpty", ..) => path.map(Self::NonEmpty),
            ("MatchTrue", ..) => path.map(|path| Self::Bool(path, true)),
            ("MatchFalse", ..) => path.map(|path| Self::Bool(path, false)),
            ("MatchString", Some(text), ..) => path.map(|path| Self::String(path, text)),
            ("MatchString", None, ..) => Err(requires("a match string")),
            ("MatchInteger", _, Some(number), _) => {
                path.map(|path| Self::Integer(path, Some(number)))
            }
            ("MatchInteger", ..) => Err(requires("a match integer")),
            ("MatchCondition", .., Some((kind, status))) => {
                Ok(Self::Condition(kind.clone(), status.clone()))
            }
            ("MatchCondition", ..) => Err(requires("a valid match condition")),
            _ => Err(Self::Invalid(format!("invalid: unknown type {}", quote(kind)))),
        };
        prepared.unwrap_or_else(|invalid| invalid)
    }
}
