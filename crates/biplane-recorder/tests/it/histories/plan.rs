//! What the functions of a history do: they add, change and remove resources and fields.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::story::Dice;

/// The steps of the pipeline.
pub(super) const STEPS: [&str; 3] = ["compose", "adjust", "finish"];

/// Names of resources; the empty one is the composite resource.
const SLOTS: [&str; 5] = ["", "a", "b", "c", "d"];

/// Plain values of a resource by their paths.
pub(super) type Leaves = BTreeMap<String, Value>;

/// What is desired: resources by name.
pub(super) type State = BTreeMap<String, Leaves>;

/// Something that a function does.
#[derive(Clone, Debug)]
enum Edit {
    Add(String),
    Remove(String),
    Set(String, String, Value),
    /// The value is that of a field of the composite resource.
    Copy(String, String),
    Unset(String, String),
}

/// How a call, or a run, ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ending {
    #[default]
    Ok,
    Warning,
    Fatal,
    Error,
}

impl Ending {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fatal => "fatal",
            Self::Error => "error",
        }
    }

    pub(super) fn is_success(self) -> bool {
        matches!(self, Self::Ok | Self::Warning)
    }
}

/// What the functions do in the next run.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    edits: BTreeMap<usize, Vec<Edit>>,
    /// The step that does not end well, and how it ends.
    bad: Option<(usize, Ending)>,
}

fn slot(dice: &mut Dice) -> String {
    SLOTS[dice.roll(5) as usize].to_owned()
}

/// A path below `spec`, or below `status` of the composite resource.
fn path(dice: &mut Dice, slot: &str) -> String {
    let top = if slot.is_empty() { "status" } else { "spec" };
    let field = ["size", "region", "deep.er.still"][dice.roll(3) as usize];
    match dice.roll(3) {
        // An item of a list that has names.
        0 => format!("{top}.rules[name=r{}].days", dice.roll(3)),
        _ => format!("{top}.{field}"),
    }
}

impl Plan {
    /// The functions do something else from now on.
    pub(super) fn change(&mut self, dice: &mut Dice) {
        let step = dice.roll(3) as usize;
        let mut edits = Vec::new();
        for _ in 0..=dice.roll(6) {
            let slot = slot(dice);
            let path = path(dice, &slot);
            edits.push(match dice.roll(9) {
                0 | 1 => Edit::Add(slot),
                2 => Edit::Remove(slot),
                3 => Edit::Unset(slot, path),
                4 => Edit::Copy(slot, path),
                5 => Edit::Set(slot, path, json!(format!("text {}", dice.roll(3)))),
                _ => Edit::Set(slot, path, json!(dice.roll(4))),
            });
        }
        self.edits.insert(step, edits);
    }

    /// Whether a function fails in the next run.
    pub(super) fn endings(&mut self, dice: &mut Dice) {
        self.bad = None;
        if dice.roll(5) == 0 {
            let ending = [Ending::Warning, Ending::Fatal, Ending::Error][dice.roll(3) as usize];
            self.bad = Some((dice.roll(3) as usize, ending));
        }
    }

    pub(super) fn ending(&self, step: usize) -> Ending {
        self.bad.filter(|(at, _)| *at == step).map(|(_, ending)| ending).unwrap_or_default()
    }

    /// What a function makes of what is desired.
    pub(super) fn apply(&self, step: usize, mut state: State, size: &Value) -> State {
        for edit in self.edits.get(&step).into_iter().flatten() {
            match edit {
                Edit::Add(slot) => drop(state.entry(slot.clone()).or_insert_with(|| new(slot))),
                Edit::Remove(slot) => drop(state.remove(slot)),
                Edit::Set(slot, path, value) => {
                    set(state.entry(slot.clone()).or_insert_with(|| new(slot)), path, value);
                }
                Edit::Copy(slot, path) => {
                    if let Some(leaves) = state.get_mut(slot) {
                        set(leaves, path, size);
                    }
                }
                Edit::Unset(slot, path) => {
                    if let Some(leaves) = state.get_mut(slot) {
                        leaves.remove(path);
                        // What is left of an item goes with its only field.
                        if let Some((item, _)) = path.rsplit_once("].") {
                            leaves.retain(|path, _| !path.starts_with(item));
                        }
                    }
                }
            }
        }
        state
    }
}

/// Sets a value. An item of a list also has its name.
fn set(leaves: &mut Leaves, path: &str, value: &Value) {
    if let Some((item, _)) = path.split_once("].")
        && let Some((_, name)) = item.split_once("[name=")
    {
        leaves.insert(format!("{item}].name"), json!(name));
    }
    leaves.insert(path.to_owned(), value.clone());
}

fn new(slot: &str) -> Leaves {
    let kind = if slot.is_empty() { "Thing" } else { "Part" };
    let fields = [("apiVersion", json!(super::VERSION)), ("kind", json!(kind))];
    fields.map(|(path, value)| (path.to_owned(), value)).into()
}
