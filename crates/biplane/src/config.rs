//! The configuration file: its keys, its location, and how it is read and written.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use biplane_console::{Deadline, files};
use biplane_model::{Value, yaml};
use serde_json::Map;

use crate::environment::Environment;
use crate::values::reason;

const VERSION: i64 = 1;
/// How long a pipe may take to provide the file.
const PATIENCE: Duration = Duration::from_secs(10);

/// The content of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Features that differ from the default.
    pub features: Features,
}

/// All features that can be turned on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is a key of the file
pub struct Features {
    /// Show alpha commands in help.
    pub enable_alpha: bool,
    /// Hide beta commands from help.
    pub disable_beta: bool,
    /// Kept for other programs that read the same file.
    pub generate_go_model_accessors: bool,
    /// Kept for other programs that read the same file.
    pub generate_go_runtime_objects: bool,
}

impl Features {
    /// Every key of the file with its value, sorted by name.
    fn keys(&mut self) -> [(&'static str, &mut bool); 4] {
        [
            ("disableBeta", &mut self.disable_beta),
            ("enableAlpha", &mut self.enable_alpha),
            ("generateGoModelAccessors", &mut self.generate_go_model_accessors),
            ("generateGoRuntimeObjects", &mut self.generate_go_runtime_objects),
        ]
    }
}

/// Why the configuration could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// `--config` has no value.
    #[error("flag --config requires a value")]
    NoValue,
    /// The file cannot be read.
    #[error("cannot read config file {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error message.
        reason: String,
    },
    /// The file is not a valid configuration.
    #[error("cannot parse config file {}: {reason}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        reason: String,
    },
    /// The file has another version.
    #[error("unsupported config version {version}\n--> {}: version must be {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        version: i64,
    },
    /// The key does not exist.
    #[error("unknown config key {key:?} (supported: {supported})")]
    UnknownKey {
        /// The given key.
        key: String,
        /// All keys.
        supported: String,
    },
    /// The value is neither true nor false.
    #[error(
        "invalid bool value {value:?} for key {key}: strconv.ParseBool: parsing {value:?}: invalid syntax"
    )]
    InvalidBool {
        /// The key.
        key: String,
        /// The given value.
        value: String,
    },
    /// The path of the file is unknown.
    #[error("cannot determine config file path; pass --config or set CROSSPLANE_CONFIG")]
    NoPath,
    /// The file cannot be written.
    #[error("cannot {what} {}: {reason}", path.display())]
    Write {
        /// The attempted action.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error message.
        reason: String,
    },
}

/// The value of the first `--config` on a command line that has not been parsed yet, because the
/// file affects how it is parsed.
pub fn flag(arguments: &[OsString]) -> Result<Option<PathBuf>, ConfigError> {
    let mut arguments = arguments.iter().skip(1).take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        let value = if argument == "--config" {
            arguments.next().map(OsString::as_os_str)
        } else if let Some(value) = argument.as_bytes().strip_prefix(b"--config=") {
            Some(OsStr::from_bytes(value))
        } else {
            continue;
        };
        let value = value.filter(|value| !value.is_empty());
        return value.map(PathBuf::from).map(Some).ok_or(ConfigError::NoValue);
    }
    Ok(None)
}

/// The path of the file, if it can be determined.
pub fn path(flag: Option<PathBuf>, environment: &Environment) -> Option<PathBuf> {
    let default = || {
        let home = || environment.home.as_ref().map(|home| home.join(".config"));
        let folder = environment.config_home.clone().or_else(home)?;
        Some(folder.join("crossplane").join("config.yaml"))
    };
    flag.or_else(|| environment.config.clone()).or_else(default)
}

/// Reads the file, which may be a pipe if the user names it.
fn read(path: &Path) -> std::io::Result<String> {
    let bytes = files::read_named(path, Deadline::after(PATIENCE))?;
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not UTF-8 text"))
}

impl Config {
    /// Reads the file. Without a file, the defaults apply.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = match read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => {
                let reason = format!("open {}: {}", path.display(), reason(&error));
                return Err(ConfigError::Read { path: path.to_owned(), reason });
            }
        };
        let failed = |reason| ConfigError::Parse { path: path.to_owned(), reason };
        let documents = yaml::parse_documents(&path.display().to_string(), &text)
            .map_err(|error| failed(error.to_string()))?;
        let value = documents.into_iter().next().map_or(Value::Null, |document| document.value);
        Self::from_value(&value).map_err(|error| match error {
            Wrong::Version(version) => ConfigError::Version { path: path.to_owned(), version },
            Wrong::Type(reason) => failed(reason),
        })
    }

    fn from_value(value: &Value) -> Result<Self, Wrong> {
        let empty = Map::new();
        let object = |value: Option<&Value>, what: &str| match value {
            None | Some(Value::Null) => Ok(empty.clone()),
            Some(Value::Object(object)) => Ok(object.clone()),
            Some(_) => Err(Wrong::Type(format!("{what} must be an object"))),
        };
        let root = object(Some(value), "the file")?;
        let version = match root.get("version") {
            None | Some(Value::Null) => 0,
            Some(version) => version
                .as_i64()
                .ok_or_else(|| Wrong::Type("version must be a whole number".to_owned()))?,
        };
        let given = object(root.get("features"), "features")?;
        let mut features = Features::default();
        for (key, feature) in features.keys() {
            match given.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::Bool(value)) => *feature = *value,
                Some(_) => {
                    return Err(Wrong::Type(format!("features.{key} must be true or false")));
                }
            }
        }
        if version == VERSION { Ok(Self { features }) } else { Err(Wrong::Version(version)) }
    }

    /// Sets the value of a key.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let mut keys = self.features.keys();
        let known = key
            .strip_prefix("features.")
            .and_then(|name| keys.iter_mut().find(|(known, _)| *known == name));
        let Some((_, feature)) = known else {
            let supported: Vec<_> =
                keys.iter().map(|(name, _)| format!("features.{name}")).collect();
            return Err(ConfigError::UnknownKey {
                key: key.to_owned(),
                supported: supported.join(", "),
            });
        };
        **feature = match value {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
            "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
            _ => {
                return Err(ConfigError::InvalidBool {
                    key: key.to_owned(),
                    value: value.to_owned(),
                });
            }
        };
        Ok(())
    }

    /// The text of the file, without values that equal the default.
    pub fn to_yaml(mut self) -> String {
        let mut root = Map::new();
        let keys = self.features.keys().into_iter().filter(|(_, value)| **value);
        let features: Map<_, _> =
            keys.map(|(name, value)| (name.to_owned(), (*value).into())).collect();
        if !features.is_empty() {
            root.insert("features".to_owned(), features.into());
        }
        root.insert("version".to_owned(), VERSION.into());
        yaml::to_string(&Value::Object(root))
    }

    /// Writes the file and creates its parent folders.
    pub fn save(self, path: &Path) -> Result<(), ConfigError> {
        let failed = |what, path: &Path, error: &std::io::Error| ConfigError::Write {
            what,
            path: path.to_owned(),
            reason: reason(error),
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(folder)
                .map_err(|error| failed("create config directory", folder, &error))?;
        }
        let write = || {
            let mut options = std::fs::OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            std::io::Write::write_all(&mut options.open(path)?, self.to_yaml().as_bytes())
        };
        write().map_err(|error| failed("write config file", path, &error))
    }
}

/// An error in a file that is valid YAML.
enum Wrong {
    Version(i64),
    Type(String),
}

#[cfg(test)]
mod tests;
