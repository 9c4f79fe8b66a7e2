//! Runs sequences on the memory cluster.

use biplane_cluster::memory::ApiServer;
use biplane_cluster::{Apply, Cluster, Delete, Part, Patch, ReadError, Source, Write, WriteError};
use biplane_model::Object;
use serde_json::Value;

use super::{Answer, Step, World};
use crate::soon;

pub(crate) struct Memory {
    cluster: ApiServer,
    runtime: tokio::runtime::Runtime,
}

impl Memory {
    pub(crate) fn new(definitions: &[Object]) -> Self {
        let cluster = ApiServer::default();
        for definition in definitions {
            cluster.register(definition).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { cluster, runtime }
    }

    /// Stores an object as it was, so that the next write finds it in that state.
    pub(crate) fn put_back(&self, object: &Object) {
        self.cluster.seed([object.clone()]);
    }
}

fn refused(error: &WriteError) -> Answer {
    let reason = match error {
        WriteError::NotFound(_) => "NotFound",
        WriteError::Conflict(_) => "Conflict",
        WriteError::AlreadyExists(_) => "AlreadyExists",
        WriteError::Invalid(_) => "Invalid",
        WriteError::Malformed(_) => "Malformed",
        WriteError::BadRequest(_) => "BadRequest",
        _ => "other",
    };
    Answer::Refused { reason, message: error.to_string() }
}

impl World for Memory {
    fn get(&self, object: &Object) -> Answer {
        match self.runtime.block_on(self.cluster.get(&object.id(), Source::Live, soon())) {
            Ok(object) => Answer::Object(object),
            Err(ReadError::NotFound(message)) => Answer::Refused { reason: "NotFound", message },
            Err(error) => Answer::Refused { reason: "other", message: error.to_string() },
        }
    }

    fn run(&self, step: &Step<'_>) -> Answer {
        let Step { verb, manager, force, object, patch } = step;
        let write = &Write::by(*manager);
        let apply = &Apply { write: write.clone(), force: *force };
        let (main, status) = (Part::Main, Part::Status);
        let cluster = &self.cluster;
        let (id, by) = (object.id(), soon());
        let answer = self.runtime.block_on(async {
            match *verb {
                "create" => cluster.create(object.clone(), write, by).await,
                "update" => cluster.update(object, main, write, by).await,
                "updateStatus" => cluster.update(object, status, write, by).await,
                "apply" => cluster.apply(object, main, None, apply, by).await.map(|a| a.object),
                "applyStatus" => {
                    cluster.apply(object, status, None, apply, by).await.map(|a| a.object)
                }
                "mergePatch" => {
                    let patch = Patch::Merge((*patch).clone());
                    cluster.patch(&id, main, &patch, write, by).await
                }
                "jsonPatch" => {
                    let patch = Patch::Json(patch.as_array().cloned().unwrap());
                    cluster.patch(&id, main, &patch, write, by).await
                }
                "delete" => {
                    cluster.delete(&id, &Delete::default(), by).await.map(|_| Object::new())
                }
                "get" => Ok(Object::new()),
                other => panic!("no such verb: {other}"),
            }
        });
        match answer {
            Ok(_) if *verb == "get" => self.get(object),
            Ok(object) if object.get("kind").and_then(Value::as_str).is_none() => Answer::Gone,
            Ok(object) => Answer::Object(object),
            Err(error) => refused(&error),
        }
    }
}
