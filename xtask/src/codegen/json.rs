//! Patches the generated protobuf JSON code to follow Go where the generator does not.

use anyhow::{Context as _, Result, bail};
use regex::Regex;

/// Patterns and their replacements.
const REWRITES: &[(&str, &str)] = &[
    // An enum number without a name is written and read as the number.
    (
        r"let v = (\w+)::try_from\(([^)]*)\)\s*\.map_err\(.*\)\?;",
        "let v = crate::json::Enum::<$1>::new($2);",
    ),
    (
        r"\.map\(\|v\| \{\s*(\w+)::try_from\(v\)\s*\.map_err\(.*\)\s*\}\)\.collect::<std::result::Result<Vec<_>, _>>\(\)\?;",
        ".map(crate::json::Enum::<$1>::new).collect::<Vec<_>>();",
    ),
    (
        r"map_\.next_value::<(\w+)>\(\)\? as i32",
        "map_.next_value::<Option<crate::json::Enum<$1>>>()?.unwrap_or_default().number()",
    ),
    (
        r"map_\.next_value::<::std::option::Option<(\w+)>>\(\)\?\.map\(\|x\| x as i32\)",
        "map_.next_value::<Option<crate::json::Enum<$1>>>()?.map(|x| x.number())",
    ),
    (
        r"map_\.next_value::<Vec<(\w+)>>\(\)\?\.into_iter\(\)\.map\(\|x\| x as i32\)",
        "map_.next_value::<Option<Vec<crate::json::Enum<$1>>>>()?.unwrap_or_default().into_iter().map(|x| x.number())",
    ),
    // Null means that the field is absent.
    (
        r"Some\(map_\.next_value\(\)\?\)",
        "Some(map_.next_value::<Option<_>>()?.unwrap_or_default())",
    ),
    (
        r"Some\(map_\.next_value::<::pbjson::private::(\w+)<_>>\(\)\?\.0\)",
        "map_.next_value::<Option<::pbjson::private::$1<_>>>()?.map(|x| x.0)",
    ),
    (
        r"map_\.next_value::<(std::collections::BTreeMap<.*>)>\(\)\?",
        "map_.next_value::<Option<$1>>()?.unwrap_or_default()",
    ),
    // Bytes are read like in Go.
    (r"::pbjson::private::BytesDeserialize<", "crate::json::Bytes<"),
    // The caller decides whether an unknown field is an error.
    (
        r"Ok\(GeneratedField::__SkipField__\)",
        "crate::json::unknown_field(value, GeneratedField::__SkipField__)",
    ),
];

/// Rewrites one generated file.
pub(super) fn refine(text: &str) -> Result<String> {
    let mut text = text.to_owned();
    for (pattern, replacement) in REWRITES {
        let pattern = Regex::new(pattern).context("cannot read a rewrite's pattern")?;
        text = pattern.replace_all(&text, *replacement).into_owned();
    }
    // A newer generator may write code that no pattern matches.
    for left in
        ["Invalid variant", "as i32)", "BytesDeserialize", "Ok(GeneratedField::__SkipField__)"]
    {
        if let Some(line) = text.lines().find(|line| line.contains(left)) {
            bail!("generated JSON code has a form that no rewrite covers: {}", line.trim());
        }
    }
    Ok(text)
}
