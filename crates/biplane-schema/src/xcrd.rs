//! Definitions (XRDs) and the CRDs that a control plane generates from them: one for composite
//! resources and, if they can be claimed, one for claims.
//!
//! A definition controls names, versions, `spec` and `status`. Everything else comes from the
//! control plane.

mod fields;
mod props;
#[cfg(test)]
mod tests;

use biplane_go::fmt::quote;
use biplane_model::layout::Layout;
use biplane_model::owner::{OwnerReference, controller_of};
use biplane_model::{Gvk, Map, Object, Value};
use serde_json::json;

use crate::structural::{Schema, SchemaError};
pub use props::PropsError;

/// The API version in which a control plane reads definitions and owns what it makes of them.
pub const API_VERSION: &str = "apiextensions.crossplane.io/v1";
/// The kind of definitions.
pub const KIND: &str = "CompositeResourceDefinition";
/// The category of kinds of composite resources.
pub const COMPOSITE: &str = "composite";
/// The category of kinds of claims.
pub const CLAIM: &str = "claim";

/// The longest name of a composite resource or claim. The name becomes the value of a label.
const MAX_NAME: i64 = 63;

/// Which CRD is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// That of the composite resources.
    Composite,
    /// That of the claims.
    Claim,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Self::Composite => "Composite Resource",
            Self::Claim => "Composite Resource Claim",
        }
    }

    fn category(self) -> &'static str {
        match self {
            Self::Composite => COMPOSITE,
            Self::Claim => CLAIM,
        }
    }
}

/// The scope of the composite resources of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Cluster-scoped, with the legacy layout. Can be claimed.
    LegacyCluster,
    /// Cluster-scoped.
    Cluster,
    /// Namespaced.
    Namespaced,
}

impl Scope {
    /// The scope of a definition. A definition is read as version 1, in which it is `LegacyCluster`
    /// unless it says something else. A scope that no server accepts is not the legacy one.
    pub fn of(definition: &Object) -> Self {
        match definition.str_at(&["spec", "scope"]) {
            "Namespaced" => Self::Namespaced,
            "" | "LegacyCluster" => Self::LegacyCluster,
            _ => Self::Cluster,
        }
    }

    /// The layout of the composite resources.
    pub fn layout(self) -> Layout {
        match self {
            Self::LegacyCluster => Layout::Legacy,
            Self::Cluster | Self::Namespaced => Layout::Modern,
        }
    }
}

/// Why a definition gives no CRD.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The schema of a version cannot be used.
    #[error("cannot generate CRD for {} {}: {cause}", quote(.kind.words()), quote(.definition))]
    Version {
        /// The CRD that was to be generated.
        kind: Kind,
        /// The definition's name.
        definition: String,
        /// The position of the version in `spec.versions`.
        version: usize,
        /// What is wrong with the schema.
        cause: PropsError,
    },
    /// The names of the claim cannot be used.
    #[error("invalid resource claim names: {0}")]
    ClaimNames(ClaimNamesError),
    /// It does not define the version.
    #[error("the specified API version '{0}' does not exist in the XRD")]
    NoVersion(String),
    /// The generated schema cannot be compiled.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Why the names of a claim cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimNamesError {
    /// There are none.
    #[error("missing names")]
    Missing,
    /// One of them is a name of the composite resource.
    #[error("{} conflicts with composite resource name", quote(.0))]
    Conflict(String),
}

/// Whether a definition offers a claim.
pub fn offers_claim(definition: &Object) -> bool {
    definition.at(&["spec", "claimNames"]).is_some_and(Value::is_object)
}

/// The kind of the composite resources, in the version that is reconciled: the last one that is
/// referenceable.
pub fn composite_gvk(definition: &Object) -> Gvk {
    gvk(definition, "names")
}

/// The kind of the claims, in the version that is reconciled.
pub fn claim_gvk(definition: &Object) -> Gvk {
    gvk(definition, "claimNames")
}

