//! Describes a built-in function: its help and its own flags.

use std::sync::Arc;

use biplane_function::Function;
use clap::{ArgMatches, Command};

/// Creates a function from its flags.
type SetUp = fn(&ArgMatches) -> anyhow::Result<Arc<dyn Function>>;

/// The description of a function, and the flags that it has in addition to the common ones.
pub(super) struct Described {
    /// Its full name.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// Additional lines of examples.
    pub examples: &'static str,
    /// Adds its flags.
    pub declare: fn(Command) -> Command,
    /// Creates the function from its flags; `None` for the built-in function without flags.
    pub set_up: Option<SetUp>,
}

/// A function without its own flags.
pub(super) const fn plain(name: &'static str) -> Described {
    Described {
        name,
        about: "Serves a function of this program",
        examples: "",
        declare: std::convert::identity,
        set_up: None,
    }
}
