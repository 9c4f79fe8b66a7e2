//! The labels and annotations that the control plane writes.

/// Names the composite resource at the top of the tree that an object belongs to.
pub const COMPOSITE: &str = "crossplane.io/composite";
/// Names the claim that an object was made for.
pub const CLAIM_NAME: &str = "crossplane.io/claim-name";
/// The namespace of that claim.
pub const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";
/// An annotation: the name that the pipeline gives a composed resource.
pub const RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";
/// Names the Composition that a revision was made from.
pub const COMPOSITION_NAME: &str = "crossplane.io/composition-name";
