//! The function as a server, as the SDK makes one.

use clap::Parser;
use function_rust::Peer;

#[tokio::main]
async fn main() -> Result<(), function_sdk_rust::Error> {
    // Only because this package has biplane in it too: with two providers, rustls wants to be told.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let args = function_sdk_rust::Args::parse();
    function_sdk_rust::logging::configure(args.debug);
    function_sdk_rust::serve(Peer, &args).await
}
