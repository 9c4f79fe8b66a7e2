//! `/api/v1`: answers questions over HTTP, in the JSON that the command line prints.

pub mod client;

use std::fmt;
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

/// The API over archives that it opens itself. Clones share them.
#[derive(Clone)]
pub struct Api {
    allowed: Arc<[String]>,
    open: Arc<Open>,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    free: Arc<Mutex<Vec<Box<dyn Archive + Send>>>>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

impl Api {
    /// Makes an API. `allowed` are names besides the addresses of the machine itself by which it may
    /// be asked: a page of another site must not reach it by a name of its own.
    pub fn new(
        allowed: Vec<String>,
        open: Arc<Open>,
        now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Self {
        Self { allowed: allowed.into(), open, now, free: Arc::default() }
    }

    /// Answers a request on a thread of its own.
    pub async fn page(&self, asked: Asked) -> Page {
        if !is_own_host(&asked.host) && !self.allowed.contains(&asked.host) {
            return Page::text(403, "this name of the server is not known\n");
        }
        let api = self.clone();
        let answered = tokio::task::spawn_blocking(move || api.answer(&asked.target));
        answered.await.unwrap_or_else(|_| Page::text(500, "the question was not answered\n"))
    }

    fn answer(&self, target: &str) -> Page {
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free().pop();
        let archive = match kept.map_or_else(|| (self.open)(), Ok) {
            Ok(archive) => archive,
            Err(error) => return failed(&error),
        };
        let page = page(archive.as_ref(), target, (self.now)());
        let mut free = free();
        // What failed may be broken.
        let is_fine = page.as_ref().is_none_or(|page| page.status < 500);
        if is_fine && free.len() < READERS {
            free.push(archive);
        }
        page.unwrap_or_else(|| Page::text(404, "404 page not found\n"))
    }

    /// Serves the API alone at an address until the server is dropped.
    pub async fn serve(self, address: &str) -> Result<PlainHttp, ListenError> {
        PlainHttp::start_asking(address, move |asked: Asked| {
            let api = self.clone();
            async move { api.page(asked).await }
        })
        .await
    }
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
