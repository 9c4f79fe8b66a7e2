//! Functions of strings that Kubernetes adds to the language.

use super::super::cost::Cost;
use super::super::outcome::Outcome;
use super::super::value::Value;
use super::Patterns;
use super::results::{string, strings};

pub(super) fn call<'a>(
    function: &str,
    args: &[Value<'a>],
    cost: &mut Cost<'_>,
) -> Option<Outcome<'a>> {
    if let ("join", [values, rest @ ..]) = (function, args)
        && values.is_list()
    {
        let separator = match rest {
            [Value::Text(separator)] => separator.as_ref(),
            _ => "",
        };
        return Some(join(values, separator, cost));
    }
    let (text, rest) = match args {
        [Value::Text(text), rest @ ..] => (text.as_ref(), rest),
        _ => return None,
    };
    if let Err(stopped) = cost.spend_text(text.len()) {
        return Some(Err(stopped));
    }
    Some(match (function, rest) {
        ("charAt", [Value::Int(place)]) => char_at(text, *place),
        ("indexOf", [Value::Text(part)]) => index_of(text, part, 0),
        ("indexOf", [Value::Text(part), Value::Int(from)]) => index_of(text, part, *from),
        ("lastIndexOf", [Value::Text(part)]) => {
            let length = length(text);
            if part.is_empty() {
                Ok(Value::Int(length))
            } else if text.len() < part.len() {
                Ok(Value::Int(-1))
            } else {
                last_index_of(text, part, length - 1)
            }
        }
        ("lastIndexOf", [Value::Text(part), Value::Int(from)]) => last_index_of(text, part, *from),
        ("lowerAscii", []) => Ok(string(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(string(text.to_ascii_uppercase())),
        ("trim", []) => Ok(string(text.trim())),
        ("strings.quote", []) => Ok(string(quoted(text))),
        ("replace", [Value::Text(old), Value::Text(new)]) => replace(text, old, new, -1, cost),
        ("replace", [Value::Text(old), Value::Text(new), Value::Int(count)]) => {
            replace(text, old, new, *count, cost)
        }
        ("split", [Value::Text(separator)]) => split(text, separator, -1, cost),
        ("split", [Value::Text(separator), Value::Int(count)]) => {
            split(text, separator, *count, cost)
        }
        ("substring", [Value::Int(start)]) => substring(text, *start, None),
        ("substring", [Value::Int(start), Value::Int(end)]) => substring(text, *start, Some(*end)),
        _ => return None,
    })
}

fn length(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn out_of_range<T>(place: i64) -> Result<T, String> {
    Err(format!("index out of range: {place}"))
}

fn char_at<'a>(text: &str, place: i64) -> Outcome<'a> {
    if place < 0 || place > length(text) {
        return out_of_range(place);
    }
    let found = usize::try_from(place).ok().and_then(|place| text.chars().nth(place));
    Ok(string(found.map(String::from).unwrap_or_default()))
}

fn index_of<'a>(text: &str, part: &str, from: i64) -> Outcome<'a> {
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    let Ok(start) = usize::try_from(from) else { return out_of_range(from) };
    let Some((skipped, _)) = text.char_indices().nth(start) else { return Ok(Value::Int(-1)) };
    let rest = text.get(skipped..).unwrap_or_default();
    let found = rest.find(part).and_then(|at| rest.get(..at));
    Ok(Value::Int(found.map_or(-1, |before| from + length(before))))
}

fn last_index_of<'a>(text: &str, part: &str, from: i64) -> Outcome<'a> {
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    let Ok(start) = usize::try_from(from) else { return out_of_range(from) };
    if from >= length(text) {
        return Ok(Value::Int(-1));
    }
    // A match may begin at the offset, and so end after it.
    let end = text
        .char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .nth(start + part.chars().count())
        .unwrap_or(text.len());
    let rest = text.get(..end).unwrap_or_default();
    let found = rest.rfind(part).and_then(|at| rest.get(..at));
    Ok(Value::Int(found.map_or(-1, length)))
}

fn substring<'a>(text: &str, start: i64, end: Option<i64>) -> Outcome<'a> {
    let length = length(text);
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(format!("invalid substring range. start: {start}, end: {end}"));
    }
    if start < 0 || start > length {
        return out_of_range(start);
    }
    let end = end.unwrap_or(length);
    if end < 0 || end > length {
        return out_of_range(end);
    }
    let (skip, take) = (usize::try_from(start), usize::try_from(end - start));
    let part: String =
        text.chars().skip(skip.unwrap_or_default()).take(take.unwrap_or_default()).collect();
    Ok(string(part))
}

fn replace<'a>(text: &str, old: &str, new: &str, count: i64, cost: &mut Cost<'_>) -> Outcome<'a> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let matches = if old.is_empty() { text.chars().count() + 1 } else { text.len() / old.len() };
    cost.spend_text(text.len().saturating_add(new.len().saturating_mul(matches.min(count))))?;
    Ok(string(text.replacen(old, new, count)))
}

fn split<'a>(text: &str, separator: &str, count: i64, cost: &mut Cost<'_>) -> Outcome<'a> {
    cost.spend(text.len() as u64)?;
    let limit = match usize::try_from(count) {
        Ok(0) => return Ok(strings([])),
        Ok(limit) => limit,
        Err(_) => usize::MAX,
    };
    if !separator.is_empty() {
        return Ok(strings(text.splitn(limit, separator).map(str::to_owned)));
    }
    let mut parts: Vec<String> = Vec::new();
    for (at, c) in text.char_indices() {
        if parts.len() + 1 == limit {
            parts.push(text.get(at..).unwrap_or_default().to_owned());
            break;
        }
        parts.push(c.to_string());
    }
    Ok(strings(parts))
}

fn join<'a>(values: &Value<'a>, separator: &str, cost: &mut Cost<'_>) -> Outcome<'a> {
    let mut joined = String::new();
    for (place, value) in values.items().into_iter().flatten().enumerate() {
        let Value::Text(text) = value else {
            return Err(format!("join: invalid input: {}", super::super::outcome::show(&value)));
        };
        cost.spend_text(text.len() + separator.len())?;
        if place > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&text);
    }
    Ok(string(joined))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

pub(super) fn find<'a>(
    text: &str,
    pattern: &str,
    patterns: &mut Patterns<'_>,
    cost: &mut Cost<'_>,
) -> Outcome<'a> {
    let found = search(text, pattern, 1, patterns, cost)?;
    Ok(string(found.into_iter().next().unwrap_or_default()))
}

pub(super) fn find_all<'a>(
    text: &str,
    pattern: &str,
    limit: usize,
    patterns: &mut Patterns<'_>,
    cost: &mut Cost<'_>,
) -> Outcome<'a> {
    search(text, pattern, limit, patterns, cost).map(strings)
}

fn search(
    text: &str,
    pattern: &str,
    limit: usize,
    patterns: &mut Patterns<'_>,
    cost: &mut Cost<'_>,
) -> Result<Vec<String>, String> {
    let regex = patterns.get(pattern, cost).map_err(|reason| format!("Illegal regex: {reason}"))?;
    cost.spend(regex.search_steps(text.len()) / super::STEPS_PER_UNIT)?;
    let found = regex.find_all(text.as_bytes(), Some(limit)).map_err(|error| error.to_string())?;
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
    Ok(found.into_iter().map(part).collect())
}
