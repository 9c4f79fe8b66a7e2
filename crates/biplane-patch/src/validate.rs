//! Validation of patches, transforms, connection details and readiness checks beyond their types.
//! Only the first error is reported.

use biplane_go::fmt::quote;
use biplane_go::json::{Style, write_string};
use biplane_go::regex::GoRegex;

use crate::config::{
    Combine, ConnectionDetail, Convert, Match, Math, Patch, Pattern, ReadinessCheck, Text,
    Transform,
};

/// A validation error of a field.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct FieldError {
    field: String,
    problem: String,
}

/// Whether a check passed.
pub type Checked = Result<(), FieldError>;

/// An error about a value that is missing.
pub fn required(field: &str, detail: &str) -> Checked {
    Err(FieldError { field: field.into(), problem: format!("Required value: {detail}") })
}

/// An error about an enum value, which upstream prints as JSON.
pub fn invalid(field: &str, value: &str, detail: &str) -> Checked {
    let mut shown = String::new();
    write_string(&mut shown, value, Style::MARSHAL);
    refuse(field, &shown, detail)
}

/// An error about any other string, which upstream prints like Go.
fn invalid_text(field: &str, value: &str, detail: &str) -> Checked {
    refuse(field, &quote(value), detail)
}

fn refuse(field: &str, shown: &str, detail: &str) -> Checked {
    let problem = format!("Invalid value: {shown}: {detail}");
    Err(FieldError { field: field.into(), problem })
}

/// Adds where an error is.
pub trait Within {
    /// Prefixes the field of the error with the path of its parent.
    #[must_use]
    fn within(self, parent: impl FnOnce() -> String) -> Self;
}

impl Within for Checked {
    fn within(self, parent: impl FnOnce() -> String) -> Self {
        self.map_err(|error| FieldError { field: format!("{}.{}", parent(), error.field), ..error })
    }
}

/// Checks every item of a list.
pub fn each<T>(name: &str, items: &[T], check: impl Fn(&T) -> Checked) -> Checked {
    let mut items = items.iter().enumerate();
    items.try_for_each(|(index, item)| check(item).within(|| format!("{name}[{index}]")))
}

/// Checks a patch.
pub fn patch(patch: &Patch, may_use_sets: bool) -> Checked {
    let kind = patch.kind.as_str();
    match kind {
        "FromCompositeFieldPath"
        | "ToCompositeFieldPath"
        | "FromEnvironmentFieldPath"
        | "ToEnvironmentFieldPath" => {
            if patch.source_path().is_empty() {
                let detail = format!("fromFieldPath must be set for patch type {kind}");
                return required("fromFieldPath", &detail);
            }
        }
        "PatchSet" if may_use_sets => {
            if patch.set_name.as_deref().unwrap_or_default().is_empty() {
                return required(
                    "patchSetName",
                    "patchSetName must be set for patch type PatchSet",
                );
            }
        }
        "PatchSet" => {
            let detail =
                "patch type *v1beta1.PatchSetPatch does not support patch of type PatchSet";
            return invalid("type", kind, detail);
        }
        "CombineFromComposite"
        | "CombineToComposite"
        | "CombineFromEnvironment"
        | "CombineToEnvironment" => {
            // Nothing else of such a patch is validated before it runs.
            let Some(config) = &patch.combine else {
                return required("combine", &format!("combine must be set for patch type {kind}"));
            };
            if patch.target_path().is_empty() {
                let detail = format!("toFieldPath must be set for patch type {kind}");
                return required("toFieldPath", &detail);
            }
            return combine(config).within(|| "combine".into());
        }
        _ => return invalid("type", kind, "unknown patch type"),
    }
    each("transforms", &patch.transforms, transform)?;
    let Some(policy) = &patch.policy else { return Ok(()) };
    if !matches!(
        policy.to.as_str(),
        "Replace"
            | "MergeObjects"
            | "MergeObjectsAppendArrays"
            | "ForceMergeObjects"
            | "ForceMergeObjectsAppendArrays"
            | "MergeObject"
            | "AppendArray"
    ) {
        return invalid("policy.toFieldPathPolicy", &policy.to, "unknown toFieldPathPolicy");
    }
    if !matches!(policy.from.as_str(), "Required" | "Optional") {
        return invalid("policy.fromFieldPathPolicy", &policy.from, "unknown fromFieldPathPolicy");
    }
    Ok(())
}

fn combine(combine: &Combine) -> Checked {
    match combine.strategy.as_str() {
        "string" if combine.format.is_none() => {
            return required("string", "string must be set for combine strategy string");
        }
        "string" => {}
        "" => return required("strategy", "a combine strategy must be provided"),
        other => return invalid("strategy", other, "unknown strategy type"),
    }
    if combine.variables.is_empty() {
        return required("variables", "at least one variable must be provided");
    }
    match combine.variables.iter().position(String::is_empty) {
        Some(index) => required(
            &format!("variables[{index}].fromFieldPath"),
            "fromFieldPath must be set for each combine variable",
        ),
        None => Ok(()),
    }
}

fn transform(transform: &Transform) -> Checked {
    let missing =
        |kind: &str| required(kind, &format!("given transform type {kind} requires configuration"));
    let kind = transform.kind.as_str();
    let within = || kind.to_owned();
    match kind {
        "math" => transform.math.as_ref().map_or_else(|| missing(kind), |c| math(c).within(within)),
        "map" => match &transform.map {
            None => missing(kind),
            Some(pairs) if pairs.is_empty() => required(
                "map.pairs",
                "at least one pair must be specified if a map transform is specified",
            ),
            Some(_) => Ok(()),
        },
        "match" => transform
            .matching
            .as_ref()
            .map_or_else(|| missing(kind), |c| matching(c).within(within)),
        "string" => {
            transform.string.as_ref().map_or_else(|| missing(kind), |c| string(c).within(within))
        }
        "convert" => {
            transform.convert.as_ref().map_or_else(|| missing(kind), |c| convert(c).within(within))
        }
        other => invalid("type", other, "unknown transform type"),
    }
}

