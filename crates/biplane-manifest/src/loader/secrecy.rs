//! Tells texts that hold a Secret, whichever flag names their file. Errors do not quote them.
//!
//! The text may be broken, so it is not parsed. When in doubt, it counts as secret: an error then
//! still has its line and column.

/// Whether one of the documents in a text is a Secret, or a list that may hold one.
pub(super) fn holds_secret(text: &str) -> bool {
    let mut document = Vec::new();
    for line in text.lines() {
        if line.starts_with("---") {
            if is_secret(&document) {
                return true;
            }
            document.clear();
            // The document may begin on the line of its separator.
            document.push(line.trim_start_matches('-'));
        } else {
            document.push(line);
        }
    }
    is_secret(&document)
}

fn is_secret(document: &[&str]) -> bool {
    let lines = || document.iter().filter(|line| is_content(line));
    let Some(first) = lines().next() else { return false };
    // Of an object over several lines, only its own fields count: a Composition may compose Secrets.
    let is_plain = !first.trim_start().starts_with(['{', '[', '-', '"', '\'', '!', '&', '?']);
    let depth = indentation(first);
    let is_own = |line: &str| indentation(line) <= depth;
    let is_list = lines().any(|line| is_own(line) && has_kind(line, |kind| kind.ends_with("List")));
    let mut after_key = false;
    for line in lines() {
        if after_key && words(line).any(is_secret_kind) {
            return true;
        }
        let counts = !is_plain || is_list || is_own(line);
        if counts && has_kind(line, is_secret_kind) {
            return true;
        }
        // The value may be on the next line.
        after_key = counts && words(line).last() == Some("kind");
    }
    false
}

fn is_content(line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}').trim();
    !line.is_empty() && !line.starts_with(['#', '%'])
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Whether a line has the word `kind`, and such a word after it.
fn has_kind(line: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
    let mut words = words(line).skip_while(|word| *word != "kind");
    words.next().is_some() && words.any(is_wanted)
}

fn is_secret_kind(word: &str) -> bool {
    matches!(word, "Secret" | "SecretList")
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_however_they_are_written() {
        for text in [
            "kind: Secret\ndata: {a: b: c}\n",
            "data: [\nkind: 'Secret'\n",
            "a: b\n---\n# one\napiVersion: v1\n\"kind\": \"Secret\"\n",
            "  apiVersion: v1\n  kind: Secret\n",
            "kind:\n  Secret\n",
            "kind: !!str Secret\n",
            "{\"kind\": \"Secret\", \"data\": {}}",
            "{\n  \"kind\":\n    \"Secret\"\n}",
            "- kind: Secret\n  data: {}\n",
            "kind: List\nitems:\n- kind: Secret\n",
            "kind: SecretList\nitems:\n- data: {}\n",
            "--- {kind: Secret}\n",
            "\u{feff}kind: Secret\r\n",
        ] {
            assert!(holds_secret(text), "{text}");
        }
    }

    #[test]
    fn other_objects_may_mention_secrets() {
        for text in [
            "",
            "kind: ConfigMap\nmetadata: {name: Secret}\n",
            "kind: Composition\nspec:\n  base:\n    kind: Secret\n",
            "kind: Composition\nspec:\n  x: {kind: Secret}\n---\nkind: A\n",
            "kind: SecretStore\n",
            "# kind: Secret\nkind: A\n",
            "name: Secret\nkind: A\n",
        ] {
            assert!(!holds_secret(text), "{text}");
        }
    }
}
