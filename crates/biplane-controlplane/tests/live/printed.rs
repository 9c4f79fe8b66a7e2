//! What `kubectl get` prints, as rows and columns.

use biplane_model::{Map, Value};
use serde_json::json;

use crate::side::Side;

/// A command, and what it printed.
pub(crate) struct Printed {
    /// The arguments after `kubectl get`.
    pub(crate) arguments: String,
    pub(crate) text: String,
}

/// The commands of a recorded file.
pub(crate) fn read(file: &str) -> Vec<Printed> {
    let sections = file.split("$ kubectl get ").skip(1);
    let section = |section: &str| {
        let (arguments, text) = section.split_once('\n').unwrap_or((section, ""));
        Printed { arguments: arguments.to_owned(), text: text.to_owned() }
    };
    sections.map(section).collect()
}

/// What was printed, by command, row and column.
pub(crate) fn tables(side: &Side, printed: &[Printed]) -> Value {
    let mut tables = Map::new();
    for Printed { arguments, text } in printed {
        let resource = arguments.split(' ').next().unwrap_or_default();
        let of_compositions = is_of_compositions(resource);
        let title = side.text(if of_compositions { resource } else { arguments });
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if !lines.first().is_some_and(|line| line.starts_with("NAME")) {
            tables.insert(title, json!({"answer": side.text(&lines.join("\n"))}));
            continue;
        }
        let mut rows = Map::new();
        for row in table(&lines) {
            let cell = |name: &str| row.iter().find(|(column, _)| column == name);
            let name = cell("NAME").map_or("", |(_, cell)| cell.as_str());
            let foreign = matches!(resource, "functions" | "functionrevisions")
                && ["nocap", "noend", "unpullable", "handmade", "bad-ref"]
                    .iter()
                    .any(|other| name.starts_with(&format!("function-{other}")));
            if foreign || of_compositions && !side.has_composition(name) {
                continue;
            }
            let namespace = cell("NAMESPACE").map(|(_, cell)| format!("{cell}/"));
            let key = namespace.unwrap_or_default() + &side.text(name);
            let shown = row.iter().map(|(column, cell)| {
                let age = column == "AGE" && !cell.is_empty();
                let cell = if age { "{age}".to_owned() } else { side.text(cell) };
                (column.clone(), Value::String(cell))
            });
            rows.insert(key, shown.collect());
        }
        if !rows.is_empty() || !of_compositions {
            tables.insert(title, Value::Object(rows));
        }
    }
    Value::Object(tables)
}

/// Whether the names of a command may include those of other scenarios.
pub(crate) fn is_of_compositions(resource: &str) -> bool {
    matches!(resource, "composition" | "compositionrevision")
}

/// The cells of each row with the names of their columns.
fn table(lines: &[&str]) -> Vec<Vec<(String, String)>> {
    let head = lines[0];
    let mut columns: Vec<(usize, &str)> = Vec::new();
    let mut at = 0;
    for part in head.split("  ") {
        if !part.trim().is_empty() {
            let name = part.trim();
            columns.push((at + (part.len() - part.trim_start().len()), name));
        }
        at += part.len() + 2;
    }
    let row = |line: &&str| {
        let cells = columns.iter().enumerate().map(|(index, (start, name))| {
            let end = columns.get(index + 1).map_or(line.len(), |(next, _)| *next);
            let cell = line.get(*start..end.min(line.len())).unwrap_or_default();
            ((*name).to_owned(), cell.trim().to_owned())
        });
        cells.collect()
    };
    lines[1..].iter().map(row).collect()
}
