//! Formats usage errors with the messages of Crossplane's command line, because scripts match on
//! them.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The error in these arguments, without the usage line. `tree` is the tree shown to users.
pub fn message(error: &clap::Error, tree: &clap::Command, arguments: &[OsString]) -> String {
    let invalid = strings(error, ContextKind::InvalidArg);
    let flag = invalid.first().map(|text| name(text)).unwrap_or_default();
    let flag = flag.as_str();
    match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            let subcommand = strings(error, ContextKind::InvalidSubcommand);
            let found = if flag.is_empty() { subcommand.first().map_or("", |s| s) } else { flag };
            if let Some(text) = of_functions(found, &path(error, tree)) {
                return text;
            }
            let what = if found.starts_with('-') { "unknown flag" } else { "unexpected argument" };
            let mut near = strings(error, ContextKind::SuggestedArg);
            near.extend(strings(error, ContextKind::SuggestedSubcommand));
            // The closest match comes last.
            let near = near.last().map(|n| format!(", did you mean {:?}?", name(n)));
            format!("{what} {found}{}", near.unwrap_or_default())
        }
        ErrorKind::MissingRequiredArgument => {
            let shown = |s: &String| if s.starts_with('-') { name(s) } else { s.to_lowercase() };
            let missing: Vec<_> = invalid.iter().map(shown).collect();
            let many = |argument: &OsString| argument.to_string_lossy().starts_with("--xrs");
            if missing == ["<composite-resource>"] && arguments.iter().any(many) {
                return "expected \"<composition>\": --xrs takes the place of the composite resource argument alone".to_owned();
            }
            format!("expected \"{}\"", missing.join(" "))
        }
        ErrorKind::ArgumentConflict => {
            let other = strings(error, ContextKind::PriorArg);
            let other = other.first().map(|text| name(text)).unwrap_or_default();
            format!("{flag} and {other} can't be used together")
        }
        ErrorKind::InvalidValue => {
            let got = strings(error, ContextKind::InvalidValue);
            let got = got.first().map_or("", |s| s);
            if got.is_empty() {
                let wanted = invalid.first().map_or("string", |shown| wanted(shown));
                return format!("{flag}: expected {wanted} value but got \"EOL\" (<EOL>)");
            }
            let allowed = strings(error, ContextKind::ValidValue);
            let allowed: Vec<_> = allowed.iter().map(|v| format!("{v:?}")).collect();
            format!("{flag} must be one of {} but got {got:?}", allowed.join(","))
        }
        ErrorKind::ValueValidation => {
            let source = std::error::Error::source(error).map(ToString::to_string);
            format!("{flag}: {}", source.unwrap_or_default())
        }
        ErrorKind::MissingSubcommand => {
            let command = selected(error, tree);
            let below = command.get_subcommands().filter(|below| !below.is_hide_set());
            let names: Vec<_> = below.map(|below| format!("{:?}", below.get_name())).collect();
            match names.as_slice() {
                [name] => format!("expected {name}"),
                names => format!("expected one of {}", names.join(", ")),
            }
        }
        ErrorKind::InvalidUtf8 => {
            let odd = arguments.iter().skip(1).filter(|argument| argument.to_str().is_none());
            let shown = |bytes: &[u8]| format!("\"{}\"", bytes.escape_ascii());
            let odd: Vec<_> = odd.map(|argument| shown(argument.as_encoded_bytes())).collect();
            format!("not UTF-8: {}", odd.join(", "))
        }
        _ => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        }
    }
}

/// Upstream's word for the type of a flag, which is shown with the name of its value.
fn wanted(shown: &str) -> &'static str {
    // Upstream has these under the same name, with types of its own.
    match shown.split([' ', '=', '[']).next().unwrap_or_default() {
        "--cache-dir" => return "string",
        "--output" => return "output",
        _ => {}
    }
    let name = shown.split_once('<').map(|(_, name)| name.trim_end_matches(['>', ']']));
    match name.unwrap_or_default() {
        "DIR" | "FILE" | "FOLDER" | "PATH" => "file",
        "DURATION" => "duration",
        "COUNT" | "N" => "int",
        _ => "string",
    }
}

