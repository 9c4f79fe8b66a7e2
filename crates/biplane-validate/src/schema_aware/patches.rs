//! Checks patches: whether their fields exist, and whether the types fit after all transforms.

use biplane_go::fmt::quote;
use biplane_go::json;
use biplane_model::Value;

use crate::field_path;

/// The schemas of both sides of a patch.
#[derive(Clone, Copy)]
pub(super) struct Schemas<'a> {
    pub(super) composite: Option<&'a Value>,
    pub(super) composed: Option<&'a Value>,
}

/// Checks one patch and returns its first error.
pub(super) fn check(
    patch: &Value,
    path: &str,
    schemas: Schemas<'_>,
    sets: &[Value],
) -> Result<(), String> {
    let text = |name: &str| patch.get(name).and_then(Value::as_str).unwrap_or_default();
    let Schemas { composite, composed } = schemas;
    let (from, to) = match text("type") {
        "" | "FromCompositeFieldPath" => plain(patch, path, composite, composed)?,
        "ToCompositeFieldPath" => plain(patch, path, composed, composite)?,
        "CombineFromComposite" => combine(patch, path, composite, composed)?,
        "CombineToComposite" => combine(patch, path, composed, composite)?,
        "PatchSet" => {
            for (k, set) in sets.iter().enumerate() {
                if set.get("name").and_then(Value::as_str) != Some(text("patchSetName")) {
                    continue;
                }
                for (l, inner) in super::list(set, "patches").iter().enumerate() {
                    check(inner, &format!("{path}.patchSets[{k}].patches[{l}]"), schemas, &[])?;
                }
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    flow(patch, path, from.as_deref(), to.as_deref())
}

type Types = (Option<String>, Option<String>);

fn field(
    schema: Option<&Value>,
    field: &str,
    path: &str,
    name: &str,
) -> Result<Option<String>, String> {
    field_path::check(schema, field)
        .map_err(|problem| format!("{path}.{name}: Invalid value: {}: {problem}", quote(field)))
}

fn plain(
    patch: &Value,
    path: &str,
    from: Option<&Value>,
    to: Option<&Value>,
) -> Result<Types, String> {
    let text = |name: &str| patch.get(name).and_then(Value::as_str).unwrap_or_default();
    let source = field(from, text("fromFieldPath"), path, "fromFieldPath")?;
    let target = field(to, text("toFieldPath"), path, "toFieldPath")?;
    Ok((source, target))
}

fn combine(
    patch: &Value,
    path: &str,
    from: Option<&Value>,
    to: Option<&Value>,
) -> Result<Types, String> {
    let target = patch.get("toFieldPath").and_then(Value::as_str).unwrap_or_default();
    let target = field(to, target, path, "toFieldPath")?;
    let combine = patch.get("combine").unwrap_or(&Value::Null);
    let variables = super::list(combine, "variables");
    let mut wrong = Vec::new();
    for variable in variables {
        let name = variable.get("fromFieldPath").and_then(Value::as_str).unwrap_or_default();
        if let Err(problem) = field_path::check(from, name) {
            wrong.push(format!("fromFieldPath: Invalid value: {}: {problem}", quote(name)));
        }
    }
    if !wrong.is_empty() {
        let wrong = match wrong.as_slice() {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let shown = json::to_string(&Value::Array(variables.to_vec()));
        return Err(format!("{path}.combine: Invalid value: {shown}: {wrong}"));
    }
    match combine.get("strategy").and_then(Value::as_str).unwrap_or_default() {
        "string" if combine.get("string").is_none_or(Value::is_null) => Err(format!(
            "{path}.combine.string: Required value: string combine strategy requires configuration"
        )),
        "string" => Ok((Some("string".to_owned()), target)),
        other => Err(format!(
            "{path}.combine.strategy: Invalid value: {}: combine strategy is not supported",
            quote(other)
        )),
    }
}

/// Checks that the type of the source becomes that of the target.
fn flow(patch: &Value, path: &str, from: Option<&str>, to: Option<&str>) -> Result<(), String> {
    let transforms = super::list(patch, "transforms");
    if transforms.is_empty() && (from.is_none() || to.is_none() || from == to) {
        return Ok(());
    }
    let mut working = match from {
        None => None,
        Some("string") => Some("string"),
        Some("boolean") => Some("bool"),
        Some("integer") => Some("int64"),
        Some("number") => Some("float64"),
        // Upstream takes a list for an object.
        Some("object" | "array") => Some("object"),
        Some(other) => {
            return Err(format!(
                "{path}.transforms: Internal error: JSON type not supported: {}",
                quote(other)
            ));
        }
    };
    for (k, transform) in transforms.iter().enumerate() {
        if let Some(given) = working {
            accepts(transform, given).map_err(|problem| {
                let shown = json::to_string(transform);
                format!("{path}.transforms[{k}]: Invalid value: {shown}: {problem}")
            })?;
        }
        working = match transform.get("type").and_then(Value::as_str).unwrap_or_default() {
            "math" => Some("float64"),
            "string" => Some("string"),
            "convert" => match part(transform, "convert", "toType") {
                "int" | "int64" => Some("int64"),
                "string" => Some("string"),
                "bool" => Some("bool"),
                "float64" => Some("float64"),
                "array" => Some("array"),
                _ => Some("object"),
            },
            // Nothing is known from here on.
            _ => return Ok(()),
        };
    }
    let given = match working {
        Some("bool") => Some("boolean"),
        Some("int64") => Some("integer"),
        Some("float64") => Some("number"),
        other => other,
    };
    let (Some(given), Some(to)) = (given, to) else { return Ok(()) };
    if given == to || (given == "integer" && to == "number") {
        return Ok(());
    }
    let from = from.unwrap_or_default();
    Err(if transforms.is_empty() {
        format!(
            "{path}.transforms: Required value: the fromFieldPath does not have a type compatible with the toFieldPath according to their schemas and no transforms were provided: {from} != {to}"
        )
    } else {
        let shown = json::to_string(&Value::Array(transforms.to_vec()));
        format!(
            "{path}.transforms: Invalid value: {shown}: the provided transforms do not output a type compatible with the toFieldPath according to the schema: {from} != {to}"
        )
    })
}

fn part<'a>(transform: &'a Value, name: &str, member: &str) -> &'a str {
    let inner = transform.get(name).and_then(|inner| inner.get(member));
    inner.and_then(Value::as_str).unwrap_or_default()
}

/// Whether a transform takes values of a type.
fn accepts(transform: &Value, given: &str) -> Result<(), String> {
    let text = |fits: bool, what: &str| {
        if fits { Ok(()) } else { Err(format!("{what}, got {given}")) }
    };
    let strings = "string transform can only be used with string input types";
    match transform.get("type").and_then(Value::as_str).unwrap_or_default() {
        "math" => text(
            matches!(given, "int" | "int64" | "float64"),
            "math transform can only be used with numeric types",
        ),
        "map" => text(given == "string", "map transform can only be used with string types"),
        "match" => {
            text(given == "string", "match transform can only be used with string input types")
        }
        "string" => match part(transform, "string", "type") {
            "Regexp" | "TrimPrefix" | "TrimSuffix" => text(given == "string", strings),
            "Convert" => match part(transform, "string", "convert") {
                "ToUpper" | "ToLower" | "ToBase64" | "FromBase64" => {
                    text(given == "string", strings)
                }
                "ToJson" | "ToSha1" | "ToSha256" | "ToSha512" | "ToAdler32" => Ok(()),
                other => Err(format!("unknown string conversion type {other}")),
            },
            "Join" => text(
                given == "array",
                "string transform join type can only be used with arrays as input",
            ),
            _ => Ok(()),
        },
        "convert" => convert(transform, given),
        other => Err(format!("transform type {other} is not supported")),
    }
}

fn convert(transform: &Value, given: &str) -> Result<(), String> {
    let whole = |kind: &'static str| if kind == "int" { "int64" } else { kind };
    let from = if given == "int" { "int64" } else { given };
    let to = match part(transform, "convert", "toType") {
        "int" => whole("int"),
        other => other,
    };
    let format = match part(transform, "convert", "format") {
        "" => "none",
        format => format,
    };
    let fits = from == to
        || match format {
            "none" => {
                let simple = ["string", "int64", "bool", "float64"];
                simple.contains(&from) && simple.contains(&to)
            }
            "quantity" => (from, to) == ("string", "float64"),
            "json" => from == "string" && matches!(to, "object" | "array"),
            _ => false,
        };
    if fits {
        return Ok(());
    }
    Err(format!("conversion from {from} to {to} is not supported with format {format}"))
}
