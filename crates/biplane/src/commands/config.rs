//! `config`: shows and changes the configuration file.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};

use crate::config::{Config, ConfigError};
use biplane_console::Streams;

const EXAMPLES: &str = "\
Examples:
  # What counts
  biplane config view

  # Show commands in help that are still alpha
  biplane config set features.enableAlpha true";
const SET_EXAMPLES: &str = "\
Keys:
  features.disableBeta               hide beta commands from help
  features.enableAlpha               show alpha commands in help
  features.generateGoModelAccessors  kept for other programs that read the same file
  features.generateGoRuntimeObjects  kept for other programs that read the same file

Examples:
  # Show commands in help that are still alpha
  biplane config set features.enableAlpha true

  # In a file of your own
  biplane config set features.disableBeta true --config ./config.yaml";
const VIEW_EXAMPLES: &str = "\
Examples:
  # What counts
  biplane config view

  # What another file says
  biplane config view --config ./config.yaml";

/// Show and change the configuration file
///
/// The file is the one that --config names, else the one that CROSSPLANE_CONFIG names, else
/// crossplane/config.yaml in $XDG_CONFIG_HOME or in ~/.config. There need not be one.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ConfigCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Set(Set),
    View(View),
}

/// Set a value and write the file
///
/// Folders that the file is in are made when they are missing. Nothing is printed.
#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
struct Set {
    /// The key, such as features.enableAlpha
    key: String,
    /// Its value: true or false
    value: String,
}

/// Print the configuration that counts, as YAML
///
/// What is as by default is left out, but for the version of the file.
#[derive(Debug, Args)]
#[command(after_help = VIEW_EXAMPLES)]
struct View {}

impl ConfigCommand {
    /// Shows or changes the file at this path, if there is one.
    pub fn run(&self, path: Option<&Path>, streams: &mut Streams<'_>) -> Result<()> {
        match &self.command {
            Command::View(View {}) => {
                let config = Config::load(path).context("cannot load config")?;
                write!(streams.stdout, "{}", config.to_yaml()).context("cannot write config")
            }
            Command::Set(Set { key, value }) => {
                let path = path.ok_or(ConfigError::NoPath)?;
                let mut config = Config::default();
                // An error on the command line is reported before one in the file.
                config.set(key, value)?;
                config = Config::load(Some(path)).context("cannot load config")?;
                config.set(key, value)?;
                Ok(config.save(path)?)
            }
        }
    }
}
