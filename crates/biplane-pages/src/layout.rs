//! What all pages share: the frame, the style and the script.

use std::fmt::Write as _;
use std::sync::LazyLock;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::{draw, tokens};

/// The style of all pages.
pub static CSS: LazyLock<String> = LazyLock::new(|| {
    [tokens::css().as_str(), include_str!("layout/style.css"), draw::CSS].concat()
});

/// The script. Pages are complete without it.
pub const SCRIPT: &str = include_str!("layout/script.js");

/// The sign of the pages: two wings.
pub const ICON: &str = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>\
    <path d='M1 4h14M1 11h14M4 4v7M12 4v7' stroke='#5B4A86' stroke-width='2' fill='none'/></svg>";
/// The address of the sign.
pub const ICON_PATH: &str = "/assets/icon.svg";

/// The addresses of style and script. They have a hash of the content, so they can be kept for ever.
pub static CSS_PATH: LazyLock<String> = LazyLock::new(|| asset(&CSS, "css"));
/// The address of the script.
pub static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| asset(SCRIPT, "js"));

fn asset(content: &str, kind: &str) -> String {
    let hash = Sha256::digest(content.as_bytes());
    let mut digits = String::new();
    for byte in hash.iter().take(8) {
        let _ = write!(digits, "{byte:02x}");
    }
    format!("/assets/{digits}.{kind}")
}

/// The places that the head of a page leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Lists of runs, and all about one.
    #[default]
    Runs,
    /// Composite resources and what they compose.
    Resources,
    /// What providers did.
    Changes,
    /// What looks wrong.
    Warnings,
    /// None of them.
    Elsewhere,
}

/// The colours that the reader chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Those of the reader's system.
    #[default]
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// The theme of a name. All else is that of the system.
    pub fn of_name(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::Auto,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The next one, for those who choose.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Auto => Self::Light,
            Self::Light => Self::Dark,
            Self::Dark => Self::Auto,
        }
    }
}

/// What the server knows of the reader and of all pages.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// The colours.
    pub theme: Theme,
    /// The address of the page, to come back to it.
    pub address: String,
    /// How many warnings are open, if it is known.
    pub warnings: Option<usize>,
}

/// A page without its frame.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The title of the document.
    pub title: String,
    /// Where it belongs.
    pub place: Place,
    /// What it says.
    pub body: String,
    /// The command that prints the same.
    pub command: Option<String>,
    /// Where news come from, if the page has some.
    pub events: Option<String>,
    /// The run that it is about, for the key that compares.
    pub run: Option<String>,
}

impl Page {
    /// A page with a title and a body.
    pub fn new(place: Place, title: impl Into<String>, body: Markup) -> Self {
        Self { title: title.into(), place, body: body.into_string(), ..Self::default() }
    }

    /// The same page with the command that prints the same.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }

    /// The whole document.
    pub fn render(&self, reader: &Reader) -> String {
        let theme = (reader.theme != Theme::Auto).then(|| reader.theme.name());
        let current = |place: Place| (self.place == place).then_some("page");
        html! {
            (DOCTYPE)
            html lang="en" data-theme=[theme] {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="referrer" content="no-referrer";
                    title { (self.title) " - Biplane" }
                    link rel="stylesheet" href=(*CSS_PATH);
                    link rel="icon" href=(ICON_PATH) type="image/svg+xml";
                    script src=(*SCRIPT_PATH) defer {}
                }
                body data-events=[self.events.as_ref()] data-run=[self.run.as_ref()] {
                    a.skip href="#main" { "Skip to content" }
                    header {
                        div.bar {
                            a.brand href="/" { "Biplane" }
                            nav aria-label="Places" {
                                ul {
                                    li { a href="/runs" aria-current=[current(Place::Runs)] { "Runs" } }
                                    li { a href="/x" aria-current=[current(Place::Resources)] { "Resources" } }
                                    li { a href="/changes" aria-current=[current(Place::Changes)] { "Changes" } }
                                    li {
                                        a href="/warnings" aria-current=[current(Place::Warnings)] {
                                            "Warnings"
                                            @if let Some(count) = reader.warnings.filter(|count| *count > 0) { " " (count) }
                                        }
                                    }
                                }
                            }
                            form.search role="search" method="post" action="/search" {
                                label.hidden for="search" { "Search or paste an id" }
                                input #search type="search" name="q" placeholder="Search or paste an id" autocomplete="off" spellcheck="false" maxlength="200";
                                button type="submit" { "Search" }
                            }
                            div.tools {
                                a href="/status" { "Status" }
                                form method="post" action="/theme" data-theme-form {
                                    input type="hidden" name="theme" value=(reader.theme.next().name());
                                    input type="hidden" name="back" value=(reader.address);
                                    button type="submit" { "Theme: " span data-theme-name { (reader.theme.name()) } }
                                }
                                a href="/help" { "Help" }
                            }
                        }
                    }
                    main #main tabindex="-1" { (PreEscaped(self.body.as_str())) }
                    div #said .hidden role="status" aria-live="polite" {}
                    @if let Some(command) = &self.command {
                        footer.foot {
                            span { "The same in a terminal:" }
                            code #command { "$ " (command) }
                            button.needs-js type="button" data-copy="command" hidden { "Copy" }
                        }
                    }
                }
            }
        }
        .into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_small_and_its_name_changes_with_it() {
        assert!(SCRIPT.len() <= 10 * 1024, "{} bytes", SCRIPT.len());
        assert_ne!(asset("a", "js"), asset("b", "js"));
        assert!(SCRIPT_PATH.starts_with("/assets/"), "{}", *SCRIPT_PATH);
    }

    #[test]
    fn a_page_says_where_the_reader_is() {
        let page = Page::new(Place::Changes, "<Title>", html! { h1 { "x" } }).command("echo '<&>'");
        let reader = Reader { theme: Theme::Dark, address: "/c".to_owned(), warnings: Some(2) };
        let text = page.render(&reader);
        assert!(
            text.starts_with("<!DOCTYPE html><html lang=\"en\" data-theme=\"dark\">"),
            "{text:.80}"
        );
        assert!(text.contains("<title>&lt;Title&gt; - Biplane</title>"));
        assert!(text.contains("<a href=\"/changes\" aria-current=\"page\">"));
        assert!(text.contains("Warnings 2") && text.contains("echo '&lt;&amp;&gt;'"));
    }
}
