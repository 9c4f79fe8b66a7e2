//! Slash-separated paths, like Go's `path`. The `os` forms are the same on Unix.

use super::args::{made, text};
use crate::func::{Call, Failure, Func};
use crate::types::Type;
use crate::value::Value;

pub(super) fn functions() -> Vec<Func> {
    type Body = fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure>;
    const PATH: &[Type] = &[Type::String];
    let bodies: [(&str, &str, Body); 4] = [
        ("base", "osBase", |call, args| made(call, base(text(args, 0)))),
        ("dir", "osDir", |call, args| made(call, dir(text(args, 0)))),
        ("clean", "osClean", |call, args| made(call, clean(text(args, 0)))),
        ("ext", "osExt", |call, args| made(call, ext(text(args, 0)))),
    ];
    let mut functions = Vec::new();
    for (name, os_name, body) in bodies {
        functions.push(Func::new(name, PATH, Type::String, body));
        functions.push(Func::new(os_name, PATH, Type::String, body));
    }
    for name in ["isAbs", "osIsAbs"] {
        functions.push(Func::new(name, PATH, Type::Bool, |_, args| {
            Ok(text(args, 0).starts_with(b"/").into())
        }));
    }
    functions
}

/// The last element.
fn base(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    let path_without_slashes = path.get(..end).unwrap_or_default();
    let last = path_without_slashes.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match (path.is_empty(), last.is_empty()) {
        (true, _) => b".".to_vec(),
        (_, true) => b"/".to_vec(),
        _ => last.to_vec(),
    }
}

/// Everything before the last element.
fn dir(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    clean(path.get(..end).unwrap_or_default())
}

/// The shortest path that means the same.
fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut elements: Vec<&[u8]> = Vec::new();
    for element in path.split(|byte| *byte == b'/') {
        match element {
            b"" | b"." => {}
            b".." => match elements.last() {
                Some(last) if *last != b".." => _ = elements.pop(),
                _ if rooted => {}
                _ => elements.push(element),
            },
            element => elements.push(element),
        }
    }
    let joined = elements.join(&b'/');
    match (rooted, joined.is_empty()) {
        (true, _) => [b"/", joined.as_slice()].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}

/// The last element from its last dot on.
fn ext(path: &[u8]) -> Vec<u8> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let dot = name.iter().rposition(|byte| *byte == b'.');
    dot.and_then(|at| name.get(at..)).unwrap_or_default().to_vec()
}
