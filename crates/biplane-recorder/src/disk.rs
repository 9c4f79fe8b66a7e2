//! Watches the free space of the disk, and keeps a reserve of it for change logs.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Tells how many bytes are free. Nothing if that cannot be known.
pub type Probe = Box<dyn Fn() -> Option<u64> + Send>;

/// The disk that the store is on.
pub struct Disk {
    probe: Probe,
    min_free: u64,
    reserve: Option<(PathBuf, u64)>,
    low: bool,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk")
            .field("min_free", &self.min_free)
            .field("reserve", &self.reserve)
            .field("low", &self.low)
            .finish_non_exhaustive()
    }
}

/// Asks the file system of a path.
pub fn free_space(path: &Path) -> Option<u64> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let stat = nix::sys::statvfs::statvfs(folder.unwrap_or(Path::new("."))).ok()?;
    Some(stat.blocks_available().saturating_mul(stat.fragment_size()))
}

impl Disk {
    /// The disk of a file, with a reserve of so many bytes beside it.
    pub fn of_file(path: &Path, min_free: u64, reserve: u64, probe: Option<Probe>) -> Self {
        let mut name = path.as_os_str().to_owned();
        name.push("-reserve");
        let watched = path.to_owned();
        let probe = probe.unwrap_or_else(|| Box::new(move || free_space(&watched)));
        Self { probe, min_free, reserve: Some((name.into(), reserve)), low: false }
    }

    /// A disk about which nothing is known, as that of a server.
    pub fn unknown() -> Self {
        Self { probe: Box::new(|| None), min_free: 0, reserve: None, low: false }
    }

    /// Looks at the disk. The reserve is made as soon as there is room for it.
    pub fn look(&mut self) {
        let Some(free) = (self.probe)() else {
            self.low = false;
            return;
        };
        self.low = free < self.min_free;
        if let Some((path, size)) = &self.reserve
            && !path.exists()
            && free >= self.min_free.saturating_add(*size)
            && let Err(error) = make(path, *size)
        {
            tracing::debug!(%error, "cannot make the reserve");
            let _ = fs::remove_file(path);
        }
    }

    /// Whether there is too little room to store runs.
    pub fn is_low(&self) -> bool {
        self.low
    }

    /// The store said that there is no room.
    pub fn is_full(&mut self) {
        self.low = true;
    }

    /// Gives up the reserve. Whether there was one.
    pub fn release(&mut self) -> bool {
        self.low = true;
        self.reserve.as_ref().is_some_and(|(path, _)| fs::remove_file(path).is_ok())
    }
}

/// Makes a file whose bytes are really there.
fn make(path: &Path, size: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    let block = vec![0; 64 * 1024];
    let mut left = size;
    while left > 0 {
        let count = left.min(block.len() as u64) as usize;
        file.write_all(block.get(..count).unwrap_or_default())?;
        left -= count as u64;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn the_reserve_is_made_when_there_is_room_and_given_up_once() {
        let folder = tempfile::tempdir().unwrap();
        let free = Arc::new(AtomicU64::new(50));
        let probed = Arc::clone(&free);
        let probe: Probe = Box::new(move || Some(probed.load(Ordering::Relaxed)));
        let path = folder.path().join("store");
        let mut disk = Disk::of_file(&path, 100, 20, Some(probe));
        disk.look();
        assert!(disk.is_low() && !disk.release());
        free.store(110, Ordering::Relaxed);
        disk.look();
        assert!(!disk.is_low() && !disk.release());
        free.store(120, Ordering::Relaxed);
        disk.look();
        let reserve = folder.path().join("store-reserve");
        assert_eq!(fs::metadata(&reserve).unwrap().len(), 20);
        assert!(disk.release() && disk.is_low() && !disk.release());
        assert!(free_space(&path).unwrap() > 0);
    }
}
