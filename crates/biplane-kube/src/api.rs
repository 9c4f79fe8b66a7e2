//! Requests: deadlines, retries, the bound on requests in flight, counting and warnings.

use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use kube::client::Body;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout_at};

use crate::failure::{Failure, Refusal};
use crate::limit::Limit;
use crate::metrics::{self, Counters};
use crate::transport::{Transport, reason};
use crate::warnings::Warnings;

/// How often a request that may be repeated is.
const RETRIES: u32 = 2;
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// A longer wait is the caller's business: it can do something else meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The form of an answer.
pub(crate) const JSON: &str = "application/json";

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// As [`metrics::Request`] has it.
    pub(crate) verb: &'static str,
    pub(crate) resource: String,
    pub(crate) method: Method,
    /// With the query.
    pub(crate) path: String,
    pub(crate) accept: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// Whether it may be sent again after a failure. A second time must not do more than the first.
    pub(crate) again: bool,
    /// The version that is known already. The answer is empty if it is still the current one.
    pub(crate) etag: Option<String>,
}

impl Call {
    /// A request that reads.
    pub(crate) fn get(verb: &'static str, resource: String, path: String) -> Self {
        Self {
            verb,
            resource,
            method: Method::GET,
            path,
            accept: JSON,
            content_type: JSON,
            body: Vec::new(),
            again: true,
            etag: None,
        }
    }

    fn request(&self) -> Result<Request<Body>, Failure> {
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header(header::ACCEPT, self.accept);
        if !self.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, self.content_type);
        }
        if let Some(etag) = &self.etag {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        let body = Body::from(self.body.clone());
        request.body(body).map_err(|error| Failure::NotSent(error.to_string()))
    }
}

/// An answer that is no refusal.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) created: bool,
    /// What was known already is still the current version.
    pub(crate) not_modified: bool,
    pub(crate) etag: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// An answer that does not end.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) body: Incoming,
    _place: OwnedSemaphorePermit,
}

/// The API server.
#[derive(Debug)]
pub(crate) struct Api {
    transport: Transport,
    limit: Limit,
    pub(crate) counters: Counters,
    warnings: Warnings,
}

impl Api {
    pub(crate) fn new(transport: Transport, in_flight: usize, counters: Counters) -> Self {
        Self { transport, limit: Limit::new(in_flight), counters, warnings: Warnings::default() }
    }

    /// Sends a request until it is answered, refused, or too late.
    pub(crate) async fn call(&self, call: &Call, by: Instant) -> Result<Answer, Failure> {
        let mut attempt = 0;
        loop {
            // A request that is too late is not even begun.
            if by <= Instant::now() {
                return Err(Failure::TimedOut);
            }
            let answer = timeout_at(by, self.once(call)).await;
            let failure = match answer.unwrap_or(Err(Failure::TimedOut)) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let wait = wait(&failure, attempt);
            if !call.again
                || attempt == RETRIES
                || !failure.is_passing()
                || wait > LONGEST_WAIT
                || Instant::now() + wait >= by
            {
                return Err(failure);
            }
            attempt += 1;
            sleep(wait).await;
        }
    }

    async fn once(&self, call: &Call) -> Result<Answer, Failure> {
        let request = call.request()?;
        let _in_flight = self.limit.enter().await;
        let answer = match self.transport.send(request).await {
            Ok(response) => self.read(call, response).await,
            Err(error) => {
                self.count(call, None);
                Err(unreachable(call, &error))
            }
        };
        if let Err(Failure::Refused(refusal)) = &answer
            && refusal.is_trouble()
        {
            self.limit.halve();
        }
        answer
    }

    async fn read(&self, call: &Call, response: Response<Incoming>) -> Result<Answer, Failure> {
        let (head, body) = response.into_parts();
        self.count(call, Some(head.status));
        self.warnings.log(&head.headers);
        let body = body.collect().await.map_err(|error| unreachable(call, &reason(&error)))?;
        let body = body.to_bytes().to_vec();
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        if !head.status.is_success() && head.status != StatusCode::NOT_MODIFIED {
            let after = text(header::RETRY_AFTER);
            return Err(Failure::Refused(Refusal::new(head.status.as_u16(), &body, after)));
        }
        Ok(Answer {
            created: head.status == StatusCode::CREATED,
            not_modified: head.status == StatusCode::NOT_MODIFIED,
            etag: text(header::ETAG).map(str::to_owned),
            body,
        })
    }

    /// Begins an answer that does not end, such as a watch.
    pub(crate) async fn stream(&self, call: &Call, by: Instant) -> Result<Stream, Failure> {
        let begin = async {
            let (response, place) = self
                .transport
                .stream(call.request()?)
                .await
                .map_err(|error| unreachable(call, &error))?;
            if !response.status().is_success() {
                self.read(call, response).await?;
                return Err(Failure::Garbled("the watch was answered without a stream".into()));
            }
            self.count(call, Some(response.status()));
            self.warnings.log(response.headers());
            Ok(Stream { body: response.into_body(), _place: place })
        };
        let stream = timeout_at(by, begin).await.unwrap_or(Err(Failure::TimedOut));
        if matches!(stream, Err(Failure::Unreachable(_) | Failure::TimedOut)) {
            self.count(call, None);
        }
        stream
    }

    fn count(&self, call: &Call, status: Option<StatusCode>) {
        let code = status.map_or_else(|| "error".to_owned(), |code| code.as_str().to_owned());
        let labels = metrics::Request { verb: call.verb, resource: call.resource.clone(), code };
        self.counters.requests.get_or_create(&labels).inc();
    }
}

fn unreachable(call: &Call, error: &str) -> Failure {
    let path = call.path.split('?').next().unwrap_or_default();
    Failure::Unreachable(format!("{} {path}: {error}", call.method))
}

/// How long to wait before a request is sent again: what the server asks for, or longer each time.
fn wait(failure: &Failure, attempt: u32) -> Duration {
    let asked = match failure {
        Failure::Refused(refusal) => refusal.after,
        _ => Duration::ZERO,
    };
    asked.max(FIRST_WAIT * 2_u32.pow(attempt))
}
