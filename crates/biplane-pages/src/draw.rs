//! Draws differences and blame as HTML, by their structure.
//!
//! Objects and lists are drawn as they are now. Each value that differs has a line with a sign, its
//! path, and the value before and after. What did not change is folded and counted.

mod blame;
mod holders;
mod tree;
mod value;
mod window;

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use biplane_recorder::query::answer::{FieldItem, Sign, StepRef};
use biplane_recorder::query::difference::{self, Difference};
use biplane_recorder::query::path::Path;
use biplane_recorder::query::record::ObjectRef;
use biplane_recorder::query::state::{self, SlotChange};
use maud::{Markup, html};
use serde_json::{Map, Value};

pub use self::blame::{blame, stamp};
pub use self::holders::{Holder, Holders};
pub use self::tree::Mark;
use self::tree::{Fold, Group, Line, Part, Tree, is_position, label};
pub use self::value::chip;
pub use self::window::Limits;
use self::window::{Room, SECTION, measure};

/// The style of what is drawn here. It uses the variables of `tokens`.
pub const CSS: &str = include_str!("draw/style.css");

/// How many resources that did not change are named.
pub const NAMED: usize = 200;

/// What a drawing needs from its page.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// Where values stood in the input of the step.
    pub holders: Option<&'a Holders>,
    /// Which step set each field.
    pub stamps: Option<&'a Stamps<'a>>,
    /// How much is compared and drawn.
    pub limits: Limits,
    /// The first line of the page: how many were on the pages before.
    pub from: usize,
    /// The address of the page that begins with a line.
    pub next: &'a dyn Fn(usize) -> String,
    /// Whether the time for comparing is over.
    pub is_late: &'a dyn Fn() -> bool,
    /// What is said if nothing differs.
    pub nothing: &'a str,
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Self {
            holders: None,
            stamps: None,
            limits: Limits::default(),
            from: 0,
            next: &|_| String::new(),
            is_late: &|| false,
            nothing: "Nothing differs.",
        }
    }
}

impl fmt::Debug for Setting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The steps that set the fields of a resource, by path.
pub type SetBy = BTreeMap<String, StepRef>;

/// The step that set each field of a run's resources. Asked for a resource when it is drawn.
pub struct Stamps<'a> {
    read: Box<dyn Fn(&str) -> SetBy + 'a>,
    known: RefCell<BTreeMap<String, SetBy>>,
}

impl<'a> Stamps<'a> {
    /// Stamps that are read for one resource after the other.
    pub fn new(read: impl Fn(&str) -> SetBy + 'a) -> Self {
        Self { read: Box::new(read), known: RefCell::default() }
    }

    fn get(&self, resource: &str, path: &str) -> Option<StepRef> {
        let mut known = self.known.borrow_mut();
        if !known.contains_key(resource) {
            known.insert(resource.to_owned(), (self.read)(resource));
        }
        known.get(resource)?.get(path).cloned()
    }
}

impl fmt::Debug for Stamps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stamps").field("known", &self.known).finish_non_exhaustive()
    }
}

/// What two states of an owner differ in: its composite resource and its composed resources.
pub fn states(before: Option<&Value>, after: Option<&Value>, setting: &Setting<'_>) -> Markup {
    drawn(&compared(before, after, &[], setting), setting)
}

/// What a step made of what it was given: desired resources and context.
pub fn step(request: &Value, response: &Value, setting: &Setting<'_>) -> Markup {
    let holders = Holders::of_request(request);
    let nothing = "This step returned what it was given.";
    let holders = setting.holders.or(Some(&holders));
    let setting = Setting { holders, nothing, ..*setting };
    let context = [("context", request.get("context"), response.get("context"))];
    let found = compared(request.get("desired"), response.get("desired"), &context, &setting);
    drawn(&found, &setting)
}

/// What two documents differ in.
pub fn documents(title: &str, before: &Value, after: &Value, setting: &Setting<'_>) -> Markup {
    let documents = [(title, Some(before), Some(after))];
    drawn(&compared(None, None, &documents, setting), setting)
}