fn gvk(definition: &Object, names: &str) -> Gvk {
    let version = versions(definition)
        .iter()
        .rfind(|version| version.get("referenceable") == Some(&Value::Bool(true)));
    let version = version.and_then(|v| v.get("name")).and_then(Value::as_str).unwrap_or_default();
    Gvk {
        group: definition.str_at(&["spec", "group"]).to_owned(),
        version: version.to_owned(),
        kind: definition.str_at(&["spec", names, "kind"]).to_owned(),
    }
}

/// The name of the CRD of the claims. Empty without claim names.
pub fn claim_crd_name(definition: &Object) -> String {
    match definition.str_at(&["spec", "claimNames", "plural"]) {
        "" => String::new(),
        plural => format!("{plural}.{}", definition.str_at(&["spec", "group"])),
    }
}

/// The name of the definition to which a CRD belongs, if it belongs to one. The metadata of the CRD
/// is enough.
pub fn definition_of(crd: &Object) -> Option<String> {
    let owner = controller_of(crd)?;
    let group = Gvk::new(&owner.api_version, &owner.kind).group;
    let ours = owner.kind == KIND && group == Gvk::new(API_VERSION, KIND).group;
    ours.then_some(owner.name)
}

/// Generates the CRD of the composite resources.
pub fn composite(definition: &Object) -> Result<Object, DefinitionError> {
    let scope = match Scope::of(definition) {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster | Scope::LegacyCluster => "Cluster",
    };
    let names = definition.at(&["spec", "names"]);
    generate(definition, Kind::Composite, definition.name(), names, scope)
}

/// Lets composite resources store which EnvironmentConfigs they use.
pub fn add_environments(crd: &mut Object, definition: &Object) {
    let machinery = match Scope::of(definition) {
        Scope::LegacyCluster => "/schema/openAPIV3Schema/properties/spec/properties",
        Scope::Cluster | Scope::Namespaced => {
            "/schema/openAPIV3Schema/properties/spec/properties/crossplane/properties"
        }
    };
    let spec = crd.make_mut().get_mut("spec").and_then(|spec| spec.get_mut("versions"));
    for version in spec.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(Value::Object(fields)) = version.pointer_mut(machinery) {
            fields.insert("environmentConfigRefs".to_owned(), fields::environment_config_refs());
        }
    }
}

/// Generates the CRD of the claims.
pub fn claim(definition: &Object) -> Result<Object, DefinitionError> {
    check_claim_names(definition).map_err(DefinitionError::ClaimNames)?;
    let names = definition.at(&["spec", "claimNames"]);
    generate(definition, Kind::Claim, &claim_crd_name(definition), names, "Namespaced")
}

fn check_claim_names(definition: &Object) -> Result<(), ClaimNamesError> {
    if !offers_claim(definition) {
        return Err(ClaimNamesError::Missing);
    }
    for (name, optional) in
        [("kind", false), ("plural", false), ("singular", true), ("listKind", true)]
    {
        let [claim, composite] =
            ["claimNames", "names"].map(|names| definition.str_at(&["spec", names, name]));
        if claim == composite && !(optional && claim.is_empty()) {
            return Err(ClaimNamesError::Conflict(claim.to_owned()));
        }
    }
    Ok(())
}

fn generate(
    definition: &Object,
    kind: Kind,
    name: &str,
    names: Option<&Value>,
    scope: &str,
) -> Result<Object, DefinitionError> {
    let mut spec = Map::new();
    spec.insert("group".into(), definition.str_at(&["spec", "group"]).into());
    spec.insert("names".into(), with_category(names, kind.category()));
    spec.insert("scope".into(), scope.into());
    if let Some(conversion) = definition.at(&["spec", "conversion"]).filter(|c| !c.is_null()) {
        spec.insert("conversion".into(), conversion.clone());
    }
    let generated: Result<Vec<Value>, _> = versions(definition)
        .iter()
        .enumerate()
        .map(|(index, version)| generate_version(definition, kind, index, version))
        .collect();
    spec.insert("versions".into(), generated?.into());
    let mut crd = Object::from(Map::from_iter([
        ("apiVersion".to_owned(), "apiextensions.k8s.io/v1".into()),
        ("kind".to_owned(), "CustomResourceDefinition".into()),
        ("metadata".to_owned(), metadata(definition, name)),
    ]));
    crd.make_mut().insert("spec".into(), spec.into());
    Ok(crd)
}

