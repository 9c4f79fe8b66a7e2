//! Boolean flags: `--flag`, and `--flag=false` to turn it off again.

use clap::builder::TypedValueParser as _;
use clap::{Arg, ArgAction, Command};

use crate::values;

/// The tree that command lines are parsed with. Every boolean flag, of a command and of its
/// subcommands, takes a value after an equals sign, and a missing command is a usage error.
///
/// The tree that is shown to users has no such values. In help they would only be noise, and
/// completions would offer them where a file is expected.
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
        .value_parser(
            clap::builder::StringValueParser::new().try_map(|text| values::boolean(&text)),
        )
}
