//! Limits how much aliases may expand a document.

use super::super::error::Problem;
use super::MAX_DEPTH;

/// The cost of copying a value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// Scalars, keys, lists and objects.
    pub(super) nodes: usize,
    /// The bytes of strings in them.
    pub(super) bytes: usize,
    /// Nesting depth.
    pub(super) height: usize,
}

impl Size {
    pub(super) fn scalar(text: &str) -> Self {
        Self { nodes: 1, bytes: text.len(), height: 0 }
    }

    /// Adds a value inside this one.
    pub(super) fn add(&mut self, inner: Self) {
        self.nodes += inner.nodes;
        self.bytes += inner.bytes;
        self.height = self.height.max(inner.height + 1);
    }
}

/// Counts the values read so far, and how many of them came from aliases.
#[derive(Debug, Default)]
pub(super) struct Budget {
    nodes: usize,
    aliased_nodes: usize,
    copied_bytes: usize,
}

impl Budget {
    /// The limit for copies: strings, and an estimate of the overhead of each node.
    const MAX_COPIED_BYTES: usize = 256 << 20;
    const NODE_BYTES: usize = 64;

    pub(super) fn read(&mut self, nodes: usize) {
        self.nodes += nodes;
    }

    /// Call this before an alias is replaced by its value, `depth` levels down.
    pub(super) fn expand(&mut self, value: Size, depth: usize) -> Result<(), Problem> {
        if depth + value.height > MAX_DEPTH {
            return Err(Problem::TooDeep(MAX_DEPTH));
        }
        self.nodes += value.nodes;
        self.aliased_nodes += value.nodes;
        let share = self.aliased_nodes as f64 / self.nodes as f64;
        // The same limits as upstream, so that the same documents are refused.
        if self.aliased_nodes > 100 && self.nodes > 1000 && share > allowed_share(self.nodes) {
            return Err(Problem::ExcessiveAliasing);
        }
        self.copy(value)
    }

    /// Call this before a value is stored for an anchor or copied for an alias.
    pub(super) fn copy(&mut self, value: Size) -> Result<(), Problem> {
        self.copied_bytes += value.bytes + value.nodes * Self::NODE_BYTES;
        if self.copied_bytes > Self::MAX_COPIED_BYTES {
            return Err(Problem::ExcessiveAliasing);
        }
        Ok(())
    }
}

/// Small documents may consist almost only of aliases, very large ones may have few.
fn allowed_share(nodes: usize) -> f64 {
    const SMALL: f64 = 400_000.0;
    const LARGE: f64 = 4_000_000.0;
    let grown = ((nodes as f64 - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
    0.99 - 0.89 * grown
}
