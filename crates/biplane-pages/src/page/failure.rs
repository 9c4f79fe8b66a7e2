//! What is said instead of a page: not found, gone, refused, too slow, broken, and the form for the
//! token.

use maud::{Markup, html};

use crate::layout::{Page, Place};
use crate::parts;

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no such page.
    NoPage,
    /// What it is about is not kept, with the reason in words.
    NotFound(String),
    /// It cannot be asked like this.
    Usage(String),
    /// It takes too long or is too large.
    TooMuch(String),
    /// The store is being brought up to date, or another program has.
    Version(String),
    /// The store cannot be read.
    Broken(String),
}

impl Failure {
    /// The status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::NoPage | Self::NotFound(_) => 404,
            Self::Usage(_) => 400,
            Self::TooMuch(_) | Self::Version(_) => 503,
            Self::Broken(_) => 500,
        }
    }

    /// The page that says so.
    pub fn page(&self) -> Page {
        let (title, sentence, next) = match self {
            Self::NoPage => (
                "No such page",
                "There is no page at this address.".to_owned(),
                html! { p { a href="/runs" { "Runs" } " is where most begin. The search finds runs by id and resources by name." } },
            ),
            Self::NotFound(text) => (
                "Not kept",
                sentence(text),
                html! {
                    p { "It may never have been recorded, or retention has removed it: runs are kept for as long, and in as many, as " code { "biplane recorder serve" } " was told with " code { "--retain-for" } ", " code { "--retain-size" } " and " code { "--retain-per-xr" } "." }
                    p { a href="/runs" { "The runs that are kept" } " " a href="/status" { "How far back they go" } }
                },
            ),
            Self::Usage(text) => {
                ("Not understood", sentence(text), html! { p { a href="/runs" { "Runs" } } })
            }
            Self::TooMuch(text) => (
                "Too much",
                sentence(text),
                html! { p { "Pages stop after five seconds and 16 MiB. The command line has no such limit; a shorter time or another filter helps too." } },
            ),
            Self::Version(text) => (
                "The store is not ready",
                sentence(text),
                html! { p { "A recorder that starts brings the tables up to date, which can take a while. Try again in a moment." } },
            ),
            Self::Broken(text) => (
                "The store cannot be read",
                sentence(text),
                html! { p { "The log of the recorder says more. " a href="/status" { "Status" } } },
            ),
        };
        let tone = if matches!(self, Self::Broken(_)) { "fail" } else { "" };
        let body = html! { h1 { (title) } (parts::lead(tone, &sentence)) (next) };
        Page::new(Place::Elsewhere, title, body)
    }
}

/// A text of an error as a sentence.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    let text = format!("{}{}", first.unwrap_or_default(), characters.as_str());
    if text.ends_with(['.', '?', '!']) { text } else { format!("{text}.") }
}

/// The form for the token. It is the whole page: nothing else is shown to those without it.
pub fn token_form(was_wrong: bool) -> Page {
    let body: Markup = html! {
        h1 { "Token" }
        (parts::lead(if was_wrong { "fail" } else { "" }, if was_wrong { "This is not the token." } else { "These pages ask for a token." }))
        form.filters method="post" action="/token" {
            label { "Token" input type="password" name="token" autocomplete="current-password" required autofocus; }
            button type="submit" { "Go on" }
        }
        p { "It is in the file that the recorder was given with " code { "--token-file" } ". Programs send it as " code { "Authorization: Bearer TOKEN" } "." }
    };
    Page::new(Place::Elsewhere, "Token", body)
}
