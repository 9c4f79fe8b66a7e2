//! What was found in runs, in words.

use super::super::answer::{Fact, StepRef, WarningDetail, WarningItem, WarningList};
use super::super::archive::{Archive, Error, WarningFilter};
use super::super::record::ObjectRef;
use super::super::time;
use super::{MOST, cursor, mark};
use crate::query::sentence::counted;
use crate::store::rows::{FindingKind, FindingRow};

pub(super) fn list(
    archive: &dyn Archive,
    filter: &WarningFilter,
    limit: usize,
    after: Option<&str>,
) -> Result<WarningList, Error> {
    let limit = limit.clamp(1, MOST);
    let mut rows = archive.warnings(filter, limit + 1, cursor(after)?)?;
    let is_more = rows.len() > limit;
    rows.truncate(limit);
    let more = rows.last().filter(|_| is_more).map(|last| mark(last.last, last.id));
    let warnings: Vec<WarningItem> = rows.iter().map(item).collect();
    let open = warnings.iter().filter(|warning| warning.open).count();
    let sentence = match (warnings.len(), open) {
        (0, _) => "Nothing was found.".to_owned(),
        (all, open) => {
            let all = counted(all, "warning");
            let go = if open == 1 { "goes" } else { "go" };
            format!("{all}{}, {open} of which {go} on.", if is_more { " and more" } else { "" })
        }
    };
    Ok(WarningList { sentence, warnings, more })
}

pub(super) fn one(archive: &dyn Archive, id: &str) -> Result<WarningDetail, Error> {
    let wrong = || Error::Usage(format!("expected the id of a warning, a number, but got {id:?}"));
    let key = id.parse().map_err(|_| wrong())?;
    let none = || Error::NotFound(format!("there is no warning {id}"));
    let row = archive.warning(key)?.ok_or_else(none)?;
    let fact = |(name, value): (&str, String)| Fact { name: name.to_owned(), value };
    Ok(WarningDetail {
        item: item(&row),
        facts: facts(&row).into_iter().map(fact).collect(),
        advice: advice(row.kind).to_owned(),
    })
}

fn item(row: &FindingRow) -> WarningItem {
    let group = &row.owner.group;
    let api_version = match (group.as_str(), row.version.as_str()) {
        ("", version) => version.to_owned(),
        (group, version) => format!("{group}/{version}"),
    };
    let when =
        |micros| time::rfc3339(jiff::Timestamp::from_microsecond(micros).unwrap_or_default());
    WarningItem {
        id: row.id.to_string(),
        kind: row.kind.name().to_owned(),
        sentence: words(row),
        owner: ObjectRef {
            api_version,
            kind: row.owner.kind.clone(),
            namespace: row.owner.namespace.clone(),
            name: row.owner.name.clone(),
            uid: row.owner.uid.clone(),
        },
        resource: row.slot.clone(),
        path: row.path.clone(),
        step: step(row),
        open: row.open,
        first: when(row.first),
        last: when(row.last),
        first_run: row.first_run.clone(),
        last_run: row.last_run.clone(),
        count: row.count,
    }
}

fn step(row: &FindingRow) -> Option<StepRef> {
    let function = row.function.clone()?;
    Some(StepRef { number: row.index + 1, name: row.step.clone(), function })
}

fn detail<'a>(row: &'a FindingRow, name: &str) -> &'a str {
    row.detail.get(name).map(String::as_str).unwrap_or_default()
}

fn number(row: &FindingRow, name: &str) -> i64 {
    detail(row, name).parse().unwrap_or_default()
}

fn size(row: &FindingRow, name: &str) -> String {
    time::bytes(usize::try_from(number(row, name)).unwrap_or_default())
}

fn place(row: &FindingRow) -> String {
    let step = step(row).unwrap_or_default();
    let name = if step.name.is_empty() { step.function.clone() } else { step.name };
    format!("Step {}, {name},", step.number)
}

fn slot(row: &FindingRow) -> &str {
    match row.slot.as_deref() {
        None | Some("") => "the composite resource",
        Some(name) => name,
    }
}

/// What was found, in words.
fn words(row: &FindingRow) -> String {
    match row.kind {
        FindingKind::Flapping => {
            let who = match detail(row, "managers") {
                "" => "somebody else".to_owned(),
                managers => managers.to_owned(),
            };
            let path = row.path.as_deref().unwrap_or_default();
            format!(
                "{path} of {} goes back and forth: the pipeline wants {}, {who} sets {}.",
                slot(row),
                detail(row, "desired"),
                detail(row, "observed")
            )
        }
        FindingKind::SameInput => {
            let what = match (detail(row, "part"), detail(row, "resources")) {
                ("desired", names) if !names.is_empty() => format!("another {names}"),
                ("desired", _) => "other resources".to_owned(),
                (part, _) => format!("another {}", part.trim_end_matches('s')),
            };
            let how = match detail(row, "how") {
                "alternating" => ", back and forth",
                "again" => ", again and again",
                _ => ", once",
            };
            let place = place(row);
            format!(
                "{place} was given the same and answered {what}{how}: same input, different output."
            )
        }
        FindingKind::UnstableRequirements => format!(
            "{} asked for other resources each time, until the control plane gave up.",
            place(row)
        ),
        FindingKind::SlowStep => format!(
            "{} takes {}; its median was {}.",
            place(row),
            time::took(number(row, "tookMicros")),
            time::took(number(row, "medianMicros"))
        ),
        FindingKind::Size => {
            let (bytes, limit) = (size(row, "bytes"), size(row, "limit"));
            match detail(row, "what") {
                "resource" => {
                    format!("{} has {bytes} of the {limit} that etcd takes.", capital(slot(row)))
                }
                "request" => {
                    format!("{} is given {bytes} of the {limit} that gRPC takes.", place(row))
                }
                _ => format!("{} answers {bytes} of the {limit} that gRPC takes.", place(row)),
            }
        }
    }
}

fn capital(text: &str) -> String {
    if text == "the composite resource" {
        "The composite resource".to_owned()
    } else {
        text.to_owned()
    }
}

fn facts(row: &FindingRow) -> Vec<(&'static str, String)> {
    let text = |name: &'static str| (name, detail(row, name).to_owned());
    let all = match row.kind {
        FindingKind::Flapping => vec![text("desired"), text("observed"), text("managers")],
        FindingKind::SameInput => {
            vec![text("part"), text("resources"), text("how"), text("runBefore")]
        }
        FindingKind::UnstableRequirements => Vec::new(),
        FindingKind::SlowStep => vec![
            ("took", time::took(number(row, "tookMicros"))),
            ("median", time::took(number(row, "medianMicros"))),
        ],
        FindingKind::Size => {
            vec![text("what"), ("bytes", size(row, "bytes")), ("limit", size(row, "limit"))]
        }
    };
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// What it leads to, and what can be done about it.
fn advice(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Flapping => {
            "Each side overwrites the other, for as long as both run. Let one of them decide: do not \
             compose the field, or stop whoever else sets it."
        }
        FindingKind::SameInput => {
            "Once may be a new version of the function. If it happens again, the function uses the \
             time, random values, or something outside of what it is given, and resources change \
             for no reason."
        }
        FindingKind::UnstableRequirements => {
            "The run fails each time. The function must ask for the same resources once it was given \
             those that it asked for."
        }
        FindingKind::SlowStep => {
            "A run waits for it, and a call that takes too long fails. Ask `biplane why slow` for \
             the steps of a run with their medians."
        }
        FindingKind::Size => {
            "At the limit, runs fail. Compose fewer or smaller resources, split the composite \
             resource, or raise the limit on both sides."
        }
    }
}
