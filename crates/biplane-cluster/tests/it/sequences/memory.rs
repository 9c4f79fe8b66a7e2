//! Runs sequences on the memory cluster.

use biplane_cluster::memory::Counted;
use biplane_cluster::{
    Apply, Cluster, Delete, MemoryCluster, Patch, ReadError, Source, WriteError,
};
use biplane_model::Object;
use serde_json::Value;

use super::{Answer, Step, World};

pub(crate) struct Memory {
    cluster: MemoryCluster,
    runtime: tokio::runtime::Runtime,
}

impl Memory {
    pub(crate) fn new(definitions: &[Object]) -> Self {
        let cluster = MemoryCluster::api_server("test", Counted::default());
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
        WriteError::BadRequest(_) => "BadRequest",
        _ => "other",
    };
    Answer::Refused { reason, message: error.to_string() }
}

impl World for Memory {
    fn get(&self, object: &Object) -> Answer {
        match self.runtime.block_on(self.cluster.get(&object.id(), Source::Live)) {
            Ok(object) => Answer::Object(object),
            Err(ReadError::NotFound(message)) => Answer::Refused { reason: "NotFound", message },
            Err(error) => Answer::Refused { reason: "other", message: error.to_string() },
        }
    }

    fn run(&self, step: &Step<'_>) -> Answer {
        let Step { verb, manager, force, object, patch } = step;
        self.cluster.write_as(manager);
        let how = Apply { manager: (*manager).to_owned(), force: *force };
        let cluster = &self.cluster;
        let id = object.id();
        let answer = self.runtime.block_on(async {
            match *verb {
                "create" => cluster.create(object.clone()).await,
                "update" => cluster.update(object).await,
                "updateStatus" => cluster.update_status(object).await,
                "apply" => cluster.apply(object, &how).await,
                "applyStatus" => cluster.apply_status(object, &how).await,
                "mergePatch" => cluster.patch(&id, &Patch::Merge((*patch).clone())).await,
                "jsonPatch" => {
                    let operations = patch.as_array().cloned().unwrap();
                    cluster.patch(&id, &Patch::Json(operations)).await
                }
                "delete" => cluster.delete(&id, &Delete::default()).await.map(|()| Object::new()),
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
