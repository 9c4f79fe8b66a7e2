//! Runs sequences on a real API server.

use std::time::{Duration, Instant};

use biplane_devenv::ApiServer;
use biplane_model::Object;

use super::{Answer, Step, World};
use crate::http::Client;

pub(crate) struct Server {
    client: Client,
    // The server stops when this is dropped.
    _server: ApiServer,
}

const JSON: &str = "application/json";

impl Server {
    pub(crate) fn start(definitions: &[Object]) -> Self {
        let server = ApiServer::start().unwrap();
        let client = Client::new(&server);
        for definition in definitions {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let body = definition.to_value().to_string();
            let (status, answer) = client.ask("POST", path, JSON, &body);
            assert_eq!(status, 201, "{answer}");
        }
        // The server takes a while to serve a new kind, and does not report when it does.
        let deadline = Instant::now() + Duration::from_mins(1);
        for plural in ["widgets", "plains", "simples", "duals"] {
            let path = format!("/apis/example.org/v1/{plural}");
            while client.ask("GET", &path, JSON, "").0 != 200 {
                assert!(Instant::now() < deadline, "{plural} is not served");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Self { client, _server: server }
    }

    fn ask(&self, method: &str, path: &str, content_type: &str, body: &str) -> Answer {
        let (status, answer) = self.client.ask(method, path, content_type, body);
        if answer["kind"] != "Status" {
            return Answer::Object(Object::from_value(answer).unwrap());
        }
        if (200..300).contains(&status) {
            return Answer::Gone;
        }
        let reason = match (status, answer["reason"].as_str().unwrap_or_default()) {
            (404, _) => "NotFound",
            (409, "AlreadyExists") => "AlreadyExists",
            (409, _) => "Conflict",
            (422, _) => "Invalid",
            // The server reports a type mismatch as an internal error.
            (500, "") => "Malformed",
            (400, _) => "BadRequest",
            _ => "other",
        };
        let message = answer["message"].as_str().unwrap_or_default().to_owned();
        Answer::Refused { reason, message }
    }
}

fn collection(object: &Object) -> String {
    let plural = format!("{}s", object.kind().to_lowercase());
    let version = object.api_version();
    match object.namespace() {
        "" => format!("/apis/{version}/{plural}"),
        namespace => format!("/apis/{version}/namespaces/{namespace}/{plural}"),
    }
}

impl World for Server {
    fn get(&self, object: &Object) -> Answer {
        let path = format!("{}/{}", collection(object), object.name());
        self.ask("GET", &path, JSON, "")
    }

    fn run(&self, step: &Step<'_>) -> Answer {
        let Step { verb, manager, force, object, patch } = step;
        let body = object.to_value().to_string();
        let collection = collection(object);
        let path = format!("{collection}/{}", object.name());
        let by = format!("fieldManager={manager}");
        let apply = "application/apply-patch+yaml";
        match *verb {
            "create" => self.ask("POST", &format!("{collection}?{by}"), JSON, &body),
            "update" => self.ask("PUT", &format!("{path}?{by}"), JSON, &body),
            "updateStatus" => self.ask("PUT", &format!("{path}/status?{by}"), JSON, &body),
            "apply" => self.ask("PATCH", &format!("{path}?{by}&force={force}"), apply, &body),
            "applyStatus" => {
                self.ask("PATCH", &format!("{path}/status?{by}&force={force}"), apply, &body)
            }
            "mergePatch" => {
                let kind = "application/merge-patch+json";
                self.ask("PATCH", &format!("{path}?{by}"), kind, &patch.to_string())
            }
            "jsonPatch" => {
                let kind = "application/json-patch+json";
                self.ask("PATCH", &format!("{path}?{by}"), kind, &patch.to_string())
            }
            "delete" => match self.ask("DELETE", &path, JSON, "") {
                // The response may be the object that is being deleted.
                Answer::Object(_) | Answer::Gone => Answer::Gone,
                refused @ Answer::Refused { .. } => refused,
            },
            "get" => self.get(object),
            other => panic!("no such verb: {other}"),
        }
    }
}
