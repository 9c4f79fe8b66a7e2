//! Turns tokens into events like libyaml, with its problems.

use super::Dialect;
use super::scan::{Fault, Mark, ScalarStyle, Scan, Scanner, TokenKind};

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    StreamStart,
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias(String),
    Scalar { text: String, style: ScalarStyle, properties: Properties },
    SequenceStart(Properties),
    SequenceEnd,
    MappingStart(Properties),
    MappingEnd,
}

/// What may precede a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties {
    pub(super) anchor: Option<String>,
    /// The full name of the tag.
    pub(super) tag: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    StreamStart,
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceFirst,
    BlockSequence,
    IndentlessSequence,
    BlockMappingFirst,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirst,
    FlowSequence,
    FlowPairKey,
    FlowPairValue,
    FlowPairEnd,
    FlowMappingFirst,
    FlowMappingKey,
    FlowMappingValue,
    FlowMappingEmptyValue,
    End,
}

/// Where a node may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Block,
    /// The key or value of a block mapping, where a sequence needs no indentation.
    BlockMapping,
    Flow,
}

const CORE: (&str, &str) = ("!!", "tag:yaml.org,2002:");

/// Produces events on demand.
#[derive(Debug)]
pub(super) struct Parser<'text> {
    scanner: Scanner<'text>,
    state: State,
    states: Vec<State>,
    /// Where the open collections begin.
    marks: Vec<Mark>,
    tag_directives: Vec<(String, String)>,
}

type Next = Scan<(Event, Mark)>;

impl<'text> Parser<'text> {
    pub(super) fn new(text: &'text [u8], dialect: Dialect) -> Self {
        Self {
            scanner: Scanner::new(text, dialect),
            state: State::StreamStart,
            states: Vec::new(),
            marks: Vec::new(),
            tag_directives: Vec::new(),
        }
    }

    /// Returns the next event and where it begins. At the end, it repeats the last event.
    pub(super) fn next(&mut self) -> Next {
        match self.state {
            State::StreamStart => {
                let (_, start, _) = self.peek()?;
                self.scanner.skip();
                self.state = State::ImplicitDocumentStart;
                Ok((Event::StreamStart, start))
            }
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(Within::Block),
            State::BlockSequenceFirst => {
                self.enter()?;
                self.block_sequence()
            }
            State::BlockSequence => self.block_sequence(),
            State::IndentlessSequence => self.indentless_sequence(),
            State::BlockMappingFirst => {
                self.enter()?;
                self.block_mapping_key()
            }
            State::BlockMappingKey => self.block_mapping_key(),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirst => {
                self.enter()?;
                self.flow_sequence(true)
            }
            State::FlowSequence => self.flow_sequence(false),
            State::FlowPairKey => self.flow_pair_key(),
            State::FlowPairValue => self.flow_pair_value(),
            State::FlowPairEnd => {
                let (_, start, _) = self.peek()?;
                self.state = State::FlowSequence;
                Ok((Event::MappingEnd, start))
            }
            State::FlowMappingFirst => {
                self.enter()?;
                self.flow_mapping_key(true)
            }
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(),
            State::FlowMappingEmptyValue => {
                let (_, start, _) = self.peek()?;
                self.state = State::FlowMappingKey;
                Ok(empty_scalar(start))
            }
            State::End => Ok((Event::StreamEnd, Mark::default())),
        }
    }

    fn peek(&mut self) -> Scan<(TokenKind, Mark, Mark)> {
        let token = self.scanner.peek()?;
        // Only the kind matters to most callers, and scalars are taken elsewhere.
        let kind = match &token.kind {
            TokenKind::Scalar(..) => TokenKind::Scalar(String::new(), ScalarStyle::Plain),
            kind => kind.clone(),
        };
        Ok((kind, token.start, token.end))
    }

    /// Skips the token that opens a collection.
    fn enter(&mut self) -> Scan<()> {
        let (_, start, _) = self.peek()?;
        self.marks.push(start);
        self.scanner.skip();
        Ok(())
    }

