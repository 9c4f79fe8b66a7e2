//! `/api/v1`: answers questions over HTTP, in the JSON that the command line prints.

pub mod client;

use biplane_function::server::Page;
use jiff::Timestamp;
use serde_json::json;

use crate::query::archive::{Archive, Error};
use crate::query::ask::{self, Question};
use crate::query::print;

const JSON: &str = "application/json";

/// Answers one question. `None` if the path is not one of the API.
pub fn page(archive: &dyn Archive, target: &str, now: Timestamp) -> Option<Page> {
    let question = Question::from_uri(target)?;
    Some(match question.and_then(|question| ask::answer(archive, &question, now)) {
        Ok(answer) => {
            let body = serde_json::to_string(&print::value(&answer)).unwrap_or_default();
            Page { status: 200, content_type: JSON, body }
        }
        Err(error) => failed(&error),
    })
}

fn failed(error: &Error) -> Page {
    let (status, reason) = match error {
        Error::NotFound(_) => (404, "notFound"),
        Error::Usage(_) => (400, "usage"),
        Error::TooMuch(_) | Error::NotReady(_) => (503, "failed"),
        Error::Failed(_) => (500, "failed"),
    };
    let body = json!({"error": {"reason": reason, "message": error.to_string()}}).to_string();
    Page { status, content_type: JSON, body }
}

/// Whether a `Host` header is an address or `localhost`. Names can be made to mean any address.
pub fn is_own_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_own_names() {
        for host in ["127.0.0.1:7654", "localhost", "LOCALHOST:1", "[::1]:7654", "10.0.0.1"] {
            assert!(is_own_host(host), "{host}");
        }
        for host in ["", "example.org", "localhost.example.org:80", "[evil]:1"] {
            assert!(!is_own_host(host), "{host}");
        }
    }
}
