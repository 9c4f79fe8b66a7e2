//! Classifies failed calls: retry, or return an error with the message of Go's gRPC.

use std::error::Error;
use std::io;

use tonic::{Code, Status};

use crate::status;

use super::balance::{connection_error, root_cause};
use super::dial::{Ready, go_io};

/// How to handle a failed call.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The function did not receive the request. The connection is unusable for this reason.
    NotReady(String),
    /// The connection broke during the call.
    Broken(Status),
    /// The deadline of the request was exceeded.
    Expired,
    /// The status that the server returned, or the error of decoding its response.
    Answer(Status),
}

pub(crate) fn classify(status: Status, ready: &Ready) -> Failure {
    if status.code() == Code::Cancelled && status.message() == "Timeout expired" {
        return Failure::Expired;
    }
    let causes: Vec<&(dyn Error + 'static)> =
        std::iter::successors(status.source(), |error| (*error).source()).collect();
    let is_transport =
        |e: &&(dyn Error + 'static)| e.is::<tonic::transport::Error>() || e.is::<hyper::Error>();
    if !causes.iter().any(is_transport) {
        return Failure::Answer(status::in_go(status));
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
        let cause = ready.error().map_or(cause, str::to_owned);
        return Failure::NotReady(connection_error(&format!(
            "error reading server preface: {cause}"
        )));
    }
    if causes.iter().any(was_never_sent) {
        return Failure::NotReady(connection_error(&cause));
    }
    Failure::Broken(match status.code() {
        // The server reset only this call. The connection may still work.
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
