//! Checks that every cited rule is defined in `spec/`.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use regex::Regex;

/// The folder that defines rules.
const FOLDER: &str = "spec/";

/// A prefix ends with a hyphen, or with a letter that names a part of the page (as in `FN-P`).
const ID: &str = r"(?<prefix>[A-Z][A-Z0-9]{0,5}-[A-Z]{0,2})[0-9]+[a-z]?";

/// Text that may precede the id at the start of a paragraph, list item or table row.
const OPENING: &str = r"^\s*(?:[-*]\s+|[0-9]+\.\s+|\|\s*|#+\s+)?(?:\*\*|`)?(?:\{?id:\s*)?";

/// The rules of `spec/`.
pub(super) struct Rules {
    cited: Regex,
    defined: BTreeSet<String>,
    prefixes: BTreeSet<String>,
}

impl Rules {
    /// Reads the rules from pages, given by name and text.
    pub(super) fn read<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let opening = Regex::new(&format!("{OPENING}(?<id>{ID})")).context("bad pattern")?;
        let (mut defined, mut prefixes) = (BTreeSet::new(), BTreeSet::new());
        for (_, text) in files.filter(|(name, _)| name.starts_with(FOLDER)) {
            for line in definitions(text) {
                let Some(found) = opening.captures(line) else { continue };
                let end = found.name("id").map_or(0, |id| id.end());
                if is_whole(line, 0, end) {
                    defined.insert(found["id"].to_owned());
                    prefixes.insert(found["prefix"].to_owned());
                }
            }
        }
        Ok(Self { cited: Regex::new(ID).context("bad pattern")?, defined, prefixes })
    }

    /// Every citation of a rule that no page defines. A word counts as an id only if some rule has
    /// its prefix, so `UTF-8` is not a citation.
    pub(super) fn check(&self, name: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        for (number, line) in text.lines().enumerate() {
            for found in self.cited.captures_iter(line) {
                let Some(id) = found.get(0) else { continue };
                if is_whole(line, id.start(), id.end())
                    && self.prefixes.contains(&found["prefix"])
                    && !self.defined.contains(id.as_str())
                {
                    let number = number + 1;
                    findings.push(format!(
                        "{name}:{number}: cites {}, which spec/ does not define",
                        id.as_str()
                    ));
                }
            }
        }
        findings
    }
}

/// The lines that can define a rule. A table whose first column is headed "Rule" usually lists
/// corrections, so it defines only ids in bold.
fn definitions(text: &str) -> impl Iterator<Item = &str> {
    let mut correcting = false;
    text.lines().filter(move |line| {
        let Some(row) = line.trim_start().strip_prefix('|') else {
            correcting = false;
            return true;
        };
        let row = row.trim_start();
        correcting |= row.to_lowercase().starts_with("rule ");
        !correcting || row.starts_with("**")
    })
}

/// Whether the text between two offsets is not part of a longer word.
fn is_whole(line: &str, start: usize, end: usize) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let continues = |c: char| joins(c) || matches!(c, '/' | '.');
    !line[..start].ends_with(continues) && !line[end..].starts_with(joins)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Page

ZA-1. A paragraph.
- **ZB-2 Title.** An item, which cites ZB-9 in passing.
3. **ZB-3** A step.

| id | input |
|---|---|
| ZC-D4 | a row |

- {id: ZT-5, t: x}
- id: ZT-6

| Rule | Correction |
|---|---|
| ZB-8 | never defined |
| **ZB-7** | defined |
";

    fn check(text: &str) -> Vec<String> {
        let rules = Rules::read([("spec/page.md", PAGE)].into_iter()).unwrap();
        rules.check("a.rs", text)
    }

    #[test]
    fn rules_open_paragraphs_items_and_rows() {
        assert_eq!(check("// ZA-1, ZB-2, ZB-3 to ZC-D4\n// ZT-5 (ZT-6), ZB-7"), [""; 0]);
    }

    #[test]
    fn what_is_cited_and_not_defined_is_found_with_its_line() {
        assert_eq!(
            check("fn a() {}\n// ZB-2, ZB-9"),
            ["a.rs:2: cites ZB-9, which spec/ does not define"]
        );
        assert_eq!(check("ZC-D5").len(), 1);
        assert_eq!(check("ZB-22").len(), 1);
    }

    #[test]
    fn a_correction_does_not_define_a_rule() {
        assert_eq!(check("ZB-8"), ["a.rs:1: cites ZB-8, which spec/ does not define"]);
    }

    #[test]
    fn pages_themselves_are_held_to_it() {
        let rules = Rules::read([("spec/page.md", PAGE)].into_iter()).unwrap();
        assert_eq!(rules.check("spec/page.md", PAGE).len(), 2);
    }

    #[test]
    fn other_words_with_numbers_are_not_citations() {
        assert_eq!(check("UTF-8, SHA-256, ISO-8601, v1-20, BSD-3-Clause"), [""; 0]);
        assert_eq!(check("XZB-9 ZB-9-x a/ZB-9 ZB-9th ZB_ZB-9_"), [""; 0]);
    }

    #[test]
    fn only_pages_of_spec_define_rules() {
        let rules = Rules::read([("docs/page.md", PAGE)].into_iter()).unwrap();
        assert_eq!(rules.check("a.rs", "ZA-9"), [""; 0]);
    }
}
