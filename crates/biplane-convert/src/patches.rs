//! Converts patches, transforms and connection details from the types of the control plane to those of
//! function-patch-and-transform.

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_model::typed::{self, Field, Names, tables};
use biplane_model::{Map, Object, Value};

use crate::document::{cannot_unmarshal, kind_of};

/// Gives a patch a type, turns its merge options into a policy, and gives its transforms types.
pub(crate) fn convert_patch(patch: &mut Map<String, Value>) -> Result<()> {
    if !patch.contains_key("type") {
        patch.insert("type".to_owned(), "FromCompositeFieldPath".into());
    }
    convert_policy(patch)?;
    let Some(transforms) = decode(patch.get("transforms"), tables::v1::TRANSFORM) else {
        return Ok(());
    };
    let converted = transforms.into_iter().enumerate().map(|(index, mut transform)| {
        convert_transform(&mut transform).with_context(|| format!("transforms[{index}]"))?;
        Ok(Value::Object(transform))
    });
    let converted: Result<Vec<_>> = converted.collect();
    patch.insert("transforms".to_owned(), converted?.into());
    Ok(())
}

fn convert_policy(patch: &mut Map<String, Value>) -> Result<()> {
    let policy = match patch.get_mut("policy") {
        None => return Ok(()),
        Some(Value::Object(policy)) => policy,
        Some(Value::Null) => bail!(
            "failed to delete policy.mergeOptions: cannot delete policy.mergeOptions: not an object"
        ),
        Some(_) => bail!("failed to get mergeOptions: policy: not an object"),
    };
    let Some(options) = policy.remove("mergeOptions") else { return Ok(()) };
    let strategy = strategy(&options)
        .map_err(|problem| anyhow!("cannot unmarshal value from JSON: {problem}"))
        .context("failed to get mergeOptions")?;
    if let Some(strategy) = strategy {
        policy.insert("toFieldPath".to_owned(), strategy.into());
    }
    Ok(())
}

/// The policy that does what merge options did.
fn strategy(options: &Value) -> Result<Option<&'static str>, String> {
    let options = match options {
        Value::Null => return Ok(None),
        Value::Object(options) => options,
        other => return Err(cannot_unmarshal(other, "v1.MergeOptions")),
    };
    let flag = |name: &str| match options.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(format!(
            "json: cannot unmarshal {} into Go struct field MergeOptions.{name} of type bool",
            kind_of(other)
        )),
    };
    let (append, keep) = (flag("appendSlice")?, flag("keepMapValues")?);
    Ok(Some(match (keep, append) {
        (true, true) => "MergeObjectsAppendArrays",
        (true, false) => "MergeObjects",
        (false, true) => "ForceMergeObjectsAppendArrays",
        (false, false) => "ForceMergeObjects",
    }))
}

/// The reference crashes if a transform of type `math` or `string` has no such block.
fn convert_transform(transform: &mut Map<String, Value>) -> Result<()> {
    let untyped = transform.get("type").and_then(Value::as_str).is_none_or(str::is_empty);
    if untyped {
        let inferred = ["string", "math"].into_iter().find(|kind| transform.contains_key(*kind));
        transform.insert("type".to_owned(), inferred.unwrap_or_default().into());
    }
    let kind = transform.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let inferences: &[(&str, &str)] = match kind.as_str() {
        "math" => &[("clampMin", "ClampMin"), ("clampMax", "ClampMax"), ("multiply", "Multiply")],
        "string" => &[("fmt", "Format"), ("convert", "Convert"), ("regexp", "Regexp")],
        _ => return Ok(()),
    };
    let Some(Value::Object(block)) = transform.get_mut(&kind) else {
        bail!("type is {kind}, but there is no {kind}");
    };
    if !block.contains_key("type")
        && let Some((_, inferred)) = inferences.iter().find(|(key, _)| block.contains_key(*key))
    {
        block.insert("type".to_owned(), (*inferred).into());
    }
    Ok(())
}

/// Connection details with the types that their values imply. `None` if they stay as they are.
pub(crate) fn convert_connection_details(details: Option<&Value>) -> Option<Value> {
    let details = decode(details, tables::v1::CONNECTION_DETAIL)?;
    let converted = details.into_iter().map(|mut detail| {
        detail.remove("type");
        let inferences = [
            ("value", "FromValue"),
            ("fromFieldPath", "FromFieldPath"),
            ("fromConnectionSecretKey", "FromConnectionSecretKey"),
        ];
        let inferred = inferences.into_iter().find(|(key, _)| detail.contains_key(*key));
        if let Some((key, inferred)) = inferred {
            detail.insert("type".to_owned(), inferred.into());
            if key == "fromConnectionSecretKey"
                && !detail.contains_key("name")
                && let Some(name) = detail.get(key).cloned()
            {
                detail.insert("name".to_owned(), name);
            }
        }
        Value::Object(detail)
    });
    Some(converted.collect())
}

/// The items of a list, decoded and encoded again. `None` if one of them does not fit its type.
fn decode(list: Option<&Value>, fields: &[Field]) -> Option<Vec<Map<String, Value>>> {
    let items = list?.as_array()?.iter().map(|item| {
        let object = match item {
            Value::Null => Object::new(),
            Value::Object(map) => Object::from_value(Value::Object(map.clone()))?,
            _ => return None,
        };
        typed::decoded(&object, fields, Names::OBJECT).ok()?;
        Some(typed::normal(&object, fields))
    });
    items.collect()
}
