//! Rewrites the statuses that the server itself returns into the messages of Go's servers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::{Code, Status};

use crate::status;

/// Wraps a service and rewrites its error statuses.
#[derive(Clone, Debug)]
pub struct Words<S> {
    inner: S,
    /// The known services.
    services: Arc<[&'static str]>,
}

impl<S> Words<S> {
    /// Wraps a service. `services` are the names of all services of the server.
    pub fn new(inner: S, services: Arc<[&'static str]>) -> Self {
        Self { inner, services }
    }
}

type Answer<E> = Pin<Box<dyn Future<Output = Result<http::Response<Body>, E>> + Send>>;

impl<S, B> Service<http::Request<B>> for Words<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Answer<S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let asked = request.uri().clone();
        let services = Arc::clone(&self.services);
        let answer = self.inner.call(request);
        Box::pin(async move { Ok(reword(answer.await?, asked.path(), &services)) })
    }
}

fn reword(response: http::Response<Body>, path: &str, services: &[&str]) -> http::Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    match status.code() {
        Code::OutOfRange if status::is_too_large(&status) => status::in_go(status).into_http(),
        // A function that returns Unimplemented sets its own message.
        Code::Unimplemented if status.message().is_empty() => {
            Status::unimplemented(unknown(path, services)).into_http()
        }
        _ => response,
    }
}

/// The message for an unknown service or method.
fn unknown(path: &str, services: &[&str]) -> String {
    match path.trim_start_matches('/').rsplit_once('/') {
        None => format!("malformed method name: {path:?}"),
        Some((service, method)) if services.contains(&service) => {
            format!("unknown method {method} for service {service}")
        }
        Some((service, _)) => format!("unknown service {service}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICES: [&str; 2] = ["a.v1.Runner", "Health"];

    /// Returns the rewritten status of a call of this path.
    fn reworded(path: &str, status: &Status) -> Status {
        let response = reword(status.clone().into_http(), path, &SERVICES);
        Status::from_header_map(response.headers()).unwrap()
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (path, message) in [
            ("/a.v1.Runner/Walk", "unknown method Walk for service a.v1.Runner"),
            ("/a.v2.Runner/Run", "unknown service a.v2.Runner"),
            ("/a/Health/Check", "unknown service a/Health"),
            ("/Health", "malformed method name: \"/Health\""),
            ("/", "malformed method name: \"/\""),
        ] {
            let status = reworded(path, &Status::unimplemented(""));
            assert_eq!((status.code(), status.message()), (Code::Unimplemented, message));
        }
    }

    #[test]
    fn what_a_function_says_is_left_alone() {
        for status in [
            Status::unimplemented("not for you"),
            Status::internal(""),
            Status::out_of_range("too far"),
        ] {
            let same = reworded("/a.v1.Runner/Run", &status);
            assert_eq!((same.code(), same.message()), (status.code(), status.message()));
        }
    }
}
