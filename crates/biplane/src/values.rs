//! Parsers for the values of flags: files, durations, lists and maps.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use biplane_go::time::GoDuration;
use clap::ValueEnum;

pub use biplane_console::os::reason;
pub use biplane_manifest::STDIN;

/// An absolute path, which need not exist; `-` is returned unchanged. No text is the folder in which
/// the program runs.
pub fn path(text: &str) -> Result<PathBuf, String> {
    if text == STDIN {
        return Ok(PathBuf::from(text));
    }
    let text = if text.is_empty() { "." } else { text };
    let absolute = std::path::absolute(at_home(text)).map_err(|e| e.to_string())?;
    Ok(clean(&absolute))
}

/// When the places of mistakes are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Locations {
    /// If stderr is a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Locations {
    /// Whether they are, if that does not depend on the terminal.
    pub fn wanted(self) -> Option<bool> {
        match self {
            Self::Auto => None,
            Self::Always => Some(true),
            Self::Never => Some(false),
        }
    }
}

/// A boolean as flags take it.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        other => Err(format!("bool value must be true, 1, yes, false, 0 or no but got {other:?}")),
    }
}

thread_local! {
    /// The home folder of the command line that this thread parses and runs. Value parsers are
    /// plain functions, so it cannot be passed to them as an argument.
    static HOME: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Parses and runs a command line with this folder as `~/`.
pub(crate) fn with_home<T>(home: Option<PathBuf>, run: impl FnOnce() -> T) -> T {
    /// Restores the previous value, also after a panic.
    struct Before(Option<PathBuf>);

    impl Drop for Before {
        fn drop(&mut self) {
            HOME.set(self.0.take());
        }
    }

    let _before = Before(HOME.replace(home));
    run()
}

/// The path as given, with a leading `~/` expanded.
pub fn at_home(text: &str) -> PathBuf {
    let home = |rest: &str| HOME.with_borrow(|home| Some(home.as_ref()?.join(rest)));
    text.strip_prefix("~/").and_then(home).unwrap_or_else(|| PathBuf::from(text))
}

/// An absolute path of an existing file that is not a directory; `-` is returned unchanged.
pub fn existing_file(text: &str) -> Result<PathBuf, String> {
    let path = path(text)?;
    if text == STDIN {
        return Ok(path);
    }
    let metadata =
        std::fs::metadata(&path).map_err(|e| format!("stat {}: {}", path.display(), reason(&e)))?;
    if metadata.is_dir() {
        return Err(format!("{:?} exists but is a directory", path.display().to_string()));
    }
    Ok(path)
}

/// Removes `.` and `..` without accessing the disk.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// A duration such as `1m30s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    signed_duration(text)?.try_into().map_err(|_| no_duration(text))
}

/// The same, but may be negative.
pub fn signed_duration(text: &str) -> Result<GoDuration, String> {
    text.parse().map_err(|_| no_duration(text))
}

fn no_duration(text: &str) -> String {
    format!("expected duration but got {text:?}: write it as 1m30s")
}

/// A count of at least one.
pub fn count<N: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<N, String> {
    text.parse()
        .ok()
        .filter(|number| *number >= N::from(1))
        .ok_or_else(|| format!("expected a whole number above 0 but got {text:?}"))
}

/// The items of a list flag: every occurrence is split at commas without a preceding backslash.
pub fn list(occurrences: &[String]) -> Vec<String> {
    occurrences.iter().flat_map(|text| split(text, ',')).collect()
}

/// The paths of a list flag.
pub fn paths(occurrences: &[String]) -> Vec<PathBuf> {
    list(occurrences).iter().map(|p| path(p).unwrap_or_else(|_| PathBuf::from(p))).collect()
}

/// The pairs of a map flag: every occurrence is split at semicolons without a preceding backslash,
/// and every pair at its first equals sign. The last value of a key wins.
pub fn map(occurrences: &[String]) -> Result<BTreeMap<String, String>, String> {
    let pairs = occurrences.iter().flat_map(|text| split(text, ';'));
    pairs
        .map(|pair| {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("expected \"<key>=<value>\" but got {pair:?}"))?;
            Ok((key.to_owned(), value.to_owned()))
        })
        .collect()
}

/// Checks one occurrence of a map flag during parsing, so that an error is a usage error.
pub fn pairs(text: &str) -> Result<String, String> {
    map(&[text.to_owned()]).map(|_| text.to_owned())
}

