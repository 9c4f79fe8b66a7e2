//! A document as it was written: the order of its keys, its comments, and where each part stands.
//!
//! Values keep none of this. A program that changes a document reads it a second time into
//! [`Written`] and prints the changed value with [`Written::rewrite`].

use std::collections::BTreeMap;

use super::Dialect;
use super::lines;
use super::scan::{Comment, Mark, Scanner, Token, TokenKind};

mod comments;
mod parts;
mod rewrite;

pub use rewrite::{Change, Moved};

/// The number of a slot, in the order of the document.
type SlotId = usize;
/// The number of a block collection, in the order of the document.
type BlockId = usize;

/// The first document of a text, as it was written.
#[derive(Debug)]
pub struct Written<'text> {
    text: &'text str,
    /// Where each line begins.
    lines: Vec<usize>,
    root: Part,
    slots: Vec<Place>,
    comments: BTreeMap<SlotId, Comments>,
    /// The comments below the last entry of a block, and the line of the last of them.
    feet: BTreeMap<BlockId, (Vec<String>, usize)>,
    /// The comments above the separator before the document.
    prologue: Vec<String>,
    /// The comments below everything.
    epilogue: Vec<String>,
    has_comments: bool,
}

/// A node.
#[derive(Debug)]
struct Part {
    shape: Shape,
    /// The offset of its end.
    end: usize,
    /// Whether it has an anchor, an alias or a tag, without which its text means something else.
    bound: bool,
}

#[derive(Debug)]
enum Shape {
    Map(Block),
    List(Block),
    /// A scalar, or a collection in brackets.
    Leaf,
}

/// The entries of a collection in block style.
#[derive(Debug)]
struct Block {
    id: BlockId,
    column: usize,
    slots: Vec<Slot>,
}

/// An entry of an object, or an item of a list.
#[derive(Debug)]
struct Slot {
    id: SlotId,
    /// Empty for an item.
    key: String,
    /// The offset of the end of the key or the dash.
    head_end: usize,
    part: Part,
}

/// Where a slot stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The offset of its key or dash.
    start: usize,
    line: usize,
    column: usize,
    block: BlockId,
    /// Where its value ends, if that is no block collection.
    leaf_end: Option<usize>,
}

/// The comments of a slot.
#[derive(Clone, Debug, Default)]
struct Comments {
    /// On the lines above. An empty text is a blank line.
    above: Vec<String>,
    /// On the same line.
    behind: Option<String>,
    /// Within its value.
    inside: Vec<String>,
}

impl<'text> Written<'text> {
    /// Reads the first document. `None` if it cannot be read.
    pub fn read(text: &'text str) -> Option<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut scanner = Scanner::new(text.as_bytes(), Dialect::V2);
        let mut tokens = Vec::new();
        let mut separator = None;
        loop {
            let token = scanner.peek().ok()?.clone();
            match token.kind {
                TokenKind::StreamEnd | TokenKind::DocumentEnd => break,
                TokenKind::DocumentStart if separator.is_some() || !tokens.is_empty() => break,
                TokenKind::DocumentStart => separator = Some(token.start.line),
                TokenKind::StreamStart
                | TokenKind::Version { .. }
                | TokenKind::TagDirective { .. } => {}
                _ => tokens.push(token),
            }
            scanner.skip();
        }
        let found = scanner.comments().to_vec();
        let lines = std::iter::once(0).chain(lines::starts(text)).collect();
        let parsed = parts::parse(tokens)?;
        let mut written = Self {
            text,
            lines,
            root: parsed.root,
            slots: parsed.slots,
            comments: BTreeMap::new(),
            feet: BTreeMap::new(),
            prologue: Vec::new(),
            epilogue: Vec::new(),
            has_comments: !found.is_empty(),
        };
        comments::attach(&mut written, &found, &parsed.parents, separator);
        Some(written)
    }

    /// Whether the document has any comment.
    pub fn has_comments(&self) -> bool {
        self.has_comments
    }

    /// The line of an offset, counted from 0.
    fn line_of(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// A line without its line break.
    fn line(&self, line: usize) -> &'text str {
        let start = self.lines.get(line).copied().unwrap_or(self.text.len());
        let end = self.lines.get(line + 1).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default().trim_end_matches(['\r', '\n'])
    }

    /// The first line below an offset at which something ends.
    fn line_below(&self, end: usize) -> usize {
        let line = self.line_of(end);
        let at_start = self.lines.get(line) == Some(&end);
        if at_start && end > 0 { line } else { line + 1 }
    }

    fn comment_text(&self, comment: &Comment) -> String {
        self.text.get(comment.start.index..comment.end).unwrap_or_default().trim_end().to_owned()
    }
}
