//! Rules of a project that replace the prefixes of image names, for example to use a mirror.

use anyhow::{Result, bail};
use biplane_model::Value;

use super::values::{list, text_at};

/// A rule that replaces a prefix.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rewrite {
    from: Vec<String>,
    to: String,
}

impl Rewrite {
    /// The rule of an image configuration, if it has one.
    pub(super) fn of(configuration: &Value) -> Option<Self> {
        let spec = configuration.get("spec")?;
        let to = spec.get("rewriteImage").filter(|rule| !rule.is_null())?;
        let from = list(spec, "matchImages").iter().map(|m| text_at(m, "/prefix").to_owned());
        Some(Self { from: from.collect(), to: text_at(to, "/prefix").to_owned() })
    }
}

/// The name under which an image is pulled. The longest matching prefix wins.
pub(super) fn rewrite(rules: &[Rewrite], image: &str) -> Result<String> {
    let mut best: Option<(&str, &Rewrite)> = None;
    for rule in rules {
        for from in &rule.from {
            let longest = best.map_or(0, |(from, _)| from.len());
            if image.starts_with(from.as_str()) && from.len() > longest {
                best = Some((from, rule));
            }
        }
    }
    match best {
        None => Ok(image.to_owned()),
        Some((_, rule)) if rule.to.is_empty() => bail!("rewrite prefix is missing"),
        Some((from, rule)) => Ok(format!("{}{}", rule.to, image.get(from.len()..).unwrap_or(""))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// PJ-2
    #[test]
    fn the_longest_beginning_decides() {
        let rule = |from: &[&str], to: &str| {
            let from: Vec<_> = from.iter().map(|prefix| json!({"prefix": prefix})).collect();
            json!({"spec": {"matchImages": from, "rewriteImage": {"prefix": to}}})
        };
        let other = json!({"spec": {"matchImages": [{"prefix": "a.io/x/y"}], "registry": {}}});
        let all = [rule(&["a.io", "b.io/z"], "mirror"), rule(&["a.io/x"], "own/x"), other];
        let rules: Vec<_> = all.iter().filter_map(Rewrite::of).collect();
        assert_eq!(rules.len(), 2);
        for (image, want) in [
            ("a.io/w:v1", "mirror/w:v1"),
            ("a.io/x/y:v1", "own/x/y:v1"),
            ("b.io/z@sha256:00", "mirror@sha256:00"),
            ("c.io/z:v1", "c.io/z:v1"),
        ] {
            assert_eq!(rewrite(&rules, image).unwrap(), want);
        }
        let empty = [Rewrite { from: vec!["a".to_owned()], to: String::new() }];
        assert_eq!(rewrite(&empty, "a:v1").unwrap_err().to_string(), "rewrite prefix is missing");
    }
}
