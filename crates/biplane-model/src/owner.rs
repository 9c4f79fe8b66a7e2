//! Owner references: finding and setting the controller of an object.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::Object;

/// An entry of `metadata.ownerReferences`. Other keys are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// The owner's group and version.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name.
    pub name: String,
    /// The owner's UID.
    pub uid: String,
    /// Whether the owner is the controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether a foreground deletion of the owner waits for the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// An object already has another controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object} is already controlled by {} {} (UID {})", controller.kind, controller.name, controller.uid)]
pub struct AlreadyControlled {
    /// The object's name.
    pub object: String,
    /// Its controller.
    pub controller: Box<OwnerReference>,
}

impl OwnerReference {
    /// A reference that makes `owner` the controller.
    pub fn controller(owner: &Object) -> Self {
        Self {
            api_version: owner.gvk().api_version(),
            kind: owner.gvk().kind,
            name: owner.name().into(),
            uid: owner.uid().into(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// The owners of an object. Empty if any entry is not an object. A field of the wrong type counts
/// as absent.
pub fn owners(object: &Object) -> Vec<OwnerReference> {
    entries(object).map(owner).collect()
}

/// The controller of an object.
pub fn controller_of(object: &Object) -> Option<OwnerReference> {
    controller(object).map(owner)
}

/// Whether an object has a controller, and it is another one than that with this UID.
pub fn is_controlled_by_another(object: &Object, uid: &str) -> bool {
    let other = |entry: &Map<String, Value>| {
        entry.get("uid").and_then(Value::as_str).unwrap_or_default() != uid
    };
    controller(object).is_some_and(other)
}

fn controller(object: &Object) -> Option<&Map<String, Value>> {
    entries(object).find(|entry| entry.get("controller") == Some(&Value::Bool(true)))
}

/// The entries of the owners. None if any of them is not an object.
fn entries(object: &Object) -> impl Iterator<Item = &Map<String, Value>> {
    let all = object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
    let all = all.filter(|entries| entries.iter().all(Value::is_object));
    all.into_iter().flatten().filter_map(Value::as_object)
}

fn owner(entry: &Map<String, Value>) -> OwnerReference {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let flag = |key: &str| entry.get(key).and_then(Value::as_bool);
    OwnerReference {
        api_version: text("apiVersion"),
        kind: text("kind"),
        name: text("name"),
        uid: text("uid"),
        controller: flag("controller"),
        block_owner_deletion: flag("blockOwnerDeletion"),
    }
}

/// Adds a controller, or replaces the entry with the same UID. Fails if the object has another
/// controller.
pub fn set_controller(object: &mut Object, owner: OwnerReference) -> Result<(), AlreadyControlled> {
    let mut owners = owners(object);
    if let Some(controller) =
        owners.iter().find(|o| o.controller == Some(true) && o.uid != owner.uid)
    {
        return Err(AlreadyControlled {
            object: object.name().into(),
            controller: Box::new(controller.clone()),
        });
    }
    match owners.iter_mut().find(|o| o.uid == owner.uid) {
        Some(same) => *same = owner,
        None => owners.push(owner),
    }
    let value = serde_json::to_value(owners).unwrap_or(Value::Null);
    object.set_at_or_ignore(&["metadata", "ownerReferences"], value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owner(uid: &str) -> OwnerReference {
        let xr = json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n", "uid": uid}});
        OwnerReference::controller(&Object::from_value(xr).unwrap())
    }

    #[test]
    fn replaces_the_entry_of_the_same_uid_in_place() {
        // FC-14
        let mut object = Object::from_value(json!({"metadata": {"name": "o", "ownerReferences": [
            {"apiVersion": "x", "kind": "Y", "name": "old", "uid": "u"},
            {"apiVersion": "x", "kind": "Y", "name": "other", "uid": "v"},
        ]}}))
        .unwrap();
        set_controller(&mut object, owner("u")).unwrap();
        let names: Vec<_> = owners(&object).into_iter().map(|o| o.name).collect();
        assert_eq!(names, ["n", "other"]);
    }

    #[test]
    fn refuses_an_object_that_another_controls() {
        // FC-14, T-53
        let mut object = Object::from_value(json!({"metadata": {"name": "o"}})).unwrap();
        set_controller(&mut object, owner("u")).unwrap();
        let error = set_controller(&mut object, owner("w")).unwrap_err();
        assert_eq!(error.to_string(), "o is already controlled by K n (UID u)");
    }
}
