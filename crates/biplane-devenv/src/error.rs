//! Why the environment could not be provided.

use std::path::PathBuf;

/// Callers branch on whether the machine lacks something or a program misbehaved.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// Nothing to take the program from, and no Go toolchain to build it with.
    #[error(
        "cannot provide {tool}: it is not in {cache}, and the Go toolchain to build it with is missing: install Go 1.26 or set KUBEBUILDER_ASSETS to a folder that holds it"
    )]
    NoGo { tool: &'static str, cache: PathBuf },
    /// The Go toolchain refused.
    #[error("cannot build {tool} with Go: {output}")]
    Build { tool: &'static str, output: String },
    /// There is no folder to keep the programs in.
    #[error("cannot tell where to keep programs: set XDG_CACHE_HOME or HOME")]
    NoCache,
    /// A file or process operation failed.
    #[error("cannot {action}")]
    Io {
        action: String,
        #[source]
        source: std::io::Error,
    },
    /// No certificate could be made.
    #[error("cannot make certificates")]
    Certificates(#[from] rcgen::Error),
    /// The server's certificate authority could not be used for a connection.
    #[error("cannot prepare a TLS connection")]
    Tls(#[from] rustls::Error),
    /// A program stopped before it answered.
    #[error("{program} stopped with {status}; its last words:\n{log}")]
    Stopped { program: &'static str, status: std::process::ExitStatus, log: String },
    /// A program runs but did not answer in time.
    #[error("{program} did not become ready within {seconds} s: {reason}; its last words:\n{log}")]
    NotReady { program: &'static str, seconds: u64, reason: String, log: String },
}

impl EnvError {
    /// For `map_err`: names the action that failed.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action: action.into(), source }
    }
}
