//! Finds, builds and starts etcd, kube-apiserver and friends.
//!
//! [`provision()`] puts the programs where they can be found again; [`ApiServer::start`] runs a
//! control plane that belongs to one test or one developer and vanishes with its owner.

mod apiserver;
mod certificates;
mod error;
mod probe;
mod process;
mod provision;

pub use apiserver::ApiServer;
pub use error::EnvError;
pub use provision::{Binaries, Places, Tool, provision};

/// Says on standard error what is going on: provisioning can take minutes.
pub fn say(line: &str) {
    use std::io::Write;
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}
