//! Archives in the old format that every reader knows, with nothing in them that varies.

use std::io::Write;

/// A file to archive. Names are short: folders are not split off.
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) mode: u32,
    pub(super) content: &'a [u8],
}

const BLOCK: usize = 512;

/// An archive of the files, owned by root and without a date.
pub(super) fn archive(files: &[File<'_>]) -> Vec<u8> {
    let mut archive = Vec::new();
    for file in files {
        archive.extend(header(file));
        archive.extend(file.content);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

fn header(file: &File<'_>) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: String| {
        // Room for every field was checked by what calls us; what is too long would be cut.
        let _ = (&mut header[at..]).write_all(text.as_bytes());
    };
    put(0, file.name.chars().take(100).collect());
    put(100, format!("{:07o}", file.mode));
    put(108, format!("{:07o}", 0));
    put(116, format!("{:07o}", 0));
    put(124, format!("{:011o}", file.content.len()));
    put(136, format!("{:011o}", 0));
    put(148, " ".repeat(8));
    put(156, "0".into());
    put(257, "ustar\0".into());
    put(263, "00".into());
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let _ = (&mut header[148..]).write_all(format!("{sum:06o}\0 ").as_bytes());
    header
}
