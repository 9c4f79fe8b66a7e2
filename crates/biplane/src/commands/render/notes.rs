//! Lines for people from work that is done side by side.

use tokio::sync::mpsc;

use crate::streams::Streams;

/// Something to tell.
#[derive(Debug)]
pub(super) enum Note {
    /// To everybody.
    Say(String),
    /// To those who asked for it.
    Debug(&'static str, Vec<(&'static str, String)>),
}

impl Note {
    pub(super) fn write(&self, streams: &mut Streams<'_>) {
        match self {
            Self::Say(line) => streams.say(line),
            Self::Debug(message, fields) => {
                let fields: Vec<_> = fields.iter().map(|(k, v)| (*k, v.as_str())).collect();
                streams.debug(message, &fields);
            }
        }
    }
}

/// Where notes are left.
#[derive(Clone, Debug)]
pub(super) struct Notes(mpsc::UnboundedSender<Note>);

impl Notes {
    /// A place to leave notes, and one to find them.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Note>) {
        let (send, receive) = mpsc::unbounded_channel();
        (Self(send), receive)
    }

    pub(super) fn say(&self, line: String) {
        let _ = self.0.send(Note::Say(line));
    }

    pub(super) fn debug(&self, message: &'static str, fields: &[(&'static str, &str)]) {
        let fields = fields.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        let _ = self.0.send(Note::Debug(message, fields));
    }
}
