//! The function as a server, created by the SDK.

use clap::Parser;
use function_rust::Peer;

#[tokio::main]
async fn main() -> Result<(), function_sdk_rust::Error> {
    // Needed only because this package also depends on biplane: with two providers, rustls requires
    // a choice.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let args = function_sdk_rust::Args::parse();
    function_sdk_rust::logging::configure(args.debug);
    function_sdk_rust::serve(Peer, &args).await
}
