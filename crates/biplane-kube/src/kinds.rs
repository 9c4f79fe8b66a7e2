//! Which kinds the server has: their resources, scopes, subresources and schemas.
//!
//! All kinds are discovered once. A kind that is not among them is asked for by its group and
//! version, because it may be new. What is known of a group is dropped when one of its
//! CustomResourceDefinitions changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use biplane_cluster::Part;
use biplane_model::{Gvk, Object, Value};
use biplane_schema::openapi;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use tokio::time::Instant;

use crate::api::{Api, Call};
use crate::failure::{Failure, Refusal};

/// All kinds in one answer, if the server can.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// A schema is asked for again after this time. That costs little if it has not changed.
const FRESH: Duration = Duration::from_secs(30);

/// What a path segment must not contain as it is.
const SEGMENT: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'/').add(b'?').add(b'<').add(b'>');

/// What a value in a query must not contain as it is.
const VALUE: &AsciiSet = &SEGMENT.add(b'&').add(b'+').add(b'=').add(b',').add(b';');

/// Reads a list that is null if it is empty, as Go writes it.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A value for a query.
pub(crate) fn encoded(value: &str) -> String {
    utf8_percent_encode(value, VALUE).to_string()
}

/// A kind, as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) gvk: Gvk,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
}

impl Kind {
    /// `plural.group`, or `plural` for the core group.
    pub(crate) fn resource(&self) -> String {
        match self.gvk.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The path of all objects, or of those in a namespace.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let base = group_version(&self.gvk);
        let plural = &self.plural;
        if self.namespaced && !namespace.is_empty() {
            let namespace = utf8_percent_encode(namespace, SEGMENT);
            format!("{base}/namespaces/{namespace}/{plural}")
        } else {
            format!("{base}/{plural}")
        }
    }

    /// The path of an object, or why it has none.
    pub(crate) fn object(
        &self,
        namespace: &str,
        name: &str,
        part: Part,
    ) -> Result<String, Failure> {
        self.check_name(name)?;
        self.check_namespace(namespace)?;
        let collection = self.collection(namespace);
        let name = utf8_percent_encode(name, SEGMENT);
        Ok(match part {
            Part::Main => format!("{collection}/{name}"),
            Part::Status => format!("{collection}/{name}/status"),
        })
    }

    /// Some names would lead to another path. A server never sees them.
    fn check_name(&self, name: &str) -> Result<(), Failure> {
        let problem = match name {
            "" => "metadata.name: Required value: name or generateName is required".to_owned(),
            "." | ".." => format!("metadata.name: Invalid value: {name:?}: may not be '{name}'"),
            _ if name.contains('/') => {
                format!("metadata.name: Invalid value: {name:?}: may not contain '/'")
            }
            _ if name.contains('%') => {
                format!("metadata.name: Invalid value: {name:?}: may not contain '%'")
            }
            _ => return Ok(()),
        };
        let kind = self.gvk.group_kind();
        Err(Failure::Refused(Refusal::invalid(format!("{kind} {name:?} is invalid: {problem}"))))
    }

    /// A namespaced object has a namespace.
    pub(crate) fn check_namespace(&self, namespace: &str) -> Result<(), Failure> {
        if self.namespaced && namespace.is_empty() {
            let text = "an empty namespace may not be set during creation";
            return Err(Failure::NotSent(text.into()));
        }
        Ok(())
    }
}

/// The path of a group and version.
fn group_version(gvk: &Gvk) -> String {
    match gvk.group.as_str() {
        "" => format!("/api/{}", gvk.version),
        group => format!("/apis/{group}/{}", gvk.version),
    }
}

/// The kinds of a server.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    known: Mutex<BTreeMap<Gvk, Arc<Kind>>>,
    schemas: Mutex<BTreeMap<Gvk, Schema>>,
    /// Held while the first discovery runs. True when it has.
    discovered: tokio::sync::Mutex<bool>,
}

/// The schema of a kind, and which version of its document it is from.
#[derive(Clone, Debug)]
struct Schema {
    flat: Option<Object>,
    etag: Option<String>,
    asked: Instant,
}

