//! The environment variables about Docker, read once and passed on.

use std::path::{Path, PathBuf};

use biplane_package::credentials;

/// The variables that Docker's own programs read. Empty ones count as unset.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `DOCKER_HOST`
    pub host: Option<String>,
    /// `DOCKER_API_VERSION`
    pub api_version: Option<String>,
    /// `DOCKER_CERT_PATH`
    pub cert_path: Option<PathBuf>,
    /// The file with credentials for registries, if there is one.
    pub auth_file: Option<PathBuf>,
}

impl Environment {
    /// The environment of this process.
    #[allow(clippy::disallowed_methods)] // Docker's variables are not our flags
    pub fn of_process() -> Self {
        Self::new(|key| std::env::var(key).ok(), Path::is_file)
    }

    fn new(variable: impl Fn(&str) -> Option<String>, exists: impl Fn(&Path) -> bool) -> Self {
        let variable = |key: &str| variable(key).filter(|value| !value.is_empty());
        Self {
            host: variable("DOCKER_HOST"),
            api_version: variable("DOCKER_API_VERSION"),
            cert_path: variable("DOCKER_CERT_PATH").map(PathBuf::from),
            auth_file: credentials::auth_file(variable, exists),
        }
    }

    /// Whether the Docker engine runs on another machine, which cannot reach this one's loopback.
    pub(crate) fn is_remote(&self) -> bool {
        self.host.as_ref().is_some_and(|host| !host.starts_with("unix://"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)], files: &[&str]) -> Environment {
        Environment::new(
            |key| variables.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned()),
            |path| files.iter().any(|file| Path::new(file) == path),
        )
    }

    /// RT-10
    #[test]
    fn credentials_are_looked_for_where_docker_and_podman_keep_them() {
        let variables = [
            ("HOME", "/home/me"),
            ("REGISTRY_AUTH_FILE", "/auth.json"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
        ];
        for (files, want) in [
            (vec!["/home/me/.docker/config.json", "/auth.json"], "/home/me/.docker/config.json"),
            (vec!["/auth.json", "/run/user/1/containers/auth.json"], "/auth.json"),
            (vec!["/run/user/1/containers/auth.json"], "/run/user/1/containers/auth.json"),
        ] {
            let found = environment(&variables, &files).auth_file;
            assert_eq!(found.as_deref(), Some(Path::new(want)));
        }
        assert_eq!(environment(&variables, &[]).auth_file, None);
        let elsewhere = [("HOME", "/home/me"), ("DOCKER_CONFIG", "/etc/mine")];
        let found = environment(&elsewhere, &["/home/me/.docker/config.json"]).auth_file;
        assert_eq!(found, None, "the folder that DOCKER_CONFIG names is the only one");
    }

    /// ENG-7
    #[test]
    fn anything_but_a_socket_is_another_machine() {
        for (host, remote) in [("", false), ("unix:///x.sock", false), ("tcp://h:2376", true)] {
            assert_eq!(environment(&[("DOCKER_HOST", host)], &[]).is_remote(), remote, "{host}");
        }
    }
}
