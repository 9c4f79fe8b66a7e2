//! Decodes the nodes of a document like the two versions of go-yaml.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use biplane_go::fmt::quote;

use super::Dialect;
use super::compose::{Content, MAX_DEPTH, Node, NodeId, Tree};
use super::data::Data;
use super::error::Problem;
use super::resolve::{self, Meaning, Tag};
use super::scan::{Mark, ScalarStyle};
use crate::Value;

const CORE_TAGS: &str = "tag:yaml.org,2002:";

/// A key of an object.
#[derive(Debug)]
pub(super) enum Key {
    Name(String),
    /// `<<`: the entries of the value become entries of this object.
    Merge,
}

/// The value of a plain scalar without a tag.
pub(super) fn plain_value(text: &str) -> Option<Value> {
    plain(text, Dialect::V2).into_json().ok()
}

/// A plain scalar without a tag as a key.
pub(super) fn plain_key(text: &str) -> Option<Key> {
    if text == "<<" {
        return Some(Key::Merge);
    }
    plain(text, Dialect::V2).into_json_key().map(Key::Name)
}

fn plain(text: &str, dialect: Dialect) -> Data {
    meant(resolve::meaning_in(text, dialect), Cow::Borrowed(text), dialect)
}

/// The value of a scalar with this meaning.
fn meant(meaning: Meaning, text: Cow<'_, str>, dialect: Dialect) -> Data {
    match meaning {
        Meaning::Null => Data::Null,
        Meaning::Bool(truth) => Data::Bool(truth),
        Meaning::Int(whole) => Data::Int(whole),
        Meaning::Uint(whole) => Data::Uint(whole),
        Meaning::Float(float) => Data::Float(float),
        Meaning::Timestamp if dialect == Dialect::V3 => Data::Time(text.into_owned()),
        Meaning::Timestamp | Meaning::Text => Data::Text(text.into_owned()),
    }
}

/// Why a document cannot be decoded.
#[derive(Debug)]
pub(super) struct Undecodable {
    pub(super) problem: Problem,
    /// go-yaml's message.
    pub(super) words: String,
    pub(super) mark: Mark,
}

/// What else is known about a decoded document.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    /// Keys that are given twice, in the words of the newer version.
    pub(super) duplicates: Vec<String>,
    /// The first key that cannot be a key of a JSON object.
    pub(super) bad_key: Option<Mark>,
    /// The first number that JSON cannot hold, and how it is written.
    pub(super) not_finite: Option<(Mark, String)>,
}

/// Decodes a document.
pub(super) fn decode(tree: &Tree, dialect: Dialect) -> Result<(Data, Remarks), Undecodable> {
    let mut decoder = Decoder {
        tree,
        dialect,
        expanding: BTreeSet::new(),
        decoded: 0,
        aliased: 0,
        copied_bytes: 0,
        remarks: Remarks::default(),
    };
    let data = decoder.value(tree.root(), 0)?;
    Ok((data, decoder.remarks))
}

struct Decoder<'tree> {
    tree: &'tree Tree,
    dialect: Dialect,
    /// The aliases whose value is being decoded.
    expanding: BTreeSet<NodeId>,
    decoded: usize,
    /// How many nodes were decoded for an alias.
    aliased: usize,
    copied_bytes: usize,
    remarks: Remarks,
}

/// The entries of an object while it is decoded. The latest of equal keys counts.
#[derive(Default)]
struct Entries {
    list: Vec<(Data, Data)>,
    places: BTreeMap<String, usize>,
}

impl Entries {
    fn put(&mut self, key: Data, value: Data) {
        let identity = key.identity();
        let place = self.places.get(&identity);
        if let Some(entry) = place.and_then(|place| self.list.get_mut(*place)) {
            entry.1 = value;
        } else {
            self.places.insert(identity, self.list.len());
            self.list.push((key, value));
        }
    }
}

/// The limit for the values of aliases: strings, and an estimate of the overhead of each node.
const MAX_COPIED_BYTES: usize = 256 << 20;
const NODE_BYTES: usize = 64;

impl<'tree> Decoder<'tree> {
    fn value(&mut self, id: NodeId, depth: usize) -> Result<Data, Undecodable> {
        let tree = self.tree;
        let Some(node) = tree.node(id) else { return Ok(Data::Null) };
        self.count(node)?;
        let is_scalar = matches!(node.content, Content::Scalar(..));
        if depth >= MAX_DEPTH && !is_scalar {
            return Err(plain_problem(Problem::TooDeep(MAX_DEPTH), node.mark));
        }
        match &node.content {
            Content::Scalar(text, style) => self.scalar(node, text, *style),
            Content::List(items) => {
                let items = items.iter().map(|item| self.value(*item, depth + 1));
                items.collect::<Result<_, _>>().map(Data::List)
            }
            Content::Map(entries) => match self.dialect {
                Dialect::V2 => {
                    let mut out = Entries::default();
                    self.map_into(entries, &mut out, depth)?;
                    Ok(Data::Map(out.list))
                }
                Dialect::V3 => self.unique_map(entries, depth),
            },
            Content::Alias(name, target) => {
                if !self.expanding.insert(id) {
                    return Err(plain_problem(Problem::AliasOfItself(name.clone()), node.mark));
                }
                let value = self.value(*target, depth);
                self.expanding.remove(&id);
                value
            }
        }
    }

