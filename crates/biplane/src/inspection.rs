//! Sets up the emission of what functions are given and what they answer, with the clock and the
//! random numbers of the process.

use std::path::PathBuf;
use std::sync::Arc;

use biplane_controlplane::functions::Inspect;
use biplane_proto::redact::TagKey;
use biplane_runner::Inspection;
use biplane_runner::inspected::{Options, Sources};

/// Emits to a socket, or to the one where inspectors listen.
pub(crate) fn to_socket(socket: Option<PathBuf>) -> Inspection {
    let mut options = Options::default();
    if let Some(socket) = socket {
        options.socket = socket;
    }
    Inspection::over_socket(&options, sources(), None)
}

/// How a control plane emits to a socket.
pub(crate) fn of_control_plane(socket: PathBuf) -> Inspect {
    let options = Options { socket, ..Options::default() };
    Inspect { options, sources: sources() }
}

/// The clock and the random numbers of the process.
#[allow(clippy::disallowed_methods)] // this is where they come in
fn sources() -> Sources {
    Sources {
        now: Arc::new(std::time::SystemTime::now),
        uuid: Arc::new(|| uuid::Uuid::new_v4().to_string()),
        tag_key: tag_key(),
    }
}

/// A key for tags that ends with the process.
#[allow(clippy::disallowed_methods)] // this is where random numbers come in
pub(crate) fn tag_key() -> TagKey {
    let mut key = [0; 32];
    for half in key.chunks_exact_mut(16) {
        half.copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    }
    TagKey::new(key)
}