fn versions(definition: &Object) -> &[Value] {
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array);
    versions.map(Vec::as_slice).unwrap_or_default()
}

/// The labels of the definition and those that it has for its CRDs, the annotations that it has for
/// its CRDs, and its ownership.
fn metadata(definition: &Object, name: &str) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".into(), name.into());
    let given = |path: &[&str]| definition.at(path).and_then(Value::as_object).cloned();
    let mut labels = given(&["metadata", "labels"]).unwrap_or_default();
    labels.extend(given(&["spec", "metadata", "labels"]).unwrap_or_default());
    let annotations = given(&["spec", "metadata", "annotations"]).unwrap_or_default();
    for (field, texts) in [("labels", labels), ("annotations", annotations)] {
        if !texts.is_empty() {
            metadata.insert(field.into(), texts.into());
        }
    }
    let owner = OwnerReference {
        api_version: API_VERSION.into(),
        kind: KIND.into(),
        ..OwnerReference::controller(definition)
    };
    metadata.insert("ownerReferences".into(), json!([owner]));
    metadata.into()
}

fn with_category(names: Option<&Value>, category: &str) -> Value {
    let mut names = names.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut categories: Vec<Value> =
        names.get("categories").and_then(Value::as_array).cloned().unwrap_or_default();
    categories.push(category.into());
    names.insert("categories".into(), categories.into());
    names.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    });
    names.into()
}

fn generate_version(
    definition: &Object,
    kind: Kind,
    index: usize,
    version: &Value,
) -> Result<Value, DefinitionError> {
    let schema = version_schema(definition, kind, index, version)?;
    let given = |name: &str| version.get(name).filter(|value| !value.is_null()).cloned();
    let flag = |name: &str| version.get(name).and_then(Value::as_bool).unwrap_or_default();
    let mut columns =
        given("additionalPrinterColumns").and_then(|c| c.as_array().cloned()).unwrap_or_default();
    for column in columns.iter_mut().filter_map(Value::as_object_mut) {
        column.retain(|_, value| *value != "" && *value != 0 && !value.is_null());
    }
    columns.extend(fields::columns(kind, Scope::of(definition)));
    let mut subresources = json!({"status": {}});
    if let Some(scale) = version.pointer("/subresources/scale").filter(|scale| scale.is_object()) {
        subresources["scale"] = scale.clone();
    }
    let mut out = json!({
        "name": given("name").unwrap_or_default(),
        "served": flag("served"),
        "storage": flag("referenceable"),
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
        "additionalPrinterColumns": columns,
    });
    if flag("deprecated") {
        out["deprecated"] = true.into();
    }
    if let Some(warning) = given("deprecationWarning") {
        out["deprecationWarning"] = warning;
    }
    Ok(out)
}

fn version_schema(
    definition: &Object,
    kind: Kind,
    index: usize,
    version: &Value,
) -> Result<Value, DefinitionError> {
    let wrong = |cause| DefinitionError::Version {
        kind,
        definition: definition.name().to_owned(),
        version: index,
        cause,
    };
    let users = props::read(version.get("schema")).map_err(wrong)?;
    Ok(fields::schema(definition, kind, users))
}

/// Returns the schema of the composite resources of a version, given as group and version. Every
/// version of the definition must have a schema.
pub fn schema(definition: &Object, api_version: &str) -> Result<Schema, DefinitionError> {
    let group = definition.str_at(&["spec", "group"]);
    let mut found = None;
    for (index, version) in versions(definition).iter().enumerate() {
        let schema = version_schema(definition, Kind::Composite, index, version)?;
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        if found.is_none() && format!("{group}/{name}") == api_version {
            found = Some(schema);
        }
    }
    let found = found.ok_or_else(|| DefinitionError::NoVersion(api_version.to_owned()))?;
    Ok(Schema::parse(&found)?)
}
