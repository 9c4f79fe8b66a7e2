//! Completes definitions (XRDs), so that the control plane of a render can establish them.
//!
//! A definition that is only read for defaults may leave out what an API server needs: which version
//! is served and stored, the plural, its own name. And files need no namespaces.

use biplane_model::layout::Layout;
use biplane_model::{Object, Value};

/// A definition that can be established. `compositions` say in which version its composite resources
/// are composed; `root` is the composite resource that is rendered.
pub(super) fn completed(definition: &Object, compositions: &[Object], root: &Object) -> Object {
    let mut definition = definition.clone();
    definition.make_mut().remove("status");
    let kind = definition.str_at(&["spec", "names", "kind"]).to_owned();
    let group = definition.str_at(&["spec", "group"]).to_owned();
    definition.set_at_or_ignore(&["spec", "scope"], scope(&definition, root, &kind, &group));
    definition.remove_at(&["spec", "conversion"]);
    for names in ["names", "claimNames"] {
        if definition.at(&["spec", names]).is_some_and(Value::is_object) {
            let plural = plural(&definition, names);
            definition.set_at_or_ignore(&["spec", names, "plural"], plural);
        }
    }
    let mut metadata = Object::new();
    metadata.set_meta("name", &name(&definition));
    for field in ["annotations", "labels"] {
        if let Some(value) = definition.at(&["metadata", field]).cloned() {
            metadata.set_at_or_ignore(&["metadata", field], value);
        }
    }
    if let Some(metadata) = metadata.get("metadata").cloned() {
        definition.set_at_or_ignore(&["metadata"], metadata);
    }
    let composed = compositions.iter().find_map(|composition| {
        let at = |field| composition.str_at(&["spec", "compositeTypeRef", field]);
        let (of_group, version) = at("apiVersion").split_once('/')?;
        (at("kind") == kind && of_group == group).then(|| version.to_owned())
    });
    serve(&mut definition, composed.as_deref());
    definition
}

/// The plural of a kind. One that the definition leaves out is guessed.
fn plural(definition: &Object, names: &str) -> String {
    match definition.str_at(&["spec", names, "plural"]) {
        "" => format!("{}s", definition.str_at(&["spec", names, "kind"]).to_lowercase()),
        plural => plural.to_owned(),
    }
}

/// The name of a definition when it is complete, which is also the name of its CRD.
pub(super) fn name(definition: &Object) -> String {
    format!("{}.{}", plural(definition, "names"), definition.str_at(&["spec", "group"]))
}

/// Serves all versions, and stores and composes one: the one that Compositions are for, or else the
/// last one that the definition calls referenceable, or else the last one.
fn serve(definition: &mut Object, composed: Option<&str>) {
    let path = ["spec", "versions"];
    let Some(Value::Array(versions)) = definition.at(&path) else { return };
    let mut versions = versions.clone();
    let named = |version: &Value| version.get("name").and_then(Value::as_str) == composed;
    let referenceable =
        |version: &Value| version.get("referenceable").and_then(Value::as_bool) == Some(true);
    let chosen = versions.iter().position(named).filter(|_| composed.is_some());
    let chosen = chosen.or_else(|| versions.iter().rposition(referenceable));
    let chosen = chosen.unwrap_or_else(|| versions.len().saturating_sub(1));
    for (index, version) in versions.iter_mut().enumerate() {
        if let Value::Object(version) = version {
            version.insert("served".to_owned(), true.into());
            version.insert("referenceable".to_owned(), (index == chosen).into());
        }
    }
    definition.set_at_or_ignore(&path, versions);
}

/// The scope of the composite resources. In files, objects of namespaced kinds may have no namespace:
/// if that of the rendered composite resource is left out, no kind is taken for namespaced.
fn scope(definition: &Object, root: &Object, kind: &str, group: &str) -> &'static str {
    let is_root = root.kind() == kind && root.gvk().group == group;
    match (Layout::of_definition(definition), definition.str_at(&["spec", "scope"])) {
        (Layout::Legacy, _) => "LegacyCluster",
        (Layout::Modern, _) if root.namespace().is_empty() => "Cluster",
        (Layout::Modern, "Cluster") if !is_root => "Cluster",
        (Layout::Modern, _) => "Namespaced",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value)] // literals are easier to read

    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn definition(spec: Value) -> Object {
        let mut all = json!({"group": "example.org", "names": {"kind": "XPart"}});
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        object(json!({"apiVersion": "apiextensions.crossplane.io/v2", "spec": all}))
    }

    fn xr(kind: &str, namespace: &str) -> Object {
        object(json!({"apiVersion": "example.org/v1", "kind": kind,
            "metadata": {"name": "a", "namespace": namespace}}))
    }

    #[test]
    fn what_a_server_needs_is_filled_in() {
        let versions = json!([{"name": "v1"}, {"name": "v2", "referenceable": true}]);
        let given = definition(json!({"versions": versions}));
        let stored = |compositions: &[Object]| {
            let all = completed(&given, compositions, &xr("XPart", ""));
            assert_eq!(all.name(), "xparts.example.org");
            let versions = all.at(&["spec", "versions"]).unwrap().clone();
            versions
                .as_array()
                .unwrap()
                .iter()
                .map(|v| v["referenceable"] == true)
                .collect::<Vec<_>>()
        };
        let of = |version: &str| {
            let type_ref = json!({"apiVersion": format!("example.org/{version}"), "kind": "XPart"});
            object(json!({"spec": {"compositeTypeRef": type_ref}}))
        };
        assert_eq!(stored(&[]), vec![false, true]);
        assert_eq!(stored(&[of("v1")]), vec![true, false]);
        assert_eq!(stored(&[of("v3")]), vec![false, true]);
    }

    #[test]
    fn the_scope_follows_the_layout_and_the_namespace_of_what_is_rendered() {
        let scope = |api_version: &str, scope: Value, root: &Object| {
            let mut definition = definition(json!({"scope": scope}));
            definition.set_at_or_ignore(&["apiVersion"], api_version);
            completed(&definition, &[], root).str_at(&["spec", "scope"]).to_owned()
        };
        let (v1, v2) = ("apiextensions.crossplane.io/v1", "apiextensions.crossplane.io/v2");
        let (here, nowhere) = (xr("XApp", "here"), xr("XApp", ""));
        for (version, given, root, want) in [
            (v2, json!("Namespaced"), &here, "Namespaced"),
            (v2, json!("Namespaced"), &nowhere, "Cluster"),
            (v2, json!("Cluster"), &here, "Cluster"),
            (v2, json!("Cluster"), &xr("XPart", "here"), "Namespaced"),
            (v2, json!("LegacyCluster"), &nowhere, "LegacyCluster"),
            (v1, Value::Null, &nowhere, "LegacyCluster"),
            // An empty scope is not the same as none.
            (v1, json!(""), &nowhere, "Cluster"),
        ] {
            assert_eq!(scope(version, given.clone(), root), want, "{version} {given}");
        }
    }
}