/// Fields that differ, one a line.
pub fn fields(fields: &[FieldItem], setting: &Setting<'_>) -> Markup {
    let (hidden, shown): (Vec<_>, Vec<_>) = fields.iter().partition(|field| field.bookkeeping);
    html! {
        ul class="diff" {
            @for item in shown.iter().take(setting.limits.lines) { (field(item)) }
            @if shown.len() > setting.limits.lines {
                li class="fold" { (shown.len() - setting.limits.lines) " more" }
            }
        }
        @if !hidden.is_empty() {
            details class="bookkeeping" {
                summary { (counted(hidden.len(), "bookkeeping change")) }
                ul class="diff" {
                    @for item in hidden.iter().take(setting.limits.lines) { (field(item)) }
                }
            }
        }
    }
}

/// One field that differs.
pub fn field(item: &FieldItem) -> Markup {
    let mark = match item.change {
        Sign::Added => Mark::Added,
        Sign::Removed => Mark::Removed,
        Sign::Changed => Mark::Changed,
        Sign::Moved => Mark::Moved,
        Sign::Unchanged => Mark::Same,
    };
    let moved = item.from.zip(item.to).filter(|_| mark == Mark::Moved);
    html! {
        li class={ "l " (class(mark)) } data-path=(item.path) {
            (sign(mark))
            span class="field" { (item.path) } " "
            (positions(moved, None))
            (values(mark, item.before.as_ref(), item.after.as_ref()))
        }
    }
}

/// The sign of a difference, with the word for it.
pub fn sign(mark: Mark) -> Markup {
    let (sign, word) = match mark {
        Mark::Added => ("+", "added"),
        Mark::Removed => ("−", "removed"),
        Mark::Changed => ("~", "changed"),
        Mark::Moved => ("↕", "moved"),
        Mark::Unknown => ("?", "redacted"),
        Mark::Same => ("", ""),
    };
    html! {
        span class="sign" aria-hidden="true" { (sign) }
        @if !word.is_empty() { span class="hidden" { (word) " " } }
    }
}

fn class(mark: Mark) -> &'static str {
    match mark {
        Mark::Added => "added",
        Mark::Removed => "removed",
        Mark::Changed => "changed",
        Mark::Moved => "moved",
        Mark::Unknown => "unknown",
        Mark::Same => "same",
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// One slot or document in two states.
struct Found<'a> {
    name: &'a str,
    /// Whether it is a resource of the owner.
    is_slot: bool,
    object: ObjectRef,
    change: SlotChange,
    before: &'a Value,
    after: &'a Value,
    body: Difference,
    ready: Option<(String, String)>,
    connection: Vec<(String, bool)>,
}

type Document<'a> = (&'a str, Option<&'a Value>, Option<&'a Value>);

/// Compares until the values or the time are used up. Then resources are compared as a whole.
fn compared<'a>(
    before: Option<&'a Value>,
    after: Option<&'a Value>,
    documents: &[Document<'a>],
    setting: &Setting<'_>,
) -> Vec<Found<'a>> {
    let mut nodes = setting.limits.nodes;
    let mut all = Vec::new();
    for (name, (before, after)) in state::pairs(before, after) {
        nodes = if (setting.is_late)() { 0 } else { nodes };
        let found = state::one(name, before, after, &mut nodes);
        all.push(Found {
            name,
            is_slot: true,
            object: found.object,
            change: found.change,
            before: before.map_or(&Value::Null, state::body),
            after: after.map_or(&Value::Null, state::body),
            body: found.body,
            ready: found.ready,
            connection: found.connection,
        });
    }
    for &(name, before, after) in documents {
        let (before, after) = (before.unwrap_or(&EMPTY), after.unwrap_or(&EMPTY));
        nodes = if (setting.is_late)() { 0 } else { nodes };
        let body = difference::within(before, after, &mut nodes);
        let change = if body.is_empty() { SlotChange::Unchanged } else { SlotChange::Changed };
        all.push(Found {
            name,
            is_slot: false,
            object: ObjectRef::default(),
            change,
            before,
            after,
            body,
            ready: None,
            connection: Vec::new(),
        });
    }
    all
}

/// An absent message and an empty one mean the same.
static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

