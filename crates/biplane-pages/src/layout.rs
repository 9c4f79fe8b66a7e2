//! What all pages share: the frame, the style and the script.

use std::sync::LazyLock;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{draw, tokens};

/// The style of all pages.
pub static CSS: LazyLock<String> =
    LazyLock::new(|| [&tokens::css(), include_str!("layout/style.css"), draw::CSS].concat());

/// A document that stands alone: its style is inside, and it has no script. For exports.
pub fn alone(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (title) }
                // The style is our own and has no end tag in it.
                style { (PreEscaped(CSS.as_str())) }
            }
            body { main { (body) } }
        }
    }
}
