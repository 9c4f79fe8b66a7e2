//! Flags that are on or off: `--flag`, and `--flag=false` to take it back.

use clap::builder::TypedValueParser as _;
use clap::{Arg, ArgAction, Command};

/// The tree that command lines are parsed with: every such flag, of a command and of those below it,
/// takes a value after an equals sign, and a command that is missing is a mistake like any other.
///
/// The tree that people are shown stays without: help that repeats the same value at every flag
/// helps nobody, and completions would offer one where a file is wanted.
pub(super) fn with_values(command: Command) -> Command {
    command.arg_required_else_help(false).mut_args(with_value).mut_subcommands(with_values)
}

fn with_value(flag: Arg) -> Arg {
    if !matches!(flag.get_action(), ArgAction::SetTrue) {
        return flag;
    }
    flag.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .value_parser(clap::builder::StringValueParser::new().try_map(|text| parse(&text)))
}

fn parse(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        other => Err(format!("bool value must be true, 1, yes, false, 0 or no but got {other:?}")),
    }
}
