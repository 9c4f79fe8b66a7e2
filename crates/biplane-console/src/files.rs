//! Reads files and streams within limits: of their size, of time, and of what kind of file it is.

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::mpsc;

use crate::deadline::{Deadline, DeadlineExceeded};

/// The largest input, in bytes.
pub const LARGEST: u64 = 64 * MIB;
const MIB: u64 = 1024 * 1024;

/// Reads a file that the user named. It may be a pipe or a terminal, which are read until the
/// deadline, but nothing else that is not a regular file.
pub fn read_named(path: &Path, deadline: Deadline) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() || metadata.is_file() {
        return limited(File::open(path)?, LARGEST);
    }
    if !may_end(metadata.file_type()) {
        return Err(io::Error::other("it is neither a file nor a pipe"));
    }
    let path = path.to_owned();
    within(deadline, move || limited(File::open(path)?, LARGEST))
}

/// Reads a file that was found in a folder or is known by its name. It must be a regular file:
/// others may never end.
pub fn read_regular(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    check_regular(&metadata)?;
    if metadata.len() > largest {
        return Err(too_large(largest));
    }
    limited(File::open(path)?, largest)
}

/// Fails if a file is neither a regular file nor a folder.
pub fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() || metadata.is_dir() {
        return Ok(());
    }
    Err(io::Error::other("it is not a regular file"))
}

/// Reads a stream to its end, until the deadline.
pub fn read_stream(from: Box<dyn Read + Send>, deadline: Deadline) -> io::Result<Vec<u8>> {
    within(deadline, move || limited(from, LARGEST))
}

fn may_end(file_type: FileType) -> bool {
    file_type.is_fifo() || file_type.is_char_device()
}

/// Reads everything, but not more than a limit.
fn limited(from: impl Read, largest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = from.take(largest.saturating_add(1)).read_to_end(&mut bytes)?;
    if read as u64 > largest {
        return Err(too_large(largest));
    }
    Ok(bytes)
}

fn too_large(largest: u64) -> io::Error {
    let size = if largest.is_multiple_of(MIB) {
        format!("{} MiB", largest / MIB)
    } else {
        format!("{largest} bytes")
    };
    io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {size}"))
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

    fn never() -> Deadline {
        Deadline::after(Duration::MAX)
    }

    fn soon() -> Deadline {
        Deadline::after(Duration::from_millis(1))
    }

    #[test]
    fn a_stream_that_never_ends_is_given_up_at_the_deadline() {
        let (reader, writer) = io::pipe().unwrap();
        let read = read_stream(Box::new(reader), soon());
        assert_eq!(read.unwrap_err().to_string(), "context deadline exceeded");
        drop(writer);
    }

    #[test]
    fn a_stream_that_ends_is_read_whole() {
        let text = b"a: 1".to_vec();
        let read = read_stream(Box::new(io::Cursor::new(text.clone())), never());
        assert_eq!(read.unwrap(), text);
    }

    /// It would fill the memory.
    #[test]
    fn a_device_without_end_is_given_up_at_the_limit() {
        let error = read_named(Path::new("/dev/zero"), never()).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 64 MiB");
        assert_eq!(read_named(Path::new("/dev/null"), never()).unwrap(), b"");
        let stream = read_stream(Box::new(io::repeat(b' ')), never());
        assert_eq!(stream.unwrap_err().to_string(), "it is larger than 64 MiB");
    }

    #[test]
    fn a_pipe_is_read_if_it_was_named_but_not_if_it_was_found() {
        let folder = tempfile::tempdir().unwrap();
        let [silent, path] = ["silent.yaml", "pipe.yaml"].map(|name| {
            let path = folder.path().join(name);
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            path
        });
        let error = read_named(&silent, soon()).unwrap_err();
        assert_eq!(error.to_string(), "context deadline exceeded", "nobody writes");
        let writer = path.clone();
        let writing = std::thread::spawn(move || std::fs::write(writer, "a: 1").unwrap());
        assert_eq!(read_named(&path, never()).unwrap(), b"a: 1");
        writing.join().unwrap();
        let error = read_regular(&path, LARGEST).unwrap_err();
        assert_eq!(error.to_string(), "it is not a regular file");
    }

    #[test]
    fn a_file_is_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_regular(&path, 5).unwrap(), b"12345");
        assert_eq!(read_regular(&path, 4).unwrap_err().to_string(), "it is larger than 4 bytes");
        // A hole takes no space.
        File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
        assert_eq!(read_named(&path, never()).unwrap_err().to_string(), "it is larger than 64 MiB");
    }
}
