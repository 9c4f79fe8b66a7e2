//! What Compositions get wrong in the inputs of the functions in the box, told before anything runs.
//!
//! Nothing here is an error: the functions themselves accept it, or fail without saying where.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use biplane_go::fmt::quote;
use biplane_model::{Gvk, Object, Value, yaml};
use biplane_schema::structural::Schema;

use crate::extensions::Extensions;
use crate::field_path;
use crate::sources::{Origin, Resource};

/// The descriptions of the inputs, as the packages of the functions have them.
const INPUTS: [(&str, &str); 4] = [
    (
        "function-auto-ready",
        include_str!(
            "../../../packages/function-auto-ready/package/input/autoready.fn.crossplane.io_inputs.yaml"
        ),
    ),
    (
        "function-environment-configs",
        include_str!(
            "../../../packages/function-environment-configs/package/input/environmentconfigs.fn.crossplane.io_inputs.yaml"
        ),
    ),
    (
        "function-go-templating",
        include_str!(
            "../../../packages/function-go-templating/package/input/gotemplating.fn.crossplane.io_gotemplates.yaml"
        ),
    ),
    (
        "function-patch-and-transform",
        include_str!(
            "../../../packages/function-patch-and-transform/package/input/pt.fn.crossplane.io_resources.yaml"
        ),
    ),
];

/// The input of a function.
struct Input {
    function: &'static str,
    group: String,
    kind: String,
    versions: BTreeMap<String, Schema>,
}

static KNOWN: LazyLock<Vec<Input>> = LazyLock::new(|| {
    INPUTS.iter().filter_map(|(function, text)| Input::read(function, text)).collect()
});

impl Input {
    fn read(function: &'static str, text: &str) -> Option<Self> {
        let crd = Object::from_value(yaml::parse_one(function, text).ok()?.value)?;
        let versions = crd.at(&["spec", "versions"])?.as_array()?;
        let compile = |version: &Value| {
            let schema = version.get("schema")?.get("openAPIV3Schema")?;
            let name = version.get("name")?.as_str()?.to_owned();
            Some((name, Schema::parse_leniently(schema).ok()?))
        };
        Some(Self {
            function,
            group: crd.str_at(&["spec", "group"]).to_owned(),
            kind: crd.str_at(&["spec", "names", "kind"]).to_owned(),
            versions: versions.iter().filter_map(compile).collect(),
        })
    }
}

/// What is odd about the Compositions among resources, each with its place.
pub fn of(resources: &[Resource], extensions: &Extensions) -> Vec<String> {
    let mut advice = Vec::new();
    for Resource { object, origin } in resources {
        if object.kind() == "Composition"
            && object.gvk().group == "apiextensions.crossplane.io"
            && let Some(origin) = origin
        {
            let found = of_composition(object, &extensions.crds);
            advice.extend(found.into_iter().map(|remark| remark.shown(origin)));
        }
    }
    advice
}

/// A remark about a part of a Composition.
#[derive(Debug, PartialEq, Eq)]
pub struct Remark {
    /// The keys that lead to the part.
    pub path: Vec<String>,
    /// What is odd about it.
    pub text: String,
}

impl Remark {
    fn new(path: &[&str], text: impl Into<String>) -> Self {
        Self { path: path.iter().map(|step| (*step).to_owned()).collect(), text: text.into() }
    }

    /// The remark with its place.
    pub fn shown(&self, origin: &Origin) -> String {
        match origin.place(&self.path) {
            Some(place) => format!("{}\n--> {}, {place}", self.text, origin.file.display()),
            None => self.text.clone(),
        }
    }
}

