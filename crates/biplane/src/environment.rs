//! The environment of a command line as a value: variables, and functions linked into the program.

use std::path::PathBuf;

use biplane_function::Registry;
use biplane_runner::inspected;
use biplane_runtime::docker;

/// The part of the environment that affects the program itself.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `CROSSPLANE_CONFIG`: the path of the configuration file.
    pub config: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`: the folder for configuration files.
    pub config_home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`: the folder for caches.
    pub cache_home: Option<PathBuf>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// `SHELL`: the user's login shell.
    pub shell: Option<PathBuf>,
    /// `PIPELINE_INSPECTOR_SOCKET`: where emissions go.
    pub inspector_socket: Option<PathBuf>,
    /// The user's own functions, which run in process like the built-in ones.
    pub own: Registry,
    /// Docker's variables.
    pub docker: docker::Environment,
}

impl Environment {
    /// The environment of this process. An empty variable counts as unset.
    #[allow(clippy::disallowed_methods)] // this is where it is read
    pub fn of_process() -> Self {
        let path =
            |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            config: path("CROSSPLANE_CONFIG"),
            config_home: path("XDG_CONFIG_HOME"),
            cache_home: path("XDG_CACHE_HOME"),
            home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
            shell: path("SHELL"),
            inspector_socket: path(inspected::SOCKET_VARIABLE),
            own: Registry::default(),
            docker: docker::Environment::of_process(),
        }
    }

    /// The default folder for cached responses of registries.
    pub(crate) fn package_cache(&self) -> Option<PathBuf> {
        let caches = self.cache_home.clone().filter(|folder| folder.is_absolute());
        let home = || self.home.as_ref().filter(|home| home.is_absolute());
        let caches = caches.or_else(|| home().map(|home| home.join(".cache")))?;
        Some(caches.join("crossplane").join("xpkg"))
    }
}
