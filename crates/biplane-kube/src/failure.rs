//! Why a request failed, and which error of the port that is.

use std::time::Duration;

use biplane_cluster::{ReadError, WriteError};
use biplane_go::fmt::quote;
use biplane_model::Gvk;
use serde::Deserialize;

/// What Go says when the deadline of a call passed. Users search for it.
const LATE: &str = "context deadline exceeded";

/// What the client says when the server does not serve a path.
const NOT_SERVED: &str = "the server could not find the requested resource";

/// The server reports this mistake of a client as an internal error.
const VERSION_ON_CREATE: &str = "resourceVersion should not be set on objects to be created";

/// Messages of internal errors that only another object can help against.
const MALFORMED: [&str; 3] = [
    "failed to create typed patch object",
    "failed to create typed live object",
    "failed to create manager for existing fields",
];

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server refused it.
    Refused(Refusal),
    /// The server does not know the kind.
    UnknownKind(String),
    /// The request makes no sense and was not sent.
    NotSent(String),
    /// The answer makes no sense.
    Garbled(String),
    /// The deadline passed.
    TimedOut,
    /// The server cannot be reached.
    Unreachable(String),
}

/// A refusal of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    reason: String,
    message: String,
    /// Whether the server names the object in question.
    names_object: bool,
    /// How long it asks to wait.
    pub(crate) after: Duration,
}

/// A `Status`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    kind: String,
    message: String,
    reason: String,
    code: u16,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    name: String,
    kind: String,
    retry_after_seconds: u64,
}

impl Refusal {
    /// Reads a refusal. `after` is the header `Retry-After`.
    pub(crate) fn new(code: u16, body: &[u8], after: Option<&str>) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        let seconds = after.and_then(|text| text.trim().parse().ok());
        if status.kind != "Status" {
            return Self {
                code,
                message: plain(code, body),
                after: Duration::from_secs(seconds.unwrap_or_default()),
                ..Self::default()
            };
        }
        let details = status.details.unwrap_or_default();
        Self {
            code,
            names_object: !details.kind.is_empty() || !details.name.is_empty(),
            reason: status.reason,
            message: status.message,
            after: Duration::from_secs(seconds.unwrap_or(details.retry_after_seconds)),
        }
    }

    /// What the server would say of an object that cannot be addressed.
    pub(crate) fn invalid(message: String) -> Self {
        Self { code: 422, reason: "Invalid".into(), message, ..Self::default() }
    }

    /// Reads the refusal in an `ERROR` event of a watch.
    pub(crate) fn of_event(body: &[u8]) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        Self::new(status.code, body, None)
    }

    /// Whether the server does not serve this path at all. An object that does not exist is
    /// something else.
    pub(crate) fn is_not_served(&self) -> bool {
        self.code == 404 && !self.names_object
    }

    /// The version to continue from is too old.
    pub(crate) fn is_expired(&self) -> bool {
        self.code == 410 || matches!(self.reason.as_str(), "Expired" | "Gone")
    }

    /// The server has too much to do or is broken. Fewer requests help.
    pub(crate) fn is_trouble(&self) -> bool {
        let ours = self.is_malformed() || self.is_too_large() || self.message == VERSION_ON_CREATE;
        self.code == 429 || (self.code >= 500 && !ours)
    }

    /// The database has its own limit, which the server reports in its words.
    fn is_too_large(&self) -> bool {
        self.code == 413 || self.message.contains("etcdserver: request is too large")
    }

    fn is_malformed(&self) -> bool {
        self.code == 500 && MALFORMED.iter().any(|text| self.message.contains(text))
    }
}

/// The text of an answer that is no `Status`: from a proxy, or from a server that does not know the
/// path.
fn plain(code: u16, body: &[u8]) -> String {
    const MOST: usize = 200;
    if code == 404 {
        return NOT_SERVED.into();
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(MOST)]);
    match text.trim() {
        "" => format!("the server answered with status {code}"),
        text => format!("the server answered with status {code}: {text}"),
    }
}

