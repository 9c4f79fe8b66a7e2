//! The nodes of one document, as they are written.

use std::collections::BTreeMap;

use super::Dialect;
use super::parse::{Event, Parser, Properties};
use super::scan::{Fault, Mark, ScalarStyle};

/// How deeply lists and objects may be nested, including those from aliases.
pub const MAX_DEPTH: usize = 500;

/// A number of a node.
pub(super) type NodeId = usize;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    /// The full name of the tag.
    pub(super) tag: Option<String>,
    pub(super) mark: Mark,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Scalar(String, ScalarStyle),
    List(Vec<NodeId>),
    Map(Vec<(NodeId, NodeId)>),
    Alias(String, NodeId),
}

/// Why a document could not be composed.
#[derive(Clone, Debug)]
pub(super) enum Broken {
    Syntax(Fault),
    UnknownAnchor(String, Mark),
    TooDeep(Mark),
}

/// The nodes of the first document of a text.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    root: NodeId,
}

/// A collection that is still open.
struct Open {
    id: NodeId,
    /// The key whose value comes next.
    key: Option<NodeId>,
}

impl Tree {
    /// Reads the first document. A text without any has no tree.
    ///
    /// What follows the document is not read, except that one token is looked at.
    pub(super) fn read(text: &[u8], dialect: Dialect) -> Result<Option<Self>, Broken> {
        let mut parser = Parser::new(text, dialect);
        let mut tree = Self { nodes: Vec::new(), root: 0 };
        let mut anchors: BTreeMap<String, NodeId> = BTreeMap::new();
        let mut open: Vec<Open> = Vec::new();
        loop {
            let (event, mark) = parser.next().map_err(Broken::Syntax)?;
            let (content, properties) = match event {
                Event::StreamStart | Event::DocumentStart => continue,
                Event::StreamEnd => return Ok(None),
                Event::DocumentEnd => return Ok(Some(tree)),
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    continue;
                }
                Event::Alias(name) => match anchors.get(&name) {
                    Some(id) => (Content::Alias(name, *id), Properties::default()),
                    None => return Err(Broken::UnknownAnchor(name, mark)),
                },
                Event::Scalar { text, style, properties } => {
                    (Content::Scalar(text, style), properties)
                }
                Event::SequenceStart(properties) => (Content::List(Vec::new()), properties),
                Event::MappingStart(properties) => (Content::Map(Vec::new()), properties),
            };
            let id = tree.nodes.len();
            let opens = matches!(content, Content::List(_) | Content::Map(_));
            tree.nodes.push(Node { content, tag: properties.tag, mark });
            if let Some(anchor) = properties.anchor {
                anchors.insert(anchor, id);
            }
            tree.attach(open.last_mut(), id);
            if opens {
                if open.len() >= MAX_DEPTH {
                    return Err(Broken::TooDeep(mark));
                }
                open.push(Open { id, key: None });
            }
        }
    }

    fn attach(&mut self, parent: Option<&mut Open>, id: NodeId) {
        let Some(parent) = parent else {
            self.root = id;
            return;
        };
        match self.nodes.get_mut(parent.id).map(|node| &mut node.content) {
            Some(Content::List(items)) => items.push(id),
            Some(Content::Map(entries)) => match parent.key.take() {
                Some(key) => entries.push((key, id)),
                None => parent.key = Some(id),
            },
            _ => {}
        }
    }

    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// The node that an alias stands for, or the node itself.
    pub(super) fn target(&self, id: NodeId) -> Option<&Node> {
        match self.node(id)? {
            Node { content: Content::Alias(_, target), .. } => self.node(*target),
            node => Some(node),
        }
    }
}
