//! The object in which an API server says why it refuses.

use serde_json::{Value, json};

/// The object in which a server says why it refuses.
pub(super) fn status(code: u16) -> Value {
    let (reason, message) = match code {
        401 => ("Unauthorized", "Unauthorized"),
        403 => ("Forbidden", "forbidden by the proxy"),
        404 => ("NotFound", "the server could not find the requested resource"),
        409 => (
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        410 => ("Expired", "too old resource version: 1 (2)"),
        429 => ("TooManyRequests", "too many requests, please try again later"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => ("Timeout", "the request could not be completed in time"),
        _ => ("InternalError", "an internal error of the proxy"),
    };
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    })
}
