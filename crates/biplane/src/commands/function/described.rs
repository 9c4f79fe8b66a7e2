//! How a function in the box is described, and which flags it alone has.

use std::sync::Arc;

use biplane_function::Function;
use clap::{ArgMatches, Command};

/// Makes a function of the flags that it was given.
type SetUp = fn(&ArgMatches) -> anyhow::Result<Arc<dyn Function>>;

/// The description of a function, and its own flags beyond those that every function has.
pub(super) struct Described {
    /// Its whole name.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// Further lines of example.
    pub examples: &'static str,
    /// Adds its flags.
    pub declare: fn(Command) -> Command,
    /// Makes the function of them; the one in the box if there are none.
    pub set_up: Option<SetUp>,
}

/// A function without flags of its own.
pub(super) const fn plain(name: &'static str) -> Described {
    Described {
        name,
        about: "Serves a function of this program",
        examples: "",
        declare: std::convert::identity,
        set_up: None,
    }
}
