//! `KubeCluster`: the `Cluster` port on a Kubernetes API server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::{
    Access, Applied, Apply, Cluster, Delete, Deleted, Effect, Form, List, Page, Part, Patch,
    Precondition, Query, ReadError, Source, Subscribe, Subscription, Write, WriteError,
};
use biplane_go::fmt::quote;
use biplane_model::{Gvk, Object, ObjectId, Value};
use http::Method;
use serde_json::json;
use tokio::time::Instant;

use crate::api::{Answer, Api, Call, JSON};
use crate::body;
use crate::failure::Failure;
use crate::hub::{Cached, Hub};
use crate::kinds::{Kind, Kinds, encoded};
use crate::options::{self, ConnectError, Endpoint, Options};
use crate::transport::Transport;

/// How long the result of an access review holds.
const ACCESS_HOLDS: Duration = Duration::from_mins(1);
/// So many reviews are kept before old ones are looked for.
const REVIEWS: usize = 1024;

/// Group and kind, namespace, verb.
type Review = (Gvk, String, String);

/// A cluster behind a Kubernetes API server. Clones share everything.
#[derive(Clone, Debug)]
pub struct KubeCluster {
    api: Arc<Api>,
    kinds: Arc<Kinds>,
    hub: Arc<Hub>,
    reviews: Arc<Mutex<BTreeMap<Review, (Access, Instant)>>>,
}

impl KubeCluster {
    /// Prepares to use the cluster that the options name. Nothing is sent yet.
    pub async fn connect(options: &Options) -> Result<Self, ConnectError> {
        Self::with(options::configuration(options).await?, options)
    }

    /// Prepares to use an API server at an address, with a token.
    pub fn at(endpoint: &Endpoint, options: &Options) -> Result<Self, ConnectError> {
        Self::with(options::endpoint(endpoint)?, options)
    }

    fn with(config: kube::Config, options: &Options) -> Result<Self, ConnectError> {
        let transport = Transport::new(config, &options.user_agent)?;
        let api = Arc::new(Api::new(transport, options.in_flight, options.counters.clone()));
        let kinds = Arc::<Kinds>::default();
        let hub = Hub::new(Arc::clone(&api), Arc::clone(&kinds), options.linger);
        Ok(Self { api, kinds, hub: Arc::new(hub), reviews: Arc::default() })
    }

    /// How many watches run.
    pub fn watches(&self) -> usize {
        self.hub.len()
    }

    async fn kind(&self, gvk: &Gvk, by: Instant) -> Result<Arc<Kind>, Failure> {
        if by <= Instant::now() {
            return Err(Failure::TimedOut);
        }
        self.kinds.of(&self.api, gvk, by).await
    }

    /// Sends a request about a kind. If the server does not serve its path, the kind is looked up
    /// again.
    async fn ask(
        &self,
        gvk: &Gvk,
        by: Instant,
        call: impl Fn(&Kind) -> Result<Call, Failure> + Send + Sync,
    ) -> Result<(Arc<Kind>, Answer), Failure> {
        let kind = self.kind(gvk, by).await?;
        let failure = match self.api.call(&call(&kind)?, by).await {
            Ok(answer) => return Ok((kind, answer)),
            Err(failure) if failure.is_not_served() => failure,
            Err(failure) => return Err(failure),
        };
        self.kinds.forget(&gvk.group);
        let now = self.kind(gvk, by).await?;
        if now == kind {
            return Err(failure);
        }
        let answer = self.api.call(&call(&now)?, by).await?;
        Ok((now, answer))
    }

    /// Sends a write whose answer is the stored object.
    async fn write(
        &self,
        gvk: &Gvk,
        how: &Write,
        by: Instant,
        call: impl Fn(&Kind) -> Result<Call, Failure> + Send + Sync,
    ) -> Result<(Object, Answer), Failure> {
        let answer = self.ask(gvk, by, call).await;
        let (_, answer) = answer.map_err(|failure| failure.of_write_to(&how.only_if.uid))?;
        let object = object(&answer)?;
        if !how.dry_run {
            self.take(&object, &answer.body);
        }
        Ok((object, answer))
    }

