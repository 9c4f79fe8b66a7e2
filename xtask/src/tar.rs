//! Writes reproducible archives in the ustar format.

use std::io::Write;

use anyhow::{Result, bail};
use flate2::{Compression, GzBuilder};

/// A file to archive.
pub(crate) struct File<'a> {
    pub(crate) name: &'a str,
    pub(crate) mode: u32,
    pub(crate) content: &'a [u8],
}

const BLOCK: usize = 512;
/// The format could split longer names into two fields. This is not supported.
const LONGEST_NAME: usize = 100;

/// Archives the files in the given order, owned by root, with a modification time in seconds since
/// 1970.
pub(crate) fn archive(files: &[File<'_>], time: u64) -> Result<Vec<u8>> {
    let mut archive = Vec::new();
    for file in files {
        if file.name.len() > LONGEST_NAME {
            bail!("cannot archive {}: its name is longer than {LONGEST_NAME} bytes", file.name);
        }
        archive.extend(header(file, time));
        archive.extend(file.content);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

/// Compresses without a date, so that the same input gives the same output.
pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), level);
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn header(file: &File<'_>, time: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: String| {
        // Every string fits: the length of names is checked, and numbers have fixed widths.
        let _ = (&mut header[at..]).write_all(text.as_bytes());
    };
    put(0, file.name.to_owned());
    put(100, format!("{:07o}", file.mode));
    put(108, format!("{:07o}", 0));
    put(116, format!("{:07o}", 0));
    put(124, format!("{:011o}", file.content.len()));
    put(136, format!("{time:011o}"));
    put(148, " ".repeat(8));
    put(156, "0".into());
    put(257, "ustar\0".into());
    put(263, "00".into());
    put(265, "root".into());
    put(297, "root".into());
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let _ = (&mut header[148..]).write_all(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn other_programs_read_owners_modes_and_times() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar.gz");
        let file = |name, mode| File { name, mode, content: b"text\n" };
        let bytes = archive(&[file("a/program", 0o755), file("a/text", 0o644)], 86_400).unwrap();
        std::fs::write(&path, gzip(&bytes, Compression::best()).unwrap()).unwrap();
        let mut tar = Command::new("tar");
        let listing = crate::output(tar.arg("-tvzf").arg(path).env("TZ", "UTC")).unwrap();
        let lines: Vec<String> = listing
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "-rwxr-xr-x root/root 5 1970-01-02 00:00 a/program",
                "-rw-r--r-- root/root 5 1970-01-02 00:00 a/text"
            ]
        );
    }

    #[test]
    fn a_name_that_does_not_fit_is_an_error() {
        let name = "a".repeat(101);
        assert!(archive(&[File { name: &name, mode: 0, content: b"" }], 0).is_err());
    }
}
