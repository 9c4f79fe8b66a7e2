//! Decides which comment belongs to which part of a document.

use std::collections::BTreeMap;

use super::{BlockId, Comment, SlotId, Written};

/// What a comment is about.
enum Subject {
    Above(SlotId),
    Behind(SlotId),
    Inside(SlotId),
    Foot(BlockId),
    End,
}

/// Attaches all comments. `separator` is the line of the `---` above the document.
pub(super) fn attach(
    written: &mut Written<'_>,
    comments: &[Comment],
    parents: &[(usize, Option<SlotId>)],
    separator: Option<usize>,
) {
    let mut above: BTreeMap<SlotId, BTreeMap<usize, String>> = BTreeMap::new();
    for comment in comments {
        let text = written.comment_text(comment);
        let line = comment.start.line;
        match subject(written, comment, parents) {
            Subject::Above(slot) => {
                above.entry(slot).or_default().insert(line, text);
            }
            Subject::Behind(slot) => {
                let comments = written.comments.entry(slot).or_default();
                match comments.behind {
                    None => comments.behind = Some(text),
                    Some(_) => comments.inside.push(text),
                }
            }
            Subject::Inside(slot) => {
                written.comments.entry(slot).or_default().inside.push(text);
            }
            Subject::Foot(block) => {
                let after_blank = line > 0 && written.line(line - 1).trim().is_empty();
                let (lines, last) = written.feet.entry(block).or_default();
                lines.extend(after_blank.then(String::new));
                lines.push(text);
                *last = line;
            }
            Subject::End => {
                if line > 0 && written.line(line - 1).trim().is_empty() {
                    written.epilogue.push(String::new());
                }
                written.epilogue.push(text);
            }
        }
    }
    let none = BTreeMap::new();
    for slot in 0..written.slots.len() {
        let own = above.get(&slot).unwrap_or(&none);
        let (lines, prologue) = lines_above(written, slot, own, separator);
        if slot == 0 {
            written.prologue = prologue;
        }
        if !lines.is_empty() {
            written.comments.entry(slot).or_default().above = lines;
        }
    }
}

fn subject(
    written: &Written<'_>,
    comment: &Comment,
    parents: &[(usize, Option<SlotId>)],
) -> Subject {
    let (at, column) = (comment.start.index, comment.start.column);
    let following = written.slots.partition_point(|slot| slot.start < at);
    let next = written.slots.get(following).map(|slot| (following, slot));
    let previous = following.checked_sub(1).and_then(|id| Some((id, written.slots.get(id)?)));
    if let Some((id, slot)) = previous
        && slot.leaf_end.is_some_and(|end| at < end)
    {
        return Subject::Inside(id);
    }
    let line = written.line(comment.start.line);
    let has_line = line.trim_start().starts_with('#');
    let above_next = || next.map_or(Subject::End, |(id, _)| Subject::Above(id));
    let Some((id, slot)) = previous else { return above_next() };
    if !has_line {
        return Subject::Behind(id);
    }
    if next.is_some_and(|(_, next)| column <= next.column) {
        return above_next();
    }
    // What is indented more than the next entry belongs to the block that ends here.
    let mut block = Some(slot.block);
    while let Some(id) = block {
        let Some((indent, parent)) = parents.get(id) else { break };
        if *indent <= column && (*indent > 0 || next.is_some()) {
            return Subject::Foot(id);
        }
        block = parent.and_then(|parent| written.slots.get(parent)).map(|slot| slot.block);
    }
    above_next()
}

/// The lines above a slot, and of the first slot those above the separator.
fn lines_above(
    written: &Written<'_>,
    id: SlotId,
    comments: &BTreeMap<usize, String>,
    separator: Option<usize>,
) -> (Vec<String>, Vec<String>) {
    let Some(slot) = written.slots.get(id) else { return Default::default() };
    let previous = id.checked_sub(1).and_then(|id| written.slots.get(id));
    let first = match previous {
        None => 0,
        Some(previous) => {
            previous.leaf_end.map_or(previous.line + 1, |end| written.line_below(end))
        }
    };
    let (mut lines, mut prologue) = (Vec::new(), Vec::new());
    for line in first..slot.line {
        if Some(line) == separator {
            prologue = std::mem::take(&mut lines);
        }
        if let Some(comment) = comments.get(&line) {
            lines.push(comment.clone());
        } else if written.line(line).trim().is_empty() {
            // Blank lines at the beginning say nothing.
            if previous.is_some() || !lines.is_empty() {
                lines.push(String::new());
            }
        } else {
            lines.clear();
        }
    }
    (lines, prologue)
}