    /// Lets the watches know the answer to a write.
    fn take(&self, object: &Object, text: &[u8]) {
        let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
        let grace = object.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
        let held = finalizers.is_some_and(|all| !all.is_empty()) || grace.unwrap_or_default() > 0;
        // The last finalizer is gone, and the object with it.
        if object.is_being_deleted() && !held && !is_namespace(object) {
            self.hub.saw_gone(&object.id(), object.uid());
        } else {
            self.hub.saw(object, Form::Whole, Some(text));
        }
    }

    async fn read_live(&self, id: &ObjectId, by: Instant) -> Result<Object, Failure> {
        let before = self.hub.identity(id);
        let answer = self
            .ask(&id.gvk, by, |kind| {
                // What cannot be addressed does not exist.
                let path = kind.object(&id.namespace, &id.name, Part::Main);
                let path = path.map_err(|_| Failure::NotSent(not_found(kind, &id.name)))?;
                Ok(Call::get("get", kind.resource(), path))
            })
            .await;
        match answer {
            Ok((_, answer)) => {
                let object = object(&answer)?;
                self.hub.saw(&object, Form::Whole, Some(&answer.body));
                Ok(object)
            }
            Err(failure) => {
                // What existed before the request and does not exist any more will not come back.
                if failure.is_not_found()
                    && let Some((uid, _)) = before
                {
                    self.hub.saw_gone(id, &uid);
                }
                Err(failure)
            }
        }
    }

    async fn list_live(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &List,
        by: Instant,
    ) -> Result<Page, Failure> {
        let before = self.hub.identities(gvk, query);
        let (kind, answer) = self
            .ask(gvk, by, |kind| {
                let mut parameters = vec![crate::hub::selection(query)];
                if how.limit > 0 {
                    parameters.push(format!("limit={}", how.limit));
                }
                if !how.next.is_empty() {
                    parameters.push(format!("continue={}", encoded(&how.next)));
                }
                parameters.retain(|parameter| !parameter.is_empty());
                let path = with(&kind.collection(&query.namespace), &parameters);
                let mut call = Call::get("list", kind.resource(), path);
                if how.form == Form::Metadata {
                    call.accept = crate::hub::METADATA_LIST;
                }
                Ok(call)
            })
            .await?;
        let listed: crate::hub::Listed = serde_json::from_slice(&answer.body)
            .map_err(|error| Failure::Garbled(error.to_string()))?;
        let mut objects: Vec<Object> = listed
            .items
            .into_iter()
            .filter_map(|value| crate::hub::item(value, &kind))
            // A server ignores the namespace of a kind that has none.
            .filter(|object| query.matches(object))
            .map(|object| how.form.of(object))
            .collect();
        // The server orders by its own keys.
        objects.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        let next = listed.metadata.r#continue;
        // An object that a selection of labels leaves out may still exist.
        let by_label = !query.labels.is_empty() || !query.labelled.is_empty();
        let complete = next.is_empty() && how.next.is_empty() && !by_label;
        self.compare(&before, &objects, how.form, complete);
        Ok(Page { objects, version: listed.metadata.resource_version, next })
    }

    /// Lets the watches know what a list has brought, and what it has not.
    fn compare(
        &self,
        before: &[(ObjectId, String)],
        listed: &[Object],
        form: Form,
        complete: bool,
    ) {
        if before.is_empty() && self.hub.len() == 0 {
            return;
        }
        for object in listed {
            self.hub.saw(object, form, None);
        }
        if complete {
            let uids: std::collections::BTreeSet<&str> = listed.iter().map(Object::uid).collect();
            for (id, uid) in before.iter().filter(|(_, uid)| !uids.contains(uid.as_str())) {
                self.hub.saw_gone(id, uid);
            }
        }
    }

