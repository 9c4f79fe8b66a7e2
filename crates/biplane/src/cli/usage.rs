//! Says what is wrong with a command line, in the words that scripts of the field match on.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What is wrong, without the usage line.
pub fn message(error: &clap::Error) -> String {
    let invalid = strings(error, ContextKind::InvalidArg);
    let flag = invalid.first().map_or("", |text| first_word(text));
    match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            let subcommand = strings(error, ContextKind::InvalidSubcommand);
            let found = if flag.is_empty() { subcommand.first().map_or("", |s| s) } else { flag };
            let what = if found.starts_with('-') { "unknown flag" } else { "unexpected argument" };
            let mut near = strings(error, ContextKind::SuggestedArg);
            near.extend(strings(error, ContextKind::SuggestedSubcommand));
            let near = near.first().map(|n| format!(", did you mean {:?}?", first_word(n)));
            format!("{what} {found}{}", near.unwrap_or_default())
        }
        ErrorKind::MissingRequiredArgument => {
            let missing: Vec<_> = invalid.iter().map(|s| s.to_lowercase()).collect();
            format!("expected \"{}\"", missing.join(" "))
        }
        ErrorKind::ArgumentConflict => {
            let other = strings(error, ContextKind::PriorArg);
            let other = other.first().map_or("", |text| first_word(text));
            format!("{flag} and {other} can't be used together")
        }
        ErrorKind::InvalidValue => {
            let got = strings(error, ContextKind::InvalidValue);
            let got = got.first().map_or("", |s| s);
            if got.is_empty() {
                return format!("{flag}: missing value");
            }
            let allowed = strings(error, ContextKind::ValidValue);
            let allowed: Vec<_> = allowed.iter().map(|v| format!("{v:?}")).collect();
            format!("{flag} must be one of {} but got {got:?}", allowed.join(","))
        }
        ErrorKind::ValueValidation => {
            let source = std::error::Error::source(error).map(ToString::to_string);
            format!("{}: {}", flag.to_lowercase(), source.unwrap_or_default())
        }
        ErrorKind::MissingSubcommand => {
            let valid = strings(error, ContextKind::ValidSubcommand);
            let valid: Vec<_> = valid.iter().map(|v| format!("{v:?}")).collect();
            format!("expected one of {}", valid.join(", "))
        }
        _ => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        }
    }
}

/// The usage line of the command that the mistake is in.
pub fn usage(error: &clap::Error) -> Option<String> {
    let value = error.get(ContextKind::Usage)?;
    let ContextValue::StyledStr(text) = value else { return None };
    text.to_string().lines().next().map(ToOwned::to_owned)
}

fn first_word(text: &str) -> &str {
    text.split([' ', '=']).next().unwrap_or_default()
}

fn strings(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(all)) => all.clone(),
        _ => Vec::new(),
    }
}
