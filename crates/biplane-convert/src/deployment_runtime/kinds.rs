//! Which kind an object has, and which kinds the reference can decode.

use anyhow::{Result, bail};
use biplane_model::{Map, Value};

use super::{GROUP, KIND, VERSION, no_kind};
use crate::document::kind_of;

const KINDS: &str = include_str!("kinds.txt");

/// Kinds that each API version has.
const SHARED: &[&str] = &[
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];

/// The API version and the kind of an object. What is missing is that of a ControllerConfig.
pub(super) fn of(object: &Map<String, Value>, source: &[u8]) -> Result<(String, String)> {
    let text = |key: &str| match object.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => Err(no_kind(&format!(
            "json: cannot unmarshal {} into Go struct field .{key} of type string",
            kind_of(other)
        ))),
    };
    let (version, kind) = (text("apiVersion")?, text("kind")?);
    let (group, version) = match version.matches('/').count() {
        _ if version == "/" => ("", ""),
        0 => ("", version),
        1 => version.split_once('/').unwrap_or_default(),
        _ => bail!("unexpected GroupVersion string: {version}"),
    };
    let kind = if kind.is_empty() { KIND } else { kind };
    let group = if group.is_empty() && version.is_empty() { GROUP } else { group };
    let version = if version.is_empty() && group == GROUP { VERSION } else { version };
    if version.is_empty() {
        bail!("Object 'apiVersion' is missing in '{}'", String::from_utf8_lossy(source));
    }
    let version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok((version, kind.to_owned()))
}

pub(super) fn is_known(version: &str, kind: &str) -> bool {
    let mut lines = KINDS.lines().map(|line| line.split(' '));
    lines.any(|mut words| {
        words.next() == Some(version)
            && (SHARED.contains(&kind)
                || words.any(|known| kind == known || kind.strip_suffix("List") == Some(known)))
    })
}
