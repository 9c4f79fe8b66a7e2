//! The recorder in a browser: pages that say what happened in a control plane, and the evidence.
//!
//! Pages are pure functions from the recorder's answers to HTML. They are complete without
//! scripts, and everything that they need is embedded in the program. `router` finds the answers,
//! `site` decides who may ask and how much, `serve` does the network.

pub mod draw;
pub mod http;
pub mod ids;
pub mod layout;
pub mod links;
pub mod live;
pub mod page;
pub mod parts;
pub mod router;
pub mod serve;
pub mod single;
pub mod site;
pub mod tls;
pub mod token;
pub mod tokens;
pub mod tree;
