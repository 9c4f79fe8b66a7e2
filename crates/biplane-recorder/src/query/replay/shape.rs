//! What an answer differs in, without the names of resources and the positions in lists. Answers with
//! the same shape most likely differ for the same reason.

use std::collections::BTreeSet;

use super::super::answer::{FieldItem, Replay, Sign, SlotItem};
use crate::query::sentence;

/// The shape of a difference, a line for each kind of it. Empty if nothing differs.
pub fn shape(replay: &Replay) -> Vec<String> {
    let mut lines = BTreeSet::new();
    if !replay.differs {
        return Vec::new();
    }
    if let Some(error) = &replay.error {
        lines.insert(format!("! the call fails: {}", sentence::first_line(error)));
    }
    for slot in &replay.resources {
        of_slot(slot, &mut lines);
    }
    for field in &replay.fields {
        lines.insert(line(field, None));
    }
    if lines.is_empty() {
        lines.insert("! it answers now and did not before".to_owned());
    }
    lines.into_iter().collect()
}

fn of_slot(slot: &SlotItem, lines: &mut BTreeSet<String>) {
    let kind = match (slot.resource.as_str(), slot.object.kind.as_str()) {
        ("", _) => "composite",
        (_, "") => "resource",
        (_, kind) => kind,
    };
    if matches!(slot.change, Sign::Added | Sign::Removed) {
        lines.insert(format!("{} {kind}", slot.change.mark()));
        return;
    }
    lines.extend(slot.own_fields().map(|field| line(field, Some(kind))));
    if slot.ready.is_some() {
        lines.insert(format!("~ {kind} ready"));
    }
    for key in &slot.connection_details {
        lines.insert(format!("{} {kind} connection detail {}", key.change.mark(), key.path));
    }
}

fn line(field: &FieldItem, kind: Option<&str>) -> String {
    let (mark, path) = (field.change.mark(), general(&field.path));
    match kind {
        Some(kind) => format!("{mark} {kind} {path}"),
        None => format!("{mark} {path}"),
    }
}

/// A path in which every item of a list is `[*]`.
fn general(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('[') {
        let (inside, behind) = after.split_once(']').unwrap_or((after, ""));
        let is_number = !inside.is_empty() && inside.bytes().all(|b| b.is_ascii_digit());
        let inside = if is_number || inside.contains('=') { "*" } else { inside };
        out.extend([before, "[", inside, "]"]);
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_lists_are_all_the_same() {
        for (path, want) in [
            ("spec.rules[name=expire].days", "spec.rules[*].days"),
            ("a[0].b[12]", "a[*].b[*]"),
            ("metadata.annotations[a.b/c]", "metadata.annotations[a.b/c]"),
            ("spec.region", "spec.region"),
            ("[", "[]"),
        ] {
            assert_eq!(general(path), want);
        }
    }

    #[test]
    fn names_of_resources_do_not_matter() {
        let field = |path: &str| FieldItem { path: path.to_owned(), ..FieldItem::default() };
        let changed = |name: &str, path: &str| SlotItem {
            resource: name.to_owned(),
            object: crate::query::record::ObjectRef { kind: "Bucket".into(), ..Default::default() },
            fields: vec![field(path)],
            ..SlotItem::default()
        };
        let differs =
            |resources: Vec<SlotItem>| Replay { differs: true, resources, ..Replay::default() };
        let one = shape(&differs(vec![changed("a", "spec.rules[0].days")]));
        assert_eq!(one, ["~ Bucket spec.rules[*].days"]);
        let two =
            differs(vec![changed("b", "spec.rules[1].days"), changed("c", "spec.rules[9].days")]);
        assert_eq!(shape(&two), one);
        assert_ne!(shape(&differs(vec![changed("a", "spec.region")])), one);
        assert_eq!(shape(&Replay::default()), Vec::<String>::new());
        let failed =
            Replay { differs: true, error: Some("refused\nagain".into()), ..Replay::default() };
        assert_eq!(shape(&failed), ["! the call fails: refused"]);
    }
}
