//! The circuit breaker, which detects composite resources that receive too many events.

use biplane_model::ObjectId;

/// Detects composite resources that receive too many events.
pub trait Breaker: Send + Sync {
    /// Returns the source of most events while events are held back.
    fn triggered_by(&self, xr: &ObjectId) -> Option<String>;
    /// Says more about it, in a sentence that does not change while events are held back.
    fn explanation(&self, _xr: &ObjectId) -> Option<String> {
        None
    }
}

/// A breaker that never holds events back.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysClosed;

impl Breaker for AlwaysClosed {
    fn triggered_by(&self, _xr: &ObjectId) -> Option<String> {
        None
    }
}