/// What is odd about a Composition, given the CRDs that are known.
pub fn of_composition(composition: &Object, crds: &[Object]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut names = BTreeSet::new();
    let steps = composition.at(&["spec", "pipeline"]).and_then(Value::as_array);
    for (place, step) in steps.into_iter().flatten().enumerate() {
        let at = place.to_string();
        let here = ["spec", "pipeline", at.as_str()];
        let name = step.get("step").and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() && !names.insert(name) {
            let path = [&here[..], &["step"]].concat();
            let text = format!("another step of the pipeline is named {} too", quote(name));
            remarks.push(Remark::new(&path, text));
        }
        let Some(Value::Object(input)) = step.get("input") else { continue };
        let input = Object::from(input.clone());
        let function = step.get("functionRef").and_then(|reference| reference.get("name"));
        let function = function.and_then(Value::as_str).unwrap_or_default();
        let path = [&here[..], &["input"]].concat();
        check_input(&input, function, &path, &mut remarks);
        if input.gvk().group == "pt.fn.crossplane.io" {
            patches(composition, &input, &path, crds, &mut remarks);
        }
    }
    remarks
}

fn check_input(input: &Object, function: &str, path: &[&str], remarks: &mut Vec<Remark>) {
    let gvk = input.gvk();
    let Some(known) = KNOWN.iter().find(|known| known.function == function) else {
        // The function may have any name; then its input tells which one it is.
        if let Some(known) = KNOWN.iter().find(|known| known.group == gvk.group) {
            unknown_members(input, known, path, remarks);
        }
        return;
    };
    if known.group != gvk.group || known.kind != gvk.kind {
        let text = format!(
            "{function} takes an input of kind {} of {}, not {} of {}",
            known.kind,
            known.group,
            quote(&gvk.kind),
            quote(&gvk.group)
        );
        remarks.push(Remark::new(&[path, &["kind"]].concat(), text));
        return;
    }
    unknown_members(input, known, path, remarks);
}

fn unknown_members(input: &Object, known: &Input, path: &[&str], remarks: &mut Vec<Remark>) {
    let Some(schema) = known.versions.get(&input.gvk().version) else { return };
    let value = input.to_value();
    for member in schema.remove_unknown(&mut input.clone()) {
        let steps = crate::places::steps(&value, &member);
        let steps: Vec<&str> =
            path.iter().copied().chain(steps.iter().map(String::as_str)).collect();
        let text = format!("{} has no {member} in its input, and ignores it", known.function);
        remarks.push(Remark::new(&steps, text));
    }
}

/// The schema of a kind.
fn schema<'a>(crds: &'a [Object], gvk: &Gvk) -> Option<&'a Value> {
    let crd = crds.iter().rev().find(|crd| {
        crd.str_at(&["spec", "group"]) == gvk.group
            && crd.str_at(&["spec", "names", "kind"]) == gvk.kind
    })?;
    let versions = crd.at(&["spec", "versions"])?.as_array()?;
    let named =
        |version: &&Value| version.get("name").and_then(Value::as_str) == Some(&gvk.version);
    versions.iter().find(named)?.get("schema")?.get("openAPIV3Schema")
}

/// Checks names of resources, and paths of patches against the schemas of both sides.
fn patches(
    composition: &Object,
    input: &Object,
    path: &[&str],
    crds: &[Object],
    remarks: &mut Vec<Remark>,
) {
    let reference = |name: &str| composition.str_at(&["spec", "compositeTypeRef", name]);
    let composite = schema(crds, &Gvk::new(reference("apiVersion"), reference("kind")));
    let mut names = BTreeSet::new();
    let resources = input.get("resources").and_then(Value::as_array);
    for (i, resource) in resources.into_iter().flatten().enumerate() {
        let at = i.to_string();
        let here = [path, &["resources", at.as_str()]].concat();
        let name = resource.get("name").and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() && !names.insert(name) {
            let text = format!("another resource is named {} too", quote(name));
            remarks.push(Remark::new(&[&here[..], &["name"]].concat(), text));
        }
        let base = |name: &str| {
            let base = resource.get("base").and_then(|base| base.get(name));
            base.and_then(Value::as_str).unwrap_or_default()
        };
        let composed = schema(crds, &Gvk::new(base("apiVersion"), base("kind")));
        let list = resource.get("patches").and_then(Value::as_array);
        for (j, patch) in list.into_iter().flatten().enumerate() {
            let at = j.to_string();
            let here = [&here[..], &["patches", at.as_str()]].concat();
            let kind =
                patch.get("type").and_then(Value::as_str).unwrap_or("FromCompositeFieldPath");
            let (from, to) = match kind {
                "FromCompositeFieldPath" | "CombineFromComposite" => (composite, composed),
                "ToCompositeFieldPath" | "CombineToComposite" => (composed, composite),
                "FromEnvironmentFieldPath" | "CombineFromEnvironment" => (None, composed),
                "ToEnvironmentFieldPath" | "CombineToEnvironment" => (composed, None),
                _ => continue,
            };
            for (member, schema) in [("fromFieldPath", from), ("toFieldPath", to)] {
                let text = patch.get(member).and_then(Value::as_str);
                if let (Some(text), Some(schema)) = (text, schema) {
                    unknown_path(schema, text, &[&here[..], &[member]].concat(), remarks);
                }
            }
        }
    }
}

