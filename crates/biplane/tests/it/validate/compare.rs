//! Compares output with a recording: exactly where upstream is exact, and without order where it
//! walks maps of Go.

use biplane_model::yaml;
use regex::Regex;
use serde_json::Value;

/// The lines about downloads, which may be in either stream.
pub(super) fn chatter(stdout: &str, stderr: &str) -> Vec<String> {
    let lines = stdout.lines().chain(stderr.lines());
    let mut lines: Vec<_> = lines.filter(|line| is_chatter(line)).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn is_chatter(line: &str) -> bool {
    line.starts_with("schemas does not exist, downloading: ")
        || line.starts_with("updating cached schemas: ")
}

pub(super) fn without_chatter(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !is_chatter(line)).collect()
}

/// Splits a command line as a shell does.
pub(super) fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                begun = true;
            }
            (None, ' ') => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (_, c) => word.push(c),
        }
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    words
}

/// Words of Go's libraries, after which everything may differ.
const LOOSE: [&str; 9] = [
    "json: cannot unmarshal ",
    "error converting YAML to JSON: ",
    "rule compile error: compilation failed: ",
    "messageExpression compilation failed: ",
    "error parsing regexp: ",
    "in scheme ",
    "quantities must match the regular expression ",
    "cannot get config: ",
    "yaml: ",
];

fn loosened(text: &str) -> String {
    let mut text = text.to_owned();
    for words in LOOSE {
        if let Some(at) = text.find(words) {
            text.truncate(at + words.len());
        }
    }
    text
}

pub(super) fn same_stderr(usage: bool, recorded: &str, got: &str) -> bool {
    let program = Regex::new(r"(?m)^[\w.+-]+: error: ").unwrap();
    let guess = Regex::new(",? did you mean .*").unwrap();
    let canonical = |text: &str| {
        let text = program.replace_all(&without_chatter(text), "error: ").into_owned();
        if !usage {
            return loosened(&text);
        }
        let last = text.lines().rfind(|line| line.starts_with("error: ")).unwrap_or_default();
        loosened(&guess.replace(last, ""))
    };
    canonical(recorded) == canonical(got)
}

pub(super) fn same_stdout(form: &str, recorded: &str, got: &str) -> bool {
    match form {
        "text" => canonical_text(recorded) == canonical_text(got),
        "json" => match (serde_json::from_str(recorded), serde_json::from_str(got)) {
            (Ok(recorded), Ok(got)) => canonical_data(recorded) == canonical_data(got),
            _ => recorded == got,
        },
        "yaml" => {
            let read = |text: &str| yaml::parse_one("stdout", text).map(|document| document.value);
            match (read(recorded), read(got)) {
                (Ok(recorded), Ok(got)) => canonical_data(recorded) == canonical_data(got),
                _ => recorded == got,
            }
        }
        _ => recorded == got,
    }
}

/// The entries of the text, with the errors of each resource in a defined order.
fn canonical_text(text: &str) -> Vec<String> {
    let begins =
        |line: &str| ["[✓] ", "[!] ", "[x] ", "Total "].iter().any(|start| line.starts_with(start));
    let mut entries: Vec<String> = Vec::new();
    for line in text.lines() {
        match entries.last_mut() {
            Some(last) if !begins(line) => {
                last.push('\n');
                last.push_str(line);
            }
            _ => entries.push(line.to_owned()),
        }
    }
    let mut result = Vec::new();
    let mut block: Vec<(String, String, String)> = Vec::new();
    let mut subject = String::new();
    let flush = |block: &mut Vec<(String, String, String)>, result: &mut Vec<String>| {
        let mut order: Vec<String> = Vec::new();
        for (class, _, _) in block.iter() {
            if !order.contains(class) {
                order.push(class.clone());
            }
        }
        for class in order {
            let mut found: Vec<_> = block.iter().filter(|entry| entry.0 == class).collect();
            match class.as_str() {
                "schema" => found.sort_by(|a, b| a.2.cmp(&b.2)),
                "rules" => found.sort_by(|a, b| a.1.cmp(&b.1)),
                _ => {}
            }
            result.extend(found.into_iter().map(|entry| entry.2.clone()));
        }
        block.clear();
    };
    for entry in entries {
        let found = ["[x] schema validation error ", "[x] CEL validation error "]
            .iter()
            .zip(["schema", "rules"])
            .find_map(|(start, class)| Some((class, entry.strip_prefix(start)?)));
        let Some((class, rest)) = found else {
            flush(&mut block, &mut result);
            subject.clear();
            result.push(loosened(&entry));
            continue;
        };
        let (who, message) = rest.split_once(" : ").unwrap_or((rest, ""));
        let unknown = message.contains("unknown field: \"");
        let class = if unknown { "unknown" } else { class };
        if who != subject {
            flush(&mut block, &mut result);
            who.clone_into(&mut subject);
        }
        let field = message.split(": ").next().unwrap_or_default().to_owned();
        block.push((class.to_owned(), field, loosened(&entry)));
    }
    flush(&mut block, &mut result);
    result
}

/// The same for data. Numbers are compared by value.
fn canonical_data(mut report: Value) -> Value {
    for resource in report["resources"].as_array_mut().into_iter().flatten() {
        let Some(Value::Array(errors)) = resource.get_mut("errors") else { continue };
        for error in errors.iter_mut() {
            let message = loosened(error["message"].as_str().unwrap_or_default());
            error["message"] = message.into();
            if let Some(value) = error.get_mut("value") {
                *value = numbers(value.take());
            }
        }
        let kind = |error: &Value| error["type"].as_str().unwrap_or_default().to_owned();
        let mut order: Vec<String> = Vec::new();
        for error in errors.iter() {
            if !order.contains(&kind(error)) {
                order.push(kind(error));
            }
        }
        errors.sort_by_key(|error| {
            let place = order.iter().position(|known| *known == kind(error));
            let within = match kind(error).as_str() {
                "schema" => error.to_string(),
                "cel" => error["field"].to_string(),
                _ => String::new(),
            };
            (place, within)
        });
    }
    report
}

fn numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64()),
        Value::Array(items) => items.into_iter().map(numbers).collect(),
        Value::Object(map) => map.into_iter().map(|(name, value)| (name, numbers(value))).collect(),
        other => other,
    }
}
