//! A channel for stderr lines from tasks that run concurrently.

use tokio::sync::mpsc;

use crate::streams::Streams;

/// A line for stderr.
#[derive(Debug)]
pub enum Note {
    /// Always shown.
    Say(String),
    /// Shown with `--verbose`.
    Debug(&'static str, Vec<(&'static str, String)>),
}

impl Note {
    /// Writes the line to stderr.
    pub fn write(&self, streams: &mut Streams<'_>) {
        match self {
            Self::Say(line) => streams.say(line),
            Self::Debug(message, fields) => {
                let fields: Vec<_> = fields.iter().map(|(k, v)| (*k, v.as_str())).collect();
                streams.debug(message, &fields);
            }
        }
    }
}

/// The sending end for notes.
#[derive(Clone, Debug)]
pub struct Notes(mpsc::UnboundedSender<Note>);

impl Notes {
    /// A channel for notes.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Note>) {
        let (send, receive) = mpsc::unbounded_channel();
        (Self(send), receive)
    }

    /// Sends a line that is always shown.
    pub fn say(&self, line: String) {
        let _ = self.0.send(Note::Say(line));
    }

    /// Sends a line that `--verbose` shows.
    pub fn debug(&self, message: &'static str, fields: &[(&'static str, &str)]) {
        let fields = fields.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        let _ = self.0.send(Note::Debug(message, fields));
    }
}