    /// How an object is before a dry run, if nobody knows it.
    async fn before(&self, id: &ObjectId, known: Option<&Object>, by: Instant) -> Option<Object> {
        match self.hub.get(id) {
            Cached::Object(object) => Some(object),
            _ if known.is_some() => None,
            _ => self.read_live(id, by).await.ok(),
        }
    }

    fn reviews(&self) -> MutexGuard<'_, BTreeMap<Review, (Access, Instant)>> {
        self.reviews.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How an object was before it was applied, as far as the watches know.
enum Before {
    /// Its UID and version.
    Version(Option<(String, u64)>),
    /// All of it. A dry run does not change the version.
    Object(Option<Object>),
}

impl Before {
    /// Whether the answer to an apply is what was there before.
    fn is(&self, answer: &Object) -> bool {
        match self {
            Self::Version(version) => version.as_ref().is_some_and(|(uid, version)| {
                uid == answer.uid() && answer.resource_version() == version.to_string()
            }),
            Self::Object(before) => before.as_ref().is_some_and(|before| self.was(before, answer)),
        }
    }

    /// Whether the answer to an apply is this earlier state.
    fn was(&self, before: &Object, answer: &Object) -> bool {
        match self {
            Self::Version(_) => {
                before.uid() == answer.uid()
                    && before.resource_version() == answer.resource_version()
            }
            Self::Object(_) => body::without_versions(before) == body::without_versions(answer),
        }
    }
}

fn not_found(kind: &Kind, name: &str) -> String {
    format!("{} {} not found", kind.resource(), quote(name))
}

/// A path with parameters.
fn with(path: &str, parameters: &[String]) -> String {
    match parameters {
        [] => path.to_owned(),
        parameters => format!("{path}?{}", parameters.join("&")),
    }
}

/// The parameters that all writes but deletes have.
fn parameters(how: &Write) -> Vec<String> {
    let mut parameters = Vec::new();
    if !how.manager.is_empty() {
        parameters.push(format!("fieldManager={}", encoded(&how.manager)));
    }
    if how.dry_run {
        parameters.push("dryRun=All".into());
    }
    parameters
}

fn object(answer: &Answer) -> Result<Object, Failure> {
    serde_json::from_slice(&answer.body)
        .map_err(|error| Failure::Garbled(format!("cannot read the answer: {error}")))
}

/// A write that names what it replaces does the same when it is sent twice.
fn is_fenced(only_if: &Precondition) -> bool {
    !only_if.resource_version.is_empty()
}

/// Namespaces keep their finalizers elsewhere.
fn is_namespace(object: &Object) -> bool {
    object.kind() == "Namespace" && object.api_version() == "v1"
}

#[async_trait]
impl Cluster for KubeCluster {
    async fn get(&self, id: &ObjectId, source: Source, by: Instant) -> Result<Object, ReadError> {
        if by <= Instant::now() {
            return Err(Failure::TimedOut.into());
        }
        if source == Source::Cache {
            match self.hub.get(id) {
                Cached::Object(object) => return Ok(object),
                Cached::Absent => {
                    let kind = self.kind(&id.gvk, by).await?;
                    return Err(ReadError::NotFound(not_found(&kind, &id.name)));
                }
                Cached::Unknown => {}
            }
        }
        Ok(self.read_live(id, by).await?)
    }

    async fn list(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &List,
        by: Instant,
    ) -> Result<Page, ReadError> {
        if by <= Instant::now() {
            return Err(Failure::TimedOut.into());
        }
        if how.source == Source::Cache
            && how.limit == 0
            && how.next.is_empty()
            && let Some((objects, version)) = self.hub.list(gvk, query, how.form)
        {
            return Ok(Page { objects, version, next: String::new() });
        }
        Ok(self.list_live(gvk, query, how, by).await?)
    }

