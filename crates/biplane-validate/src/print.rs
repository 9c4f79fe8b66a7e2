//! Shows a report: as text, JSON or YAML.

use std::fmt::Write as _;

use biplane_go::json::{Style, write_string, write_value};
use biplane_model::{Map, Value, yaml};
use serde_json::json;

use crate::report::{Check, Outcome, Report, Status};

/// The report as lines. Valid resources may be left out.
pub fn text(report: &Report, skip_success: bool) -> String {
    let mut out = String::new();
    for resource in &report.resources {
        text_of(&mut out, resource, skip_success);
    }
    let _ = writeln!(
        out,
        "Total {} resources: {} missing schemas, {} success cases, {} failure cases",
        report.resources.len(),
        report.count(Status::MissingSchema),
        report.valid(),
        report.count(Status::Invalid),
    );
    out
}

fn text_of(out: &mut String, resource: &Outcome, skip_success: bool) {
    let Outcome { api_version, kind, name, .. } = resource;
    let subject = format!("{api_version}, Kind={kind}, {name}");
    match resource.status {
        Status::Valid if skip_success => {}
        Status::Valid => {
            let _ = writeln!(out, "[✓] {subject} validated successfully");
        }
        Status::MissingSchema => {
            // An empty group is not shown.
            let shown = api_version.strip_prefix('/').unwrap_or(api_version);
            let _ = writeln!(out, "[!] could not find CRD/XRD for: {shown}, Kind={kind}");
        }
        Status::Invalid | Status::DefaultingFailed => {}
    }
    for finding in &resource.findings {
        let message = &finding.message;
        let _ = match finding.check {
            Check::Defaulting => {
                writeln!(out, "[!] failed to apply defaults for {subject}: {message}")
            }
            Check::Schema | Check::UnknownField => {
                writeln!(out, "[x] schema validation error {subject} : {message}")
            }
            Check::Rules => writeln!(out, "[x] CEL validation error {subject} : {message}"),
        };
    }
}

/// A value with members in the order in which they are to be shown.
enum Shown<'a> {
    Object(Vec<(&'static str, Shown<'a>)>),
    List(Vec<Shown<'a>>),
    Value(&'a Value),
    Text(&'a str),
    Number(usize),
}

fn shown(report: &Report) -> Shown<'_> {
    let summary = vec![
        ("total", Shown::Number(report.resources.len())),
        ("valid", Shown::Number(report.valid())),
        ("invalid", Shown::Number(report.count(Status::Invalid))),
        ("missingSchemas", Shown::Number(report.count(Status::MissingSchema))),
    ];
    let resources = report.resources.iter().map(|resource| {
        let mut members = vec![
            ("apiVersion", Shown::Text(&resource.api_version)),
            ("kind", Shown::Text(&resource.kind)),
            ("name", Shown::Text(&resource.name)),
        ];
        if !resource.namespace.is_empty() {
            members.push(("namespace", Shown::Text(&resource.namespace)));
        }
        members.push(("status", Shown::Text(resource.status.word())));
        if !resource.findings.is_empty() {
            let errors = resource.findings.iter().map(|finding| {
                let mut members = vec![("type", Shown::Text(finding.check.word()))];
                if let Some(field) = &finding.field {
                    members.push(("field", Shown::Text(field)));
                }
                members.push(("message", Shown::Text(&finding.message)));
                if let Some(value) = &finding.value {
                    members.push(("value", Shown::Value(value)));
                }
                Shown::Object(members)
            });
            members.push(("errors", Shown::List(errors.collect())));
        }
        Shown::Object(members)
    });
    Shown::Object(vec![
        ("summary", Shown::Object(summary)),
        ("resources", Shown::List(resources.collect())),
    ])
}

/// The report as JSON.
pub fn json(report: &Report) -> String {
    let mut out = String::new();
    write_json(&mut out, &shown(report), 0);
    out.push('\n');
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn write_json(out: &mut String, value: &Shown<'_>, depth: usize) {
    match value {
        Shown::Object(members) => {
            out.push('{');
            for (place, (name, value)) in members.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write_string(out, name, Style::MARSHAL);
                out.push_str(": ");
                write_json(out, value, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        Shown::List(items) if items.is_empty() => out.push_str("[]"),
        Shown::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write_json(out, item, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        Shown::Value(Value::Array(items)) => {
            let items = items.iter().map(Shown::Value).collect();
            write_json(out, &Shown::List(items), depth);
        }
        Shown::Value(Value::Object(map)) if map.is_empty() => out.push_str("{}"),
        Shown::Value(Value::Object(map)) => {
            out.push('{');
            for (place, (name, value)) in map.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write_string(out, name, Style::MARSHAL);
                out.push_str(": ");
                write_json(out, &Shown::Value(value), depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
        Shown::Value(value) => write_value(out, value, Style::MARSHAL),
        Shown::Text(text) => write_string(out, text, Style::MARSHAL),
        Shown::Number(number) => {
            let _ = write!(out, "{number}");
        }
    }
}

/// The report as YAML.
pub fn yaml(report: &Report) -> String {
    yaml::to_string(&plain(&shown(report)))
}

fn plain(value: &Shown<'_>) -> Value {
    match value {
        Shown::Object(members) => {
            let members = members.iter().map(|(name, value)| ((*name).to_owned(), plain(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Shown::List(items) => items.iter().map(plain).collect(),
        Shown::Value(value) => (*value).clone(),
        Shown::Text(text) => json!(text),
        Shown::Number(number) => json!(number),
    }
}