    /// Returns to the state around the node that just ended.
    fn leave(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    fn leave_collection(&mut self, end: Event, mark: Mark) -> (Event, Mark) {
        self.leave();
        self.marks.pop();
        self.scanner.skip();
        (end, mark)
    }

    fn document_start(&mut self, implicit: bool) -> Next {
        let (mut kind, mut start, _) = self.peek()?;
        while !implicit && kind == TokenKind::DocumentEnd {
            self.scanner.skip();
            (kind, start, _) = self.peek()?;
        }
        let begins_here = matches!(
            kind,
            TokenKind::Version { .. } | TokenKind::TagDirective { .. } | TokenKind::DocumentStart
        );
        match kind {
            TokenKind::StreamEnd => {
                self.state = State::End;
                self.scanner.skip();
                Ok((Event::StreamEnd, start))
            }
            _ if implicit && !begins_here => {
                self.directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
                Ok((Event::DocumentStart, start))
            }
            _ => {
                self.directives()?;
                let (kind, mark, _) = self.peek()?;
                if kind != TokenKind::DocumentStart {
                    let problem = "did not find expected <document start>";
                    return Err(Fault::parser(problem, mark, None));
                }
                self.states.push(State::DocumentEnd);
                self.state = State::DocumentContent;
                self.scanner.skip();
                Ok((Event::DocumentStart, start))
            }
        }
    }

    fn directives(&mut self) -> Scan<()> {
        let mut has_version = false;
        loop {
            let (kind, start, _) = self.peek()?;
            match kind {
                TokenKind::Version { .. } if has_version => {
                    return Err(Fault::parser("found duplicate %YAML directive", start, None));
                }
                TokenKind::Version { major: 1, minor: 1 } => has_version = true,
                TokenKind::Version { .. } => {
                    return Err(Fault::parser("found incompatible YAML document", start, None));
                }
                TokenKind::TagDirective { handle, prefix } => {
                    if self.tag_directives.iter().any(|(known, _)| *known == handle) {
                        return Err(Fault::parser("found duplicate %TAG directive", start, None));
                    }
                    self.tag_directives.push((handle, prefix));
                }
                _ => break,
            }
            self.scanner.skip();
        }
        for (handle, prefix) in [("!", "!"), CORE] {
            if !self.tag_directives.iter().any(|(known, _)| known == handle) {
                self.tag_directives.push((handle.to_owned(), prefix.to_owned()));
            }
        }
        Ok(())
    }

    fn document_content(&mut self) -> Next {
        let (kind, start, _) = self.peek()?;
        match kind {
            TokenKind::Version { .. }
            | TokenKind::TagDirective { .. }
            | TokenKind::DocumentStart
            | TokenKind::DocumentEnd
            | TokenKind::StreamEnd => {
                self.leave();
                Ok(empty_scalar(start))
            }
            _ => self.node(Within::Block),
        }
    }

    fn document_end(&mut self) -> Next {
        let (kind, start, _) = self.peek()?;
        if kind == TokenKind::DocumentEnd {
            self.scanner.skip();
        }
        self.tag_directives.clear();
        self.state = State::DocumentStart;
        Ok((Event::DocumentEnd, start))
    }

    fn node(&mut self, within: Within) -> Next {
        let (mut kind, start, _) = self.peek()?;
        if let TokenKind::Alias(name) = kind {
            self.leave();
            self.scanner.skip();
            return Ok((Event::Alias(name), start));
        }
        let mut anchor = None;
        let mut tag = None;
        let mut mark = start;
        loop {
            match kind {
                TokenKind::Anchor(name) if anchor.is_none() => anchor = Some(name),
                TokenKind::Tag { handle, suffix } if tag.is_none() => {
                    tag = Some((handle, suffix, mark));
                }
                other => {
                    kind = other;
                    break;
                }
            }
            self.scanner.skip();
            (kind, mark, _) = self.peek()?;
        }
        let tag = match tag {
            None => None,
            Some((handle, suffix, _)) if handle.is_empty() => Some(suffix),
            Some((handle, suffix, at)) => {
                let known = self.tag_directives.iter().find(|(known, _)| *known == handle);
                let Some((_, prefix)) = known else {
                    let problem = "found undefined tag handle";
                    return Err(Fault::parser(problem, at, Some(start)));
                };
                Some(format!("{prefix}{suffix}"))
            }
        };
        let has_properties = anchor.is_some() || tag.is_some();
        let properties = Properties { anchor, tag };
        match (kind, within) {
            (TokenKind::BlockEntry, Within::BlockMapping) => {
                self.state = State::IndentlessSequence;
                Ok((Event::SequenceStart(properties), start))
            }
            (TokenKind::Scalar(..), _) => self.scalar(properties, start),
            (TokenKind::FlowSequenceStart, _) => {
                self.state = State::FlowSequenceFirst;
                Ok((Event::SequenceStart(properties), start))
            }
            (TokenKind::FlowMappingStart, _) => {
                self.state = State::FlowMappingFirst;
                Ok((Event::MappingStart(properties), start))
            }
            (TokenKind::BlockSequenceStart, Within::Block | Within::BlockMapping) => {
                self.state = State::BlockSequenceFirst;
                Ok((Event::SequenceStart(properties), start))
            }
            (TokenKind::BlockMappingStart, Within::Block | Within::BlockMapping) => {
                self.state = State::BlockMappingFirst;
                Ok((Event::MappingStart(properties), start))
            }
            _ if has_properties => {
                self.leave();
                let (text, style) = (String::new(), ScalarStyle::Plain);
                Ok((Event::Scalar { text, style, properties }, start))
            }
            _ => Err(Fault::parser("did not find expected node content", mark, Some(start))),
        }
    }

    fn scalar(&mut self, properties: Properties, start: Mark) -> Next {
        self.leave();
        let (text, style) = match &self.scanner.peek()?.kind {
            TokenKind::Scalar(text, style) => (text.clone(), *style),
            _ => (String::new(), ScalarStyle::Plain),
        };
        self.scanner.skip();
        Ok((Event::Scalar { text, style, properties }, start))
    }

    /// The node that follows, with the state after it.
    fn node_then(&mut self, within: Within, after: State) -> Next {
        self.states.push(after);
        self.node(within)
    }

    fn block_sequence(&mut self) -> Next {
        let (kind, start, end) = self.peek()?;
        match kind {
            TokenKind::BlockEntry => {
                self.scanner.skip();
                let (next, ..) = self.peek()?;
                if matches!(next, TokenKind::BlockEntry | TokenKind::BlockEnd) {
                    self.state = State::BlockSequence;
                    return Ok(empty_scalar(end));
                }
                self.node_then(Within::Block, State::BlockSequence)
            }
            TokenKind::BlockEnd => Ok(self.leave_collection(Event::SequenceEnd, start)),
            _ => self.broken("did not find expected '-' indicator", start),
        }
    }

    /// The problem of the innermost collection.
    fn broken(&mut self, problem: &str, mark: Mark) -> Next {
        Err(Fault::parser(problem, mark, self.marks.pop()))
    }

    fn indentless_sequence(&mut self) -> Next {
        let (kind, start, end) = self.peek()?;
        if kind != TokenKind::BlockEntry {
            self.leave();
            return Ok((Event::SequenceEnd, start));
        }
        self.scanner.skip();
        let (next, ..) = self.peek()?;
        if matches!(next, TokenKind::BlockEntry) || ends_block_node(&next) {
            self.state = State::IndentlessSequence;
            return Ok(empty_scalar(end));
        }
        self.node_then(Within::Block, State::IndentlessSequence)
    }

    fn block_mapping_key(&mut self) -> Next {
        let (kind, start, end) = self.peek()?;
        match kind {
            TokenKind::Key => {
                self.scanner.skip();
                let (next, ..) = self.peek()?;
                if ends_block_node(&next) {
                    self.state = State::BlockMappingValue;
                    return Ok(empty_scalar(end));
                }
                self.node_then(Within::BlockMapping, State::BlockMappingValue)
            }
            TokenKind::BlockEnd => Ok(self.leave_collection(Event::MappingEnd, start)),
            _ => self.broken("did not find expected key", start),
        }
    }

    fn block_mapping_value(&mut self) -> Next {
        let (kind, start, end) = self.peek()?;
        if kind != TokenKind::Value {
            self.state = State::BlockMappingKey;
            return Ok(empty_scalar(start));
        }
        self.scanner.skip();
        let (next, ..) = self.peek()?;
        if ends_block_node(&next) {
            self.state = State::BlockMappingKey;
            return Ok(empty_scalar(end));
        }
        self.node_then(Within::BlockMapping, State::BlockMappingKey)
    }

    fn flow_sequence(&mut self, first: bool) -> Next {
        let (mut kind, mut start, _) = self.peek()?;
        if kind != TokenKind::FlowSequenceEnd && !first {
            if kind != TokenKind::FlowEntry {
                return self.broken("did not find expected ',' or ']'", start);
            }
            self.scanner.skip();
            (kind, start, _) = self.peek()?;
        }
        match kind {
            TokenKind::FlowSequenceEnd => Ok(self.leave_collection(Event::SequenceEnd, start)),
            TokenKind::Key => {
                self.state = State::FlowPairKey;
                self.scanner.skip();
                Ok((Event::MappingStart(Properties::default()), start))
            }
            _ => self.node_then(Within::Flow, State::FlowSequence),
        }
    }

    fn flow_pair_key(&mut self) -> Next {
        let (kind, _, end) = self.peek()?;
        if matches!(kind, TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
            self.scanner.skip();
            self.state = State::FlowPairValue;
            return Ok(empty_scalar(end));
        }
        self.node_then(Within::Flow, State::FlowPairValue)
    }

    fn flow_pair_value(&mut self) -> Next {
        let (kind, start, _) = self.peek()?;
        if kind == TokenKind::Value {
            self.scanner.skip();
            let (next, ..) = self.peek()?;
            if !matches!(next, TokenKind::FlowEntry | TokenKind::FlowSequenceEnd) {
                return self.node_then(Within::Flow, State::FlowPairEnd);
            }
        }
        self.state = State::FlowPairEnd;
        Ok(empty_scalar(start))
    }

    fn flow_mapping_key(&mut self, first: bool) -> Next {
        let (mut kind, mut start, _) = self.peek()?;
        if kind != TokenKind::FlowMappingEnd && !first {
            if kind != TokenKind::FlowEntry {
                return self.broken("did not find expected ',' or '}'", start);
            }
            self.scanner.skip();
            (kind, start, _) = self.peek()?;
        }
        match kind {
            TokenKind::FlowMappingEnd => Ok(self.leave_collection(Event::MappingEnd, start)),
            TokenKind::Key => {
                self.scanner.skip();
                let (next, start, _) = self.peek()?;
                if matches!(
                    next,
                    TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd
                ) {
                    self.state = State::FlowMappingValue;
                    return Ok(empty_scalar(start));
                }
                self.node_then(Within::Flow, State::FlowMappingValue)
            }
            _ => self.node_then(Within::Flow, State::FlowMappingEmptyValue),
        }
    }

    fn flow_mapping_value(&mut self) -> Next {
        let (kind, mut start, _) = self.peek()?;
        if kind == TokenKind::Value {
            self.scanner.skip();
            let (next, mark, _) = self.peek()?;
            if !matches!(next, TokenKind::FlowEntry | TokenKind::FlowMappingEnd) {
                return self.node_then(Within::Flow, State::FlowMappingKey);
            }
            start = mark;
        }
        self.state = State::FlowMappingKey;
        Ok(empty_scalar(start))
    }
}

/// Whether a node of a block mapping is left out before this token.
fn ends_block_node(kind: &TokenKind) -> bool {
    matches!(kind, TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd)
}

fn empty_scalar(mark: Mark) -> (Event, Mark) {
    let (text, style) = (String::new(), ScalarStyle::Plain);
    (Event::Scalar { text, style, properties: Properties::default() }, mark)
}