    /// Counts like go-yaml, so that the same documents are refused.
    fn count(&mut self, node: &Node) -> Result<(), Undecodable> {
        self.decoded += 1;
        if self.expanding.is_empty() {
            return Ok(());
        }
        self.aliased += 1;
        let bytes = if let Content::Scalar(text, _) = &node.content { text.len() } else { 0 };
        self.copied_bytes += bytes + NODE_BYTES;
        let share = self.aliased as f64 / self.decoded as f64;
        let many = self.aliased > 100 && self.decoded > 1000;
        if (many && share > allowed_share(self.decoded)) || self.copied_bytes > MAX_COPIED_BYTES {
            return Err(plain_problem(Problem::ExcessiveAliasing, node.mark));
        }
        Ok(())
    }

    fn scalar(&mut self, node: &Node, text: &str, style: ScalarStyle) -> Result<Data, Undecodable> {
        let tag = node.tag.as_deref().filter(|tag| self.dialect == Dialect::V2 || *tag != "!");
        let located = |problem: Problem| plain_problem(problem, node.mark);
        let data = match tag.map(|tag| Tag::named(tag.strip_prefix(CORE_TAGS))) {
            None if style == ScalarStyle::Plain => plain(text, self.dialect),
            None => Data::Text(text.to_owned()),
            Some(Tag::Binary) => {
                let bytes = resolve::binary(text).map_err(located)?;
                String::from_utf8(bytes)
                    .map_or_else(|error| Data::Bytes(error.into_bytes()), Data::Text)
            }
            Some(tag) => {
                let meaning = resolve::tagged(tag, text, self.dialect).map_err(located)?;
                meant(meaning, Cow::Borrowed(text), self.dialect)
            }
        };
        if let Data::Float(float) = data
            && !float.is_finite()
        {
            self.remarks.not_finite.get_or_insert_with(|| (node.mark, text.to_owned()));
        }
        Ok(data)
    }

    fn key(&mut self, id: NodeId, depth: usize) -> Result<Data, Undecodable> {
        let floats = self.remarks.not_finite.clone();
        let key = self.value(id, depth + 1)?;
        // Such numbers may be keys.
        self.remarks.not_finite = floats;
        let mark = self.tree.node(id).map(|node| node.mark).unwrap_or_default();
        let what = match &key {
            Data::List(_) => "a list",
            Data::Map(_) => "an object",
            _ => {
                if matches!(key, Data::Null | Data::Uint(_)) {
                    self.remarks.bad_key.get_or_insert(mark);
                }
                return Ok(key);
            }
        };
        let shown = key.go_syntax(self.dialect);
        let (problem, words) = (Problem::UnsupportedKey(what), format!("invalid map key: {shown}"));
        Err(Undecodable { problem, words, mark })
    }

    /// Adds entries. A merge key adds its entries where it stands.
    fn map_into(
        &mut self,
        entries: &[(NodeId, NodeId)],
        out: &mut Entries,
        depth: usize,
    ) -> Result<(), Undecodable> {
        for (key, value) in entries {
            if self.is_merge(*key) {
                // If there are several sources, the first one wins.
                for source in self.merge_sources(*value)?.into_iter().rev() {
                    self.merged(source, depth, |decoder, entries| {
                        decoder.map_into(entries, out, depth + 1)
                    })?;
                }
                continue;
            }
            let key = self.key(*key, depth)?;
            let value = self.value(*value, depth + 1)?;
            out.put(key, value);
        }
        Ok(())
    }

    /// Decodes an object in which every key may occur once, and in which own keys win over merged
    /// ones.
    fn unique_map(
        &mut self,
        entries: &[(NodeId, NodeId)],
        depth: usize,
    ) -> Result<Data, Undecodable> {
        if self.finds_duplicates(entries) {
            return Ok(Data::Null);
        }
        let mut out = Entries::default();
        let merge = self.own_entries(entries, &mut out, depth, &mut BTreeSet::new(), false)?;
        if let Some(merge) = merge {
            let mut seen: BTreeSet<String> = out.places.keys().cloned().collect();
            self.merge_into(merge, &mut out, depth, &mut seen)?;
        }
        Ok(Data::Map(out.list))
    }

    /// Adds entries that were not seen before. Returns the value of the last merge key.
    fn own_entries(
        &mut self,
        entries: &[(NodeId, NodeId)],
        out: &mut Entries,
        depth: usize,
        seen: &mut BTreeSet<String>,
        merging: bool,
    ) -> Result<Option<NodeId>, Undecodable> {
        let mut merge = None;
        for (key, value) in entries {
            if self.is_merge(*key) {
                merge = Some(*value);
                continue;
            }
            let key = self.key(*key, depth)?;
            if merging && !seen.insert(key.identity()) {
                continue;
            }
            let value = self.value(*value, depth + 1)?;
            out.put(key, value);
        }
        Ok(merge)
    }

