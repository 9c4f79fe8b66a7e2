//! What a command line depends on besides its words, as a value.

use std::path::PathBuf;

use biplane_function::Registry;

/// The part of the environment that decides about the program itself.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `CROSSPLANE_CONFIG`: where the configuration file is.
    pub config: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`: the folder of all configuration.
    pub config_home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`: the folder of all caches.
    pub cache_home: Option<PathBuf>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// `SHELL`: the user's login shell.
    pub shell: Option<PathBuf>,
    /// Functions of one's own, which run in process as those in the box do.
    pub own: Registry,
}

impl Environment {
    /// The environment of this process. A variable that is empty counts as not set.
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
            own: Registry::default(),
        }
    }

    /// Where the answers of registries are kept unless a flag says otherwise.
    pub(crate) fn package_cache(&self) -> Option<PathBuf> {
        let caches = self.cache_home.clone().filter(|folder| folder.is_absolute());
        let home = || self.home.as_ref().filter(|home| home.is_absolute());
        let caches = caches.or_else(|| home().map(|home| home.join(".cache")))?;
        Some(caches.join("crossplane").join("xpkg"))
    }
}
