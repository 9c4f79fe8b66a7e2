//! What tables and reports say of causes, times and warnings.

use super::super::answer::{
    At, AtItem, Evidence, StepRef, WarningDetail, WarningItem, WarningList, Why,
};
use super::super::table::Block;
use super::blocks::{field_lines, id, more_text, object, one_line, runs, when};
use super::{Format, Options};

pub(super) fn of_why(why: &Why, wide: bool) -> Vec<Block> {
    let what = match (&why.field, why.resource.as_str()) {
        (Some(field), "") => format!("{} {field}", object(&why.object)),
        (Some(field), name) => format!("{name}  {}  {field}", object(&why.object)),
        (None, "") => object(&why.object),
        (None, name) => format!("{name}  {}", object(&why.object)),
    };
    let row = |evidence: &Evidence| {
        let mut row = vec![
            evidence.kind.name(),
            evidence.address().unwrap_or_default(),
            evidence.step.as_ref().map(StepRef::label).unwrap_or_default(),
        ];
        if wide {
            row.push(evidence.run.clone().unwrap_or_default());
        }
        row.push(one_line(&evidence.text));
        row
    };
    let mut columns = vec!["EVIDENCE", "SEE", "STEP"];
    if wide {
        columns.push("RUN");
    }
    columns.push("WHAT");
    let mut blocks = vec![
        Block::Heading(format!("why {}: {}", why.verb.name(), what.trim())),
        Block::Text(why.sentence.clone()),
    ];
    if !why.evidence.is_empty() {
        blocks.push(Block::table(&columns, why.evidence.iter().map(row).collect()));
    }
    blocks
}

pub(super) fn of_at(at: &At, options: Options) -> Vec<Block> {
    let wide = options.format == Format::Wide;
    let mut title = vec![format!("{} {}", at.owner.kind, at.owner.name)];
    if !at.owner.namespace.is_empty() {
        title.push(format!("namespace {}", at.owner.namespace));
    }
    title.push(format!("at {}", when(&at.at)));
    let row = |item: &AtItem| {
        let since = |since: &Option<super::super::answer::Since>| {
            since.as_ref().map_or_else(
                || "-".to_owned(),
                |since| {
                    let or = if since.or_earlier { " or earlier" } else { "" };
                    format!("{}{or}", when(&since.at))
                },
            )
        };
        let change = item.last_change.as_ref().map(|change| {
            let result = if change.error.is_some() { "failed" } else { "ok" };
            format!("{} {result}", change.operation)
        });
        vec![
            item.label().to_owned(),
            object(&item.object),
            item.ready.clone(),
            since(&item.observed_since),
            since(&item.desired_since),
            match item.differs.len() {
                0 => String::new(),
                count => count.to_string(),
            },
            change.unwrap_or_default(),
        ]
    };
    let columns = [
        "RESOURCE",
        "OBJECT",
        "READY",
        "OBSERVED SINCE",
        "DESIRED SINCE",
        "DIFFERS",
        "LAST CHANGE",
    ];
    let mut lines = Vec::new();
    for item in at.resources.iter().filter(|item| !item.differs.is_empty()) {
        lines.push(format!("~ {}  observed -> desired", item.label()));
        for field in &item.differs {
            field_lines(field, &mut lines);
        }
    }
    let mut blocks = vec![
        Block::Heading(title.join(", ")),
        Block::Text(at.sentence.clone()),
        runs(std::slice::from_ref(&at.run), wide),
        Block::table(&columns, at.resources.iter().map(row).collect()),
    ];
    if !lines.is_empty() {
        blocks.push(Block::Difference(lines));
    }
    if wide {
        for item in &at.resources {
            for (title, body) in [("observed", &item.observed), ("desired", &item.desired)] {
                let Some(body) = body else { continue };
                let yaml = biplane_model::yaml::to_string(body);
                blocks.push(Block::Heading(format!("{} {title}", item.label())));
                blocks.push(Block::Difference(yaml.lines().map(str::to_owned).collect()));
            }
        }
    }
    blocks
}

fn table(items: &[WarningItem], wide: bool) -> Block {
    let row = |warning: &WarningItem| {
        let mut row = vec![
            when(&warning.last),
            warning.id.clone(),
            warning.kind.clone(),
            object(&warning.owner),
            warning.owner.namespace.clone(),
            if warning.open { "goes on" } else { "over" }.to_owned(),
            warning.count.to_string(),
            id(&warning.last_run, wide),
        ];
        if wide {
            row.extend([when(&warning.first), warning.first_run.clone()]);
        }
        row.push(one_line(&warning.sentence));
        row
    };
    let mut columns =
        vec!["LAST SEEN", "ID", "FOUND", "OWNER", "NAMESPACE", "STATE", "RUNS", "RUN"];
    if wide {
        columns.extend(["FIRST SEEN", "FIRST RUN"]);
    }
    columns.push("WHAT");
    Block::table(&columns, items.iter().map(row).collect())
}

pub(super) fn of_warnings(list: &WarningList, wide: bool) -> Vec<Block> {
    let mut blocks = vec![Block::Text(list.sentence.clone())];
    if !list.warnings.is_empty() {
        blocks.push(table(&list.warnings, wide));
    }
    blocks.extend(list.more.as_ref().map(|more| more_text(more)));
    blocks
}

pub(super) fn of_warning(warning: &WarningDetail) -> Vec<Block> {
    let mut blocks = vec![
        Block::Text(warning.item.sentence.clone()),
        table(std::slice::from_ref(&warning.item), true),
    ];
    if !warning.facts.is_empty() {
        let row = |fact: &super::super::answer::Fact| vec![fact.name.clone(), fact.value.clone()];
        blocks.push(Block::table(&["FACT", "VALUE"], warning.facts.iter().map(row).collect()));
    }
    blocks.push(Block::Text(warning.advice.clone()));
    blocks
}
