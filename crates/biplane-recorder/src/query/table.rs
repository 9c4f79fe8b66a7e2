//! Headings, sentences, tables and differences as text or Markdown.

use std::fmt::Write as _;

/// A part of what is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A sentence.
    Text(String),
    /// A table.
    Table {
        /// The names of its columns.
        columns: Vec<&'static str>,
        /// Its rows, each with as many cells.
        rows: Vec<Vec<String>>,
    },
    /// Differences, a line each.
    Difference(Vec<String>),
}

impl Block {
    /// A table.
    pub fn table(columns: &[&'static str], rows: Vec<Vec<String>>) -> Self {
        Self::Table { columns: columns.to_vec(), rows }
    }
}

/// Prints blocks as text, an empty line between two.
pub fn text(blocks: &[Block]) -> String {
    let blocks: Vec<String> = blocks.iter().map(block_text).filter(|b| !b.is_empty()).collect();
    blocks.join("\n")
}

fn block_text(block: &Block) -> String {
    match block {
        Block::Heading(text) | Block::Text(text) => format!("{text}\n"),
        Block::Difference(lines) => each_line(lines),
        Block::Table { columns, rows } => aligned(columns, rows),
    }
}

/// Lines with their breaks.
pub(super) fn each_line(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// Columns as wide as their widest cell, with three spaces between them. A column that is empty in
/// all rows is left out.
fn aligned(columns: &[&str], rows: &[Vec<String>]) -> String {
    let cell = |row: &[String], at: usize| row.get(at).cloned().unwrap_or_default();
    let shown: Vec<usize> =
        (0..columns.len()).filter(|at| rows.iter().any(|row| !cell(row, *at).is_empty())).collect();
    let header: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    let all: Vec<&[String]> =
        std::iter::once(header.as_slice()).chain(rows.iter().map(Vec::as_slice)).collect();
    let width = |at: usize| all.iter().map(|row| cell(row, at).chars().count()).max().unwrap_or(0);
    let widths: Vec<(usize, usize)> = shown.iter().map(|at| (*at, width(*at))).collect();
    let mut out = String::new();
    for row in all {
        let mut line = String::new();
        for (at, width) in &widths {
            // Writing to a string cannot fail.
            let _ = write!(line, "{:<width$}   ", cell(row, *at));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Prints blocks as Markdown.
pub fn markdown(blocks: &[Block]) -> String {
    let blocks: Vec<String> = blocks.iter().map(block_markdown).collect();
    blocks.join("\n")
}

fn block_markdown(block: &Block) -> String {
    match block {
        Block::Heading(text) => format!("## {}\n", escaped(text)),
        Block::Text(text) => format!("{}\n", escaped(text)),
        Block::Difference(lines) => {
            let lines = each_line(lines);
            // A fence that no line contains.
            let fence = "```";
            let fence = if lines.contains(fence) { "~~~~" } else { fence };
            format!("{fence}diff\n{lines}{fence}\n")
        }
        Block::Table { columns, rows } => {
            let mut out = format!("| {} |\n", columns.join(" | "));
            out.push_str(&"|---".repeat(columns.len()));
            out.push_str("|\n");
            for row in rows {
                let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
                let _ = writeln!(out, "| {} |", cells.join(" | "));
            }
            out
        }
    }
}

/// A text whose characters mean nothing in Markdown.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '#' => {
                out.push('\\');
                out.push(character);
            }
            '\n' | '\r' => out.push(' '),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let rows = vec![
            vec!["a".to_owned(), String::new(), "long word".to_owned()],
            vec!["ä".to_owned(), String::new(), String::new()],
        ];
        let table = Block::table(&["ONE", "TWO", "THREE"], rows);
        assert_eq!(text(std::slice::from_ref(&table)), "ONE   THREE\na     long word\nä\n");
        let markdown = markdown(&[Block::Heading("H".into()), table]);
        let want =
            "## H\n\n| ONE | TWO | THREE |\n|---|---|---|\n| a |  | long word |\n| ä |  |  |\n";
        assert_eq!(markdown, want);
    }

    #[test]
    fn what_users_wrote_means_nothing_in_markdown() {
        let text = markdown(&[Block::Text("a|b_c<d>\n# e".to_owned())]);
        assert_eq!(text, "a\\|b\\_c\\<d\\> \\# e\n");
        let fenced = markdown(&[Block::Difference(vec!["+ ```".to_owned()])]);
        assert_eq!(fenced, "~~~~diff\n+ ```\n~~~~\n");
    }
}