    async fn subscribe(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &Subscribe,
        by: Instant,
    ) -> Result<Subscription, ReadError> {
        let kind = self.kind(gvk, by).await?;
        self.hub.subscribe(&kind, query, how, by).await
    }

    async fn create(&self, object: Object, how: &Write, by: Instant) -> Result<Object, WriteError> {
        let sent = body::json(&object);
        let call = |kind: &Kind| {
            kind.check_namespace(object.namespace())?;
            let path = with(&kind.collection(object.namespace()), &parameters(how));
            let mut call = Call::get("create", kind.resource(), path);
            call.method = Method::POST;
            call.body.clone_from(&sent);
            call.again = false;
            Ok(call)
        };
        Ok(self.write(&object.gvk(), how, by, call).await?.0)
    }

    async fn update(
        &self,
        object: &Object,
        part: Part,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        let mut object = object.clone();
        body::require(&mut object, &how.only_if);
        let sent = body::json(&object);
        let fenced = !object.resource_version().is_empty();
        let call = |kind: &Kind| {
            let path = kind.object(object.namespace(), object.name(), part)?;
            let mut call = Call::get("update", kind.resource(), with(&path, &parameters(how)));
            call.method = Method::PUT;
            call.body.clone_from(&sent);
            call.again = fenced;
            Ok(call)
        };
        Ok(self.write(&object.gvk(), how, by, call).await?.0)
    }

    async fn patch(
        &self,
        id: &ObjectId,
        part: Part,
        patch: &Patch,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        let (content_type, sent) = body::patch(patch, &how.only_if);
        let call = |kind: &Kind| {
            let path = kind.object(&id.namespace, &id.name, part)?;
            let mut call = Call::get("patch", kind.resource(), with(&path, &parameters(how)));
            call.method = Method::PATCH;
            call.content_type = content_type;
            call.body.clone_from(&sent);
            call.again = is_fenced(&how.only_if);
            Ok(call)
        };
        Ok(self.write(&id.gvk, how, by, call).await?.0)
    }

    async fn apply(
        &self,
        intent: &Object,
        part: Part,
        known: Option<&Object>,
        how: &Apply,
        by: Instant,
    ) -> Result<Applied, WriteError> {
        let mut intent = intent.clone();
        body::require(&mut intent, &how.write.only_if);
        let id = intent.id();
        let before = if how.write.dry_run {
            Before::Object(self.before(&id, known, by).await)
        } else {
            Before::Version(self.hub.identity(&id))
        };
        let sent = body::apply(&intent);
        let call = |kind: &Kind| {
            let path = kind.object(&id.namespace, &id.name, part)?;
            let mut parameters = parameters(&how.write);
            if how.force {
                parameters.push("force=true".into());
            }
            let mut call = Call::get("apply", kind.resource(), with(&path, &parameters));
            call.method = Method::PATCH;
            call.content_type = body::APPLY;
            call.body.clone_from(&sent);
            call.again = is_fenced(&how.write.only_if);
            Ok(call)
        };
        let (object, answer) = self.write(&id.gvk, &how.write, by, call).await?;
        let effect = if answer.created {
            Effect::Created
        } else if before.is(&object) || known.is_some_and(|known| before.was(known, &object)) {
            Effect::Unchanged
        } else {
            Effect::Changed
        };
        Ok(Applied { object, effect })
    }

