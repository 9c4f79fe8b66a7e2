//! Tells whether a composite resource is drowned in events.

use biplane_model::ObjectId;

/// Knows which composite resources get too many events.
pub trait Breaker: Send + Sync {
    /// What sends most of the events, while they are held back.
    fn triggered_by(&self, xr: &ObjectId) -> Option<String>;
}

/// Never holds anything back.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysClosed;

impl Breaker for AlwaysClosed {
    fn triggered_by(&self, _xr: &ObjectId) -> Option<String> {
        None
    }
}
