//! AdmissionReviews: the question of an API server, and the answer to it.

use biplane_go::fmt::quote;
use biplane_model::{Object, Value};
use serde_json::json;

use super::status::Status;

/// The versions of reviews, which are the same.
const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];
const KIND: &str = "AdmissionReview";

/// What is about to happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// The question whether something may happen to an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    api_version: String,
    uid: String,
    pub(super) operation: Operation,
    /// The object as it will be. Empty if it is being deleted.
    pub(super) object: Object,
    /// The object as it was. Empty if it is new.
    pub(super) old: Object,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Verdict {
    /// Why it may not happen.
    pub(super) denial: Option<Status>,
    /// What the user should know in any case.
    pub(super) warnings: Vec<String>,
}

impl From<Status> for Verdict {
    fn from(denial: Status) -> Self {
        Self { denial: Some(denial), warnings: Vec::new() }
    }
}

impl Request {
    /// Reads a review. The error says why it cannot be read.
    pub(super) fn parse(content_type: &str, body: &[u8]) -> Result<Self, String> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/json") {
            return Err(format!("contentType={content_type}, expected application/json"));
        }
        if body.is_empty() {
            return Err("request body is empty".to_owned());
        }
        let mut review: Value = serde_json::from_slice(body)
            .map_err(|error| format!("cannot read the {KIND}: {error}"))?;
        let text = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (api_version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
        if kind != KIND || !VERSIONS.contains(&api_version.as_str()) {
            return Err(format!(
                "expected an {KIND} of {}, not kind {} of {}",
                VERSIONS[0],
                quote(&kind),
                quote(&api_version)
            ));
        }
        let Some(request) = review.get_mut("request").filter(|request| request.is_object()) else {
            return Err(format!("the {KIND} has no request"));
        };
        let uid = text(request, "uid");
        if uid.is_empty() {
            return Err(format!("the request of the {KIND} has no uid"));
        }
        let operation = match text(request, "operation").as_str() {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            "CONNECT" => Operation::Connect,
            other => return Err(format!("unknown operation {}", quote(other))),
        };
        let mut object = |name: &str, needed: bool| match request.get_mut(name).map(Value::take) {
            None | Some(Value::Null) if !needed => Ok(Object::default()),
            given => given
                .and_then(Object::from_value)
                .ok_or_else(|| format!("the request of the {KIND} has no {name}")),
        };
        let new = object("object", matches!(operation, Operation::Create | Operation::Update))?;
        let old = object("oldObject", operation == Operation::Update)?;
        Ok(Self { api_version, uid, operation, object: new, old })
    }

    /// Whether the object is being deleted. What is wrong with it must not keep its finalizers from
    /// being removed.
    pub(super) fn is_of_the_end(&self) -> bool {
        self.operation == Operation::Update && self.object.is_being_deleted()
    }

    /// The name of the object, for logs.
    pub(super) fn name(&self) -> &str {
        match self.operation {
            Operation::Delete => self.old.name(),
            _ => self.object.name(),
        }
    }

    /// The review with the answer.
    pub(super) fn answer(&self, verdict: &Verdict) -> Value {
        let status = match &verdict.denial {
            Some(denial) => denial.to_value(),
            None => json!({"metadata": {}, "code": 200}),
        };
        let mut response = json!({
            "uid": self.uid, "allowed": verdict.denial.is_none(), "status": status,
        });
        if !verdict.warnings.is_empty() {
            response["warnings"] = json!(verdict.warnings);
        }
        json!({"apiVersion": self.api_version, "kind": KIND, "response": response})
    }
}

/// The answer to a review that cannot be read.
pub(super) fn refusal(reason: String) -> Value {
    let status = Status::bad_request(reason).to_value();
    let response = json!({"uid": "", "allowed": false, "status": status});
    json!({"apiVersion": VERSIONS[0], "kind": KIND, "response": response})
}
