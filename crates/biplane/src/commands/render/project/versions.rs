//! What a project says about the version of a package.

/// Whether a version is a digest.
pub(super) fn is_digest(version: &str) -> bool {
    version.strip_prefix("sha256:").is_some_and(|hash| {
        hash.len() == 64 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Whether a version stands for several, of which the newest is meant. A tag that is no version at
/// all means itself.
pub(super) fn is_range(version: &str) -> bool {
    let operators = ['<', '>', '=', '!', '~', '^', ',', '|', '*', ' '];
    if version.contains(operators) {
        return true;
    }
    let numbers = version.strip_prefix('v').unwrap_or(version);
    let core = numbers.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<_> = core.split('.').collect();
    let number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let wildcard = |part: &&str| matches!(*part, "x" | "X");
    parts.iter().all(|part| number(part) || wildcard(part))
        && (parts.len() < 3 || parts.iter().any(wildcard))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_told_from_versions_and_tags() {
        for exact in
            ["v0.5.0", "0.5.0", "v1.2.3-rc.1", "latest", "main", "v1.2.3+build", "stable-1"]
        {
            assert!(!is_range(exact), "{exact}");
        }
        for range in [">=v0.0.0", "^1.2.0", "~1.2", "v1", "1.2", "1.x", "*", ">1, <2", "x"] {
            assert!(is_range(range), "{range}");
        }
        assert!(is_digest(&format!("sha256:{}", "0a".repeat(32))));
        assert!(!is_digest("sha256:0a") && !is_digest("v1.2.3"));
    }
}
