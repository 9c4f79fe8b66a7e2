//! Errors of providing, starting and using the programs.

use std::path::PathBuf;

/// The reason why the environment could not be provided or used.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// The program was not found, and there is no Go toolchain to build it with.
    #[error(
        "cannot provide {tool}: it is not in {cache}, and the Go toolchain to build it with is missing: install Go 1.26 or set KUBEBUILDER_ASSETS to a folder that holds it"
    )]
    NoGo { tool: &'static str, cache: PathBuf },
    /// The Go build failed.
    #[error("cannot build {tool} with Go: {output}")]
    Build { tool: &'static str, output: String },
    /// There is no folder in which to keep the programs.
    #[error("cannot tell where to keep programs: set XDG_CACHE_HOME or HOME")]
    NoCache,
    /// The folder for data has other files in it.
    #[error("{path} is not empty and holds no control plane: choose a new folder")]
    Occupied { path: PathBuf },
    /// Another process runs a control plane on the same data.
    #[error("{path} is in use by another control plane")]
    InUse { path: PathBuf },
    /// The folder for data holds something that this version does not understand.
    #[error("cannot read the state of the control plane in {path}")]
    State {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// The user is not one of those that the server was started with.
    #[error("the API server does not know the user {name:?}: name it in the options")]
    NoUser { name: String },
    /// There is no audit log to read.
    #[error("the API server writes no audit log: ask for one in the options")]
    NoAuditLog,
    /// A line of the audit log is not an event.
    #[error("cannot read the audit log {path}, line {line}")]
    AuditLog {
        path: PathBuf,
        line: usize,
        #[source]
        source: serde_json::Error,
    },
    /// The part was not started, or was stopped.
    #[error("{program} does not run")]
    NotRunning { program: &'static str },
    /// The API server refused a request that setting up needs.
    #[error("cannot {action}: the API server answered {code}: {body}")]
    Refused { action: String, code: u16, body: String },
    /// A file or process operation failed.
    #[error("cannot {action}")]
    Io {
        action: String,
        #[source]
        source: std::io::Error,
    },
    /// A certificate could not be created.
    #[error("cannot make certificates")]
    Certificates(#[from] rcgen::Error),
    /// The server's certificate authority could not be used for a connection.
    #[error("cannot prepare a TLS connection")]
    Tls(#[from] rustls::Error),
    /// A program stopped before it was ready.
    #[error("{program} stopped with {status}; its last words:\n{log}")]
    Stopped { program: &'static str, status: String, log: String },
    /// A program is running but was not ready in time.
    #[error("{program} did not become ready within {seconds} s: {reason}; its last words:\n{log}")]
    NotReady { program: &'static str, seconds: u64, reason: String, log: String },
}

impl EnvError {
    /// Adds the failed action to an I/O error, for `map_err`.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action: action.into(), source }
    }
}
