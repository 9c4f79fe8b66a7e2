//! Reads and writes `metadata.managedFields`, which records who owns which fields.

use std::collections::BTreeMap;
use std::fmt;

use biplane_go::fmt::quote;
use biplane_model::Object;
use serde_json::{Map, Value};

use super::set::{FieldSet, FieldSetError};

/// The operation by which a manager owns its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// An owner of fields. The same name is several managers if it applies and updates, writes to a
/// subresource, or updates through several versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    /// The name that the client gave.
    pub name: String,
    /// Apply or update.
    pub operation: Operation,
    /// The version of an updater. Empty for an applier, which is the same manager in every version.
    pub api_version: String,
    /// A subresource such as `status`. Empty for the object itself.
    pub subresource: String,
}

impl Manager {
    /// The key by which the API server sorts managers.
    pub(super) fn identifier(&self) -> String {
        let mut fields = vec![("manager", &*self.name), ("operation", self.operation.name())];
        fields.push(("apiVersion", &self.api_version));
        fields.push(("subresource", &self.subresource));
        let fields: Vec<String> = fields
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("\"{name}\":{}", Value::from(value)))
            .collect();
        format!("{{{}}}", fields.join(","))
    }
}

/// The name of a manager in the API server's conflict message.
impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote(&self.name))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", quote(&self.subresource))?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// The fields that a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The fields.
    pub fields: FieldSet,
    /// The version to which the field names belong.
    pub api_version: String,
    /// When the manager last changed something, in the format `2006-01-02T15:04:05Z`.
    pub time: Option<String>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields(pub BTreeMap<Manager, Owned>);

/// The reason why `metadata.managedFields` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagedFieldsError {
    /// The operation is neither Apply nor Update.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// The version is missing.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// The type of the fields is missing.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    /// The type of the fields is unknown.
    #[error("invalid fieldsType {} in managed fields entry {index}", quote(.found))]
    FieldsType {
        /// Position of the entry.
        index: usize,
        /// The given type.
        found: String,
    },
    /// The entry or its fields are malformed.
    #[error("error decoding managed fields entry {index}")]
    Fields {
        /// Position of the entry.
        index: usize,
        /// The problem.
        #[source]
        source: FieldSetError,
    },
}

impl ManagedFields {
    /// Reads the managed fields of an object.
    pub fn decode(object: &Object) -> Result<Self, ManagedFieldsError> {
        let mut out = BTreeMap::new();
        let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
        for (index, entry) in entries.into_iter().flatten().enumerate() {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err(ManagedFieldsError::Operation),
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err(ManagedFieldsError::ApiVersion);
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(ManagedFieldsError::MissingFieldsType(index)),
                found => {
                    let found = found.to_owned();
                    return Err(ManagedFieldsError::FieldsType { index, found });
                }
            }
            let fields = match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::default(),
                Some(document) => FieldSet::from_json(document)
                    .map_err(|source| ManagedFieldsError::Fields { index, source })?,
            };
            let manager = Manager {
                name: text("manager").to_owned(),
                operation,
                api_version: match operation {
                    Operation::Apply => String::new(),
                    Operation::Update => api_version.to_owned(),
                },
                subresource: text("subresource").to_owned(),
            };
            let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
            out.insert(manager, Owned { fields, api_version: api_version.to_owned(), time });
        }
        Ok(Self(out))
    }

    /// The entries in the API server's order: appliers first, then by time, then by name.
    pub fn encode(&self) -> Vec<Value> {
        let mut entries: Vec<(&Manager, &Owned)> = self.0.iter().collect();
        entries.sort_by(|(a, ao), (b, bo)| {
            (a.operation.cmp(&b.operation))
                .then_with(|| seconds(ao.time.as_deref()).cmp(&seconds(bo.time.as_deref())))
                .then_with(|| a.name.cmp(&b.name))
                .then_with(|| ao.api_version.cmp(&bo.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        entries.into_iter().map(|(manager, owned)| encode_entry(manager, owned)).collect()
    }

    /// Writes the managed fields into an object.
    pub fn write(&self, object: &mut Object) {
        if self.0.is_empty() {
            object.remove_at(&["metadata", "managedFields"]);
        } else {
            object.set_at_or_ignore(&["metadata", "managedFields"], self.encode());
        }
    }

    /// Limits the number of updaters: the oldest become `ancient-changes`.
    pub(super) fn cap(&mut self, most: usize) {
        let mut updaters: Vec<Manager> =
            self.0.keys().filter(|m| m.operation == Operation::Update).cloned().collect();
        let mut count = updaters.len();
        if count <= most {
            return;
        }
        updaters.sort_by_cached_key(|manager| {
            let time = self.0.get(manager).and_then(|owned| owned.time.as_deref());
            (seconds(time), manager.identifier())
        });
        let mut first_of_version: BTreeMap<String, Manager> = BTreeMap::new();
        for manager in updaters {
            if count <= most {
                break;
            }
            let Some(owned) = self.0.get(&manager).cloned() else { continue };
            let bucket = Manager {
                name: "ancient-changes".into(),
                operation: Operation::Update,
                api_version: owned.api_version.clone(),
                subresource: String::new(),
            };
            let Some(first) = first_of_version.get(&owned.api_version) else {
                first_of_version.insert(owned.api_version, manager);
                continue;
            };
            if !self.0.contains_key(&bucket)
                && let Some(oldest) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), oldest);
            }
            self.0.remove(&manager);
            if let Some(merged) = self.0.get_mut(&bucket) {
                merged.fields.extend(&owned.fields);
                merged.time = owned.time;
            }
            count -= 1;
        }
    }
}

fn seconds(time: Option<&str>) -> i64 {
    let parsed = time.and_then(|time| time.parse::<jiff::Timestamp>().ok());
    parsed.map_or(0, jiff::Timestamp::as_second)
}

fn encode_entry(manager: &Manager, owned: &Owned) -> Value {
    let mut entry = Map::new();
    entry.insert("manager".into(), manager.name.clone().into());
    entry.insert("operation".into(), manager.operation.name().into());
    entry.insert("apiVersion".into(), owned.api_version.clone().into());
    entry.insert("fieldsType".into(), "FieldsV1".into());
    entry.insert("fieldsV1".into(), owned.fields.to_json());
    if let Some(time) = &owned.time {
        entry.insert("time".into(), time.clone().into());
    }
    if !manager.subresource.is_empty() {
        entry.insert("subresource".into(), manager.subresource.clone().into());
    }
    Value::Object(entry)
}
