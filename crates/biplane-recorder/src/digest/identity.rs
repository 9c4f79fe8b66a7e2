//! Which object a body is about, and which others it names.

use serde_json::Value;

/// Which object a body is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The API version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace. Empty if there is none.
    pub namespace: String,
    /// The name. Empty if there is none yet.
    pub name: String,
    /// The uid. Empty if there is none.
    pub uid: String,
}

impl Identity {
    /// Reads it from an object.
    pub fn of(object: &Value) -> Self {
        let text = |path: &str| {
            object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
        }
    }

    /// The API group. Empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version without the group.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(self.api_version.as_str(), |(_, version)| version)
    }
}

/// What links a composite resource to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Composite {
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// The claim.
    pub claim: Option<Identity>,
    /// The composite resource that controls it.
    pub parent: Option<Identity>,
}

/// What links a composite resource to its claim and to its parent.
pub fn links(composite: &Value) -> Composite {
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let labels = composite.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    let labels: Vec<(String, String)> =
        labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    let claim = composite.pointer("/spec/claimRef").map(|claim| Identity {
        api_version: text(claim, "apiVersion"),
        kind: text(claim, "kind"),
        namespace: text(claim, "namespace"),
        name: text(claim, "name"),
        uid: String::new(),
    });
    let owners = composite.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
    let parent = controller.map(|owner| Identity {
        api_version: text(owner, "apiVersion"),
        kind: text(owner, "kind"),
        namespace: composite
            .pointer("/metadata/namespace")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        name: text(owner, "name"),
        uid: text(owner, "uid"),
    });
    Composite { labels, claim: claim.filter(|c| !c.name.is_empty()), parent }
}