/// Checks a `math` transform.
pub fn math(math: &Math) -> Checked {
    match math.kind.as_str() {
        "" => required("type", "math transform type is required"),
        "Multiply" if math.multiply.is_none() => {
            required("multiply", "must specify a value if a multiply math transform is specified")
        }
        "ClampMin" if math.clamp_min.is_none() => {
            required("clampMin", "must specify a value if a clamp min math transform is specified")
        }
        "ClampMax" if math.clamp_max.is_none() => {
            required("clampMax", "must specify a value if a clamp max math transform is specified")
        }
        "Multiply" | "ClampMin" | "ClampMax" => Ok(()),
        other => invalid("type", other, "unknown math transform type"),
    }
}

fn matching(matching: &Match) -> Checked {
    if matching.patterns.is_empty() {
        return required(
            "patterns",
            "at least one pattern must be specified if a match transform is specified",
        );
    }
    each("patterns", &matching.patterns, pattern)
}

fn pattern(pattern: &Pattern) -> Checked {
    match pattern.kind.as_str() {
        "literal" | "" => match pattern.literal {
            None => required("literal", "literal pattern type requires a literal"),
            Some(_) => Ok(()),
        },
        "regexp" => match &pattern.regexp {
            None => required("regexp", "regexp pattern type requires a regexp"),
            Some(regexp) if GoRegex::new(regexp).is_err() => {
                invalid_text("regexp", regexp, "invalid regexp")
            }
            Some(_) => Ok(()),
        },
        other => invalid("type", other, "unknown pattern type"),
    }
}

fn string(string: &Text) -> Checked {
    match string.kind.as_str() {
        "" => required("type", "string transform type is required"),
        "Format" if string.format.is_none() => {
            required("fmt", "format transform requires a format")
        }
        "Convert" if string.convert.is_none() => {
            required("convert", "convert transform requires a conversion type")
        }
        "TrimPrefix" | "TrimSuffix" if string.trim.is_none() => {
            required("trim", "trim transform requires a trim value")
        }
        "Regexp" => match &string.regexp {
            None => required("regexp", "regexp transform requires a regexp"),
            Some(regexp) if regexp.pattern.is_empty() => {
                required("regexp.match", "regexp transform requires a match")
            }
            Some(regexp) if GoRegex::new(&regexp.pattern).is_err() => {
                invalid_text("regexp.match", &regexp.pattern, "invalid regexp")
            }
            Some(_) => Ok(()),
        },
        "Join" if string.separator.is_none() => required("join", "join transform requires a join"),
        "Replace" => match &string.replace {
            None => required("replace", "replace transform requires a replace"),
            Some(replace) if replace.search.is_empty() => {
                required("replace.search", "replace transform requires a search")
            }
            Some(_) => Ok(()),
        },
        "Format" | "Convert" | "TrimPrefix" | "TrimSuffix" | "Join" => Ok(()),
        other => invalid("type", other, "unknown string transform type"),
    }
}

/// Checks a `convert` transform.
pub fn convert(convert: &Convert) -> Checked {
    if let Some(format) = &convert.format
        && !matches!(format.as_str(), "none" | "quantity" | "json")
    {
        return invalid("format", format, "invalid format");
    }
    match convert.to.as_str() {
        "string" | "bool" | "int" | "int64" | "float64" | "object" | "array" => Ok(()),
        other => invalid("toType", other, "invalid type"),
    }
}

/// Checks a connection detail.
pub fn connection_detail(detail: &ConnectionDetail) -> Checked {
    let needs: (_, _, &str) = match detail.kind.as_str() {
        "" => return required("type", "connection detail type is required"),
        "FromValue" => (&detail.value, "value", "value connection detail requires a value"),
        "FromConnectionSecretKey" => (
            &detail.key,
            "fromConnectionSecretKey",
            "from connection secret key connection detail requires a key",
        ),
        "FromFieldPath" => (
            &detail.path,
            "fromFieldPath",
            "from field path connection detail requires a field path",
        ),
        other => return invalid_text("type", other, "unknown connection detail type"),
    };
    if detail.name.is_empty() {
        return required("name", "name is required");
    }
    match needs {
        (None, field, text) => required(field, text),
        (Some(_), ..) => Ok(()),
    }
}

/// Checks a readiness check.
pub fn readiness_check(check: &ReadinessCheck) -> Checked {
    match check.kind.as_str() {
        "None" => return Ok(()),
        "MatchString" if check.string.is_none() => {
            return required("matchString", "cannot be nil for type MatchString");
        }
        "MatchInteger" if check.integer.is_none() => {
            return required("matchInteger", "cannot be nil for type MatchInteger");
        }
        "MatchCondition" => {
            let empty = "cannot be empty for type MatchCondition";
            return match &check.condition {
                Some((kind, _)) if kind.is_empty() => required("matchCondition.type", empty),
                Some((_, status)) if status.is_empty() => required("matchCondition.status", empty),
                _ => Ok(()),
            };
        }
        "MatchString" | "MatchInteger" | "NonEmpty" | "MatchTrue" | "MatchFalse" => {}
        other => return invalid_text("type", other, "unknown readiness check type"),
    }
    match check.path {
        None => required("fieldPath", "cannot be empty"),
        Some(_) => Ok(()),
    }
}
