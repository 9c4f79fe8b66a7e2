//! The kinds that the server serves: their scope, schemas and subresources.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use biplane_model::{Gvk, Object, Value};
use biplane_schema::crd;
use biplane_schema::custom_resource::CustomResource;
use biplane_schema::merge::{At, TypeRef, Versions};
use biplane_schema::structural::{FieldError, Schema, SchemaError};

use super::metadata;

/// Why a definition could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Not a CustomResourceDefinition, or one without a group, a kind or a version.
    #[error("cannot register {0}: it is not a complete CustomResourceDefinition")]
    Incomplete(String),
    /// The schema of a version is invalid.
    #[error("cannot register version {version} of {name}")]
    Schema {
        /// Name of the definition.
        name: String,
        /// The version.
        version: String,
        /// The error in the schema.
        #[source]
        source: SchemaError,
    },
}

/// A kind in one version.
#[derive(Debug)]
struct Version {
    checks: Option<CustomResource>,
    type_ref: TypeRef,
    status: bool,
}

/// The content of a definition.
#[derive(Debug)]
struct Definition {
    plural: String,
    namespaced: bool,
    counts_generations: bool,
    versions: BTreeMap<String, Version>,
    /// The version in which objects are stored, if the definition tells.
    storage: Option<String>,
}

/// A kind in the context of one request.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub gvk: Gvk,
    pub plural: String,
    pub namespaced: bool,
    /// Whether `metadata.generation` counts changes.
    pub counts_generations: bool,
    definition: Option<Arc<Definition>>,
}

/// All kinds by group and kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds(BTreeMap<(String, String), Arc<Definition>>);

/// Built-in kinds: group, kind, plural, namespaced, has generations, has a status subresource.
const BUILT_IN: &[(&str, &str, &str, bool, bool, bool)] = &[
    ("", "ConfigMap", "configmaps", true, false, false),
    ("", "Endpoints", "endpoints", true, false, false),
    ("", "Event", "events", true, false, false),
    ("", "Namespace", "namespaces", false, false, true),
    ("", "Node", "nodes", false, false, true),
    ("", "PersistentVolume", "persistentvolumes", false, false, true),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims", true, false, true),
    ("", "Pod", "pods", true, true, true),
    ("", "Secret", "secrets", true, false, false),
    ("", "Service", "services", true, false, true),
    ("", "ServiceAccount", "serviceaccounts", true, false, false),
    (CRD_GROUP, CRD, "customresourcedefinitions", false, true, true),
    ("apps", "DaemonSet", "daemonsets", true, true, true),
    ("apps", "Deployment", "deployments", true, true, true),
    ("apps", "ReplicaSet", "replicasets", true, true, true),
    ("apps", "StatefulSet", "statefulsets", true, true, true),
    ("batch", "CronJob", "cronjobs", true, true, true),
    ("batch", "Job", "jobs", true, true, true),
    ("networking.k8s.io", "Ingress", "ingresses", true, true, true),
    ("networking.k8s.io", "NetworkPolicy", "networkpolicies", true, true, false),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets", true, true, true),
    ("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", false, false, false),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", false, false, false),
    ("rbac.authorization.k8s.io", "Role", "roles", true, false, false),
    ("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", true, false, false),
];

pub(super) const CRD: &str = crd::KIND;
const CRD_GROUP: &str = "apiextensions.k8s.io";

