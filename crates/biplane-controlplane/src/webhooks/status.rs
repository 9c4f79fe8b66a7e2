//! The `Status` with which a webhook refuses an object, in the form of Kubernetes' own errors.

use std::collections::BTreeSet;

use biplane_cluster::WriteError;
use biplane_go::fmt::quote;
use biplane_model::{Map, Value};
use serde_json::json;

/// The types of field errors: the words in their texts, and the reasons of their causes.
const TYPES: [(&str, &str); 9] = [
    ("Not found", "FieldValueNotFound"),
    ("Required value", "FieldValueRequired"),
    ("Duplicate value", "FieldValueDuplicate"),
    ("Invalid value", "FieldValueInvalid"),
    ("Unsupported value", "FieldValueNotSupported"),
    ("Forbidden", "FieldValueForbidden"),
    ("Too long", "FieldValueTooLong"),
    ("Too many", "FieldValueTooMany"),
    ("Internal error", "InternalError"),
];

/// Why an object is refused.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Status {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
}

/// The object that a status is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) group: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
}

impl Subject<'_> {
    fn details(self, causes: Vec<Value>) -> Value {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.kind)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.into());
            }
        }
        if !causes.is_empty() {
            details.insert("causes".to_owned(), causes.into());
        }
        details.into()
    }
}

impl Status {
    /// A refusal that is about no field.
    pub(super) fn forbidden(message: String) -> Self {
        Self { code: 403, reason: "Forbidden", message, details: None }
    }

    /// A request that makes no sense.
    pub(super) fn bad_request(message: String) -> Self {
        Self { code: 400, reason: "BadRequest", message, details: None }
    }

    /// Field errors of an object.
    pub(super) fn invalid(subject: Subject<'_>, errors: &[String]) -> Self {
        let Subject { group, kind, name } = subject;
        let message = format!("{kind}.{group} {} is invalid: {}", quote(name), aggregate(errors));
        let causes = errors.iter().map(|error| cause(error, "")).collect();
        Self { code: 422, reason: "Invalid", message, details: Some(subject.details(causes)) }
    }

    /// An API server's refusal of a CRD, as a refusal of the definition that gives it.
    pub(super) fn of_generated_crd(
        definition: Subject<'_>,
        crd: &str,
        refusal: &WriteError,
    ) -> Self {
        let text = refusal.to_string();
        let (code, reason) = code(refusal);
        let place = format!("<generated_CRD_{}>.", quote(crd));
        let causes = match refusal {
            WriteError::Invalid(_) => {
                field_errors(&text).into_iter().map(|error| cause(error, &place)).collect()
            }
            _ => Vec::new(),
        };
        let message = format!("invalid CRD generated for CompositeResourceDefinition: {text}");
        Self { code, reason, message, details: Some(definition.details(causes)) }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The status as part of an answer.
    pub(super) fn to_value(&self) -> Value {
        let Self { code, reason, message, details } = self;
        let mut status = json!({
            "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code,
        });
        if let Some(details) = details {
            status["details"] = details.clone();
        }
        status
    }
}

/// The code and the reason with which an API server said this.
fn code(refusal: &WriteError) -> (u16, &'static str) {
    match refusal {
        WriteError::NotFound(_) | WriteError::UnknownKind(_) => (404, "NotFound"),
        WriteError::Conflict(_) => (409, "Conflict"),
        WriteError::AlreadyExists(_) => (409, "AlreadyExists"),
        WriteError::Invalid(_) => (422, "Invalid"),
        WriteError::TooLarge(_) => (413, "RequestEntityTooLarge"),
        WriteError::BadRequest(_) => (400, "BadRequest"),
        WriteError::Forbidden(_) => (403, "Forbidden"),
        WriteError::Unauthorized(_) => (401, "Unauthorized"),
        WriteError::Throttled { .. } => (429, "TooManyRequests"),
        WriteError::Malformed(_) | WriteError::Internal(_) => (500, "InternalError"),
        WriteError::TimedOut(_) => (504, "Timeout"),
        WriteError::Unavailable(_) => (503, "ServiceUnavailable"),
    }
}

/// Several errors in one text, each of them once.
pub(super) fn aggregate(errors: &[String]) -> String {
    let mut seen = BTreeSet::new();
    let errors: Vec<&str> =
        errors.iter().map(String::as_str).filter(|error| seen.insert(*error)).collect();
    match errors.as_slice() {
        [error] => (*error).to_owned(),
        errors => format!("[{}]", errors.join(", ")),
    }
}

/// The field, the type and the body of a field error. Another may follow, after a comma.
fn parts(error: &str) -> Option<(&str, &'static str, &str)> {
    let mut colons = error.match_indices(": ").map(|(colon, _)| colon);
    colons.find_map(|colon| {
        let body = &error[colon + 2..];
        Some((&error[..colon], reason(body)?, body))
    })
}

/// The reason of an error whose text begins with its type.
fn reason(body: &str) -> Option<&'static str> {
    let is = |word: &str| {
        let rest = body.strip_prefix(word);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ',']))
    };
    TYPES.iter().find(|(word, _)| is(word)).map(|(_, reason)| *reason)
}

