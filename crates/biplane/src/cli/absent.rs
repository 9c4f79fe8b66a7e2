//! Upstream commands that Biplane does not have yet, with their replacements.

use std::ffi::OsString;

use clap::error::ErrorKind;

/// Commands that upstream has under the same path.
const SAME: &[&str] = &[
    "cluster",
    "cluster top",
    "composition generate",
    "dependency",
    "dependency add",
    "dependency clean-cache",
    "dependency update-cache",
    "function generate",
    "project",
    "project build",
    "project init",
    "project push",
    "project run",
    "project stop",
    "resource trace",
    "xpkg",
    "xpkg batch",
    "xpkg build",
    "xpkg extract",
    "xpkg get-crds",
    "xpkg init",
    "xpkg install",
    "xpkg push",
    "xpkg update",
    "xr",
    "xr generate",
    "xr patch",
    "xrd",
    "xrd convert",
    "xrd generate",
];

/// Other paths, and what to use instead.
const OTHERS: &[(&[&str], &str)] = &[
    (&["beta top", "top"], "`crossplane cluster top`, or `crossplane beta top` before v2.3"),
    (
        &["beta trace", "trace"],
        "`crossplane resource trace`, or `crossplane beta trace` before v2.3",
    ),
    (&["beta upgrade", "beta upgrade check"], "`crossplane beta upgrade check` of v1.20"),
    (
        &["xpkg login", "xpkg logout"],
        "`docker login` and `docker logout`, or `crossplane` before v2.3",
    ),
    (&["configuration"], "`crossplane xpkg`"),
    (&["diff"], "`crossplane-diff`"),
];

/// The message for a line that names one of them, whatever other errors the line has.
pub(super) fn message(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let unknown = matches!(error.kind(), ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument);
    let (path, instead) = unknown.then(|| find(&words(arguments)))??;
    Some(format!("biplane has no `{path}` yet: use {instead}"))
}

/// The leading words, without the flags that every command has.
fn words(arguments: &[OsString]) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = arguments.iter().skip(1).map_while(|argument| argument.to_str());
    while let Some(word) = rest.next() {
        match word {
            "--config" => drop(rest.next()),
            "--verbose" => {}
            word if word.starts_with("--config=") || word.starts_with("--verbose=") => {}
            word if word.starts_with('-') => break,
            word => words.push(word),
        }
    }
    words
}

/// The longest path that the words begin with, and its replacement.
fn find(words: &[&str]) -> Option<(String, String)> {
    (1..=words.len().min(3)).rev().find_map(|length| {
        let path = words[..length].join(" ");
        if SAME.contains(&path.as_str()) {
            let instead = format!("`crossplane {path}`");
            return Some((path, instead));
        }
        let (_, instead) = OTHERS.iter().find(|(paths, _)| paths.contains(&path.as_str()))?;
        Some((path, (*instead).to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CLI-1, CLI-2: a command that is implemented is removed from the lists.
    #[test]
    fn no_command_that_there_is_counts_as_absent() {
        let tree = crate::cli::command();
        let others = OTHERS.iter().flat_map(|(paths, _)| paths.iter());
        for path in SAME.iter().chain(others) {
            let mut words = path.split(' ');
            let found = words.try_fold(&tree, |command, word| command.find_subcommand(word));
            assert!(found.is_none(), "{path}");
        }
    }

    #[test]
    fn only_the_words_of_the_command_count() {
        let words = |line: &[&str]| {
            let line: Vec<_> =
                std::iter::once(&"biplane").chain(line).map(OsString::from).collect();
            words(&line).join(" ")
        };
        assert_eq!(words(&["--config", "x", "beta", "--verbose", "trace", "a"]), "beta trace a");
        assert_eq!(words(&["--config=x", "--verbose=1", "xr", "-o", "patch"]), "xr");
        assert_eq!(words(&[]), "");
    }
}
