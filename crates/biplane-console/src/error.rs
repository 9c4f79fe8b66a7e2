//! How the program reports that a command failed.

/// Exit code of a command that was interrupted.
pub const INTERRUPTED: u8 = 130;
const PREFIX: &str = "biplane: error: ";

/// The report of an error with its causes.
pub fn error_text(error: &anyhow::Error) -> String {
    error_line(format!("{error:#}").trim_end_matches('\n'))
}

/// The report of a message. Later lines are indented below the first.
pub fn error_line(message: &str) -> String {
    let indent = format!("\n{}", " ".repeat(PREFIX.len()));
    format!("{PREFIX}{}", message.replace('\n', &indent))
}
