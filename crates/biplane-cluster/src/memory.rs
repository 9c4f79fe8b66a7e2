//! In-memory clusters: [`ApiServer`] behaves like a real API server, for tests and simulations.
//! [`RenderClient`] behaves like the client of Crossplane's render engine.
//!
//! Both store objects, keep a journal of every write and event, and can fail at any single call.

mod api_server;
mod faults;
mod journal;
mod objects;
mod render_client;
mod store;

pub use api_server::{ApiServer, Counted, RegisterError, Sources};
pub use faults::{Answer, Fault, When};
pub use journal::{Entry, Verb};
pub use render_client::RenderClient;
pub use store::Memory;
