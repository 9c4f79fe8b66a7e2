//! Finds, builds and starts etcd, kube-apiserver and kube-controller-manager for tests and
//! development.
//!
//! [`provision()`] finds the programs or builds them. [`ApiServer::start`] runs an API server for one
//! test or one developer and removes it when its owner ends. [`Options`] asks for more: controllers,
//! users, an audit log, data that is kept. An [`ApiServer`] can be stopped, paused and started again
//! in parts, have a [`Replica`] on the same etcd, and a [`Proxy`](proxy::Proxy) that disturbs watches.

mod apiserver;
mod audit;
mod certificates;
mod client;
mod common;
mod controllers;
mod error;
mod etcd;
mod folder;
mod kube_apiserver;
mod options;
mod ports;
mod process;
mod provision;
pub mod proxy;
mod users;

pub use apiserver::{ApiServer, Part, Replica};
pub use audit::{AuditLog, AuditedRequest, Mark, Requests, TallyKey};
pub use client::{Answer, Client, Watch};
pub use error::EnvError;
pub use options::Options;
pub use provision::{Binaries, Places, Tool, provision};
pub use users::User;

/// Prints a line to standard error. Provisioning can take minutes, so users want to see progress.
pub fn say(line: &str) {
    use std::io::Write;
    // If standard error is closed, the line cannot be reported anywhere else.
    let _ = writeln!(std::io::stderr(), "{line}");
}
