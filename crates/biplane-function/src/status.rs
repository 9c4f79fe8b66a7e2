//! gRPC statuses in the words of Go, which is how users of the field know them.

use tonic::{Code, Status};

/// `rpc error: code = X desc = Y`.
pub fn text(status: &Status) -> String {
    format!("rpc error: code = {} desc = {}", code_name(status.code()), status.message())
}

/// What Go calls a code.
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

/// What a call ends with whose time is up.
pub(crate) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("context deadline exceeded")
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
