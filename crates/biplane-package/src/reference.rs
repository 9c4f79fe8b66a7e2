//! Parses the names of images: registry, repository, tag and digest.

use anyhow::{Result, bail};

/// The default registry, by the name that it uses for itself.
pub const HUB: &str = "index.docker.io";

/// The parsed name of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Host and port.
    pub registry: String,
    /// The name without tag and digest, as written.
    pub name: String,
    /// The tag or digest.
    pub version: String,
}

impl Reference {
    /// Parses a name. The container engine validates the rest.
    pub fn parse(image: &str) -> Result<Self> {
        let (tagged, digest) = match image.split_once('@') {
            Some((tagged, digest)) => (tagged, Some(digest)),
            None => (image, None),
        };
        let base = tagged.rfind('/').map_or(0, |at| at + 1);
        let (name, tag) = match tagged.get(base..).and_then(|base| base.rfind(':')) {
            Some(at) => (tagged.get(..base + at), tagged.get(base + at + 1..)),
            None => (Some(tagged), None),
        };
        let name = name.unwrap_or_default();
        let version = digest.or(tag).unwrap_or("latest");
        if name.is_empty() || version.is_empty() || image.chars().any(char::is_whitespace) {
            bail!("could not parse reference: {image}");
        }
        let registry = match name.split_once('/') {
            Some((host, _)) if is_host(host) => host,
            _ => HUB,
        };
        let registry = if registry == "docker.io" { HUB } else { registry };
        Ok(Self {
            registry: registry.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
        })
    }

    /// Parses a name that must have a registry and a tag or digest.
    pub fn parse_complete(image: &str) -> Result<Self> {
        let reference = Self::parse(image)?;
        let Some((host, _)) = reference.name.split_once('/') else {
            bail!("strict validation requires the full repository path (missing 'library')");
        };
        if !is_host(host) {
            bail!("strict validation requires the registry to be explicitly defined");
        }
        if reference.name.len() == image.len() {
            bail!("strict validation requires the tag to be explicitly defined");
        }
        Ok(reference)
    }
}

/// Whether the first part of a name is a registry: it has a dot or a port, or is `localhost`.
fn is_host(text: &str) -> bool {
    text.contains(['.', ':']) || text == "localhost"
}

/// The repository without its registry.
pub fn repository_path(repository: &str) -> &str {
    match repository.split_once('/') {
        Some((registry, path)) if is_host(registry) => path,
        _ => repository,
    }
}

/// The organisation and base name of a package, from its repository without registry, tag and
/// digest.
pub fn organisation_and_name(package: &str) -> (&str, &str) {
    let repository = package.split('@').next().unwrap_or_default();
    let base = repository.rfind('/').map_or(0, |at| at + 1);
    let (path, base) = repository.split_at(base);
    let base = base.split(':').next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    let organisation = match path.split_once('/') {
        Some((registry, organisation)) if is_host(registry) => organisation,
        _ => path,
    };
    (organisation, base)
}

/// The name that the package manager gives to objects installed from a repository: lower case
/// letters, digits and dashes, at most 63 bytes.
pub fn dns_label(text: &str) -> String {
    let last = text.len().saturating_sub(1);
    let mut label = String::new();
    for (i, byte) in text.bytes().take(63).enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => label.push(char::from(byte)),
            b'.' | b'/' | b':' | b'-' if i != 0 && i != 62 && i != last => label.push('-'),
            _ => {}
        }
    }
    label.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        for (image, registry, name, version) in [
            ("function", HUB, "function", "latest"),
            ("docker.io/me/function:v1", HUB, "docker.io/me/function", "v1"),
            ("me/function:v1", HUB, "me/function", "v1"),
            ("localhost:5000/function", "localhost:5000", "localhost:5000/function", "latest"),
            ("localhost/a/b:v1", "localhost", "localhost/a/b", "v1"),
            ("xpkg.example.org/a/b:v1", "xpkg.example.org", "xpkg.example.org/a/b", "v1"),
            ("r.io/a/b:v1@sha256:00", "r.io", "r.io/a/b", "sha256:00"),
        ] {
            let want =
                Reference { registry: registry.into(), name: name.into(), version: version.into() };
            assert_eq!(Reference::parse(image).unwrap(), want, "{image}");
        }
        for image in ["", ":v1", "a b", "a:"] {
            assert!(Reference::parse(image).is_err(), "{image}");
        }
    }

    /// ENG-5
    #[test]
    fn a_complete_name_has_a_registry_and_a_tag() {
        for (image, complete) in [
            ("xpkg.crossplane.io/crossplane/crossplane:stable", true),
            ("localhost:5000/engine@sha256:00", true),
            ("xpkg.crossplane.io/crossplane/crossplane", false),
            ("crossplane/crossplane:v2", false),
            ("crossplane:v2", false),
        ] {
            assert_eq!(Reference::parse_complete(image).is_ok(), complete, "{image}");
        }
    }
    /// RX-5
    #[test]
    fn functions_are_named_after_their_repository() {
        for (repository, want) in [
            (
                "xpkg.crossplane.io/crossplane-contrib/function-auto-ready",
                "crossplane-contrib-function-auto-ready",
            ),
            ("localhost:5000/acme/fn", "acme-fn"),
            ("localhost/acme/fn", "acme-fn"),
            ("acme/fn", "acme-fn"),
            ("fn", "fn"),
            ("example.org/acme/project_compose", "acme-projectcompose"),
            ("example.org/Acme/a.b-", "cme-a-b"),
        ] {
            assert_eq!(dns_label(repository_path(repository)), want, "{repository}");
        }
        let long = "a".repeat(62) + "-" + "b";
        assert_eq!(dns_label(&long), "a".repeat(62));
        assert_eq!(dns_label(&"a".repeat(70)), "a".repeat(63));
    }
}
