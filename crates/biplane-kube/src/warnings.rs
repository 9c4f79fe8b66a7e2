//! Logs the warnings of the API server, each once: they are the only hint that a kind is deprecated
//! or that a field is unknown.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use http::header::WARNING;

/// So many different warnings are remembered. A process that gets more logs some twice.
const REMEMBERED: usize = 1000;

/// The warnings that were logged.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<BTreeSet<String>>);

impl Warnings {
    /// Logs the warnings among the headers of an answer.
    pub(crate) fn log(&self, headers: &HeaderMap) {
        for text in self.news(headers) {
            tracing::warn!("the API server warns: {text}");
        }
    }

    fn news(&self, headers: &HeaderMap) -> Vec<String> {
        let values = headers.get_all(WARNING).iter().filter_map(|value| value.to_str().ok());
        let mut texts = values.map(text).peekable();
        if texts.peek().is_none() {
            return Vec::new();
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        texts.filter(|text| known.insert(text.clone())).collect()
    }
}

/// The text of a warning: `299 - "text"`, with quotation marks and backslashes escaped.
fn text(header: &str) -> String {
    let quoted =
        header.split_once('"').map(|(_, rest)| rest).and_then(|rest| rest.rsplit_once('"'));
    let Some((quoted, _)) = quoted else { return header.to_owned() };
    let mut text = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warning_is_logged_once() {
        let warnings = Warnings::default();
        let mut headers = HeaderMap::new();
        headers.append(WARNING, r#"299 - "v1 Old is deprecated""#.parse().unwrap());
        headers.append(WARNING, r#"299 - "unknown field \"spec.x\"""#.parse().unwrap());
        assert_eq!(warnings.news(&headers), ["v1 Old is deprecated", r#"unknown field "spec.x""#]);
        assert_eq!(warnings.news(&headers), [""; 0]);
        assert_eq!(text("odd"), "odd");
    }
}
