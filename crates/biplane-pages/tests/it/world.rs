//! A site over a store that lines were imported into.

use std::sync::Arc;
use std::time::Duration;

use biplane_pages::http::{Request, Response};
use biplane_pages::site::{Options, Site};
use biplane_pages::token::Token;
use biplane_proto::redact::{Mode, Redactor, TagKey};
use biplane_recorder::query::import;
use biplane_recorder::query::stored::{self, ImportOptions, Stored};
use jiff::Timestamp;

/// The lines of the example.
pub(crate) const EMISSIONS: &str = include_str!("../../../../examples/recorder/emissions.jsonl");
pub(crate) const CHANGES: &str = include_str!("../../../../examples/recorder/changes.jsonl");

pub(crate) fn now() -> Timestamp {
    "2026-11-16T14:10:00Z".parse().unwrap()
}

/// A store in a folder of its own.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// A store without anything.
    pub(crate) fn empty() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        world.import("");
        world
    }

    /// A store with the example.
    pub(crate) fn example() -> Self {
        let world = Self::empty();
        world.import(EMISSIONS);
        world.import(CHANGES);
        world
    }

    pub(crate) fn store(&self) -> String {
        self.folder.path().join("recorder.db").display().to_string()
    }

    /// Stores lines that a sidecar printed.
    pub(crate) fn import(&self, lines: &str) {
        let redactor = Redactor::new(Mode::Deep, TagKey::new([7; 32]));
        let options = ImportOptions {
            store: self.store(),
            id: [1; 16],
            cluster: String::new(),
            source: "import".to_owned(),
            now: now(),
        };
        stored::import(vec![import::read(lines)], &redactor, &options).unwrap();
    }

    pub(crate) fn options(&self) -> Options {
        let store = self.store();
        Options {
            allowed: vec!["recorder.example.org".to_owned()],
            token: None,
            is_secure: false,
            open: Arc::new(move || Stored::open(&store)),
            now: Arc::new(now),
            trouble: Arc::new(|| None),
            extra: Arc::new(|_| None),
            // Whatever else the machine does: how fast pages are is measured by a benchmark.
            patience: Duration::from_mins(10),
        }
    }

    pub(crate) fn site(&self) -> Site {
        Site::new(self.options())
    }

    pub(crate) fn with_token(&self, token: &str) -> Site {
        Site::new(Options { token: Token::new(token), ..self.options() })
    }
}

/// Asks a site by an address of its own.
pub(crate) async fn ask(site: &Site, request: Request) -> Response {
    site.answer(request.with("host", "127.0.0.1:7654")).await
}

/// A page that must be there.
pub(crate) async fn page(site: &Site, target: &str) -> String {
    let response = ask(site, Request::get(target)).await;
    assert_eq!(response.status, 200, "{target}: {}", text(response.body_text()));
    response.body_text().to_owned()
}

/// What a page says: its main part without markup, a line for each block.
pub(crate) fn text(page: &str) -> String {
    let main = page.split_once("<main").map_or(page, |(_, main)| main);
    let main = main.split_once('>').map_or(main, |(_, main)| main);
    let main = main.replace("</body>", "").replace("</html>", "");
    let mut said = String::new();
    for (at, piece) in main.split('<').enumerate() {
        let (tag, words) =
            if at == 0 { ("", piece) } else { piece.split_once('>').unwrap_or(("", piece)) };
        let name: String =
            tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        let inline = [
            "a", "span", "time", "code", "strong", "em", "ins", "del", "kbd", "option", "rect",
            "line", "title", "",
        ];
        if !inline.contains(&name.as_str()) {
            said.push(if matches!(name.as_str(), "td" | "th") { '|' } else { '\n' });
        }
        said.push_str(words);
    }
    let said = said
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&");
    let lines = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let lines = lines.map(|line| line.trim_matches('|').replace("||", "|").trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The sentence that a page begins with.
pub(crate) fn sentence(page: &str) -> String {
    let lead = page.split_once("<p class=\"lead").unwrap().1;
    let lead = lead.split_once('>').unwrap().1.split_once("</p>").unwrap().0;
    text(lead)
}

/// The addresses of a page that lead within the site.
pub(crate) fn addresses(page: &str) -> Vec<String> {
    let href = |part: &str| part.split('"').next().unwrap_or_default().replace("&amp;", "&");
    let found = page.split("href=\"").skip(1).map(href);
    found.filter(|address| address.starts_with('/')).collect()
}
