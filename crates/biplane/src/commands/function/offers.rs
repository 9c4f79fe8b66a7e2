//! The functions that can be served, each with its description and its own flags.

use std::sync::Arc;

use anyhow::anyhow;
use biplane_function::{Function, Registry};
use biplane_functions::registry;
use clap::{ArgMatches, Command};

use super::described::{Described, plain};
use super::{auto_ready, go_templating};

/// The prefix of function names, which may be omitted.
const PREFIX: &str = "function-";

const DESCRIBED: &[Described] = &[
    auto_ready::DESCRIBED,
    Described {
        about: "Answers with what its input says, for examples and tests",
        ..plain("function-dummy")
    },
    Described {
        about: "Gathers EnvironmentConfigs into the environment that later steps see",
        ..plain("function-environment-configs")
    },
    go_templating::DESCRIBED,
    Described {
        about: "Composes resources from templates and patches",
        ..plain("function-patch-and-transform")
    },
];

/// A function that can be served.
pub(super) struct Offer {
    function: Arc<dyn Function>,
    described: Option<&'static Described>,
}

impl Offer {
    /// Finds a function by its name, with or without the prefix. The user's own functions come
    /// first.
    pub(super) fn find(name: &str, own: &Registry) -> anyhow::Result<Self> {
        let functions = registry().and(own);
        let names = [name.to_owned(), format!("{PREFIX}{name}")];
        let found = names.iter().find_map(|name| Some((name, functions.get(name)?)));
        let (name, function) = found.ok_or_else(|| anyhow!("there is no function `{name}`"))?;
        Ok(Self { function: Arc::clone(function), described: described(name, own) })
    }

    /// Creates the function from its own flags.
    pub(super) fn set_up(&self, own: &ArgMatches) -> anyhow::Result<Arc<dyn Function>> {
        match self.described.and_then(|described| described.set_up) {
            Some(set_up) => set_up(own),
            None => Ok(Arc::clone(&self.function)),
        }
    }
}

/// The description of a built-in function, unless the user's own function replaces it.
fn described(name: &str, own: &Registry) -> Option<&'static Described> {
    DESCRIBED.iter().find(|described| described.name == name && own.get(name).is_none())
}

/// The command with one subcommand for each function.
pub(super) fn with_own(serve: Command, own: &Registry) -> Command {
    let functions = registry().and(own);
    functions.names().fold(serve, |serve, name| {
        let short = name.strip_prefix(PREFIX).filter(|short| functions.get(short).is_none());
        let short = short.filter(|short| !short.is_empty()).unwrap_or(name);
        let offered = offer(name, short, described(name, own));
        if serve.find_subcommand(short).is_some() {
            serve.mut_subcommand(short, |_| offered)
        } else {
            serve.subcommand(offered)
        }
    })
}

fn offer(name: &str, short: &str, described: Option<&Described>) -> Command {
    let plain = plain("");
    let Described { about, examples, declare, .. } = described.unwrap_or(&plain);
    let command = Command::new(short.to_owned()).about(*about).after_help(format!(
        "Examples:\n  # At port 9443, without certificates\n  biplane function serve {short} --insecure{examples}"
    ));
    let command = if short == name { command } else { command.alias(name.to_owned()) };
    declare(command)
}