impl Kinds {
    /// Registers a definition. It replaces an earlier one of the same kind.
    pub(super) fn register(&mut self, crd: &Object) -> Result<(), RegisterError> {
        let incomplete = || RegisterError::Incomplete(crd.name().to_owned());
        let group = crd.str_at(&["spec", "group"]);
        let kind = crd.str_at(&["spec", "names", "kind"]);
        let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array);
        if crd.kind() != CRD || group.is_empty() || kind.is_empty() {
            return Err(incomplete());
        }
        let mut known = BTreeMap::new();
        let mut storage = None;
        for version in versions.ok_or_else(incomplete)? {
            let name = version.get("name").and_then(Value::as_str).ok_or_else(incomplete)?;
            let schema = version.get("schema").and_then(|s| s.get("openAPIV3Schema"));
            let compiled = schema.map(CustomResource::read).transpose().map_err(|source| {
                let (crd, version) = (crd.name().to_owned(), name.to_owned());
                RegisterError::Schema { name: crd, version, source }
            })?;
            let status = version.get("subresources").and_then(|s| s.get("status")).is_some();
            let type_ref = schema.map_or_else(TypeRef::of_unknown_resource, TypeRef::of_resource);
            known.insert(name.to_owned(), Version { checks: compiled, type_ref, status });
            if version.get("storage").and_then(Value::as_bool) == Some(true) {
                storage = Some(name.to_owned());
            }
        }
        let definition = Definition {
            plural: crd.str_at(&["spec", "names", "plural"]).to_owned(),
            namespaced: crd.str_at(&["spec", "scope"]) != "Cluster",
            counts_generations: true,
            versions: known,
            storage,
        };
        self.0.insert((group.to_owned(), kind.to_owned()), Arc::new(definition));
        Ok(())
    }

    /// Forgets the kind of a removed definition.
    pub(super) fn forget(&mut self, crd: &Object) {
        if is_definition(crd) {
            let text = |path: &[&str]| crd.str_at(path).to_owned();
            self.0.remove(&(text(&["spec", "group"]), text(&["spec", "names", "kind"])));
        }
    }

    /// Registers the kind if the stored object is a definition. An invalid definition is ignored. A
    /// real server also ignores it and reports the error in the conditions of the definition.
    pub(super) fn learn(&mut self, object: &Object) {
        if object.kind() == CRD {
            let _ = self.register(object);
        }
    }

    /// An object in another version of its kind. Versions differ only in their schemas.
    pub(super) fn converted(&self, object: &Object, gvk: &Gvk) -> Object {
        let kind = self.of_gvk(gvk, !object.namespace().is_empty());
        let mut converted = object.clone();
        converted.set_at_or_ignore(&["apiVersion"], gvk.api_version());
        kind.coerced(converted)
    }

    /// An object as the server stores and reads it. Whatever version an object is written in, the
    /// storage version prunes it and gives it its defaults.
    pub(super) fn stored(&self, object: &Object) -> Object {
        let mut gvk = object.gvk();
        let definition = self.0.get(&(gvk.group.clone(), gvk.kind.clone()));
        let storage = definition.and_then(|definition| definition.storage.as_ref());
        match storage.filter(|storage| **storage != gvk.version) {
            Some(storage) => {
                gvk.version.clone_from(storage);
                let mut stored = self.converted(object, &gvk);
                self.of(&stored).default(&mut stored);
                stored
            }
            None => object.clone(),
        }
    }

    /// Whether a kind is namespaced, if that is known.
    pub(super) fn namespaced(&self, gvk: &Gvk) -> Option<bool> {
        if let Some(definition) = self.0.get(&(gvk.group.clone(), gvk.kind.clone())) {
            return Some(definition.namespaced);
        }
        let built_in = BUILT_IN.iter().find(|b| b.0 == gvk.group && b.1 == gvk.kind);
        built_in.map(|built_in| built_in.3)
    }

    pub(super) fn of(&self, object: &Object) -> Kind {
        self.of_gvk(&object.gvk(), !object.namespace().is_empty())
    }

    /// Returns the kind. An unknown kind has no schema, and is namespaced if its object has a
    /// namespace.
    pub(super) fn of_gvk(&self, gvk: &Gvk, in_namespace: bool) -> Kind {
        let gvk = gvk.clone();
        if let Some(definition) = self.0.get(&(gvk.group.clone(), gvk.kind.clone())) {
            return Kind {
                plural: definition.plural.clone(),
                namespaced: definition.namespaced,
                counts_generations: definition.counts_generations,
                definition: Some(Arc::clone(definition)),
                gvk,
            };
        }
        let built_in = BUILT_IN.iter().find(|b| b.0 == gvk.group && b.1 == gvk.kind);
        let (plural, namespaced, counts_generations, status) = match built_in {
            Some(&(_, _, plural, namespaced, counts, status)) => {
                (plural.to_owned(), namespaced, counts, status)
            }
            None => (guessed_plural(&gvk.kind), in_namespace, true, true),
        };
        let type_ref = TypeRef::of_unknown_resource();
        let version = Version { checks: None, type_ref, status };
        let definition = Definition {
            plural: plural.clone(),
            namespaced,
            counts_generations,
            versions: BTreeMap::from([(gvk.version.clone(), version)]),
            storage: None,
        };
        let definition = Some(Arc::new(definition));
        Kind { gvk, plural, namespaced, counts_generations, definition }
    }
}

