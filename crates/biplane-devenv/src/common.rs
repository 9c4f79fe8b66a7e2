//! What all parts of one control plane share: its folder, keys, users and programs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::EnvError;
use crate::audit::{AuditLog, POLICY};
use crate::certificates::{Identity, token};
use crate::client::Client;
use crate::folder::Folder;
use crate::options::Options;
use crate::process::Group;
use crate::provision::Binaries;
use crate::users::{ADMIN, CONTROLLERS_USER, SELF, User, kubeconfig, token_file};

/// The audit log of the first API server.
pub(crate) const AUDIT_LOG: &str = "audit.log";

/// What stays the same when a control plane is started again on the same data.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    /// The port that the API server had, so that kubeconfig files stay valid.
    port: Option<u16>,
    identity: Identity,
    /// By user.
    tokens: BTreeMap<String, String>,
}

/// What all parts of one control plane share.
pub(crate) struct Common {
    pub(crate) binaries: Binaries,
    pub(crate) identity: Identity,
    pub(crate) users: Vec<User>,
    tokens: BTreeMap<String, String>,
    pub(crate) files: Files,
    pub(crate) audit_log: Option<AuditLog>,
    pub(crate) controllers: bool,
    pub(crate) api_server_flags: Vec<String>,
    // Fields are dropped in this order. No process may use the folder when it is removed.
    pub(crate) group: Group,
    pub(crate) folder: Folder,
}

// Tokens do not belong into a log.
impl std::fmt::Debug for Common {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Common").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The files that the programs read.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) ca: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) account_key: PathBuf,
    pub(crate) account_public_key: PathBuf,
    pub(crate) tokens: PathBuf,
    pub(crate) audit_policy: PathBuf,
}

impl Common {
    /// Prepares the folder. Also returns the port that the API server had before.
    pub(crate) fn prepare(
        options: Options,
        binaries: Binaries,
    ) -> Result<(Self, Option<u16>), EnvError> {
        let folder = match &options.data {
            Some(path) => Folder::kept(path)?,
            None => Folder::temporary()?,
        };
        let mut state = match folder.read_state()? {
            None => State { port: None, identity: Identity::generate()?, tokens: BTreeMap::new() },
            Some(text) => serde_json::from_str(&text)
                .map_err(|source| EnvError::State { path: folder.path().to_owned(), source })?,
        };
        let mut users = [SELF, ADMIN, CONTROLLERS_USER].map(User::master).to_vec();
        users.retain(|user| options.users.iter().all(|other| other.name() != user.name()));
        users.extend(options.users);
        for user in &users {
            if !state.tokens.contains_key(user.name()) {
                state.tokens.insert(user.name().to_owned(), token()?);
            }
        }
        let group = Group::start(folder.to_remove())?;
        folder.remove_logs()?;
        let common = Self {
            binaries,
            files: Files::write(&folder, &state.identity, &token_file(&users, &state.tokens))?,
            identity: state.identity,
            users,
            tokens: state.tokens,
            audit_log: options.audit_log.then(|| AuditLog::new(folder.join(AUDIT_LOG))),
            controllers: options.controllers,
            api_server_flags: options.api_server_flags,
            group,
            folder,
        };
        Ok((common, options.port.or(state.port)))
    }

    /// Remembers what the next start on the same data needs.
    pub(crate) fn remember(&self, port: u16) -> Result<(), EnvError> {
        if !self.folder.is_kept() {
            return Ok(());
        }
        let state = State {
            port: Some(port),
            identity: self.identity.clone(),
            tokens: self.tokens.clone(),
        };
        let text = serde_json::to_string_pretty(&state)
            .map_err(|source| EnvError::State { path: self.folder.path().to_owned(), source })?;
        self.folder.write_state(&text)
    }

    pub(crate) fn token_of(&self, user: &str) -> Result<&str, EnvError> {
        let known = self.users.iter().any(|known| known.name() == user);
        self.tokens
            .get(user)
            .filter(|_| known)
            .map(String::as_str)
            .ok_or_else(|| EnvError::NoUser { name: user.into() })
    }

    /// Writes a kubeconfig for one user and one server, which `place` names: empty for the first
    /// API server.
    pub(crate) fn kubeconfig(
        &self,
        place: &str,
        port: u16,
        user: &str,
    ) -> Result<PathBuf, EnvError> {
        let text = kubeconfig(&url(port), &self.identity.ca, user, self.token_of(user)?);
        let mut name = String::from("kubeconfig");
        for part in [place, if user == ADMIN { "" } else { user }] {
            if !part.is_empty() {
                name.push('-');
                name.extend(part.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }));
            }
        }
        self.folder.write(&format!("{name}.yaml"), &text)
    }

    /// A client for one user and one server.
    pub(crate) fn client(&self, port: u16, user: &str) -> Result<Client, EnvError> {
        Client::tls(port, &self.identity.ca, self.token_of(user)?)
    }
}

impl Files {
    fn write(folder: &Folder, identity: &Identity, tokens: &str) -> Result<Self, EnvError> {
        Ok(Self {
            ca: folder.write("ca.crt", &identity.ca)?,
            certificate: folder.write("server.crt", &identity.certificate)?,
            key: folder.write("server.key", &identity.key)?,
            account_key: folder.write("accounts.key", &identity.account_key)?,
            account_public_key: folder.write("accounts.pub", &identity.account_public_key)?,
            tokens: folder.write("tokens.csv", tokens)?,
            audit_policy: folder.write("audit-policy.yaml", POLICY)?,
        })
    }
}

pub(crate) fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(options: Options) -> Common {
        Common::prepare(options, Binaries::default()).unwrap().0
    }

    #[test]
    fn data_keeps_keys_tokens_and_port() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::default().data(dir.path());
        let first = prepare(options.clone());
        first.remember(1234).unwrap();
        let (ca, token) = (first.identity.ca.clone(), first.token_of(ADMIN).unwrap().to_owned());
        drop(first);

        let (second, port) = Common::prepare(options, Binaries::default()).unwrap();
        assert_eq!(port, Some(1234));
        assert_eq!(second.identity.ca, ca);
        assert_eq!(second.token_of(ADMIN).unwrap(), token);
    }

    #[test]
    fn a_state_that_cannot_be_read_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("state.json"), "{}").unwrap();
        let options = Options::default().data(dir.path());
        let error = Common::prepare(options, Binaries::default()).unwrap_err();
        assert!(matches!(error, EnvError::State { .. }), "{error}");
    }

    #[test]
    fn users_have_a_kubeconfig_each() {
        let common = prepare(Options::default().user(User::service_account("ns", "sa")));
        let admin = common.kubeconfig("", 1, ADMIN).unwrap();
        assert_eq!(admin.file_name().unwrap(), "kubeconfig.yaml");
        let other = common.kubeconfig("proxy", 2, "system:serviceaccount:ns:sa").unwrap();
        assert_eq!(other.file_name().unwrap(), "kubeconfig-proxy-system-serviceaccount-ns-sa.yaml");
        let text = std::fs::read_to_string(other).unwrap();
        assert!(text.contains("server: https://127.0.0.1:2\n"), "{text}");
        assert!(text.contains("- name: \"system:serviceaccount:ns:sa\"\n"), "{text}");
    }

    #[test]
    fn a_user_that_was_not_named_is_unknown() {
        let error = prepare(Options::default()).token_of("eve").unwrap_err();
        assert!(matches!(error, EnvError::NoUser { .. }), "{error}");
    }
}
