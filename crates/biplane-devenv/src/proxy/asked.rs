//! What a request asks for, read from its method and URL.

/// What a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub method: String,
    pub path: String,
    /// The query as it was sent, without the question mark.
    pub query: String,
    pub watch: bool,
    /// The API group; empty for the core group.
    pub group: String,
    pub version: String,
    /// The plural name. Empty if the request is not about a resource.
    pub resource: String,
    pub subresource: String,
    /// Empty for cluster-scoped objects and all namespaces.
    pub namespace: String,
    /// Empty for lists.
    pub name: String,
}

impl Asked {
    pub(super) fn new(method: &str, path: &str, query: &str) -> Self {
        let mut asked = Self {
            method: method.into(),
            path: path.into(),
            query: query.into(),
            watch: method == "GET"
                && query.split('&').any(|part| matches!(part, "watch" | "watch=true" | "watch=1")),
            ..Self::default()
        };
        asked.read_path(path);
        asked
    }

    fn read_path(&mut self, path: &str) {
        let mut parts = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned);
        match parts.next().as_deref() {
            Some("api") => {}
            Some("apis") => self.group = parts.next().unwrap_or_default(),
            _ => return,
        }
        self.version = parts.next().unwrap_or_default();
        let rest: Vec<String> = parts.collect();
        // Below a namespace are objects, but for the subresources of the namespace itself.
        let mut rest = match rest.as_slice() {
            [first, namespace, below @ ..]
                if first == "namespaces"
                    && below.first().is_some_and(|part| part != "status" && part != "finalize") =>
            {
                self.namespace.clone_from(namespace);
                below.to_vec()
            }
            _ => rest,
        }
        .into_iter();
        self.resource = rest.next().unwrap_or_default();
        self.name = rest.next().unwrap_or_default();
        self.subresource = rest.next().unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Group, version, namespace, resource, name and subresource.
    fn read(path: &str) -> [String; 6] {
        let Asked { group, version, namespace, resource, name, subresource, .. } =
            Asked::new("GET", path, "");
        [group, version, namespace, resource, name, subresource]
    }

    #[test]
    fn paths_name_objects() {
        for (path, expected) in [
            ("/version", ["", "", "", "", "", ""]),
            ("/api", ["", "", "", "", "", ""]),
            ("/apis/apps/v1", ["apps", "v1", "", "", "", ""]),
            ("/api/v1/nodes", ["", "v1", "", "nodes", "", ""]),
            ("/api/v1/namespaces/n", ["", "v1", "", "namespaces", "n", ""]),
            ("/api/v1/namespaces/n/finalize", ["", "v1", "", "namespaces", "n", "finalize"]),
            ("/api/v1/namespaces/n/pods", ["", "v1", "n", "pods", "", ""]),
            ("/api/v1/namespaces/n/pods/p", ["", "v1", "n", "pods", "p", ""]),
            ("/api/v1/namespaces/n/pods/p/log", ["", "v1", "n", "pods", "p", "log"]),
            ("/apis/g.io/v2/xs/x/status", ["g.io", "v2", "", "xs", "x", "status"]),
        ] {
            assert_eq!(read(path), expected, "{path}");
        }
    }

    #[test]
    fn watches_are_told_from_lists() {
        let watch = |method, query| Asked::new(method, "/api/v1/pods", query).watch;
        assert!(watch("GET", "watch=true"));
        assert!(watch("GET", "timeoutSeconds=290&watch=1"));
        assert!(!watch("GET", ""));
        assert!(!watch("GET", "watch=false&labelSelector=watch%3Dtrue"));
        assert!(!watch("DELETE", "watch=true"));
    }
}