impl Found<'_> {
    /// The document, if only one side has it.
    fn whole(&self) -> Option<&Value> {
        match self.change {
            SlotChange::Added => Some(self.after),
            SlotChange::Removed => Some(self.before),
            SlotChange::Changed | SlotChange::Unchanged => None,
        }
    }

    /// About how many lines it has with what did not change, and rather fewer than more.
    fn lines(&self) -> usize {
        let is_told = |change: &difference::Change| !change.path.is_bookkeeping();
        match self.whole() {
            Some(whole) => tree::lines(whole),
            None if self.body.changes.iter().any(is_told) => tree::lines(self.after),
            None => 1,
        }
    }
}

/// What is drawn of a slot or document.
struct Section<'a> {
    found: &'a Found<'a>,
    mark: Mark,
    /// How many values differ.
    count: OnceCell<usize>,
    /// What is drawn. That of a whole document is made when it is drawn.
    tree: Option<Tree<'a>>,
}

impl<'a> Section<'a> {
    fn of(found: &'a Found<'a>, has_room: bool) -> Self {
        let (mark, tree) = match found.change {
            SlotChange::Added => (Mark::Added, None),
            SlotChange::Removed => (Mark::Removed, None),
            _ if found.body.is_coarse => (Mark::Changed, Some(Tree::default())),
            _ if found.body.is_empty() && found.body.unknown.is_empty() => {
                (Mark::Changed, Some(Tree::default()))
            }
            _ => (Mark::Changed, Some(Tree::of(found.after, &found.body, has_room))),
        };
        let section = Self { found, mark, count: OnceCell::new(), tree };
        let is_same = mark == Mark::Changed && !found.body.is_coarse && section.count() == 0;
        Self { mark: if is_same { Mark::Same } else { mark }, ..section }
    }

    fn count(&self) -> usize {
        *self.count.get_or_init(|| {
            let extra = usize::from(self.found.ready.is_some()) + self.found.connection.len();
            match (&self.tree, self.found.whole()) {
                (Some(tree), _) => tree.count() + extra,
                (None, whole) => whole.map_or(0, tree::lines) + extra,
            }
        })
    }

    /// What is drawn.
    fn into_tree(self) -> Tree<'a> {
        let whole = || match self.mark {
            Mark::Removed => Tree::whole(Mark::Removed, self.found.before),
            _ => Tree::whole(Mark::Added, self.found.after),
        };
        self.tree.unwrap_or_else(whole)
    }

    /// Its lines and bytes with what did not change.
    fn measure(&self) -> (usize, usize) {
        let of_tree = |tree: &Tree<'_>| match tree.parts.as_slice() {
            [] => (1, SECTION),
            parts => measure(parts),
        };
        match (&self.tree, self.found.whole()) {
            (Some(tree), _) => of_tree(tree),
            (None, whole) => of_tree(&Tree::whole(self.mark, whole.unwrap_or(&Value::Null))),
        }
    }

    /// Whether there is anything to show beside bookkeeping.
    fn tells(&self) -> bool {
        self.mark != Mark::Same || !self.found.body.unknown.is_empty()
    }

    fn title(&self) -> &'a str {
        if self.found.name.is_empty() { "composite" } else { self.found.name }
    }

    fn summary(&self) -> String {
        let unknown = self.found.body.unknown.len();
        match self.mark {
            _ if self.found.body.is_coarse => "not compared field by field".to_owned(),
            Mark::Same if unknown > 0 => format!("{unknown} redacted"),
            _ => counted(self.count(), "field"),
        }
    }
}

