//! Draws differences and blame as HTML.

/// The style of what is drawn here. It uses the variables of `tokens`.
pub const CSS: &str = include_str!("draw/style.css");