    fn merge_into(
        &mut self,
        merge: NodeId,
        out: &mut Entries,
        depth: usize,
        seen: &mut BTreeSet<String>,
    ) -> Result<(), Undecodable> {
        if depth > MAX_DEPTH {
            return Ok(());
        }
        for source in self.merge_sources(merge)? {
            self.merged(source, depth, |decoder, entries| {
                if decoder.finds_duplicates(entries) {
                    return Ok(());
                }
                let inner = decoder.own_entries(entries, out, depth, seen, true)?;
                match inner {
                    Some(inner) => decoder.merge_into(inner, out, depth + 1, seen),
                    None => Ok(()),
                }
            })?;
        }
        Ok(())
    }

    /// Works on the entries of an object, or of the object that an alias stands for.
    fn merged(
        &mut self,
        source: NodeId,
        depth: usize,
        work: impl FnOnce(&mut Self, &'tree [(NodeId, NodeId)]) -> Result<(), Undecodable>,
    ) -> Result<(), Undecodable> {
        let tree = self.tree;
        let Some(node) = tree.node(source) else { return Ok(()) };
        if depth > MAX_DEPTH {
            return Err(plain_problem(Problem::TooDeep(MAX_DEPTH), node.mark));
        }
        self.count(node)?;
        match &node.content {
            Content::Map(entries) => work(self, entries),
            Content::Alias(name, target) => {
                if !self.expanding.insert(source) {
                    return Err(plain_problem(Problem::AliasOfItself(name.clone()), node.mark));
                }
                let done = match tree.node(*target).map(|node| &node.content) {
                    Some(Content::Map(entries)) => work(self, entries),
                    _ => Ok(()),
                };
                self.expanding.remove(&source);
                done
            }
            _ => Ok(()),
        }
    }

    /// The objects that a merge key names.
    fn merge_sources(&self, value: NodeId) -> Result<Vec<NodeId>, Undecodable> {
        let tree = self.tree;
        let is_map =
            |id: NodeId| matches!(tree.target(id), Some(Node { content: Content::Map(_), .. }));
        let sources = match tree.node(value).map(|node| &node.content) {
            Some(Content::List(items)) => items.clone(),
            _ => vec![value],
        };
        match sources.iter().find(|id| !is_map(**id)) {
            Some(wrong) => {
                let mark = tree.node(*wrong).map(|node| node.mark).unwrap_or_default();
                Err(plain_problem(Problem::MergeWantsMap, mark))
            }
            None => Ok(sources),
        }
    }

    fn is_merge(&self, key: NodeId) -> bool {
        let Some(Node { content: Content::Scalar(text, style), tag, .. }) = self.tree.node(key)
        else {
            return false;
        };
        let tagged = match tag.as_deref() {
            None => *style == ScalarStyle::Plain,
            Some("!") => true,
            Some(tag) => tag.strip_prefix(CORE_TAGS) == Some("merge"),
        };
        text == "<<" && tagged
    }

    /// Notes the keys that are given twice.
    fn finds_duplicates(&mut self, entries: &[(NodeId, NodeId)]) -> bool {
        let mut groups: BTreeMap<(u8, &str), Vec<&Node>> = BTreeMap::new();
        let tree = self.tree;
        let mut order = Vec::new();
        for (key, _) in entries {
            let Some(node) = tree.node(*key) else { continue };
            let group = match &node.content {
                Content::Scalar(text, _) => (0, text.as_str()),
                Content::List(_) => (1, ""),
                Content::Map(_) => (2, ""),
                Content::Alias(name, _) => (3, name.as_str()),
            };
            let nodes = groups.entry(group).or_default();
            order.push((group, nodes.len()));
            nodes.push(node);
        }
        let before = self.remarks.duplicates.len();
        for (group, place) in order {
            let Some([first, later @ ..]) = groups.get(&group).and_then(|g| g.get(place..)) else {
                continue;
            };
            for node in later {
                let (line, first) = (node.mark.line + 1, first.mark.line + 1);
                let key = quote(group.1);
                let text =
                    format!("line {line}: mapping key {key} already defined at line {first}");
                self.remarks.duplicates.push(text);
            }
        }
        self.remarks.duplicates.len() > before
    }
}

/// A problem that go-yaml describes in our words.
fn plain_problem(problem: Problem, mark: Mark) -> Undecodable {
    let words = problem.to_string();
    Undecodable { problem, words, mark }
}

/// Small documents may consist almost only of aliases, very large ones may have few.
fn allowed_share(nodes: usize) -> f64 {
    const SMALL: f64 = 400_000.0;
    const LARGE: f64 = 4_000_000.0;
    let grown = ((nodes as f64 - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
    0.99 - 0.89 * grown
}