/// Whether so much differs that what did not change has no room.
fn is_long(found: &[Found<'_>], setting: &Setting<'_>) -> bool {
    let mut left = Some(setting.limits.lines);
    for found in found.iter().filter(|found| found.change != SlotChange::Unchanged) {
        left = left.and_then(|left| left.checked_sub(found.lines()));
        if left.is_none() {
            return true;
        }
    }
    setting.from > 0
}

fn drawn(found: &[Found<'_>], setting: &Setting<'_>) -> Markup {
    let mut is_tight = is_long(found, setting);
    let sections = found.iter().map(|found| Section::of(found, !is_tight));
    let (mut shown, same): (Vec<_>, Vec<_>) = sections.partition(Section::tells);
    // What differs comes first.
    shown.sort_by_key(|section| section.mark == Mark::Same);
    if !is_tight {
        let all = shown.iter().map(Section::measure);
        let (lines, bytes) = all.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        is_tight = lines > setting.limits.lines || bytes > setting.limits.bytes;
    }
    let mut room = Room::new(setting.limits, setting.from, is_tight);
    let is_coarse = shown.iter().any(|section| section.found.body.is_coarse);
    let count = shown.len();
    let named = if setting.from == 0 { NAMED } else { 0 };
    let index: Vec<_> =
        shown.iter().take(named).map(|s| (s.mark, s.title(), s.summary())).collect();
    let drawn: Vec<Markup> = shown
        .into_iter()
        .enumerate()
        .filter_map(|(at, section)| self::section(at, section, setting, &mut room))
        .collect();
    html! {
        @if count == 0 { p class="nothing" { (setting.nothing) } }
        @if is_coarse {
            p class="limit" {
                "There is too much to compare in time. Some resources are compared as a whole."
            }
        }
        @if setting.from > 0 {
            p class="limit" { "Continued: the first " (setting.from) " lines are on the pages before." }
        } @else if count > 1 {
            nav class="contents" aria-label="What differs" {
                ul {
                    @for (at, (mark, title, summary)) in index.iter().enumerate() {
                        li class=(class(*mark)) {
                            a href={ "#d" (at + 1) } { (sign(*mark)) (title) }
                            " " span class="count" { (summary) }
                        }
                    }
                    @if count > NAMED { li { (count - NAMED) " more" } }
                }
            }
        }
        @for section in drawn { (section) }
        @if room.is_cut {
            p class="limit" {
                a class="next" href=((setting.next)(setting.from + room.drawn())) {
                    "Continue after " (setting.from + room.drawn()) " lines"
                }
            }
        }
        (unchanged(&same))
    }
}

fn unchanged(same: &[Section<'_>]) -> Markup {
    let resources: Vec<_> = same.iter().filter(|section| section.found.is_slot).collect();
    html! {
        @if !resources.is_empty() {
            details class="unchanged" {
                summary { (counted(resources.len(), "unchanged resource")) }
                ul {
                    @for section in resources.iter().take(NAMED) {
                        li {
                            (section.title()) " "
                            span class="kind" { (section.found.object.kind) }
                            @let hidden = section.tree.as_ref().map_or(0, |tree| tree.bookkeeping.len());
                            @if hidden > 0 {
                                " " span class="note" { (counted(hidden, "bookkeeping change")) }
                            }
                        }
                    }
                    @if resources.len() > NAMED { li { (resources.len() - NAMED) " more" } }
                }
            }
        }
    }
}

/// Draws a section, unless all of it is on another page.
fn section(
    at: usize,
    section: Section<'_>,
    setting: &Setting<'_>,
    room: &mut Room,
) -> Option<Markup> {
    // A page that is full only knows that there is more.
    let is_over = room.is_tight && room.is_cut;
    if is_over || (section.tree.is_none() && section.count() > 0 && room.passes(section.count())) {
        return None;
    }
    let (title, summary, found, mark) =
        (section.title(), section.summary(), section.found, section.mark);
    let tree = section.into_tree();
    // What has no lines is one.
    let was_empty = tree.parts.is_empty();
    if was_empty && !room.takes(SECTION) {
        return None;
    }
    let parts = room.parts(tree.parts);
    let bookkeeping = if room.is_tight { Vec::new() } else { room.lines(tree.bookkeeping.clone()) };
    let is_elsewhere = parts.iter().all(|part| matches!(part, Part::Fold(_)));
    if is_elsewhere && room.is_tight && !was_empty {
        return None;
    }
    if !was_empty {
        room.spend(SECTION);
    }
    let pen = Pen { setting, resource: found.name };
    let object = &found.object;
    Some(html! {
        section class={ "drawn " (class(mark)) } id={ "d" (at + 1) } {
            details class="changed" open {
                summary {
                    h3 {
                        (sign(mark)) (title)
                        @if !object.kind.is_empty() {
                            " " span class="kind" {
                                (object.kind) @if !object.name.is_empty() { " " (object.name) }
                            }
                        }
                    }
                    " " span class="count" { (summary) }
                }
                @if found.body.is_coarse {
                    p class="limit" { "It differs. It is too large to be compared field by field." }
                }
                ul class="diff" {
                    @if let Some((before, after)) = &found.ready { (ready(before, after)) }
                    @for (key, is_new) in &found.connection { (connection(key, *is_new)) }
                    @for part in &parts { (pen.part(part)) }
                }
                @if !tree.bookkeeping.is_empty() {
                    details class="bookkeeping" {
                        summary { (counted(tree.bookkeeping.len(), "bookkeeping change")) }
                        ul class="diff" { @for line in &bookkeeping { (pen.line(line)) } }
                    }
                }
            }
        }
    })
}

fn ready(before: &str, after: &str) -> Markup {
    html! {
        li class="l changed" data-path="ready" {
            (sign(Mark::Changed)) span class="field" { "ready" } " "
            (value::change(&html! { (before) }, &html! { (after) }))
        }
    }
}

fn connection(key: &str, is_new: bool) -> Markup {
    let mark = if is_new { Mark::Added } else { Mark::Removed };
    html! {
        li class={ "l " (class(mark)) } {
            (sign(mark)) "connection detail " span class="field" { (key) } " " (chip())
        }
    }
}

/// Draws lines of one resource.
struct Pen<'a> {
    setting: &'a Setting<'a>,
    resource: &'a str,
}

impl Pen<'_> {
    fn part(&self, part: &Part<'_>) -> Markup {
        match part {
            Part::Line(line) => self.line(line),
            Part::Group(group) => self.group(group),
            Part::Fold(fold) => self.fold(fold),
        }
    }

    fn line(&self, line: &Line<'_>) -> Markup {
        let path = line.path.to_string();
        let is_new = matches!(line.mark, Mark::Added | Mark::Changed);
        let now = line.after.filter(|_| is_new);
        let holder = now.and_then(|value| self.setting.holders?.of(value));
        let step = now.and_then(|_| self.setting.stamps?.get(self.resource, &path));
        html! {
            li class={ "l " (class(line.mark)) } data-path=(path) data-change[line.mark != Mark::Same] {
                (sign(line.mark))
                (named(&line.path, line.base, line.moved, line.was))
                @if line.mark == Mark::Unknown {
                    (chip()) " " span class="note" { "whether it differs is unknown" }
                } @else {
                    (values(line.mark, line.before, line.after))
                }
                @if let Some(holder) = holder {
                    " " span class="hint" {
                        "same value: " span class="field" { (holder.document) " " (holder.path) }
                    }
                }
                @if let Some(step) = &step { " " (stamp(step)) }
            }
        }
    }

    fn group(&self, group: &Group<'_>) -> Markup {
        html! {
            li class={ "g " (class(group.mark)) } data-path=(group.path) {
                (sign(group.mark))
                (named(&group.path, group.base, group.moved, group.was))
                @if let Some(keys) = &group.keys { span class="note" { "by " (keys) } " " }
                ul { @for part in &group.parts { (self.part(part)) } }
            }
        }
    }

    fn fold(&self, fold: &Fold<'_>) -> Markup {
        html! {
            li class="fold" {
                @if fold.lines.is_empty() { (fold.count) " unchanged" }
                @else {
                    details {
                        summary { (fold.count) " unchanged" }
                        ul { @for line in &fold.lines { (self.line(line)) } }
                    }
                }
            }
        }
    }
}

/// The name of a line or a group. Items without a name are called by where they were and are.
fn named(path: &Path, base: usize, moved: Option<(usize, usize)>, was: Option<usize>) -> Markup {
    let has_name = !is_position(path, base) || (moved.is_none() && was.is_none());
    html! {
        @if has_name { span class="field" { (label(path, base)) } " " }
        (positions(moved, was))
    }
}

/// Where an item of a list was and is. People count from one.
fn positions(moved: Option<(usize, usize)>, was: Option<usize>) -> Markup {
    html! {
        @if let Some((from, to)) = moved {
            span class="note" { "was item " (from + 1) ", is item " (to + 1) } " "
        } @else if let Some(from) = was {
            span class="note" { "was item " (from + 1) } " "
        }
    }
}

fn values(mark: Mark, before: Option<&Value>, after: Option<&Value>) -> Markup {
    html! {
        span class="v" {
            @match (before, after) {
                (Some(before), Some(after)) => (value::pair(before, after)),
                (Some(before), None) => del { (value::one(before)) },
                (None, Some(after)) if mark == Mark::Added => ins { (value::one(after)) },
                (None, Some(after)) => (value::one(after)),
                (None, None) => {},
            }
        }
    }
}

#[cfg(test)]
mod tests;
