//! Names of the labels and annotations that the control plane writes.

/// The composite resource at the top of the tree that an object belongs to.
pub const COMPOSITE: &str = "crossplane.io/composite";
/// The name of the claim that an object was created for.
pub const CLAIM_NAME: &str = "crossplane.io/claim-name";
/// The namespace of the claim that an object was created for.
pub const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";
/// Annotation with the name that the pipeline gives a composed resource.
pub const RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";
/// The Composition that a revision was created from.
pub const COMPOSITION_NAME: &str = "crossplane.io/composition-name";
/// The hash of the Composition that a revision was created from, as far as a label can hold it.
pub const COMPOSITION_HASH: &str = "crossplane.io/composition-hash";
/// The Function or other package that a package revision belongs to.
pub const PACKAGE: &str = "pkg.crossplane.io/package";
/// Annotation with the name of what an object stands for outside the cluster.
pub const EXTERNAL_NAME: &str = "crossplane.io/external-name";
/// Annotation that stops the reconciles of an object while its value is `true`.
pub const PAUSED: &str = "crossplane.io/paused";
