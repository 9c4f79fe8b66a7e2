//! gRPC statuses with Go's messages, which users know from Crossplane.

use tonic::{Code, Status};

/// `rpc error: code = X desc = Y`.
pub fn text(status: &Status) -> String {
    format!("rpc error: code = {} desc = {}", code_name(status.code()), status.message())
}

/// Returns Go's name of a code.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

/// The status of a call that exceeded its deadline.
pub fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("context deadline exceeded")
}

pub(crate) fn is_too_large(status: &Status) -> bool {
    status.message().contains("decoded message length too large")
}

/// Rewrites statuses that tonic creates at our end of a call into those of Go's gRPC.
pub fn in_go(status: Status) -> Status {
    let message = status.message();
    match status.code() {
        Code::OutOfRange if is_too_large(&status) => {
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
        _ => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FN-P2
    #[test]
    fn statuses_read_as_in_go() {
        let cases = [
            (Code::Ok, "OK"),
            (Code::Cancelled, "Canceled"),
            (Code::Unknown, "Unknown"),
            (Code::InvalidArgument, "InvalidArgument"),
            (Code::DeadlineExceeded, "DeadlineExceeded"),
            (Code::NotFound, "NotFound"),
            (Code::AlreadyExists, "AlreadyExists"),
            (Code::PermissionDenied, "PermissionDenied"),
            (Code::ResourceExhausted, "ResourceExhausted"),
            (Code::FailedPrecondition, "FailedPrecondition"),
            (Code::Aborted, "Aborted"),
            (Code::OutOfRange, "OutOfRange"),
            (Code::Unimplemented, "Unimplemented"),
            (Code::Internal, "Internal"),
            (Code::Unavailable, "Unavailable"),
            (Code::DataLoss, "DataLoss"),
            (Code::Unauthenticated, "Unauthenticated"),
        ];
        for (code, name) in cases {
            let status = Status::new(code, "boom");
            assert_eq!(text(&status), format!("rpc error: code = {name} desc = boom"));
        }
    }
}