/// Splits a text into items. An empty text after the last separator is not an item; empty texts
/// before it are.
fn split(text: &str, separator: char) -> Vec<String> {
    let mut items = Vec::new();
    let mut item = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) if escaped == separator => item.push(escaped),
                // Any other character keeps its backslash, also another backslash.
                Some(other) => item.extend(['\\', other]),
                None => item.push('\\'),
            },
            c if c == separator => items.push(std::mem::take(&mut item)),
            c => item.push(c),
        }
    }
    if !item.is_empty() {
        items.push(item);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(items: &[&str]) -> Vec<String> {
        items.iter().map(|&s| s.to_owned()).collect()
    }

    /// CLI-13, T-10
    #[test]
    fn lists_split_at_commas_and_accumulate() {
        assert_eq!(list(&owned(&["a=1,b=2", "c=3"])), ["a=1", "b=2", "c=3"]);
        assert_eq!(list(&owned(&[r"a\,b,c"])), ["a,b", "c"]);
        assert_eq!(list(&[]), Vec::<String>::new());
    }

    /// CLI-13, CLI-14: scripts pass variables that may be empty.
    #[test]
    fn nothing_after_the_last_separator_is_no_item() {
        assert_eq!(list(&owned(&["", "a,", ",b"])), ["a", "", "b"]);
        assert_eq!(map(&owned(&["", "a=1;"])).unwrap(), [("a".to_owned(), "1".to_owned())].into());
        let error = map(&owned(&["a=1;;b=2"])).unwrap_err();
        assert_eq!(error, r#"expected "<key>=<value>" but got """#);
    }

    /// CLI-13, CLI-14
    #[test]
    fn a_backslash_escapes_the_next_character_whatever_it_is() {
        assert_eq!(list(&owned(&[r"a\\,b", r"c\n", r"d\"])), [r"a\\", "b", r"c\n", r"d\"]);
    }

    /// CLI-14, T-14
    #[test]
    fn maps_split_at_semicolons_and_first_equals_sign() {
        let found = map(&owned(&[r#"k={"a":1,"b":2};j=2"#, "j=3=4", r"s=x\;y"])).unwrap();
        let want = [("j", "3=4"), ("k", r#"{"a":1,"b":2}"#), ("s", "x;y")];
        assert_eq!(found, want.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        let error = map(&owned(&["a"])).unwrap_err();
        assert_eq!(error, r#"expected "<key>=<value>" but got "a""#);
    }

    /// CLI-11, CLI-12
    #[test]
    fn paths_are_made_absolute() {
        assert_eq!(path("-").unwrap(), PathBuf::from("-"));
        assert_eq!(path("").unwrap(), std::env::current_dir().unwrap());
        assert_eq!(path("/a/./b/../c").unwrap(), PathBuf::from("/a/c"));
        assert!(path("x.yaml").unwrap().is_absolute());
        let error = existing_file("/nowhere/xr.yaml").unwrap_err();
        assert_eq!(error, "stat /nowhere/xr.yaml: no such file or directory");
        assert_eq!(existing_file("/").unwrap_err(), r#""/" exists but is a directory"#);
    }

    /// CLI-11
    #[test]
    fn a_tilde_is_the_home_folder_of_the_line() {
        let paths = |home: Option<&str>| {
            let home = home.map(PathBuf::from);
            with_home(home, || (at_home("~/a/b"), path("~/c").unwrap(), at_home("~x/y")))
        };
        let path = |text: &str| PathBuf::from(text);
        assert_eq!(
            paths(Some("/home/me")),
            (path("/home/me/a/b"), path("/home/me/c"), path("~x/y"))
        );
        let here = std::env::current_dir().unwrap();
        assert_eq!(paths(None), (path("~/a/b"), here.join("~/c"), path("~x/y")));
    }

    /// CLI-11
    #[test]
    fn durations_have_units_and_only_some_may_be_negative() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(signed_duration("-1s").map(Duration::try_from).unwrap().ok(), None);
        for text in ["1", "soon", "", "-1s"] {
            let error = format!("expected duration but got {text:?}: write it as 1m30s");
            assert_eq!(duration(text), Err(error.clone()));
            if text != "-1s" {
                assert_eq!(signed_duration(text), Err(error));
            }
        }
    }
}
