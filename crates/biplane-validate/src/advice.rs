//! What Compositions get wrong in the inputs of the functions in the box, told before anything runs.
//!
//! Nothing here is an error: the functions themselves accept it, or fail without saying where.
//! [`templates`] looks at composed resources and patches, and this file at everything else.

mod templates;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use biplane_go::fmt::quote;
use biplane_model::{Gvk, Object, Value, yaml};
use biplane_schema::structural::Schema;

use crate::extensions::Extensions;
use crate::sources::{Origin, Resource};
use templates::Templates;

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
    /// The input of a function by the name of the function, which may have the organization of its
    /// package in front.
    fn named(function: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| {
            let before = function.strip_suffix(known.function);
            before.is_some_and(|before| before.is_empty() || before.ends_with('-'))
        })
    }

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

/// A composite resource, for which a Composition is looked at.
#[derive(Clone, Debug)]
pub struct Composite<'a> {
    /// The composite resource with its defaults.
    pub object: &'a Object,
    /// The names, in the Composition, of composed resources that exist.
    pub existing: BTreeSet<&'a str>,
}

/// What is known besides a Composition.
#[derive(Clone, Debug, Default)]
pub struct Known<'a> {
    /// The CRDs of composite and composed resources.
    pub crds: &'a [Object],
    /// The composite resources that use the Composition.
    pub composites: Vec<Composite<'a>>,
    /// Whether the pipeline begins with a context, which may have an environment.
    pub has_context: bool,
}

/// The annotation of a composed resource with its name in the Composition.
const RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";

/// The names, in their Composition, of composed resources.
pub fn names_of<'a>(composed: impl IntoIterator<Item = &'a Object>) -> BTreeSet<&'a str> {
    let name = |object: &'a Object| object.str_at(&["metadata", "annotations", RESOURCE_NAME]);
    composed.into_iter().map(name).filter(|name| !name.is_empty()).collect()
}

/// What is odd about the Compositions among resources, each with its place.
pub fn of(resources: &[Resource], extensions: &Extensions) -> Vec<String> {
    let existing = names_of(resources.iter().map(|resource| &resource.object));
    let mut advice = Vec::new();
    for Resource { object, origin } in resources {
        if object.kind() == "Composition"
            && object.gvk().group == "apiextensions.crossplane.io"
            && let Some(origin) = origin
        {
            let users = composites(object, resources, &extensions.crds);
            let of = |object| Composite { object, existing: existing.clone() };
            let known = Known {
                crds: &extensions.crds,
                composites: users.iter().map(of).collect(),
                has_context: false,
            };
            let found = of_composition(object, &known);
            advice.extend(found.into_iter().map(|remark| remark.shown(origin)));
        }
    }
    advice
}

/// What is odd about definitions, each with its place: without a version, they define nothing.
pub fn of_definitions(extensions: &[Resource]) -> Vec<String> {
    let mut advice = Vec::new();
    for Resource { object, origin } in extensions {
        let defines = matches!(
            (object.gvk().group.as_str(), object.kind()),
            ("apiextensions.k8s.io", "CustomResourceDefinition")
                | ("apiextensions.crossplane.io", "CompositeResourceDefinition")
        );
        let versions = object.at(&["spec", "versions"]).and_then(Value::as_array);
        if let (true, None | Some([]), Some(origin)) =
            (defines, versions.map(Vec::as_slice), origin)
        {
            let name = quote(object.name());
            let text = format!(
                "{} {name} has no versions, so no resource is checked against it",
                object.kind()
            );
            advice.push(Remark::new(&["spec", "versions"], text).shown(origin));
        }
    }
    advice
}

/// The kind that a Composition composes.
fn composite_kind(composition: &Object) -> Gvk {
    let reference = |name: &str| composition.str_at(&["spec", "compositeTypeRef", name]);
    Gvk::new(reference("apiVersion"), reference("kind"))
}

/// The composite resources that use a Composition, with their defaults. Those that ask for another
/// one do not.
fn composites(composition: &Object, resources: &[Resource], crds: &[Object]) -> Vec<Object> {
    let gvk = composite_kind(composition);
    let schema = schema(crds, &gvk).and_then(|schema| Schema::parse_leniently(schema).ok());
    let uses = |object: &Object| {
        let asked = [
            &["spec", "crossplane", "compositionRef", "name"][..],
            &["spec", "compositionRef", "name"],
        ];
        let asked = asked.map(|path| object.str_at(path));
        object.gvk() == gvk
            && asked.iter().all(|name| name.is_empty() || *name == composition.name())
    };
    let objects = resources.iter().map(|resource| &resource.object).filter(|object| uses(object));
    let with_defaults = |object: &Object| {
        let mut object = object.clone();
        if let Some(schema) = &schema {
            schema.default(&mut object);
        }
        object
    };
    objects.map(with_defaults).collect()
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

/// What is odd about a Composition.
pub fn of_composition(composition: &Object, known: &Known<'_>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let composite = schema(known.crds, &composite_kind(composition));
    let mut names = BTreeSet::new();
    let native = composition.at(&["spec", "environment"]).is_some_and(Value::is_object);
    let mut has_environment = native || known.has_context;
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
        let function = step.get("functionRef").and_then(|reference| reference.get("name"));
        let function = function.and_then(Value::as_str).unwrap_or_default();
        if let Some(Value::Object(input)) = step.get("input") {
            let input = Object::from(input.clone());
            let path = [&here[..], &["input"]].concat();
            check_input(&input, function, &path, &mut remarks);
            if input.gvk().group == "pt.fn.crossplane.io" {
                let templates = Templates { composite, known, has_environment };
                remarks.extend(templates.check(&input, &path));
            }
        }
        // Any other function may write an environment.
        has_environment |= Input::named(function).is_none_or(|f| f.function != AUTO_READY);
    }
    // A Composition of mode Resources has the same templates. Its environment is its own.
    if let Some(Value::Object(spec)) = composition.get("spec").filter(|_| steps.is_none()) {
        let templates = Templates { composite, known, has_environment: true };
        remarks.extend(templates.check(&Object::from(spec.clone()), &["spec"]));
    }
    remarks
}

/// The function that writes no environment.
const AUTO_READY: &str = "function-auto-ready";

fn check_input(input: &Object, function: &str, path: &[&str], remarks: &mut Vec<Remark>) {
    let gvk = input.gvk();
    let Some(known) = Input::named(function) else {
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
        let text = format!("{} has no {member} in its input, and refuses it", known.function);
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

#[cfg(test)]
mod tests;
