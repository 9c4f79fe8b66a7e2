//! Creates and updates the CRD of a definition. What is already as it should be is not written.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use biplane_cluster::{Optional, Part, Source, Write, WriteError};
use biplane_go::fmt::quote;
use biplane_model::owner::controller_of;
use biplane_model::{Object, Value};
use biplane_schema::{crd, value};

use super::pass::{MANAGER, Pass};
use crate::failure::{Attempted, Failure};

/// The CRD as it is stored now.
pub(super) struct Applied {
    pub(super) crd: Object,
    /// Whether it was created or changed.
    pub(super) changed: bool,
}

/// What was written last, by the UID of the CRD: its generation, and a hash of what was sent.
///
/// A server may store a CRD in another form than the one that was sent. As long as the generation
/// is the same, nobody has changed it since.
#[derive(Debug, Default)]
pub(super) struct Written(Mutex<BTreeMap<String, (i64, u64)>>);

impl Written {
    fn remember(&self, stored: &Object, sent: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(stored.uid().to_owned(), (stored.generation(), sent));
    }

    fn knows(&self, stored: &Object, wanted: u64) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(stored.uid()) == Some(&(stored.generation(), wanted))
    }

    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

/// Creates the CRD, or updates it if it differs. `None` if somebody else was faster.
pub(super) async fn apply(
    pass: &Pass<'_>,
    definition: &Object,
    rendered: Object,
) -> Result<Option<Applied>, Failure> {
    let (cluster, how) = (pass.cluster(), Write::by(MANAGER));
    let sent = hash(rendered.get("spec"));
    let stored = cluster.get(&rendered.id(), Source::Cache, pass.by).await.optional();
    let Some(stored) = stored.attempted("cannot get object")? else {
        return match cluster.create(rendered, &how, pass.by).await {
            // The next reconcile sees the object, and whether it is ours.
            Err(WriteError::AlreadyExists(_)) => Ok(None),
            created => {
                let crd = created.attempted("cannot create object")?;
                pass.defining.written.remember(&crd, sent);
                Ok(Some(Applied { crd, changed: true }))
            }
        };
    };
    if controller_of(&stored).is_some_and(|owner| owner.uid != definition.uid()) {
        let uid = quote(definition.uid());
        return Err(Failure::new(format!("existing object is not controlled by UID {uid}")));
    }
    let wanted = wanted(&stored, rendered, pass.defining.written.knows(&stored, sent));
    if wanted == stored {
        return Ok(Some(Applied { crd: stored, changed: false }));
    }
    let updated = cluster.update(&wanted, Part::Main, &how, pass.by).await;
    let crd = updated.attempted("cannot update object")?;
    pass.defining.written.remember(&crd, sent);
    let changed = crd.resource_version() != stored.resource_version();
    Ok(Some(Applied { crd, changed }))
}

/// The stored CRD with everything that the definition decides: labels, annotations, owner and spec.
fn wanted(stored: &Object, mut rendered: Object, same_spec: bool) -> Object {
    crd::default(&mut rendered);
    let mut wanted = stored.clone();
    for field in ["labels", "annotations", "ownerReferences"] {
        let path = ["metadata", field];
        match rendered.remove_at(&path) {
            Some(value) => wanted.set_at_or_ignore(&path, value),
            None => {
                wanted.remove_at(&path);
            }
        }
    }
    if let (Some(spec), Some(before)) = (rendered.get("spec"), stored.get("spec"))
        && !same_spec
        && !value::equal(spec, before)
    {
        wanted.set_at_or_ignore(&["spec"], spec.clone());
    }
    wanted
}

fn hash(spec: Option<&Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    spec.map(Value::to_string).hash(&mut hasher);
    hasher.finish()
}
