//! How the program reports errors: their text, and the exit code of an interrupted command.

/// Exit code of a command that was interrupted.
pub const INTERRUPTED: u8 = 130;
const PREFIX: &str = "biplane: error: ";

/// The text of an error with its causes.
pub fn error_text(error: &anyhow::Error) -> String {
    error_line(format!("{error:#}").trim_end_matches('\n'))
}

/// The text of an error message. Lines after the first are indented.
pub fn error_line(message: &str) -> String {
    let indent = format!("\n{}", " ".repeat(PREFIX.len()));
    format!("{PREFIX}{}", message.replace('\n', &indent))
}
