//! Walks through the members of a tar archive within limits.
//!
//! A small compressed file may unpack to more than any memory or disk holds. Content is passed on in
//! small parts, but the long names and other extensions between members are held in memory, so they
//! have a limit of their own.

use std::cell::Cell;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use tar::{Archive, Entry};

/// The largest archive once it is unpacked, in bytes.
const LARGEST: u64 = 16 * GIB;
const GIB: u64 = 1024 * 1024 * 1024;
/// The most that may be between two members, in bytes.
const LARGEST_HEADER: u64 = 1024 * 1024;

/// The members of an archive, from the first to the last.
pub(super) struct Members {
    archive: Archive<Metered>,
    meter: Rc<Meter>,
}

impl Members {
    /// The members of an unpacked archive. Reading fails once it is given up.
    pub(super) fn of(archive: Box<dyn Read>, given_up: Arc<AtomicBool>) -> Self {
        Self::within(archive, given_up, LARGEST)
    }

    fn within(from: Box<dyn Read>, given_up: Arc<AtomicBool>, largest: u64) -> Self {
        let meter = Rc::new(Meter { left: Cell::new(largest), header_left: Cell::new(None) });
        let metered = Metered { from, meter: Rc::clone(&meter), given_up };
        Self { archive: Archive::new(metered), meter }
    }

    /// Visits all members until one of them breaks with a value.
    pub(super) fn find<T>(
        &mut self,
        mut visit: impl FnMut(&mut Entry<'_, Metered>) -> Result<ControlFlow<T>>,
    ) -> Result<Option<T>> {
        let mut entries = self.archive.entries()?;
        loop {
            self.meter.header_left.set(Some(LARGEST_HEADER));
            let next = entries.next();
            self.meter.header_left.set(None);
            let Some(entry) = next else { return Ok(None) };
            let mut entry = entry?;
            if let ControlFlow::Break(found) = visit(&mut entry)? {
                return Ok(Some(found));
            }
            // The rest of a member does not count as what is between members.
            io::copy(&mut entry, &mut io::sink())?;
        }
    }
}

/// How much may still be read.
struct Meter {
    left: Cell<u64>,
    /// The same until the next member, while it is looked for.
    header_left: Cell<Option<u64>>,
}

/// A reader that stops at the limits.
pub(super) struct Metered {
    from: Box<dyn Read>,
    meter: Rc<Meter>,
    given_up: Arc<AtomicBool>,
}

impl Read for Metered {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        if self.given_up.load(Ordering::Relaxed) {
            return Err(io::Error::other("it is not needed any more"));
        }
        let read = self.from.read(part)?;
        let Meter { left, header_left } = &*self.meter;
        left.set(left.get().checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it unpacks to more than {} GiB", LARGEST / GIB),
            )
        })?);
        if let Some(rest) = header_left.get() {
            header_left.set(Some(rest.checked_sub(read as u64).ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("a name in it is longer than {} MiB", LARGEST_HEADER >> 20),
                )
            })?));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use tar::{Builder, EntryType, Header};

    use super::*;

    /// An archive with a member of this type and size, and another after it.
    fn archive(entry_type: EntryType, size: u64) -> Vec<u8> {
        let mut archive = Builder::new(Vec::new());
        for (name, entry_type, size) in [("a", entry_type, size), ("b", EntryType::Regular, 3)] {
            let mut header = Header::new_gnu();
            header.set_path(name).unwrap();
            header.set_entry_type(entry_type);
            header.set_size(size);
            header.set_cksum();
            archive.append(&header, io::repeat(b'x').take(size)).unwrap();
        }
        archive.into_inner().unwrap()
    }

    /// The names of the members, or why they could not be read.
    fn names(archive: Vec<u8>, largest: u64, given_up: bool) -> Result<Vec<String>, String> {
        let given_up = Arc::new(AtomicBool::new(given_up));
        let mut names = Vec::new();
        let from = Box::new(io::Cursor::new(archive));
        let read = Members::within(from, given_up, largest).find(|entry| {
            names.push(entry.path()?.display().to_string());
            Ok(ControlFlow::<()>::Continue(()))
        });
        read.map(|_| names).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn members_are_read_within_limits() {
        let large = 2 * LARGEST_HEADER;
        let plain = || archive(EntryType::Regular, large);
        let all = ["a", "b"].map(str::to_owned).to_vec();
        assert_eq!(names(plain(), LARGEST, false), Ok(all), "a member may be large");
        let error = names(plain(), large, false).unwrap_err();
        assert!(error.contains("it unpacks to more than 16 GiB"), "{error}");
        let error = names(plain(), LARGEST, true).unwrap_err();
        assert!(error.contains("it is not needed any more"), "{error}");
    }

    /// A reader would hold it in memory.
    #[test]
    fn a_name_without_end_is_an_error() {
        for entry_type in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
            let error = names(archive(entry_type, 2 * LARGEST_HEADER), LARGEST, false).unwrap_err();
            assert!(error.contains("a name in it is longer than 1 MiB"), "{error}");
        }
        let short = names(archive(EntryType::GNULongName, 200), LARGEST, false).unwrap();
        assert_eq!(short, ["x".repeat(200)]);
    }
}
