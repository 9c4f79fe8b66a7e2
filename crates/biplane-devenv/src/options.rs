//! What to start, and how.

use std::path::PathBuf;

use crate::users::User;

/// Options of a control plane. The default is an API server with its etcd in a temporary folder, the
/// user `admin`, and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) data: Option<PathBuf>,
    pub(crate) port: Option<u16>,
    pub(crate) users: Vec<User>,
    pub(crate) audit_log: bool,
    pub(crate) controllers: bool,
    pub(crate) api_server_flags: Vec<String>,
}

impl Options {
    /// Keeps everything in a folder: the next start with it goes on with the same objects, keys and
    /// tokens, and with the same port if it is free. Data is written safely, so it also survives a
    /// power failure.
    #[must_use]
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// Uses this port if it is free. Without it, a free one is chosen.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Adds a user. One with the same name is replaced.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.users.retain(|known| known.name() != user.name());
        self.users.push(user);
        self
    }

    /// Lets the API server write down every request.
    #[must_use]
    pub fn audit_log(mut self) -> Self {
        self.audit_log = true;
        self
    }

    /// Starts kube-controller-manager with the controllers that need no nodes: it collects garbage,
    /// empties namespaces that are deleted, and creates service accounts.
    #[must_use]
    pub fn controllers(mut self) -> Self {
        self.controllers = true;
        self
    }

    /// Adds a flag of kube-apiserver, such as `--feature-gates=WatchList=false`.
    #[must_use]
    pub fn api_server_flag(mut self, flag: impl Into<String>) -> Self {
        self.api_server_flags.push(flag.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_once() {
        let options = Options::default()
            .user(User::new("a"))
            .user(User::new("b"))
            .user(User::new("a").group("g"));
        assert_eq!(options.users, [User::new("b"), User::new("a").group("g")]);
    }
}
