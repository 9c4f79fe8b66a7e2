//! Finds, builds and starts etcd, kube-apiserver and other Kubernetes programs for tests.
//!
//! [`provision()`] finds the programs or builds them. [`ApiServer::start`] runs a control plane for
//! one test or one developer and removes it when its owner ends.

mod apiserver;
mod certificates;
mod error;
mod probe;
mod process;
mod provision;

pub use apiserver::ApiServer;
pub use error::EnvError;
pub use provision::{Binaries, Places, Tool, provision};

/// Prints a line to standard error. Provisioning can take minutes, so users want to see progress.
pub fn say(line: &str) {
    use std::io::Write;
    // If standard error is closed, the line cannot be reported anywhere else.
    let _ = writeln!(std::io::stderr(), "{line}");
}
