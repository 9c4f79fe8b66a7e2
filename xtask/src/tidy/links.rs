//! Checks that relative links in Markdown lead to existing files.

use std::path::Path;

/// Every link of the file whose target does not exist.
pub(super) fn check(root: &Path, name: &str, text: &str) -> Vec<String> {
    let folder = root.join(name).parent().map(Path::to_owned).unwrap_or_default();
    targets(text)
        .filter(|(_, target)| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|(line, target)| {
            let path = target.split('#').next().unwrap_or_default();
            let there = path.is_empty() || folder.join(path).exists();
            (!there).then(|| format!("{name}:{line}: link to {target}, which is not there"))
        })
        .collect()
}

/// Targets of links with their line, except in code.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().flat_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let found = if fenced { Vec::new() } else { of_line(line) };
        found.into_iter().map(move |target| (number + 1, target))
    })
}

fn of_line(line: &str) -> Vec<&str> {
    if let Some((label, target)) = line.split_once("]: ")
        && label.starts_with('[')
    {
        return target.split_whitespace().take(1).collect();
    }
    // Every second piece between backticks is code.
    let prose = line.split('`').step_by(2);
    prose
        .flat_map(|piece| piece.split("](").skip(1))
        .filter_map(|rest| rest.split([')', ' ']).next())
        .collect()
}

#[cfg(test)]
mod tests {
    fn check(text: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        std::fs::write(dir.path().join("README.md"), "").unwrap();
        super::check(dir.path(), "docs/a.md", text)
    }

    #[test]
    fn links_are_relative_to_their_file() {
        assert_eq!(check("see [the start](../README.md#top) and [above](#here)"), [""; 0]);
        assert_eq!(
            check("\nsee [it](README.md)"),
            ["docs/a.md:2: link to README.md, which is not there"]
        );
        assert_eq!(check("[it]: gone.md"), ["docs/a.md:1: link to gone.md, which is not there"]);
    }

    #[test]
    fn addresses_and_code_are_no_business_of_ours() {
        assert_eq!(check("[out](https://example.org/x) [mail](mailto:a@b)"), [""; 0]);
        assert_eq!(check("`a[0](gone)`\n```\n[x](gone.md)\n```\n"), [""; 0]);
    }

    #[test]
    fn linked_code_is_still_a_link() {
        assert_eq!(check("[`a`](gone.md)").len(), 1);
    }
}
