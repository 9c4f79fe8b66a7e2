//! Checks Compositions of mode Resources with the schemas of the kinds that they compose, as the
//! webhook of Crossplane v1 did.

mod patches;

use biplane_go::fmt::quote;
use biplane_manifest::v1_validation;
use biplane_model::{Gvk, Object, Value};

use crate::field_path;

/// The annotation that sets the mode.
pub const ANNOTATION: &str = "crossplane.io/composition-schema-aware-validation-mode";

/// What becomes of missing schemas and of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Both are warnings.
    Warn,
    /// Missing schemas are warnings.
    Loose,
    /// Nothing is a warning.
    Strict,
}

impl Mode {
    /// The mode that a Composition asks for.
    pub fn of(composition: &Object) -> Result<Self, String> {
        let annotations = composition.at(&["metadata", "annotations"]);
        match annotations.and_then(|annotations| annotations.get(ANNOTATION)).map(Value::as_str) {
            None | Some(Some("warn")) => Ok(Self::Warn),
            Some(Some("loose")) => Ok(Self::Loose),
            Some(Some("strict")) => Ok(Self::Strict),
            Some(other) => Err(format!(
                "invalid schema-aware composition validation mode: {}",
                other.unwrap_or_default()
            )),
        }
    }
}

/// The verdict about a Composition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why it is refused, if it is.
    pub denial: Option<Denial>,
    /// What its author should know.
    pub warnings: Vec<String>,
}

/// The reason for a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Its fields are wrong: `Invalid`, HTTP 422.
    Invalid(Vec<String>),
    /// Anything else: `Forbidden`, HTTP 403.
    Forbidden(String),
}

/// Reviews a Composition. Without CRDs, only its own rules count.
pub fn review(composition: &Object, crds: Option<&[Object]>) -> Verdict {
    let broken = v1_validation::findings(composition);
    if !broken.is_empty() {
        return Verdict { denial: Some(Denial::Invalid(broken)), warnings: Vec::new() };
    }
    let Some(crds) = crds else { return Verdict::default() };
    let forbidden =
        |text: String| Verdict { denial: Some(Denial::Forbidden(text)), warnings: Vec::new() };
    let mode = match Mode::of(composition) {
        Ok(mode) => mode,
        Err(reason) => return forbidden(format!("cannot get validation mode: {reason}")),
    };
    match missing(composition, crds) {
        Err(reason) => return forbidden(format!("cannot get the needed CRDs: [{reason}]")),
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) if mode == Mode::Strict => {
            return forbidden(format!("cannot get the needed CRDs: [{}]", missing.join(" ")));
        }
        Ok(warnings) => return Verdict { denial: None, warnings },
    }
    let errors = errors(composition, crds);
    if errors.is_empty() {
        return Verdict::default();
    }
    if mode != Mode::Warn {
        return Verdict { denial: Some(Denial::Invalid(errors)), warnings: Vec::new() };
    }
    let name = quote(composition.name());
    let warn = |error| format!("Composition {name} invalid for schema-aware validation: {error}");
    Verdict { denial: None, warnings: errors.into_iter().map(warn).collect() }
}

fn resources(composition: &Object) -> &[Value] {
    let resources = composition.at(&["spec", "resources"]).and_then(Value::as_array);
    resources.map_or(&[], Vec::as_slice)
}

fn composite_gvk(composition: &Object) -> Gvk {
    Gvk::new(
        composition.str_at(&["spec", "compositeTypeRef", "apiVersion"]),
        composition.str_at(&["spec", "compositeTypeRef", "kind"]),
    )
}

fn base_gvk(resource: &Value) -> Gvk {
    let text =
        |name: &str| resource.get("base").and_then(|base| base.get(name)).and_then(Value::as_str);
    Gvk::new(text("apiVersion").unwrap_or_default(), text("kind").unwrap_or_default())
}

fn of_kind<'a>(crds: &'a [Object], gvk: &'a Gvk) -> impl Iterator<Item = &'a Object> {
    crds.iter().filter(|crd| {
        crd.str_at(&["spec", "group"]) == gvk.group
            && crd.str_at(&["spec", "names", "kind"]) == gvk.kind
    })
}

