//! The wire formats: messages, gRPC stubs, `google.protobuf.Struct` as a JSON object, protobuf
//! JSON, and Go's deterministic encoding.
//!
//! `cargo xtask codegen` writes `generated/` from the contracts in `proto/`.

mod backwards;
pub mod deterministic;
pub mod json;
pub mod redact;
pub mod structs;
pub mod time;

pub use structs::Struct;
pub use time::{Duration, Timestamp};

/// The descriptors of every contract, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");

/// The function protocol.
pub mod function {
    /// The messages of both versions, and the service of current functions.
    #[allow(clippy::all, clippy::pedantic, deprecated, missing_debug_implementations)]
    pub mod v1 {
        include!("generated/apiextensions.r#fn.proto.v1.rs");
        include!("generated/apiextensions.r#fn.proto.v1.serde.rs");
    }
    /// The service of older functions, with the messages of [`super::v1`].
    #[allow(clippy::all, clippy::pedantic, deprecated, missing_debug_implementations)]
    pub mod v1beta1 {
        include!("generated/apiextensions.r#fn.proto.v1beta1.rs");
    }
}

/// The render engine's protocol.
pub mod render {
    /// Messages.
    #[allow(clippy::all, clippy::pedantic, missing_debug_implementations)]
    pub mod v1alpha1 {
        include!("generated/crossplane.render.v1alpha1.rs");
        include!("generated/crossplane.render.v1alpha1.serde.rs");
    }
    /// The render engine as a gRPC service.
    #[allow(clippy::all, clippy::pedantic, missing_debug_implementations)]
    pub mod service {
        include!("generated/biplane.render.v1alpha1.rs");
    }
}

/// The file format of the function response cache.
#[allow(clippy::all, clippy::pedantic)]
pub mod cache {
    include!("generated/internal.proto.r#fn.v1alpha1.rs");
}

/// The Pipeline Inspector in its two versions.
pub mod inspector {
    /// The version that released control planes use.
    #[allow(clippy::all, clippy::pedantic, missing_debug_implementations)]
    pub mod shipped {
        include!("generated/crossplane.pipeline.v1alpha1.rs");
        include!("generated/crossplane.pipeline.v1alpha1.serde.rs");
    }
    /// The version of the design document.
    #[allow(clippy::all, clippy::pedantic, missing_debug_implementations)]
    pub mod design {
        include!("generated/crossplane.pipelineinspector.v1alpha1.rs");
        include!("generated/crossplane.pipelineinspector.v1alpha1.serde.rs");
    }
}

/// Change logs.
#[allow(clippy::all, clippy::pedantic, missing_debug_implementations)]
pub mod changelogs {
    include!("generated/changelogs.proto.v1alpha1.rs");
    include!("generated/changelogs.proto.v1alpha1.serde.rs");
}
