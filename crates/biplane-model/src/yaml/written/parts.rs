//! Builds the tree of parts from tokens.

use super::super::MAX_DEPTH;
use super::{Block, BlockId, Mark, Part, Place, Shape, Slot, SlotId, Token, TokenKind};

/// A document without its comments.
pub(super) struct Parsed {
    pub(super) root: Part,
    pub(super) slots: Vec<Place>,
    /// Of each block, its column and the slot that it is the value of.
    pub(super) parents: Vec<(usize, Option<SlotId>)>,
}

/// Builds the tree. `None` if the tokens are not those of a document.
pub(super) fn parse(tokens: Vec<Token>) -> Option<Parsed> {
    let mut builder =
        Builder { tokens, at: 0, last_end: 0, depth: 0, slots: Vec::new(), parents: Vec::new() };
    let root = builder.node(None, false)?;
    let Builder { tokens, at, slots, parents, .. } = builder;
    (at == tokens.len()).then_some(Parsed { root, slots, parents })
}

struct Builder {
    tokens: Vec<Token>,
    at: usize,
    /// Where the last token with text ended.
    last_end: usize,
    /// How many blocks are open.
    depth: usize,
    slots: Vec<Place>,
    parents: Vec<(usize, Option<SlotId>)>,
}

impl Builder {
    fn peek(&self) -> Option<&TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn start(&self) -> Mark {
        self.tokens.get(self.at).map(|token| token.start).unwrap_or_default()
    }

    /// Takes a token and returns the offset of its end.
    fn take(&mut self) -> usize {
        let end = self.tokens.get(self.at).map_or(0, |token| token.end.index);
        self.at += 1;
        self.last_end = self.last_end.max(end);
        end
    }

    /// A node. Below a key, a list may have the column of the key.
    fn node(&mut self, slot: Option<SlotId>, below_key: bool) -> Option<Part> {
        let mut bound = false;
        let mut end = self.last_end;
        while let Some(TokenKind::Anchor(_) | TokenKind::Tag { .. }) = self.peek() {
            bound = true;
            end = self.take();
        }
        let leaf = |end, bound| Some(Part { shape: Shape::Leaf, end, bound });
        match self.peek() {
            Some(TokenKind::Alias(_)) => {
                let end = self.take();
                leaf(end, true)
            }
            Some(TokenKind::Scalar(..)) => {
                let end = self.take();
                leaf(end, bound)
            }
            Some(TokenKind::FlowSequenceStart | TokenKind::FlowMappingStart) => {
                let (end, inner) = self.brackets()?;
                leaf(end, bound || inner)
            }
            Some(TokenKind::BlockSequenceStart) => {
                let column = self.start().column;
                self.take();
                let part = self.list(slot, column, bound)?;
                self.block_end()?;
                Some(part)
            }
            Some(TokenKind::BlockEntry) if below_key => {
                let column = self.start().column;
                self.list(slot, column, bound)
            }
            Some(TokenKind::BlockMappingStart) => {
                let column = self.start().column;
                self.take();
                let part = self.map(slot, column, bound)?;
                self.block_end()?;
                Some(part)
            }
            _ => leaf(end, bound),
        }
    }

    fn block_end(&mut self) -> Option<()> {
        // It has no text: it stands where the next token does.
        matches!(self.peek(), Some(TokenKind::BlockEnd)).then(|| self.at += 1)
    }

    /// A collection in brackets: its end, and whether anything within has an anchor or the like.
    fn brackets(&mut self) -> Option<(usize, bool)> {
        let (mut depth, mut bound) = (0_usize, false);
        loop {
            match self.peek()? {
                TokenKind::FlowSequenceStart | TokenKind::FlowMappingStart => depth += 1,
                TokenKind::FlowSequenceEnd | TokenKind::FlowMappingEnd => depth -= 1,
                TokenKind::Anchor(_) | TokenKind::Alias(_) | TokenKind::Tag { .. } => bound = true,
                _ => {}
            }
            let end = self.take();
            if depth == 0 {
                return Some((end, bound));
            }
        }
    }

    /// Opens a block, unless it is nested more deeply than documents may be.
    fn open(&mut self, slot: Option<SlotId>, column: usize) -> Option<BlockId> {
        self.depth += 1;
        self.parents.push((column, slot));
        (self.depth <= MAX_DEPTH).then_some(self.parents.len() - 1)
    }

    fn slot(&mut self, block: BlockId, at: Mark) -> SlotId {
        let Mark { index: start, line, column, .. } = at;
        self.slots.push(Place { start, line, column, block, leaf_end: None });
        self.slots.len() - 1
    }

    fn fill(&mut self, id: SlotId, key: String, head_end: usize, part: Part) -> Slot {
        if matches!(part.shape, Shape::Leaf)
            && let Some(place) = self.slots.get_mut(id)
        {
            place.leaf_end = Some(part.end.max(head_end));
        }
        Slot { id, key, head_end, part }
    }

    fn list(&mut self, slot: Option<SlotId>, column: usize, bound: bool) -> Option<Part> {
        let block = self.open(slot, column)?;
        let mut slots: Vec<Slot> = Vec::new();
        while let Some(TokenKind::BlockEntry) = self.peek() {
            let id = self.slot(block, self.start());
            let head_end = self.take();
            let empty = matches!(self.peek(), Some(TokenKind::BlockEntry));
            let part = if empty {
                Part { shape: Shape::Leaf, end: head_end, bound: false }
            } else {
                self.node(Some(id), false)?
            };
            slots.push(self.fill(id, String::new(), head_end, part));
        }
        self.depth -= 1;
        Some(closed(slots, bound, |slots| Shape::List(Block { id: block, column, slots })))
    }

    fn map(&mut self, slot: Option<SlotId>, column: usize, bound: bool) -> Option<Part> {
        let block = self.open(slot, column)?;
        let mut slots: Vec<Slot> = Vec::new();
        while let Some(TokenKind::Key) = self.peek() {
            let at = self.start();
            let id = self.slot(block, at);
            self.take();
            let key = match self.tokens.get(self.at) {
                // A key with a question mark begins before its text.
                Some(Token { kind: TokenKind::Scalar(text, _), start, .. })
                    if start.index == at.index =>
                {
                    text.clone()
                }
                _ => return None,
            };
            let head_end = self.take();
            let part = match self.peek() {
                Some(TokenKind::Value) => {
                    self.take();
                    self.node(Some(id), true)?
                }
                _ => return None,
            };
            slots.push(self.fill(id, key, head_end, part));
        }
        self.depth -= 1;
        Some(closed(slots, bound, |slots| Shape::Map(Block { id: block, column, slots })))
    }
}

fn closed(slots: Vec<Slot>, bound: bool, shape: impl FnOnce(Vec<Slot>) -> Shape) -> Part {
    let bound = bound || slots.iter().any(|slot| slot.part.bound);
    let end = slots.last().map_or(0, |slot| slot.part.end.max(slot.head_end));
    Part { shape: shape(slots), end, bound }
}
