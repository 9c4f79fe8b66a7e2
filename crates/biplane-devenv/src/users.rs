//! Users that the API server knows by a token, and their kubeconfig files.

use std::collections::BTreeMap;

use base64::Engine;
use serde_json::{Value, json};

/// The user whose kubeconfig developers get: a member of `system:masters`.
pub(crate) const ADMIN: &str = "admin";

/// The user that this crate is when it sets up and probes servers. It has a name of its own, so that
/// the audit log tells its requests from those of tests.
pub(crate) const SELF: &str = "biplane-devenv";

/// The user that kube-controller-manager is.
pub(crate) const CONTROLLERS_USER: &str = "system:kube-controller-manager";

/// Members may do everything, whatever roles say.
const MASTERS: &str = "system:masters";

/// A user that the API server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    groups: Vec<String>,
    cluster_admin: bool,
}

impl User {
    /// A user without groups and permissions.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: Vec::new(), cluster_admin: false }
    }

    /// A user with the name and the groups of a service account. The account itself need not exist.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(format!("system:serviceaccount:{namespace}:{name}"))
            .group("system:serviceaccounts")
            .group(format!("system:serviceaccounts:{namespace}"))
    }

    /// A user that may do everything without being asked for roles.
    pub fn master(name: impl Into<String>) -> Self {
        Self::new(name).group(MASTERS)
    }

    /// Adds the user to a group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Binds the ClusterRole `cluster-admin` to the user.
    #[must_use]
    pub fn cluster_admin(mut self) -> Self {
        self.cluster_admin = true;
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The binding that makes the user a cluster admin, if it shall be one.
    pub(crate) fn binding(&self) -> Option<Value> {
        self.cluster_admin.then(|| {
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("biplane-devenv:{}:cluster-admin", self.name)},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [{
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "User",
                    "name": self.name,
                }],
            })
        })
    }
}

/// The lines of kube-apiserver's token file.
pub(crate) fn token_file(users: &[User], tokens: &BTreeMap<String, String>) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let lines = users.iter().filter_map(|user| {
        let token = tokens.get(&user.name)?;
        let name = quoted(&user.name);
        Some(format!("{},{name},{name},{}\n", quoted(token), quoted(&user.groups.join(","))))
    });
    lines.collect()
}

/// A self-contained kubeconfig.
pub(crate) fn kubeconfig(url: &str, ca: &str, user: &str, token: &str) -> String {
    let ca = base64::engine::general_purpose::STANDARD.encode(ca);
    // Every JSON string is a YAML string.
    let user = Value::from(user);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: biplane
  cluster:
    server: {url}
    certificate-authority-data: {ca}
users:
- name: {user}
  user:
    token: {token}
contexts:
- name: biplane
  context:
    cluster: biplane
    user: {user}
current-context: biplane
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_has_the_groups_of_one() {
        let user = User::service_account("crossplane-system", "crossplane");
        assert_eq!(user.name(), "system:serviceaccount:crossplane-system:crossplane");
        assert_eq!(
            user.groups,
            ["system:serviceaccounts", "system:serviceaccounts:crossplane-system"]
        );
    }

    #[test]
    fn the_token_file_quotes_names_and_groups() {
        let users = [User::new("a \"b\", c").group("x").group("y"), User::new("no token")];
        let tokens = BTreeMap::from([("a \"b\", c".to_owned(), "secret".to_owned())]);
        assert_eq!(
            token_file(&users, &tokens),
            "\"secret\",\"a \"\"b\"\", c\",\"a \"\"b\"\", c\",\"x,y\"\n"
        );
    }

    #[test]
    fn only_cluster_admins_get_a_binding() {
        assert_eq!(User::new("reader").binding(), None);
        let binding = User::new("writer").cluster_admin().binding().unwrap();
        assert_eq!(binding["subjects"][0]["name"], "writer");
        assert_eq!(binding["roleRef"]["name"], "cluster-admin");
    }
}
