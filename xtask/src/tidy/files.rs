//! Rules for every file of the tree.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::links;
use crate::output;

/// Longer files should be split.
const LONGEST: usize = 800;

/// Absolute paths mean nothing on another machine. They are concatenated here, so that this file
/// does not match.
const MACHINE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Commands read flags and call a library. A longer one does more than that.
const LONGEST_COMMAND: usize = 300;

/// Where the modules of commands are.
const COMMANDS: &str = "crates/biplane/src/commands/";

/// Every text file that git tracks or would add, by name.
pub(super) fn read(root: &Path) -> Result<BTreeMap<String, String>> {
    let listing = output(
        Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root),
    )?;
    let mut files = BTreeMap::new();
    for name in listing.split('\0').filter(|name| !name.is_empty()) {
        // A deleted file is listed until the deletion is staged. Binary files have no lines.
        let Ok(bytes) = std::fs::read(root.join(name)) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        files.insert(name.to_owned(), text);
    }
    Ok(files)
}

/// Returns all violations.
pub(super) fn check(root: &Path, files: &BTreeMap<String, String>) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, text) in files {
        findings.extend(check_text(name, text));
        if has_extension(name, "md") {
            findings.extend(links::check(root, name, text));
        }
    }
    findings
}

pub(super) fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == extension)
}

fn check_text(name: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if has_extension(name, "rs") && !name.contains("/generated/") {
        let lines = text.lines().count();
        if lines > LONGEST {
            findings.push(format!("{name}: {lines} lines, split it (at most {LONGEST})"));
        }
        let is_command = name.starts_with(COMMANDS) && !name.ends_with("/tests.rs");
        if is_command && lines > LONGEST_COMMAND {
            findings.push(format!(
                "{name}: {lines} lines, move what is not a command to a library (at most {LONGEST_COMMAND})"
            ));
        }
        if !text.starts_with("//! ") {
            findings.push(format!("{name}: does not open with a `//!` sentence of purpose"));
        }
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(path) = MACHINE_PATHS.iter().find(|path| starts_a_path(line, path)) {
            findings.push(format!("{name}:{}: names a machine's path {path}", number + 1));
        }
    }
    findings
}

/// Whether `path` occurs in `line`, but not in the middle of a longer path.
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_files_open_with_their_purpose() {
        assert_eq!(check_text("a.rs", "//! Does things.\nfn a() {}\n"), [""; 0]);
        assert_eq!(
            check_text("a.rs", "fn a() {}\n"),
            ["a.rs: does not open with a `//!` sentence of purpose"]
        );
        assert_eq!(check_text("src/generated/a.rs", "fn a() {}\n"), [""; 0]);
        assert_eq!(check_text("a.py", "def a(): pass\n"), [""; 0]);
    }

    #[test]
    fn long_rust_files_are_to_be_split() {
        let text = |lines: usize| format!("//! Long.\n{}", "\n".repeat(lines - 1));
        assert_eq!(check_text("a.rs", &text(800)), [""; 0]);
        assert_eq!(check_text("a.rs", &text(801)), ["a.rs: 801 lines, split it (at most 800)"]);
    }

    #[test]
    fn commands_are_short() {
        let text = |lines: usize| format!("//! Long.\n{}", "\n".repeat(lines - 1));
        let name = format!("{COMMANDS}a.rs");
        assert_eq!(check_text(&name, &text(300)), [""; 0]);
        assert_eq!(
            check_text(&name, &text(301)),
            [format!("{name}: 301 lines, move what is not a command to a library (at most 300)")]
        );
        assert_eq!(check_text(&format!("{COMMANDS}a/b.rs"), &text(301)).len(), 1);
        assert_eq!(check_text(&format!("{COMMANDS}a/tests.rs"), &text(301)), [""; 0]);
        assert_eq!(check_text("crates/biplane/src/commands.rs", &text(301)), [""; 0]);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let path = MACHINE_PATHS[0];
        let found = check_text("a.md", &format!("first\nsee `{path}x`\n"));
        assert_eq!(found, [format!("a.md:2: names a machine's path {path}")]);
        assert_eq!(check_text("a.md", &format!("https://example.org{path}x\n")), [""; 0]);
    }
}
