//! `/api/v1`: answers questions over HTTP, in the JSON that the command line prints.

pub mod client;

use std::sync::{Arc, Mutex, PoisonError};

use biplane_function::server::{Asked, ListenError, Page, PlainHttp};
use jiff::Timestamp;
use serde_json::json;

use crate::query::archive::{Archive, Error};
use crate::query::ask::{self, Question};
use crate::query::print;

const JSON: &str = "application/json";

/// How many archives are kept open.
const READERS: usize = 4;

/// Opens an archive.
pub type Open = dyn Fn() -> Result<Box<dyn Archive + Send>, Error> + Send + Sync;

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
        Error::Failed(_) => (500, "failed"),
    };
    let body = json!({"error": {"reason": reason, "message": error.to_string()}}).to_string();
    Page { status, content_type: JSON, body }
}

/// Serves the API at an address until the server is dropped. `allowed` are names besides the
/// addresses of the machine itself by which it may be asked: a page of another site must not reach
/// it by a name of its own.
pub async fn serve(
    address: &str,
    allowed: Vec<String>,
    open: Arc<Open>,
    now: impl Fn() -> Timestamp + Send + Sync + 'static,
) -> Result<PlainHttp, ListenError> {
    let pool: Arc<Mutex<Vec<Box<dyn Archive + Send>>>> = Arc::default();
    let now = Arc::new(now);
    PlainHttp::start_asking(address, move |asked: Asked| {
        let (pool, open, now) = (Arc::clone(&pool), Arc::clone(&open), now());
        let is_allowed = is_own_host(&asked.host) || allowed.contains(&asked.host);
        async move {
            if !is_allowed {
                return Page::text(403, "this name of the server is not known\n");
            }
            let answered = tokio::task::spawn_blocking(move || {
                let free = || pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let archive = match free().map_or_else(|| open(), Ok) {
                    Ok(archive) => archive,
                    Err(error) => return failed(&error),
                };
                let page = page(archive.as_ref(), &asked.target, now);
                let mut kept = pool.lock().unwrap_or_else(PoisonError::into_inner);
                // What failed may be broken.
                let is_fine = page.as_ref().is_none_or(|page| page.status < 500);
                if is_fine && kept.len() < READERS {
                    kept.push(archive);
                }
                page.unwrap_or_else(|| Page::text(404, "404 page not found\n"))
            });
            answered.await.unwrap_or_else(|_| Page::text(500, "the question was not answered\n"))
        }
    })
    .await
}

/// Whether a `Host` header is an address or `localhost`. Names can be made to mean any address.
fn is_own_host(host: &str) -> bool {
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
