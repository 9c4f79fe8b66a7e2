//! Reads bytes from files and streams before a deadline.

use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;

use biplane_console::Deadline;
use biplane_console::deadline::DeadlineExceeded;

/// Reads a file. A file that may block, such as a pipe, is read until the deadline.
pub(super) fn file(path: &Path, deadline: Deadline) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.file_type().is_file() || path.is_dir() {
        return std::fs::read(path);
    }
    let path = path.to_owned();
    within(deadline, move || std::fs::read(path))
}

/// Reads a stream to its end, until the deadline.
pub(super) fn stream(mut from: Box<dyn Read + Send>, deadline: Deadline) -> io::Result<Vec<u8>> {
    within(deadline, move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

/// Runs an uninterruptible read on a separate thread, which is abandoned at the deadline.
fn within(
    deadline: Deadline,
    read: impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static,
) -> io::Result<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::Builder::new().name("reader".to_owned()).spawn(move || {
        // The receiver is dropped after the deadline.
        let _ = send.send(read());
    })?;
    match receive.recv_timeout(deadline.remaining()) {
        Ok(read) => read,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, DeadlineExceeded)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_stream_that_never_ends_is_given_up_at_the_deadline() {
        let (reader, writer) = io::pipe().unwrap();
        let read = stream(Box::new(reader), Deadline::after(Duration::from_millis(1)));
        assert_eq!(read.unwrap_err().to_string(), "context deadline exceeded");
        drop(writer);
    }

    #[test]
    fn a_stream_that_ends_is_read_whole() {
        let text = b"a: 1".to_vec();
        let read = stream(Box::new(io::Cursor::new(text.clone())), Deadline::after(Duration::MAX));
        assert_eq!(read.unwrap(), text);
    }
}
