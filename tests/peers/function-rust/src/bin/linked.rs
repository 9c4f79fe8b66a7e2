//! A `biplane` program with the function built in.

use std::process::ExitCode;

use biplane_function::{Linked, Registry};
use function_rust::Peer;
use function_sdk_rust::proto::v1::function_runner_service_server::FunctionRunnerServiceServer;

fn main() -> ExitCode {
    let function = Linked::new(FunctionRunnerServiceServer::new(Peer));
    biplane::cli::main(Registry::default().with("function-rust", function))
}
