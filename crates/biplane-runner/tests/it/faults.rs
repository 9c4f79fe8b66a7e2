//! Tests of servers that hang, exit, or send invalid data: each causes a specific error message.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use biplane_function::v1::{Result as FunctionResult, RunFunctionResponse};
use http_body_util::{BodyExt, Full};
use prost::Message;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;

use crate::world::{BRIEF, PATIENCE, Wire, client, error, request};

pub(crate) const V1: &str = "apiextensions.fn.proto.v1.FunctionRunnerService";
pub(crate) const V1BETA1: &str = "apiextensions.fn.proto.v1beta1.FunctionRunnerService";

/// A gRPC server that sends exactly these bytes and headers.
#[derive(Clone, Default)]
pub(crate) struct Raw {
    body: Vec<u8>,
    headers: Vec<(&'static str, String)>,
    trailers: Vec<(&'static str, String)>,
    calls: Arc<AtomicUsize>,
    hangs: bool,
}

pub(crate) struct Serving {
    pub(crate) target: String,
    calls: Arc<AtomicUsize>,
}

impl Serving {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// Frames a message like gRPC.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[0], length.to_be_bytes().as_slice(), message].concat()
}

impl Raw {
    /// A well-formed response with any bytes as its message.
    pub(crate) fn answering(message: impl AsRef<[u8]>) -> Self {
        Self::sending(framed(message.as_ref()))
    }

    fn sending(body: Vec<u8>) -> Self {
        Self { body, trailers: vec![("grpc-status", "0".into())], ..Self::default() }
    }

    pub(crate) fn failing(code: i32, message: &str) -> Self {
        let headers = vec![("grpc-status", code.to_string()), ("grpc-message", message.into())];
        Self { headers, ..Self::default() }
    }

    fn hanging() -> Self {
        Self { hangs: true, ..Self::default() }
    }

    pub(crate) async fn serve(self, service: &'static str) -> Serving {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = listener.local_addr().unwrap().to_string();
        let calls = Arc::clone(&self.calls);
        let incoming = TcpListenerStream::new(listener);
        let builder = tonic::transport::Server::builder();
        match service {
            V1 => spawn(builder, NamedV1(self), incoming),
            V1BETA1 => spawn(builder, NamedV1Beta1(self), incoming),
            _ => spawn(builder, NamedOther(self), incoming),
        }
        Serving { target, calls }
    }
}

fn spawn<S>(mut builder: tonic::transport::Server, service: S, incoming: TcpListenerStream)
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
{
    tokio::spawn(builder.add_service(service).serve_with_incoming(incoming));
}

macro_rules! named {
    ($type:ident, $name:expr) => {
        #[derive(Clone)]
        struct $type(Raw);

        impl NamedService for $type {
            const NAME: &'static str = $name;
        }

        impl Service<http::Request<Body>> for $type {
            type Response = http::Response<Body>;
            type Error = Infallible;
            type Future = std::pin::Pin<
                Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>,
            >;

            fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
                Poll::Ready(Ok(()))
            }

            fn call(&mut self, request: http::Request<Body>) -> Self::Future {
                Box::pin(self.0.clone().answer(request))
            }
        }
    };
}

named!(NamedV1, V1);
named!(NamedV1Beta1, V1BETA1);
named!(NamedOther, "some.other.Service");

fn headers(pairs: &[(&'static str, String)]) -> http::HeaderMap {
    pairs.iter().map(|(k, v)| (k.parse().unwrap(), v.parse().unwrap())).collect()
}

impl Raw {
    async fn answer(
        self,
        request: http::Request<Body>,
    ) -> Result<http::Response<Body>, Infallible> {
        request.into_body().collect().await.unwrap();
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.hangs {
            std::future::pending::<()>().await;
        }
        let trailers = headers(&self.trailers);
        let body = Full::new(self.body.into()).with_trailers(async move {
            (!trailers.is_empty()).then_some(Ok::<_, Infallible>(trailers))
        });
        let mut response = http::Response::new(Body::new(body));
        *response.headers_mut() = headers(&self.headers);
        let kind = http::HeaderValue::from_static("application/grpc");
        response.headers_mut().insert("content-type", kind);
        Ok(response)
    }
}

async fn check(raw: Raw, expected: &str) {
    let serving = raw.serve(V1).await;
    assert_eq!(error(&serving.target, PATIENCE).await, format!("rpc error: code = {expected}"));
}

#[tokio::test]
async fn bytes_that_are_no_response_cannot_be_unmarshalled() {
    let serving = Raw::answering(b"\xff\xff\xff\xff").serve(V1).await;
    let text = error(&serving.target, PATIENCE).await;
    let expected =
        "rpc error: code = Internal desc = grpc: failed to unmarshal the received message: ";
    assert!(text.starts_with(expected), "{text}");
}

#[tokio::test]
async fn no_response_at_all_is_told_from_an_empty_one() {
    check(
        Raw::sending(Vec::new()),
        "Internal desc = cardinality violation: received no response message from \
         non-server-streaming RPC",
    )
    .await;
}

#[tokio::test]
async fn a_response_that_stops_halfway_is_an_unexpected_end() {
    let mut body = framed(&[0; 100]);
    body.truncate(50);
    let headers = vec![("grpc-status", "0".to_owned())];
    let raw = Raw { body, headers, ..Raw::default() };
    let serving = raw.serve(V1).await;
    let text = error(&serving.target, PATIENCE).await;
    assert!(text.starts_with("rpc error: code = Internal desc = "), "{text}");
}

fn response_of(size: usize) -> Vec<u8> {
    let with = |length: usize| RunFunctionResponse {
        results: vec![FunctionResult { message: "x".repeat(length), ..FunctionResult::default() }],
        ..RunFunctionResponse::default()
    };
    let overhead = with(size).encoded_len() - size;
    let bytes = with(size - overhead).encode_to_vec();
    assert_eq!(bytes.len(), size);
    bytes
}

/// FN-W9
#[tokio::test]
async fn responses_may_have_four_mebibytes_and_no_byte_more() {
    let serving = Raw::answering(response_of(4_194_304)).serve(V1).await;
    let answer = client(&serving.target).call(request("t", &Value::Null), Some(PATIENCE)).await;
    assert!(answer.is_ok());
    for size in [4_194_305, 5_000_000] {
        check(
            Raw::answering(response_of(size)),
            &format!(
                "ResourceExhausted desc = grpc: received message larger than max ({size} vs. 4194304)"
            ),
        )
        .await;
    }
}

#[tokio::test]
async fn a_code_that_nobody_knows_is_unknown() {
    check(Raw::failing(99, "eh"), "Unknown desc = eh").await;
}

#[tokio::test]
async fn a_server_that_hangs_exceeds_the_deadline() {
    let serving = Raw::hanging().serve(V1).await;
    assert_eq!(
        error(&serving.target, BRIEF).await,
        "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    );
}

#[tokio::test]
async fn a_server_that_dies_under_the_call_is_unavailable() {
    let serving = Raw::hanging().serve(V1).await;
    let wire = Wire::to(&serving.target).await;
    let cut = async {
        while serving.calls() == 0 {
            tokio::task::yield_now().await;
        }
        wire.cut();
    };
    let (text, ()) = tokio::join!(error(&wire.address, PATIENCE), cut);
    // The operating system decides whether the end shows as EOF or as a reset.
    let expected = "rpc error: code = Unavailable desc = error reading from server: ";
    let reason = text.strip_prefix(expected).unwrap_or(&text);
    assert!(["EOF", "connection reset by peer"].contains(&reason), "{text}");
    assert_eq!(serving.calls(), 1, "what the function has seen is not sent again");
}

/// Sends these bytes on every connection, and then closes it.
async fn shouting(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(bytes).await;
            let _ = stream.read(&mut [0; 1024]).await;
        }
    });
    address
}

/// The proxy of a container does this while the function is still starting.
#[tokio::test]
async fn a_server_that_is_none_is_waited_for() {
    for bytes in [b"".as_slice(), b"HTTP/1.1 400 Bad Request\r\n\r\n", &[0xff; 64]] {
        let address = shouting(bytes).await;
        let text = error(&address, BRIEF).await;
        let expected = "rpc error: code = DeadlineExceeded desc = latest balancer error: \
                        connection error: desc = \"error reading server preface: ";
        assert!(text.starts_with(expected), "{bytes:?}: {text}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_exceeds_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    assert_eq!(
        error(&address, BRIEF).await,
        "rpc error: code = DeadlineExceeded desc = context deadline exceeded while waiting for \
         connections to become ready"
    );
}
