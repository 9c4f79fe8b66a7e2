//! Marks commands as alpha or beta, and decides which of them help shows.

use clap::Command;

use crate::config::Features;

/// How stable a command is. Unlisted commands are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Alpha,
    Beta,
}

/// Groups of commands that are not stable. The level applies to everything below a group.
const LEVELS: &[(&str, Level)] = &[
    ("composition convert", Level::Beta),
    ("convert", Level::Beta),
    ("operation", Level::Alpha),
    ("resource", Level::Beta),
];

/// Marks every command with its level, and hides the commands that the configuration hides. A
/// hidden command still runs.
pub(super) fn apply(command: Command, features: Features) -> Command {
    apply_levels(command, LEVELS, features)
}

fn apply_levels(command: Command, levels: &[(&str, Level)], features: Features) -> Command {
    levels.iter().fold(command, |command, (name, level)| {
        let shown = match level {
            Level::Alpha => features.enable_alpha,
            Level::Beta => !features.disable_beta,
        };
        let words: Vec<&str> = name.split(' ').collect();
        at(command, &words, &|group| mark(group.hide(!shown), *level))
    })
}

/// Changes the command with this path. All commands stay in their order.
fn at(command: Command, words: &[&str], change: &dyn Fn(Command) -> Command) -> Command {
    let Some((word, below)) = words.split_first() else { return change(command) };
    command.mut_subcommands(|group| {
        if group.get_name() == *word { at(group, below, change) } else { group }
    })
}

/// The note in help about commands that are not shown.
pub(super) fn note(features: Features) -> String {
    let note = match (!features.disable_beta, features.enable_alpha) {
        (true, true) => "Alpha and beta commands are shown",
        (true, false) => "Beta commands are shown, alpha commands are not",
        (false, true) => "Alpha commands are shown, beta commands are not",
        (false, false) => "Alpha and beta commands are not shown",
    };
    format!("{note}; all of them run. `biplane config set` changes what is shown.")
}

fn mark(command: Command, level: Level) -> Command {
    let prefix = match level {
        Level::Alpha => "[ALPHA] ",
        Level::Beta => "[BETA] ",
    };
    let prefixed = |text: &clap::builder::StyledStr| format!("{prefix}{text}");
    let about = command.get_about().map(prefixed);
    let long_about = command.get_long_about().map(prefixed);
    let mut command = command.mut_subcommands(|below| mark(below, level));
    if let Some(about) = about {
        command = command.about(about);
    }
    if let Some(long_about) = long_about {
        command = command.long_about(long_about);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CLI-35
    #[test]
    fn groups_are_hidden_by_level_and_say_which_they_have() {
        let levels = [("old", Level::Beta), ("new", Level::Alpha)];
        for (enable_alpha, disable_beta, want) in [
            (false, false, "settled old"),
            (true, false, "settled old new"),
            (false, true, "settled"),
            (true, true, "settled new"),
        ] {
            let below = Command::new("below").about("Below");
            let command = Command::new("top").subcommands([
                Command::new("settled").about("Settled"),
                Command::new("old").about("Old").subcommand(below.clone()),
                Command::new("new").about("New").subcommand(below),
            ]);
            let features = Features { enable_alpha, disable_beta, ..Features::default() };
            let command = apply_levels(command, &levels, features);
            let shown: Vec<_> = command
                .get_subcommands()
                .filter(|group| !group.is_hide_set())
                .map(Command::get_name)
                .collect();
            assert_eq!(shown.join(" "), want);
            let about = |path: &[&str]| {
                let command =
                    path.iter().fold(&command, |c, name| c.find_subcommand(name).unwrap());
                command.get_about().unwrap().to_string()
            };
            assert_eq!(about(&["settled"]), "Settled");
            assert_eq!(about(&["old"]), "[BETA] Old");
            assert_eq!(about(&["old", "below"]), "[BETA] Below");
            assert_eq!(about(&["new", "below"]), "[ALPHA] Below");
        }
    }
}
