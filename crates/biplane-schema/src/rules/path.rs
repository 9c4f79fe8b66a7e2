//! The field that a rule blames.

use crate::cel::Shape;

/// The path in the form of errors, if it names a field of the schema.
pub(crate) fn normalized(path: &str, shape: &Shape) -> Option<String> {
    let mut shape = Some(shape);
    let mut out = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            if name.is_empty() {
                return None;
            }
            (name.to_owned(), after)
        } else {
            let after = rest.strip_prefix("['")?;
            let (name, after) = quoted(after)?;
            (name, after.strip_prefix(']')?)
        };
        let current = shape?;
        if let Some(properties) = &current.properties {
            shape = Some(properties.get(&name)?);
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else {
            shape = Some(current.additional.as_deref()?);
            out.extend(["[", &name, "]"]);
        }
        rest = after;
    }
    Some(out)
}

/// A text up to its closing quote, without its escapes, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut plain = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((plain, text.get(at + 1..)?)),
            '\\' => plain.push(match chars.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                '\'' => '\'',
                '\\' => '\\',
                _ => return None,
            }),
            c => plain.push(c),
        }
    }
    None
}
