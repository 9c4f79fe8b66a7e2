//! The two layouts of composite resources: fields of the control plane are directly below `spec` in
//! the legacy layout, and below `spec.crossplane` in the modern one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::object::Occupied;
use crate::{Map, Object, Value};

/// The layout of a composite resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Can be claimed and has connection details.
    Legacy,
    /// Can be namespaced.
    Modern,
}

/// A reference to an object. Unset fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    /// Group and version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// UID.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Resource version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// A field of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

impl Reference {
    /// A reference with only a name.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

impl Layout {
    /// The layout of the composite resources that a definition (XRD) defines. Definitions of
    /// version v1 without a scope use the legacy layout.
    pub fn of_definition(definition: &Object) -> Self {
        let scope = definition.at(&["spec", "scope"]).and_then(Value::as_str);
        match scope {
            Some("LegacyCluster") => Self::Legacy,
            None if definition.api_version() != "apiextensions.crossplane.io/v2" => Self::Legacy,
            _ => Self::Modern,
        }
    }

    /// The path of the object that holds the control plane's fields.
    pub fn machinery(self) -> &'static [&'static str] {
        match self {
            Self::Legacy => &["spec"],
            Self::Modern => &["spec", "crossplane"],
        }
    }

    fn at<'a>(self, xr: &'a Object, field: &str) -> Option<&'a Value> {
        match self {
            Self::Legacy => xr.at(&["spec", field]),
            Self::Modern => xr.at(&["spec", "crossplane", field]),
        }
    }

    fn set(self, xr: &mut Object, field: &str, value: Value) -> Result<(), Occupied> {
        match self {
            Self::Legacy => xr.set_at(&["spec", field], value),
            Self::Modern => xr.set_at(&["spec", "crossplane", field], value),
        }
    }

    // A field that cannot be read counts as absent.
    fn read<T: for<'de> Deserialize<'de>>(self, xr: &Object, field: &str) -> Option<T> {
        self.at(xr, field).and_then(|value| T::deserialize(value).ok())
    }

    fn write(self, xr: &mut Object, field: &str, value: impl Serialize) -> Result<(), Occupied> {
        self.set(xr, field, serde_json::to_value(value).unwrap_or(Value::Null))
    }

    /// The Composition in use.
    pub fn composition(self, xr: &Object) -> Option<Reference> {
        self.read(xr, "compositionRef")
    }

    /// Sets the Composition to use.
    pub fn set_composition(self, xr: &mut Object, name: &str) -> Result<(), Occupied> {
        self.write(xr, "compositionRef", Reference::named(name))
    }

    /// Labels that the Composition must have.
    pub fn composition_selector(self, xr: &Object) -> Option<BTreeMap<String, String>> {
        labels(self.at(xr, "compositionSelector")?)
    }

    /// The revision in use.
    pub fn revision(self, xr: &Object) -> Option<Reference> {
        self.read(xr, "compositionRevisionRef")
    }

    /// Sets the revision to use.
    pub fn set_revision(self, xr: &mut Object, name: &str) -> Result<(), Occupied> {
        self.write(xr, "compositionRevisionRef", Reference::named(name))
    }

    /// Labels that the revision must have.
    pub fn revision_selector(self, xr: &Object) -> Option<BTreeMap<String, String>> {
        labels(self.at(xr, "compositionRevisionSelector")?)
    }

    /// Sets the labels that the revision must have.
    pub fn set_revision_selector(self, xr: &mut Object, selector: &Value) -> Result<(), Occupied> {
        self.set(xr, "compositionRevisionSelector", selector.clone())
    }

    /// The update policy: `Automatic`, `Manual` or empty.
    pub fn update_policy(self, xr: &Object) -> &str {
        self.at(xr, "compositionUpdatePolicy").and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets the update policy.
    pub fn set_update_policy(self, xr: &mut Object, policy: &str) -> Result<(), Occupied> {
        self.set(xr, "compositionUpdatePolicy", policy.into())
    }

    /// The known composed resources.
    pub fn resources(self, xr: &Object) -> Vec<Reference> {
        self.read(xr, "resourceRefs").unwrap_or_default()
    }

    /// Whether there is a list of known composed resources, even if it is empty.
    pub fn has_resources(self, xr: &Object) -> bool {
        self.at(xr, "resourceRefs").is_some_and(Value::is_array)
    }

    /// Sets the known composed resources. Empty references are left out.
    pub fn set_resources(self, xr: &mut Object, references: &[Reference]) -> Result<(), Occupied> {
        let filled: Vec<_> = references.iter().filter(|r| **r != Reference::default()).collect();
        self.write(xr, "resourceRefs", filled)
    }

    /// The EnvironmentConfigs of the environment.
    pub fn environment_configs(self, xr: &Object) -> Vec<Reference> {
        self.read(xr, "environmentConfigRefs").unwrap_or_default()
    }

    /// Sets the EnvironmentConfigs of the environment. Empty references are left out.
    pub fn set_environment_configs(
        self,
        xr: &mut Object,
        references: &[Reference],
    ) -> Result<(), Occupied> {
        let filled: Vec<_> = references.iter().filter(|r| **r != Reference::default()).collect();
        self.write(xr, "environmentConfigRefs", filled)
    }

    /// The claim. Modern composite resources have none.
    pub fn claim(self, xr: &Object) -> Option<Reference> {
        match self {
            Self::Legacy => self.read(xr, "claimRef"),
            Self::Modern => None,
        }
    }

    /// The Secret for connection details. Modern composite resources have none.
    pub fn connection_secret(self, xr: &Object) -> Option<Reference> {
        match self {
            Self::Legacy => self.read(xr, "writeConnectionSecretToRef"),
            Self::Modern => None,
        }
    }

    /// Sets the Secret for connection details, if the layout has one.
    pub fn set_connection_secret(
        self,
        xr: &mut Object,
        name: &str,
        namespace: &str,
    ) -> Result<(), Occupied> {
        match self {
            Self::Legacy => {
                let secret = serde_json::json!({"name": name, "namespace": namespace});
                self.set(xr, "writeConnectionSecretToRef", secret)
            }
            Self::Modern => Ok(()),
        }
    }

    /// Records that the claim should get condition types, if the layout has claims.
    pub fn add_claim_condition_types<'a>(
        self,
        xr: &mut Object,
        new: impl IntoIterator<Item = &'a str>,
    ) {
        if self == Self::Modern {
            return;
        }
        let path = ["status", "claimConditionTypes"];
        let mut types: Vec<String> =
            xr.at(&path).and_then(|v| Vec::deserialize(v).ok()).unwrap_or_default();
        let before = types.len();
        let mut known: BTreeSet<String> = types.iter().cloned().collect();
        types.extend(new.into_iter().filter(|t| known.insert((*t).to_owned())).map(str::to_owned));
        if types.len() > before {
            xr.set_at_or_ignore(&path, types);
        }
    }
}

fn labels(selector: &Value) -> Option<BTreeMap<String, String>> {
    let selector: &Map<String, Value> = selector.as_object()?;
    match selector.get("matchLabels") {
        None | Some(Value::Null) => Some(BTreeMap::new()),
        Some(labels) => {
            let labels: BTreeMap<String, Option<String>> = BTreeMap::deserialize(labels).ok()?;
            let filled = |(key, value): (String, Option<String>)| (key, value.unwrap_or_default());
            Some(labels.into_iter().map(filled).collect())
        }
    }
}
