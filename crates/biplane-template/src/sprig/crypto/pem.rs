//! PEM: base64 between dashed lines.

use super::super::encoding::base64;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// A block: its type and its bytes.
pub(super) struct Block {
    pub(super) label: String,
    pub(super) bytes: Vec<u8>,
}

/// Writes a block.
pub(super) fn encode(label: &str, bytes: &[u8]) -> String {
    let mut out = format!("{BEGIN}{label}{DASHES}\n");
    let text = base64(bytes);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out + END + label + DASHES + "\n"
}

/// Reads the first block of a text, whatever is around it.
pub(super) fn decode(text: &[u8]) -> Option<Block> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(label) = line.trim_end().strip_prefix(BEGIN).and_then(|l| l.strip_suffix(DASHES))
        else {
            continue;
        };
        let end = format!("{END}{label}{DASHES}");
        let body: Vec<&str> = lines.clone().take_while(|line| line.trim_end() != end).collect();
        if lines.clone().nth(body.len()).is_none() {
            // The block has no end.
            continue;
        }
        let headers = body.iter().take_while(|line| line.contains(':')).count();
        let encoded: String = body
            .iter()
            .skip(headers)
            .flat_map(|line| line.chars())
            .filter(|c| !c.is_whitespace())
            .collect();
        if let Ok(bytes) = biplane_go::base64::decode(encoded.as_bytes()) {
            return Some(Block { label: label.to_owned(), bytes });
        }
    }
    None
}