impl Failure {
    /// The cluster does not know a kind.
    pub(crate) fn unknown_kind(gvk: &Gvk) -> Self {
        let (kind, version) = (quote(&gvk.kind), quote(&gvk.api_version()));
        Self::UnknownKind(format!("no matches for kind {kind} in version {version}"))
    }

    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code == 404)
    }

    pub(crate) fn is_not_served(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.is_not_served())
    }

    /// A patch with the UID of another object is refused as invalid. For the caller it is a conflict:
    /// the object is not the one that it read.
    pub(crate) fn of_write_to(self, uid: &str) -> Self {
        let complaint = format!("metadata.uid: Invalid value: {}: field is immutable", quote(uid));
        match self {
            Self::Refused(refusal)
                if !uid.is_empty()
                    && refusal.code == 422
                    && refusal.message.contains(&complaint) =>
            {
                Self::Refused(Refusal { code: 409, reason: "Conflict".into(), ..refusal })
            }
            failure => failure,
        }
    }

    /// Whether the same request may succeed soon.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_trouble(),
            Self::Unreachable(_) => true,
            _ => false,
        }
    }
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        let refusal = match failure {
            Failure::Refused(refusal) => refusal,
            Failure::UnknownKind(text) => return Self::UnknownKind(text),
            Failure::NotSent(text) => return Self::NotFound(text),
            Failure::Garbled(text) => return Self::Malformed(text),
            Failure::TimedOut => return Self::TimedOut(LATE.into()),
            Failure::Unreachable(text) => return Self::Unavailable(text),
        };
        let Refusal { message, after, .. } = refusal.clone();
        match refusal.code {
            401 => Self::Unauthorized(message),
            403 => Self::Forbidden(message),
            404 => Self::NotFound(message),
            _ if refusal.is_expired() => Self::Expired(message),
            429 => Self::Throttled { message, after },
            500 => Self::Internal(message),
            504 => Self::TimedOut(message),
            code if code > 500 => Self::Unavailable(message),
            _ => Self::Malformed(message),
        }
    }
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> Self {
        let refusal = match failure {
            Failure::Refused(refusal) => refusal,
            Failure::UnknownKind(text) => return Self::UnknownKind(text),
            Failure::NotSent(text) => return Self::BadRequest(text),
            Failure::Garbled(text) => return Self::Internal(text),
            Failure::TimedOut => return Self::TimedOut(LATE.into()),
            Failure::Unreachable(text) => return Self::Unavailable(text),
        };
        let Refusal { message, after, reason, .. } = refusal.clone();
        match refusal.code {
            401 => Self::Unauthorized(message),
            403 => Self::Forbidden(message),
            404 => Self::NotFound(message),
            _ if refusal.is_too_large() => Self::TooLarge(message),
            409 if reason == "AlreadyExists" => Self::AlreadyExists(message),
            409 => Self::Conflict(message),
            422 => Self::Invalid(message),
            429 => Self::Throttled { message, after },
            500 if refusal.is_malformed() => Self::Malformed(message),
            500 if message == VERSION_ON_CREATE => Self::BadRequest(message),
            500 => Self::Internal(message),
            504 => Self::TimedOut(message),
            code if code > 500 => Self::Unavailable(message),
            _ => Self::BadRequest(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(code: u16, reason: &str, message: &str) -> Failure {
        let body = json!({"kind": "Status", "code": code, "reason": reason, "message": message});
        Failure::Refused(Refusal::new(code, body.to_string().as_bytes(), None))
    }

    #[test]
    fn refusals_of_writes_become_decisions() {
        type Error = fn(String) -> WriteError;
        let typed = "failed to create typed patch object (ns/a; v1, Kind=A): .spec.x: expected string, got &value.valueUnstructured{Value:1}";
        let cases: [(u16, &str, &str, Error); 15] = [
            (400, "BadRequest", "odd", WriteError::BadRequest),
            (401, "Unauthorized", "Unauthorized", WriteError::Unauthorized),
            (403, "Forbidden", "no", WriteError::Forbidden),
            (404, "NotFound", "not found", WriteError::NotFound),
            (405, "MethodNotAllowed", "no", WriteError::BadRequest),
            (409, "AlreadyExists", "exists", WriteError::AlreadyExists),
            (409, "Conflict", "modified", WriteError::Conflict),
            (413, "RequestEntityTooLarge", "limit is 3145728", WriteError::TooLarge),
            (422, "Invalid", "is invalid", WriteError::Invalid),
            (500, "", typed, WriteError::Malformed),
            (500, "", VERSION_ON_CREATE, WriteError::BadRequest),
            (500, "InternalError", "failed calling webhook", WriteError::Internal),
            (500, "", "etcdserver: request is too large", WriteError::TooLarge),
            (503, "ServiceUnavailable", "starting", WriteError::Unavailable),
            (504, "Timeout", "late", WriteError::TimedOut),
        ];
        for (code, reason, message, error) in cases {
            let got = WriteError::from(refused(code, reason, message));
            assert_eq!(got, error(message.to_owned()), "{code} {reason}");
        }
    }

    #[test]
    fn refusals_of_reads_become_decisions() {
        type Error = fn(String) -> ReadError;
        let cases: [(u16, &str, Error); 8] = [
            (400, "BadRequest", ReadError::Malformed),
            (401, "Unauthorized", ReadError::Unauthorized),
            (403, "Forbidden", ReadError::Forbidden),
            (404, "NotFound", ReadError::NotFound),
            (410, "Expired", ReadError::Expired),
            (500, "InternalError", ReadError::Internal),
            (503, "ServiceUnavailable", ReadError::Unavailable),
            (504, "Timeout", ReadError::TimedOut),
        ];
        for (code, reason, error) in cases {
            assert_eq!(ReadError::from(refused(code, reason, "text")), error("text".into()));
        }
    }

    #[test]
    fn a_throttled_request_is_told_how_long_to_wait() {
        let body =
            json!({"kind": "Status", "message": "slow down", "details": {"retryAfterSeconds": 3}})
                .to_string();
        let wait = |header| Refusal::new(429, body.as_bytes(), header).after.as_secs();
        assert_eq!((wait(None), wait(Some("7"))), (3, 7));
        let failure = Failure::Refused(Refusal::new(429, body.as_bytes(), Some("7")));
        assert!(failure.is_passing());
        let after = Duration::from_secs(7);
        let message = "slow down".to_owned();
        assert_eq!(WriteError::from(failure), WriteError::Throttled { message, after });
    }

    #[test]
    fn another_uid_is_a_conflict() {
        let text = r#"Thing "a" is invalid: metadata.uid: Invalid value: "u": field is immutable"#;
        let refused = || refused(422, "Invalid", text);
        let conflict = WriteError::Conflict(text.into());
        assert_eq!(WriteError::from(refused().of_write_to("u")), conflict);
        for uid in ["", "v"] {
            let invalid = WriteError::Invalid(text.into());
            assert_eq!(WriteError::from(refused().of_write_to(uid)), invalid);
        }
    }

    #[test]
    fn a_path_that_is_not_served_is_no_missing_object() {
        let missing = json!({"kind": "Status", "message": "things \"a\" not found", "reason": "NotFound",
            "details": {"name": "a", "kind": "things"}});
        assert!(!Refusal::new(404, missing.to_string().as_bytes(), None).is_not_served());
        let unserved = Refusal::new(404, b"404 page not found\n", None);
        assert!(unserved.is_not_served());
        assert_eq!(unserved.message, NOT_SERVED);
        assert_eq!(
            Refusal::new(502, b"<html>Bad Gateway", None).message,
            "the server answered with status 502: <html>Bad Gateway"
        );
    }
}