fn unknown_path(schema: &Value, text: &str, path: &[&str], remarks: &mut Vec<Remark>) {
    // A wildcard stands for every item, which the schema describes under its first index.
    let single = text.replace("[*]", "[0]");
    // Schemas say little about metadata, and every object has all of it.
    if text.starts_with("metadata") {
        return;
    }
    let Err(problem) = field_path::check(Some(schema), &single) else { return };
    if problem.contains("has an unsupported type") {
        return;
    }
    let near = field_path::nearest(schema, &single);
    let hint = near.map(|near| format!("; the nearest field is {near}")).unwrap_or_default();
    remarks.push(Remark::new(path, format!("no schema has {text}: {problem}{hint}")));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value)] // literals are easier to read

    use super::*;
    use serde_json::json;

    fn composition(steps: Value) -> Object {
        Object::from_value(json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
            "metadata": {"name": "c"},
            "spec": {"compositeTypeRef": {"apiVersion": "x.org/v1", "kind": "XThing"},
                     "mode": "Pipeline", "pipeline": steps},
        }))
        .unwrap()
    }

    fn crds() -> Vec<Object> {
        let crd = |kind: &str| {
            Object::from_value(json!({"spec": {"group": "x.org", "names": {"kind": kind}, "versions": [
                {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "properties": {"region": {"type": "string"}}}}}}}]}}))
            .unwrap()
        };
        vec![crd("XThing"), crd("Thing")]
    }

    fn texts(steps: Value) -> Vec<String> {
        let remarks = of_composition(&composition(steps), &crds());
        remarks
            .into_iter()
            .map(|remark| format!("{}: {}", remark.path.join("."), remark.text))
            .collect()
    }

    #[test]
    fn every_input_of_the_box_is_known() {
        assert_eq!(KNOWN.len(), INPUTS.len());
        assert!(KNOWN.iter().all(|input| !input.versions.is_empty()));
    }

    #[test]
    fn mistakes_in_inputs_are_told_with_their_place() {
        let step = |name: &str, function: &str, input: Value| json!({"step": name, "functionRef": {"name": function}, "input": input});
        let pt = "function-patch-and-transform";
        let resources = json!([
            {"name": "a", "base": {"apiVersion": "x.org/v1", "kind": "Thing"}, "patches": [
                {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.regoin", "toFieldPath": "spec.region"},
            ]},
            {"name": "a", "base": {"apiVersion": "x.org/v1", "kind": "Thing"}, "patchs": []},
        ]);
        let kind = json!({"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": resources});
        let found = texts(json!([
            step("one", pt, kind),
            step(
                "one",
                "function-auto-ready",
                json!({"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": []})
            ),
        ]));
        assert_eq!(
            found,
            [
                "spec.pipeline.0.input.resources.1.patchs: function-patch-and-transform has no resources[1].patchs in its input, and ignores it",
                "spec.pipeline.0.input.resources.0.patches.0.fromFieldPath: no schema has spec.regoin: field 'regoin' is not valid according to the schema; the nearest field is spec.region",
                "spec.pipeline.0.input.resources.1.name: another resource is named \"a\" too",
                "spec.pipeline.1.step: another step of the pipeline is named \"one\" too",
                "spec.pipeline.1.input.kind: function-auto-ready takes an input of kind Input of autoready.fn.crossplane.io, not \"Resources\" of \"pt.fn.crossplane.io\"",
            ]
        );
    }
}
