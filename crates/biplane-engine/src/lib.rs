//! Reconcilers, pipeline and render.