/// The usage line of the command with the error.
pub fn usage(error: &clap::Error, tree: &clap::Command) -> Option<String> {
    error.get(ContextKind::Usage)?;
    let usage = selected(error, tree).clone().render_usage().to_string();
    usage.lines().next().map(ToOwned::to_owned)
}

/// The command with the error.
fn selected<'a>(error: &clap::Error, tree: &'a clap::Command) -> &'a clap::Command {
    path(error, tree).last().copied().unwrap_or(tree)
}

/// The same with its parent commands, the program first.
fn path<'a>(error: &clap::Error, tree: &'a clap::Command) -> Vec<&'a clap::Command> {
    let mut path = vec![tree];
    let Some(ContextValue::StyledStr(text)) = error.get(ContextKind::Usage) else { return path };
    let text = text.to_string();
    let mut command = tree;
    // The words of the usage line after "Usage:" and the program's name.
    for word in text.split_whitespace().skip(2) {
        let Some(below) = command.find_subcommand(word) else { break };
        path.push(below);
        command = below;
    }
    path
}

/// The error where each subcommand serves a function: the function does not exist, or the flag
/// belongs to another function.
fn of_functions(found: &str, path: &[&clap::Command]) -> Option<String> {
    let names: Vec<_> = path.iter().skip(1).map(|command| command.get_name()).collect();
    let (["function", "serve", ..], [_, _, serve, ..]) = (names.as_slice(), path) else {
        return None;
    };
    if !found.starts_with('-') {
        let names: Vec<_> = serve.get_subcommands().map(clap::Command::get_name).collect();
        let names = names.join(", ");
        return (path.len() == 3)
            .then(|| format!("there is no function `{found}`: choose from {names}"));
    }
    let flag = found.strip_prefix("--")?;
    let has = |function: &&clap::Command| {
        function.get_arguments().any(|argument| argument.get_long() == Some(flag))
    };
    let owners: Vec<_> = serve
        .get_subcommands()
        .filter(has)
        .map(|owner| format!("`{}`", owner.get_name()))
        .collect();
    let owners = owners.join(", ");
    (!owners.is_empty()).then(|| format!("unknown flag {found}: it is a flag of {owners} only"))
}

/// The name of a flag or an argument as typed: `--flag` or `<argument>`.
fn name(shown: &str) -> String {
    if shown.starts_with('-') {
        return shown.split([' ', '=', '[']).next().unwrap_or_default().to_owned();
    }
    if !shown.starts_with(['<', '[']) {
        return shown.split(' ').next().unwrap_or_default().to_owned();
    }
    let word = shown.trim_start_matches(['<', '[']).split(['>', ']']).next().unwrap_or_default();
    format!("<{}>", word.to_lowercase())
}

fn strings(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(all)) => all.clone(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CLI-11
    #[test]
    fn the_type_of_a_flag_is_told_by_the_name_of_its_value() {
        for (shown, want) in [
            ("--output-file <PATH>", "file"),
            ("--timeout=<DURATION>", "duration"),
            ("--max-rounds[=<N>]", "int"),
            ("--name <NAME>", "string"),
            ("--flag", "string"),
        ] {
            assert_eq!(wanted(shown), want, "{shown}");
        }
    }

    #[test]
    fn flags_and_arguments_are_named_as_they_are_typed() {
        for (shown, want) in [
            ("--flag", "--flag"),
            ("--flag <VALUE>", "--flag"),
            ("--flag=<VALUE>", "--flag"),
            ("--flag[=<VALUE>]", "--flag"),
            ("-z", "-z"),
            ("<COMPOSITE-RESOURCE>", "<composite-resource>"),
            ("[COMMAND]...", "<command>"),
            ("surplus", "surplus"),
        ] {
            assert_eq!(name(shown), want);
        }
    }
}
