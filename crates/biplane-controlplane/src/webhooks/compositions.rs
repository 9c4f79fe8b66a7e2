//! Reviews Compositions: by their own rules and, if that is enabled, with the schemas of what they
//! compose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use biplane_cluster::{Cluster, Form, List, Optional as _, Query, ReadError, Source};
use biplane_model::{Gvk, Object, ObjectId, composition};
use biplane_validate::schema_aware::{self, Denial, Mode};
use futures_util::future::join_all;
use tokio::time::Instant;

use super::Review;
use super::review::{Operation, Request, Verdict};
use super::status::{Status, Subject};

const KIND: &str = "Composition";
/// How many CRDs are read at a time.
const AT_ONCE: usize = 16;

/// Reviews Compositions.
pub(super) struct Compositions {
    cluster: Arc<dyn Cluster>,
    schemas: bool,
    /// What is known of CRDs by their names, so that those of other kinds are read only once.
    known: Mutex<BTreeMap<String, Known>>,
}

/// A state of a CRD, and the kind that it defines.
#[derive(Clone)]
struct Known {
    uid: String,
    generation: i64,
    kind: String,
}

impl Known {
    fn is_of(&self, crd: &Object) -> bool {
        self.uid == crd.uid() && self.generation == crd.generation()
    }
}

#[async_trait]
impl Review for Compositions {
    async fn review(&self, request: &Request, by: Instant) -> Verdict {
        if !matches!(request.operation, Operation::Create | Operation::Update) {
            return Verdict::default();
        }
        let object = &request.object;
        let group = Gvk::new(composition::API_VERSION, KIND).group;
        if object.kind() != KIND || object.gvk().group != group {
            return Status::forbidden(format!("supplied object was not a {KIND}")).into();
        }
        let verdict = self.judge(object, by).await;
        let denial = verdict.denial.map(|denial| match denial {
            Denial::Invalid(errors) => {
                Status::invalid(Subject { group: &group, kind: KIND, name: object.name() }, &errors)
            }
            Denial::Forbidden(text) => Status::forbidden(text),
        });
        Verdict { denial, warnings: verdict.warnings }
    }
}

impl Compositions {
    pub(super) fn new(cluster: Arc<dyn Cluster>, schemas: bool) -> Self {
        Self { cluster, schemas, known: Mutex::default() }
    }

    async fn judge(&self, composition: &Object, by: Instant) -> schema_aware::Verdict {
        let alone = schema_aware::review(composition, None);
        if !self.schemas || alone.denial.is_some() {
            return alone;
        }
        if Mode::of(composition).is_err() {
            return schema_aware::review(composition, Some(&[]));
        }
        let needed = schema_aware::needed(composition).map(|gvk| (gvk.group, gvk.kind)).collect();
        match self.crds(&needed, by).await {
            Ok(crds) => schema_aware::review(composition, Some(&crds)),
            Err(error) => {
                let text = format!("cannot get the needed CRDs: [{error}]");
                let denial = Some(Denial::Forbidden(text));
                schema_aware::Verdict { denial, warnings: Vec::new() }
            }
        }
    }

    /// The CRDs of kinds, given as group and kind. The name of a CRD tells its group, so others are
    /// not read.
    async fn crds(
        &self,
        needed: &BTreeSet<(String, String)>,
        by: Instant,
    ) -> Result<Vec<Object>, ReadError> {
        let gvk = Gvk::new("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let names = List { source: Source::Live, form: Form::Metadata, ..List::default() };
        let listed = self.cluster.list(&gvk, &Query::default(), &names, by).await?.objects;
        let candidates = self.candidates(&listed, needed);
        let ids: Vec<ObjectId> =
            candidates.iter().map(|name| ObjectId::new(gvk.clone(), "", name)).collect();
        let mut found = Vec::new();
        for ids in ids.chunks(AT_ONCE) {
            let read = ids.iter().map(|id| self.cluster.get(id, Source::Live, by));
            for crd in join_all(read).await {
                // One may have been deleted since.
                let Some(crd) = crd.optional()? else { continue };
                let [group, kind] = [["spec", "group"].as_slice(), &["spec", "names", "kind"]]
                    .map(|path| crd.str_at(path).to_owned());
                self.remember(&crd, &kind);
                if needed.contains(&(group, kind)) {
                    found.push(crd);
                }
            }
        }
        Ok(found)
    }

    /// The names of the CRDs that may define one of these kinds.
    fn candidates(&self, listed: &[Object], needed: &BTreeSet<(String, String)>) -> Vec<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let exist: BTreeSet<&str> = listed.iter().map(Object::name).collect();
        known.retain(|name, _| exist.contains(name.as_str()));
        let may_define = |crd: &&Object| {
            let Some((_, group)) = crd.name().split_once('.') else { return false };
            match known.get(crd.name()).filter(|known| known.is_of(crd)) {
                Some(known) => needed.contains(&(group.to_owned(), known.kind.clone())),
                None => needed.iter().any(|(wanted, _)| wanted == group),
            }
        };
        listed.iter().filter(may_define).map(|crd| crd.name().to_owned()).collect()
    }

    fn remember(&self, crd: &Object, kind: &str) {
        let known = Known {
            uid: crd.uid().to_owned(),
            generation: crd.generation(),
            kind: kind.to_owned(),
        };
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(crd.name().to_owned(), known);
    }
}
