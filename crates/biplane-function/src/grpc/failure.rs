//! What a failed call means: another attempt, or an error in the words of Go's gRPC.

use std::error::Error;
use std::io;

use tonic::{Code, Status};

use super::balance::{connection_error, root_cause};
use super::dial::{Ready, go_io};

/// What to do about a failed call.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The function never saw the request: the connection is of no use, the text says why.
    NotReady(String),
    /// The connection broke under the call.
    Broken(Status),
    /// The server's own answer, or an answer that cannot be understood.
    Answer(Status),
}

pub(crate) fn classify(status: Status, ready: &Ready) -> Failure {
    let causes: Vec<&(dyn Error + 'static)> =
        std::iter::successors(status.source(), |error| (*error).source()).collect();
    let is_transport =
        |e: &&(dyn Error + 'static)| e.is::<tonic::transport::Error>() || e.is::<hyper::Error>();
    if !causes.iter().any(is_transport) {
        return Failure::Answer(in_go(status));
    }
    if let Some(error) = causes.iter().find(|e| e.is::<tonic::ConnectError>()) {
        return Failure::NotReady(connection_error(&root_cause(*error)));
    }
    let was_never_sent =
        |e: &&(dyn Error + 'static)| e.downcast_ref().is_some_and(hyper::Error::is_canceled);
    let cause = causes
        .iter()
        .find_map(|e| e.downcast_ref::<io::Error>())
        .map_or_else(|| root_cause(causes[0]), reading);
    if !ready.get() {
        return Failure::NotReady(connection_error(&format!(
            "error reading server preface: {cause}"
        )));
    }
    if causes.iter().any(was_never_sent) {
        return Failure::NotReady(connection_error(&cause));
    }
    Failure::Broken(match status.code() {
        // The server reset this one call; the connection may well live.
        Code::Internal | Code::Cancelled | Code::ResourceExhausted => status,
        _ => Status::unavailable(format!("error reading from server: {cause}")),
    })
}

fn reading(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => go_io(error),
    }
}

/// The statuses that our own end makes up, as Go's end would.
fn in_go(status: Status) -> Status {
    let message = status.message();
    match status.code() {
        Code::OutOfRange if message.contains("decoded message length too large") => {
            let mut numbers =
                message.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
            let (got, limit) = (numbers.next().unwrap_or("?"), numbers.next().unwrap_or("?"));
            Status::resource_exhausted(format!(
                "grpc: received message larger than max ({got} vs. {limit})"
            ))
        }
        Code::Internal if message.starts_with("failed to decode Protobuf message") => {
            Status::internal(format!("grpc: failed to unmarshal the received message: {message}"))
        }
        Code::Internal if message.starts_with("Missing response message") => Status::internal(
            "cardinality violation: received no response message from non-server-streaming RPC",
        ),
        Code::Internal if message.starts_with("Unexpected EOF decoding stream") => {
            Status::internal("unexpected EOF")
        }
        Code::Cancelled if message == "Timeout expired" => crate::status::deadline_exceeded(),
        _ => status,
    }
}