fn guessed_plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    if let Some(stem) = lower.strip_suffix('y') {
        return format!("{stem}ies");
    }
    let end = if lower.ends_with(['s', 'x']) || lower.ends_with("ch") { "es" } else { "s" };
    format!("{lower}{end}")
}

/// Whether an object is a CustomResourceDefinition.
pub(super) fn is_definition(object: &Object) -> bool {
    object.kind() == CRD && object.gvk().group == CRD_GROUP
}

impl Kind {
    fn is_definition(&self) -> bool {
        self.gvk.kind == CRD && self.gvk.group == CRD_GROUP
    }

    fn version(&self, version: &str) -> Option<&Version> {
        self.definition.as_ref()?.versions.get(version)
    }

    fn checks(&self) -> Option<&CustomResource> {
        self.version(&self.gvk.version)?.checks.as_ref()
    }

    fn schema(&self) -> Option<&Schema> {
        self.checks().map(|checks| &checks.schema)
    }

    /// `plural.group`, or `plural` for the core group.
    pub(super) fn resource(&self) -> String {
        if self.gvk.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.gvk.group)
        }
    }

    pub(super) fn has_status(&self, version: &str) -> bool {
        self.version(version).is_some_and(|version| version.status)
    }

    /// Coerces the object to its schema.
    pub(super) fn coerced(&self, mut object: Object) -> Object {
        if let Some(schema) = self.schema() {
            schema.prune(&mut object);
        }
        metadata::tidy(&mut object);
        object
    }

    pub(super) fn default(&self, object: &mut Object) {
        if self.is_definition() {
            crd::default(object);
        }
        if let Some(schema) = self.schema() {
            schema.default(object);
        }
    }

    pub(super) fn validate(&self, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
        if self.is_definition() {
            return crd::validate(object, old);
        }
        self.checks().map(|checks| checks.validate(object, old)).unwrap_or_default()
    }

    pub(super) fn validate_status(&self, object: &Object, old: &Object) -> Vec<FieldError> {
        let checks = self.checks();
        checks.map(|checks| checks.validate_status(object, Some(old))).unwrap_or_default()
    }
}

/// Versions differ only in their schemas. A conversion only changes the `apiVersion`: a server prunes
/// what it stores and reads, but not what it merges.
impl Versions for Kind {
    fn at<'a>(&self, object: &'a Value, api_version: &str) -> Option<At<'a>> {
        let wanted = Gvk::new(api_version, &self.gvk.kind);
        let version = self.version(&wanted.version).filter(|_| wanted.group == self.gvk.group)?;
        let type_ref = version.type_ref.clone();
        let present = object.get("apiVersion").and_then(Value::as_str);
        if present == Some(api_version) {
            return Some(At { object: Cow::Borrowed(object), type_ref });
        }
        let mut converted = object.as_object()?.clone();
        converted.insert("apiVersion".into(), api_version.into());
        Some(At { object: Cow::Owned(Value::Object(converted)), type_ref })
    }
}