/// The cause of a field error. `place` comes before its field.
fn cause(error: &str, place: &str) -> Value {
    match parts(error) {
        Some((field, reason, body)) => {
            json!({"reason": reason, "message": body, "field": format!("{place}{field}")})
        }
        None => json!({"message": error, "field": place.trim_end_matches('.')}),
    }
}

/// The field errors in an API server's text that an object is invalid.
fn field_errors(text: &str) -> Vec<&str> {
    let Some((_, errors)) = text.split_once(" is invalid: ") else { return vec![text] };
    let Some(list) = errors.strip_prefix('[').and_then(|list| list.strip_suffix(']')) else {
        return vec![errors];
    };
    // A comma may be part of an error. One that separates two is followed by a field, which has no
    // spaces in it. Only the first word is looked at: texts can be long.
    let begins = |error: &str| {
        let Some((field, body)) = error.split_once(char::is_whitespace) else { return false };
        let is_followed = error[field.len()..].starts_with(' ') && field.ends_with(':');
        is_followed && reason(body).is_some()
    };
    let mut all = Vec::new();
    let mut begun = 0;
    for (at, _) in list.match_indices(", ") {
        if begins(&list[at + 2..]) {
            all.push(&list[begun..at]);
            begun = at + 2;
        }
    }
    all.push(&list[begun..]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_causes() {
        let subject = Subject { group: "example.org", kind: "Thing", name: "a" };
        let errors = [
            "spec.x: Required value: it is: Invalid value".to_owned(),
            "spec.y[0]: Duplicate value: \"b\"".to_owned(),
            "spec.y[0]: Duplicate value: \"b\"".to_owned(),
        ];
        let status = Status::invalid(subject, &errors).to_value();
        assert_eq!(
            status,
            json!({
                "metadata": {}, "status": "Failure", "reason": "Invalid", "code": 422,
                "message": "Thing.example.org \"a\" is invalid: [spec.x: Required value: it is: \
                    Invalid value, spec.y[0]: Duplicate value: \"b\"]",
                "details": {"name": "a", "group": "example.org", "kind": "Thing", "causes": [
                    {"reason": "FieldValueRequired", "field": "spec.x",
                        "message": "Required value: it is: Invalid value"},
                    {"reason": "FieldValueDuplicate", "field": "spec.y[0]",
                        "message": "Duplicate value: \"b\""},
                    {"reason": "FieldValueDuplicate", "field": "spec.y[0]",
                        "message": "Duplicate value: \"b\""},
                ]},
            })
        );
        let one = Status::invalid(subject, &errors[..1]);
        assert!(
            one.message().ends_with("is invalid: spec.x: Required value: it is: Invalid value")
        );
    }

    /// This does not end if the text is read once for each comma.
    #[test]
    fn long_refusals_are_read_once() {
        let commas = "a, b: c, ".repeat(300_000);
        let text = format!("x is invalid: [spec.x: Invalid value: {commas}, spec.y: Forbidden]");
        let errors = field_errors(&text);
        assert_eq!((errors.len(), errors.last()), (2, Some(&"spec.y: Forbidden")));
    }

    /// XRDV-6
    #[test]
    fn refusals_of_generated_crds_are_about_the_definition() {
        let definition = Subject { group: "x.org", kind: "Definition", name: "xs.example.org" };
        let text = "CustomResourceDefinition.apiextensions.k8s.io \"Xs.example.org\" is invalid: \
            [metadata.name: Invalid value: \"Xs.example.org\": a, b, spec.scope: Required value, \
            spec.names.plural: Invalid value: \"Xs\": must be lower case]";
        let refusal = WriteError::Invalid(text.to_owned());
        let status = Status::of_generated_crd(definition, "Xs.example.org", &refusal).to_value();
        let message = format!("invalid CRD generated for CompositeResourceDefinition: {text}");
        assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
        assert_eq!(status["message"], message);
        assert_eq!(status["details"]["kind"], "Definition");
        let causes: Vec<_> = status["details"]["causes"].as_array().unwrap().iter().collect();
        let pair = |n: usize| (causes[n]["field"].as_str().unwrap(), &causes[n]["message"]);
        let at = "<generated_CRD_\"Xs.example.org\">.";
        assert_eq!(
            pair(0),
            (&*format!("{at}metadata.name"), &json!("Invalid value: \"Xs.example.org\": a, b"))
        );
        assert_eq!(pair(1), (&*format!("{at}spec.scope"), &json!("Required value")));
        assert_eq!(pair(2).0, format!("{at}spec.names.plural"));
        assert_eq!(causes.len(), 3);
        let exists = WriteError::AlreadyExists("it already exists".to_owned());
        let status = Status::of_generated_crd(definition, "xs", &exists).to_value();
        assert_eq!((&status["code"], &status["reason"]), (&json!(409), &json!("AlreadyExists")));
        assert_eq!(status["details"].get("causes"), None);
    }
}