/// The kinds whose CRDs are needed to review a Composition: that of the composite resource, then
/// those of the resources in their order.
pub fn needed(composition: &Object) -> impl Iterator<Item = Gvk> + '_ {
    let composed = resources(composition).iter().map(base_gvk);
    std::iter::once(composite_gvk(composition)).chain(composed)
}

/// The kinds that no CRD describes. Several for one kind are an error.
fn missing(composition: &Object, crds: &[Object]) -> Result<Vec<String>, String> {
    let mut missing = Vec::new();
    for gvk in needed(composition) {
        let found: Vec<&str> = of_kind(crds, &gvk).map(Object::name).collect();
        let id = format!("{}.{}", gvk.kind, gvk.group);
        match found.as_slice() {
            [] => missing.push(format!(
                "CustomResourceDefinition.apiextensions.k8s.io {} not found",
                quote(&id)
            )),
            [_] => {}
            names => {
                return Err(format!(
                    "Internal error occurred: more than one CRD found for {id}: [{}]",
                    names.join(" ")
                ));
            }
        }
    }
    Ok(missing)
}

/// The schema of a version of a kind.
fn schema<'a>(crds: &'a [Object], gvk: &Gvk) -> Option<&'a Value> {
    let same = |crd: &&Object| {
        crd.str_at(&["spec", "group"]) == gvk.group
            && crd.str_at(&["spec", "names", "kind"]) == gvk.kind
    };
    let crd = crds.iter().find(same)?;
    let versions = crd.at(&["spec", "versions"])?.as_array()?;
    let named =
        |version: &&Value| version.get("name").and_then(Value::as_str) == Some(&gvk.version);
    versions.iter().find(named)?.get("schema")?.get("openAPIV3Schema")
}

/// What the schemas do not allow: patches, then readiness checks, then connection details.
fn errors(composition: &Object, crds: &[Object]) -> Vec<String> {
    let composite = schema(crds, &composite_gvk(composition));
    let sets = composition.at(&["spec", "patchSets"]).and_then(Value::as_array);
    let sets = sets.map_or(&[][..], Vec::as_slice);
    let mut errors = Vec::new();
    for (i, resource) in resources(composition).iter().enumerate() {
        let composed = schema(crds, &base_gvk(resource));
        let schemas = patches::Schemas { composite, composed };
        for (j, patch) in list(resource, "patches").iter().enumerate() {
            let path = format!("spec.resources[{i}].patches[{j}]");
            errors.extend(patches::check(patch, &path, schemas, sets).err());
        }
    }
    for (i, resource) in resources(composition).iter().enumerate() {
        let composed = schema(crds, &base_gvk(resource));
        for (j, check) in list(resource, "readinessChecks").iter().enumerate() {
            let path = format!("spec.resources[{i}].readinessCheck[{j}].fieldPath");
            errors.extend(readiness(check, composed).map(|(field, problem)| {
                format!("{path}: Invalid value: {}: {problem}", quote(&field))
            }));
        }
    }
    for (i, resource) in resources(composition).iter().enumerate() {
        let composed = schema(crds, &base_gvk(resource));
        for (j, detail) in list(resource, "connectionDetails").iter().enumerate() {
            let Some(field) = detail.get("fromFieldPath").and_then(Value::as_str) else { continue };
            if let Err(problem) = field_path::check(composed, field) {
                let path = format!("spec.resources[{i}].connectionDetails[{j}].fromFieldPath");
                errors.push(format!("{path}: Invalid value: {}: {problem}", quote(field)));
            }
        }
    }
    errors
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The field of a readiness check, and what is wrong with it.
fn readiness(check: &Value, composed: Option<&Value>) -> Option<(String, String)> {
    let field = check.get("fieldPath").and_then(Value::as_str).filter(|field| !field.is_empty())?;
    let found = match field_path::check(composed, field) {
        Ok(found) => found?,
        Err(problem) => return Some((field.to_owned(), problem)),
    };
    let expected = match check.get("type").and_then(Value::as_str).unwrap_or_default() {
        "MatchString" => "string",
        "MatchInteger" => "integer",
        "MatchTrue" | "MatchFalse" => "boolean",
        _ => return None,
    };
    let problem = format!("expected field path to be of type {expected}");
    (found != expected).then(|| (field.to_owned(), problem))
}

#[cfg(test)]
mod tests;
