//! The API server as the controllers of a render use it.
//!
//! It is more lenient than a real one where a user cannot be expected to say more: kinds that nobody
//! has defined are served and taken for namespaced, and schemas keep fields that they do not declare.
//! It is stricter where a control plane would never come to an end.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_cluster::{
    Access, Applied, Apply, Cluster, Delete, Deleted, List, Page, Part, Patch, Query, ReadError,
    Source, Subscribe, Subscription, Write, WriteError,
};
use biplane_model::owner::controller_of;
use biplane_model::{Gvk, Object, ObjectId, Value};
use tokio::time::Instant;

use super::cluster::RenderCluster;

/// The API server as the controllers of a render use it.
pub(super) struct Lenient(pub(super) Arc<RenderCluster>);

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Lets the schemas of a CustomResourceDefinition keep fields that they do not declare.
fn relaxed(mut object: Object) -> Object {
    if object.kind() != biplane_schema::crd::KIND {
        return object;
    }
    let path = ["spec", "versions"];
    if let Some(Value::Array(versions)) = object.at(&path) {
        let mut versions = versions.clone();
        for version in &mut versions {
            if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
                relax(schema);
            }
        }
        object.set_at_or_ignore(&path, versions);
    }
    object
}

fn relax(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    let is_open = schema.contains_key("additionalProperties");
    // A server refuses a field without a type, unless it may be anything.
    let has_any_type = !schema.contains_key("type") && !schema.contains_key(INT_OR_STRING);
    let is_object = schema.get("type").is_some_and(|r#type| r#type == "object");
    if (is_object && !is_open) || has_any_type {
        schema.insert(PRESERVE.to_owned(), true.into());
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.iter_mut().filter(|(name, _)| *name != "metadata").for_each(|(_, s)| relax(s));
    }
    for below in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get_mut(below) {
            relax(schema);
        }
    }
}

#[async_trait]
impl Cluster for Lenient {
    async fn get(&self, id: &ObjectId, source: Source, by: Instant) -> Result<Object, ReadError> {
        self.0.server.get(id, source, by).await
    }

    async fn list(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &List,
        by: Instant,
    ) -> Result<Page, ReadError> {
        self.0.server.list(gvk, query, how, by).await
    }

    async fn subscribe(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &Subscribe,
        by: Instant,
    ) -> Result<Subscription, ReadError> {
        Cluster::subscribe(&*self.0.server, gvk, query, how, by).await
    }

    async fn create(&self, object: Object, how: &Write, by: Instant) -> Result<Object, WriteError> {
        self.0.server.create(relaxed(object), how, by).await
    }

    async fn update(
        &self,
        object: &Object,
        part: Part,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        self.0.server.update(&relaxed(object.clone()), part, how, by).await
    }

    async fn patch(
        &self,
        id: &ObjectId,
        part: Part,
        patch: &Patch,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        self.0.server.patch(id, part, patch, how, by).await
    }

    async fn apply(
        &self,
        intent: &Object,
        part: Part,
        known: Option<&Object>,
        how: &Apply,
        by: Instant,
    ) -> Result<Applied, WriteError> {
        if let (Part::Main, Some(owner)) = (part, controller_of(intent))
            && let Err(error) = self.0.check_composer(&owner.uid, &intent.id())
        {
            let text = error.to_string();
            self.0.fail(error);
            return Err(WriteError::BadRequest(text));
        }
        self.0.server.apply(intent, part, known, how, by).await
    }

    async fn delete(
        &self,
        id: &ObjectId,
        how: &Delete,
        by: Instant,
    ) -> Result<Deleted, WriteError> {
        self.0.server.delete(id, how, by).await
    }

    /// Crossplane's render client treats every kind as namespaced.
    async fn is_namespaced(&self, gvk: &Gvk, by: Instant) -> Result<bool, ReadError> {
        match self.0.server.is_namespaced(gvk, by).await {
            Err(ReadError::UnknownKind(_)) => Ok(true),
            answer => answer,
        }
    }

    async fn schema(&self, gvk: &Gvk, by: Instant) -> Result<Option<Object>, ReadError> {
        Cluster::schema(&*self.0.server, gvk, by).await
    }

    async fn access(
        &self,
        gvk: &Gvk,
        namespace: &str,
        verb: &str,
        by: Instant,
    ) -> Result<Access, ReadError> {
        self.0.server.access(gvk, namespace, verb, by).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_keep_what_they_do_not_declare() {
        let crd = |schema: Value| {
            let versions = json!([{"name": "v1", "schema": {"openAPIV3Schema": schema}}]);
            let crd = json!({"kind": "CustomResourceDefinition", "spec": {"versions": versions}});
            Object::from_value(crd).unwrap()
        };
        let before = crd(json!({"type": "object", "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {
                "list": {"type": "array", "items": {"type": "object"}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "text": {"type": "string"},
            }},
        }}));
        let after = crd(json!({"type": "object", PRESERVE: true, "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", PRESERVE: true, "properties": {
                "list": {"type": "array", "items": {"type": "object", PRESERVE: true}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "text": {"type": "string"},
            }},
        }}));
        assert_eq!(relaxed(before), after);
        let other = Object::from_value(json!({"kind": "ConfigMap"})).unwrap();
        assert_eq!(relaxed(other.clone()), other);
    }
}