    async fn delete(
        &self,
        id: &ObjectId,
        how: &Delete,
        by: Instant,
    ) -> Result<Deleted, WriteError> {
        let before = self.hub.identity(id);
        let sent = body::delete(how);
        let call = |kind: &Kind| {
            let path = kind.object(&id.namespace, &id.name, Part::Main)?;
            let mut call = Call::get("delete", kind.resource(), path);
            call.method = Method::DELETE;
            call.body.clone_from(&sent);
            // With a UID, a second delete cannot meet another object.
            call.again = !how.only_if.uid.is_empty() || is_fenced(&how.only_if);
            Ok(call)
        };
        let (answer, text) = match self.ask(&id.gvk, by, call).await {
            Ok((_, answer)) => (object(&answer)?, answer.body),
            Err(failure) => {
                if failure.is_not_found()
                    && let Some((uid, _)) = before
                {
                    self.hub.saw_gone(id, &uid);
                }
                return Err(failure.into());
            }
        };
        let (deleted, uid) = deleted(&answer);
        if how.dry_run {
            return Ok(deleted);
        }
        match deleted {
            Deleted::Terminating => self.hub.saw(&answer, Form::Whole, Some(&text)),
            Deleted::Gone => {
                let uid = if uid.is_empty() { before.map(|(uid, _)| uid) } else { Some(uid) };
                if let Some(uid) = uid {
                    self.hub.saw_gone(id, &uid);
                }
            }
        }
        Ok(deleted)
    }

    async fn is_namespaced(&self, gvk: &Gvk, by: Instant) -> Result<bool, ReadError> {
        match self.kind(gvk, by).await {
            Ok(kind) => Ok(kind.namespaced),
            Err(Failure::UnknownKind(text)) => {
                Err(ReadError::UnknownKind(format!("failed to get restmapping: {text}")))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    async fn schema(&self, gvk: &Gvk, by: Instant) -> Result<Option<Object>, ReadError> {
        if by <= Instant::now() {
            return Err(Failure::TimedOut.into());
        }
        Ok(self.kinds.schema(&self.api, gvk, by).await?)
    }

    async fn access(
        &self,
        gvk: &Gvk,
        namespace: &str,
        verb: &str,
        by: Instant,
    ) -> Result<Access, ReadError> {
        let kind = self.kind(gvk, by).await?;
        let review = (gvk.clone(), namespace.to_owned(), verb.to_owned());
        if let Some((access, at)) = self.reviews().get(&review)
            && at.elapsed() < ACCESS_HOLDS
        {
            return Ok(access.clone());
        }
        let asked = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "group": gvk.group, "version": gvk.version, "resource": kind.plural,
                "namespace": namespace, "verb": verb,
            }},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned();
        let resource = "selfsubjectaccessreviews.authorization.k8s.io".to_owned();
        let mut call = Call::get("create", resource, path);
        call.method = Method::POST;
        call.content_type = JSON;
        call.body = asked.to_string().into_bytes();
        // A review stores nothing.
        let answer = object(&self.api.call(&call, by).await?)?;
        let allowed = answer.at(&["status", "allowed"]) == Some(&Value::Bool(true));
        let resource = format!("{}/{}", kind.resource(), gvk.version);
        let access = Access { allowed, resource };
        let mut reviews = self.reviews();
        if reviews.len() >= REVIEWS {
            reviews.retain(|_, (_, at)| at.elapsed() < ACCESS_HOLDS);
        }
        reviews.insert(review, (access.clone(), Instant::now()));
        Ok(access)
    }
}

/// What the answer to a delete says, and the UID that it names. It is the object if something still
/// holds it, and for some kinds also if it is gone.
fn deleted(answer: &Object) -> (Deleted, String) {
    if answer.kind() == "Status" {
        return (Deleted::Gone, answer.str_at(&["details", "uid"]).to_owned());
    }
    let finalizers = |path: &[&str]| {
        answer.at(path).and_then(Value::as_array).is_some_and(|all| !all.is_empty())
    };
    let grace = answer.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
    let held = finalizers(&["metadata", "finalizers"])
        || grace.unwrap_or_default() > 0
        || (is_namespace(answer) && finalizers(&["spec", "finalizers"]));
    let deleted =
        if answer.is_being_deleted() && held { Deleted::Terminating } else { Deleted::Gone };
    (deleted, answer.uid().to_owned())
}
