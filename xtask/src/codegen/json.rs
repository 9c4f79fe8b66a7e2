//! Makes the generated protobuf JSON follow Go's where the generator does not.

use anyhow::{Context as _, Result, bail};
use regex::Regex;

/// What is found, and what is written for it.
const REWRITES: &[(&str, &str)] = &[
    // An enum's number that nobody has named is written and read as the number.
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
    // A null is a field that is not there.
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
    // Bytes are read as Go reads them.
    (r"::pbjson::private::BytesDeserialize<", "crate::json::Bytes<"),
    // The reader says whether a field that nobody knows is an error.
    (
        r"Ok\(GeneratedField::__SkipField__\)",
        "crate::json::unknown_field(value, GeneratedField::__SkipField__)",
    ),
];

/// Rewrites the text of one generated file.
pub(super) fn refine(text: &str) -> Result<String> {
    let mut text = text.to_owned();
    for (pattern, replacement) in REWRITES {
        let pattern = Regex::new(pattern).context("cannot read a rewrite's pattern")?;
        text = pattern.replace_all(&text, *replacement).into_owned();
    }
    // A newer generator may write what no pattern finds.
    for left in
        ["Invalid variant", "as i32)", "BytesDeserialize", "Ok(GeneratedField::__SkipField__)"]
    {
        if let Some(line) = text.lines().find(|line| line.contains(left)) {
            bail!("generated JSON code has a form that no rewrite covers: {}", line.trim());
        }
    }
    Ok(text)
}