impl Kinds {
    fn known(&self) -> MutexGuard<'_, BTreeMap<Gvk, Arc<Kind>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn schemas(&self) -> MutexGuard<'_, BTreeMap<Gvk, Schema>> {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a kind.
    pub(crate) async fn of(&self, api: &Api, gvk: &Gvk, by: Instant) -> Result<Arc<Kind>, Failure> {
        if let Some(kind) = self.known().get(gvk) {
            return Ok(Arc::clone(kind));
        }
        self.discover(api, by).await?;
        if let Some(kind) = self.known().get(gvk) {
            return Ok(Arc::clone(kind));
        }
        self.ask(api, gvk, by).await?;
        self.known().get(gvk).cloned().ok_or_else(|| Failure::unknown_kind(gvk))
    }

    /// Drops what is known of a group, because one of its kinds changed.
    pub(crate) fn forget(&self, group: &str) {
        self.known().retain(|gvk, _| gvk.group != group);
        self.schemas().retain(|gvk, _| gvk.group != group);
    }

    /// Learns all kinds, once. A server that does not serve them in one answer is asked for each
    /// group and version when it is needed.
    async fn discover(&self, api: &Api, by: Instant) -> Result<(), Failure> {
        let Ok(mut discovered) = tokio::time::timeout_at(by, self.discovered.lock()).await else {
            return Err(Failure::TimedOut);
        };
        if *discovered {
            return Ok(());
        }
        for path in ["/api", "/apis"] {
            let mut call = Call::get("get", "discovery".into(), path.into());
            call.accept = AGGREGATED;
            match api.call(&call, by).await {
                Ok(answer) => self.known().extend(aggregated(&answer.body)),
                // Not for us, or not in this form.
                Err(Failure::Refused(refusal)) if matches!(refusal.code, 403 | 404 | 406) => {}
                Err(failure) => return Err(failure),
            }
        }
        *discovered = true;
        Ok(())
    }

    /// Learns the kinds of one group and version.
    async fn ask(&self, api: &Api, gvk: &Gvk, by: Instant) -> Result<(), Failure> {
        if gvk.version.is_empty() || gvk.kind.is_empty() {
            return Err(Failure::unknown_kind(gvk));
        }
        let path = utf8_percent_encode(&group_version(gvk), PATH).to_string();
        match api.call(&Call::get("get", "discovery".into(), path), by).await {
            Ok(answer) => {
                self.known().extend(of_group_version(gvk, &answer.body));
                Ok(())
            }
            Err(failure) if failure.is_not_found() => Err(Failure::unknown_kind(gvk)),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the schema of a kind.
    pub(crate) async fn schema(
        &self,
        api: &Api,
        gvk: &Gvk,
        by: Instant,
    ) -> Result<Option<Object>, Failure> {
        let known = self.schemas().get(gvk).cloned();
        // A server publishes the schema of a new kind later than the kind itself, and tells nobody
        // when. So one that is missing is always asked for.
        if let Some(known) = &known
            && known.flat.is_some()
            && known.asked.elapsed() < FRESH
        {
            return Ok(known.flat.clone());
        }
        let path = format!("/openapi/v3{}", group_version(gvk));
        let path = utf8_percent_encode(&path, PATH).to_string();
        let mut call = Call::get("get", "openapi".into(), path);
        call.etag = known.as_ref().and_then(|known| known.etag.clone());
        let answer = match api.call(&call, by).await {
            Ok(answer) => answer,
            Err(failure) if failure.is_not_found() => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let asked = Instant::now();
        let schema = match known {
            Some(known) if answer.not_modified => Schema { asked, ..known },
            _ => Schema { flat: flat(&answer.body, gvk)?, etag: answer.etag, asked },
        };
        let flat = schema.flat.clone();
        self.schemas().insert(gvk.clone(), schema);
        Ok(flat)
    }
}

/// What a path must not contain as it is.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'?').add(b'<').add(b'>');

/// The schema of a kind in an OpenAPI document. The document's paths are its largest part, and are
/// not kept while it is read.
fn flat(document: &[u8], gvk: &Gvk) -> Result<Option<Object>, Failure> {
    #[derive(Deserialize)]
    struct Document {
        #[serde(default)]
        components: Value,
    }
    let garbled =
        |text: String| Failure::Garbled(format!("cannot read the schema of {gvk}: {text}"));
    let document: Document =
        serde_json::from_slice(document).map_err(|error| garbled(error.to_string()))?;
    let document = Object::from_value(json!({"components": document.components}));
    openapi::schema_of(&document.unwrap_or_default(), gvk)
        .map_err(|error| Failure::Garbled(error.to_string()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Groups {
    #[serde(deserialize_with = "nullable")]
    items: Vec<Group>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Group {
    metadata: Named,
    #[serde(deserialize_with = "nullable")]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    version: String,
    #[serde(deserialize_with = "nullable")]
    resources: Vec<Aggregated>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Aggregated {
    resource: String,
    response_kind: Option<ResponseKind>,
    scope: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseKind {
    kind: String,
}

type Found = BTreeMap<Gvk, Arc<Kind>>;

/// The first resource of a kind counts.
fn add(found: &mut Found, gvk: Gvk, plural: String, namespaced: bool) {
    let kind = Kind { gvk: gvk.clone(), plural, namespaced };
    found.entry(gvk).or_insert_with(|| Arc::new(kind));
}

/// The kinds of an `APIGroupDiscoveryList`. None if the answer is something else.
fn aggregated(body: &[u8]) -> Found {
    let groups: Groups = serde_json::from_slice(body).unwrap_or_default();
    let mut found = Found::new();
    for Group { metadata: Named { name: group }, versions } in groups.items {
        for Version { version, resources } in versions {
            for Aggregated { resource, response_kind, scope } in resources {
                let kind = response_kind.unwrap_or_default().kind;
                if kind.is_empty() {
                    continue;
                }
                let gvk = Gvk { group: group.clone(), version: version.clone(), kind };
                add(&mut found, gvk, resource, scope == "Namespaced");
            }
        }
    }
    found
}

/// The kinds of an `APIResourceList`.
fn of_group_version(asked: &Gvk, body: &[u8]) -> Found {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Resources {
        #[serde(deserialize_with = "nullable")]
        resources: Vec<Resource>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Resource {
        name: String,
        namespaced: bool,
        kind: String,
    }
    let all: Resources = serde_json::from_slice(body).unwrap_or_default();
    let mut found = Found::new();
    for Resource { name, namespaced, kind } in all.resources {
        // A subresource, for example `things/status`.
        if !name.contains('/') {
            add(&mut found, Gvk { kind, ..asked.clone() }, name, namespaced);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> Kind {
        Kind { gvk: Gvk::new(api_version, kind), plural: plural.into(), namespaced }
    }

    #[test]
    fn paths_follow_group_scope_and_part() {
        let maps = kind("v1", "ConfigMap", "configmaps", true);
        let path = maps.object("ns", "a", Part::Main).unwrap();
        assert_eq!(path, "/api/v1/namespaces/ns/configmaps/a");
        assert_eq!(maps.collection(""), "/api/v1/configmaps");
        let roles = kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false);
        let path = roles.object("ignored", "system:a b", Part::Status).unwrap();
        assert_eq!(path, "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b/status");
    }

    #[test]
    fn a_name_cannot_lead_elsewhere() {
        let maps = kind("v1", "ConfigMap", "configmaps", true);
        for name in ["", ".", "..", "a/b", "../secrets/x", "a%2fb"] {
            assert!(maps.object("ns", name, Part::Main).is_err(), "{name}");
        }
        assert_eq!(
            maps.object("ns", "a?b#c", Part::Main).unwrap(),
            "/api/v1/namespaces/ns/configmaps/a%3Fb%23c"
        );
        assert!(maps.object("", "a", Part::Main).is_err());
        assert_eq!(maps.collection("a/b"), "/api/v1/namespaces/a%2Fb/configmaps");
    }

    #[test]
    fn discovery_reads_both_forms() {
        let body = json!({"items": [{"metadata": {"name": "example.org"}, "versions": [
            {"version": "v1", "resources": [
                {"resource": "things", "responseKind": {"kind": "Thing"}, "scope": "Namespaced"},
                {"resource": "odd", "scope": "Cluster"},
            ]},
        ]}]});
        let found = aggregated(body.to_string().as_bytes());
        let thing = Gvk::new("example.org/v1", "Thing");
        let all: Vec<_> = found.into_values().map(|kind| (*kind).clone()).collect();
        assert_eq!(all, [kind("example.org/v1", "Thing", "things", true)]);
        let body = json!({"resources": [
            {"name": "things", "namespaced": true, "kind": "Thing"},
            {"name": "things/status", "namespaced": true, "kind": "Thing"},
            {"name": "things/scale", "namespaced": true, "kind": "Scale"},
        ]});
        let found = of_group_version(&thing, body.to_string().as_bytes());
        assert_eq!(found.into_values().map(|kind| (*kind).clone()).collect::<Vec<_>>(), all);
        assert_eq!(aggregated(b"{\"kind\":\"APIGroupList\",\"groups\":[]}").len(), 0);
        assert_eq!(of_group_version(&thing, b"{\"resources\":null}").len(), 0);
    }
}
