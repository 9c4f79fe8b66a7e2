//! Validates a resource with the schema of its kind.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};
use biplane_go::fmt::quote;
use biplane_model::{Gvk, Map, Number, Object, Value};
use biplane_schema::rules::{Limits, Rules};
use biplane_schema::structural::{FieldError, Schema};

use crate::builtin;
use crate::report::{Check, Finding, Outcome, Status};
use crate::sources::Resource;

/// The kinds that schemas are known for.
#[derive(Debug)]
pub struct Kinds<'a> {
    versions: BTreeMap<Gvk, Version<'a>>,
    /// The first CRD of each group and kind, by which defaults are set.
    first: BTreeMap<(String, String), &'a Object>,
}

/// A version of a kind. Its schema is compiled when it is first needed.
#[derive(Debug)]
struct Version<'a> {
    schema: &'a Value,
    compiled: OnceLock<Result<Compiled, String>>,
}

#[derive(Debug)]
struct Compiled {
    schema: Schema,
    rules: Option<Rules>,
}

impl Version<'_> {
    fn compiled(&self) -> Result<&Compiled, &str> {
        let compile = || {
            let schema = Schema::parse_leniently(self.schema).map_err(|error| error.to_string())?;
            Ok(Compiled { schema, rules: Rules::read(self.schema) })
        };
        match self.compiled.get_or_init(compile) {
            Ok(compiled) => Ok(compiled),
            Err(reason) => Err(reason),
        }
    }
}

/// The schema of a version of a CRD.
fn schema_of(version: &Value) -> Option<&Value> {
    version.get("schema")?.get("openAPIV3Schema").filter(|schema| schema.is_object())
}

fn versions(crd: &Object) -> &[Value] {
    crd.at(&["spec", "versions"]).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl<'a> Kinds<'a> {
    /// The kinds of CRDs. The last schema of a version counts.
    pub fn new(crds: &'a [Object]) -> Result<Self> {
        let mut kinds = Self { versions: BTreeMap::new(), first: BTreeMap::new() };
        for crd in crds {
            let group = crd.str_at(&["spec", "group"]);
            let kind = crd.str_at(&["spec", "names", "kind"]);
            kinds.first.entry((group.to_owned(), kind.to_owned())).or_insert(crd);
            for version in versions(crd) {
                let Some(schema) = schema_of(version) else { continue };
                check_structure(schema).context("cannot create schema validators")?;
                let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
                let gvk = Gvk {
                    group: group.to_owned(),
                    version: name.to_owned(),
                    kind: kind.to_owned(),
                };
                kinds.versions.insert(gvk, Version { schema, compiled: OnceLock::new() });
            }
        }
        Ok(kinds)
    }

    /// The schema of a kind, as its CRD has it.
    pub fn schema(&self, gvk: &Gvk) -> Option<&'a Value> {
        self.versions.get(gvk).map(|version| version.schema)
    }

    /// Validates a resource.
    pub fn validate(&self, resource: &Resource) -> Outcome {
        let object = &resource.object;
        let gvk = object.gvk();
        let text = |path: &[&str]| object.str_at(path).to_owned();
        let mut name = text(&["metadata", "name"]);
        if name.is_empty() {
            name = text(&["metadata", "annotations", "crossplane.io/composition-resource-name"]);
        }
        let mut outcome = Outcome {
            api_version: object.api_version().to_owned(),
            kind: object.kind().to_owned(),
            name,
            namespace: text(&["metadata", "namespace"]),
            status: Status::Valid,
            findings: Vec::new(),
        };
        let Some(version) = self.versions.get(&gvk) else {
            match builtin::problems(object) {
                None => outcome.status = Status::MissingSchema,
                Some(problems) => {
                    outcome.findings.extend(problems.into_iter().map(|message| Finding {
                        check: Check::Schema,
                        field: None,
                        message,
                        value: None,
                    }));
                    outcome.settle();
                }
            }
            return outcome;
        };
        let mut draft = object.clone();
        if let Err(message) = self.default(&gvk, &mut draft) {
            let check = Check::Defaulting;
            outcome.findings.push(Finding { check, field: None, message, value: None });
        }
        match version.compiled() {
            Ok(compiled) => compiled.check(&mut draft, &mut outcome.findings),
            Err(reason) => outcome.findings.push(Finding {
                check: Check::Schema,
                field: None,
                message: reason.to_owned(),
                value: None,
            }),
        }
        outcome.settle();
        outcome
    }

    /// Sets defaults by the first CRD of the kind.
    fn default(&self, gvk: &Gvk, draft: &mut Object) -> Result<(), String> {
        let Some(crd) = self.first.get(&(gvk.group.clone(), gvk.kind.clone())) else {
            return Ok(());
        };
        let named = |version: &&Value| {
            version.get("name").and_then(Value::as_str) == Some(gvk.version.as_str())
        };
        let schema = versions(crd).iter().find(named).and_then(schema_of).ok_or_else(|| {
            format!("no schema found for version {} in CRD {}", gvk.version, crd.name())
        })?;
        match self.versions.get(gvk).filter(|version| std::ptr::eq(version.schema, schema)) {
            Some(version) => version.compiled().map_err(str::to_owned)?.schema.default(draft),
            None => {
                Schema::parse_leniently(schema).map_err(|error| error.to_string())?.default(draft);
            }
        }
        Ok(())
    }
}

impl Outcome {
    fn settle(&mut self) {
        self.status = if self.findings.is_empty() {
            Status::Valid
        } else if self.findings.iter().all(|finding| finding.check == Check::Defaulting) {
            Status::DefaultingFailed
        } else {
            Status::Invalid
        };
    }
}

impl Compiled {
    fn check(&self, draft: &mut Object, findings: &mut Vec<Finding>) {
        let as_read = Object::from(doubles(draft));
        let errors = self.schema.validate_values(&as_read);
        findings.extend(errors.into_iter().map(|error| finding(Check::Schema, error)));
        for path in self.schema.remove_unknown(draft) {
            let last = path.rsplit('.').next().unwrap_or_default();
            let message = format!("{path}: Invalid value: {0}: unknown field: {0}", quote(last));
            let value = Some(Value::String(last.to_owned()));
            let check = Check::UnknownField;
            findings.push(Finding { check, field: Some(path), message, value });
        }
        if let Some(rules) = &self.rules {
            let errors = rules.validate(draft, None, Limits::COMMAND_LINE);
            findings.extend(errors.into_iter().map(|error| finding(Check::Rules, error)));
        }
    }
}

fn finding(check: Check, error: FieldError) -> Finding {
    let message = error.to_string();
    let value = Some(error.value).filter(|value| !value.is_null());
    Finding { check, field: Some(error.field), message, value }
}

/// The members with numbers as doubles, which is how the reference validates them. Integers that a
/// double cannot hold stay integers, because an API server accepts them.
fn doubles(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter().map(|(name, value)| (name.clone(), double(value))).collect()
}

/// From here on a double does not hold every integer.
const EXACT: u64 = 1 << 53;

fn double(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let large = number.as_i64().is_some_and(|int| int.unsigned_abs() >= EXACT);
            let double = number.as_f64().filter(|_| !large).and_then(Number::from_f64);
            Value::Number(double.unwrap_or_else(|| number.clone()))
        }
        Value::Array(items) => items.iter().map(double).collect(),
        Value::Object(map) => Value::Object(doubles(map)),
        other => other.clone(),
    }
}

/// Keywords that no schema of a CRD may have.
const UNSUPPORTED: [&str; 6] =
    ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];

/// Refuses a schema that cannot be used at all.
fn check_structure(schema: &Value) -> Result<()> {
    let Some(map) = schema.as_object() else { return Ok(()) };
    if map.get("items").is_some_and(Value::is_array) {
        bail!("OpenAPIV3Schema 'items' must be a schema, but is an array");
    }
    for keyword in UNSUPPORTED {
        let given = map.get(keyword).is_some_and(|value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => true,
        });
        if given {
            bail!("OpenAPIV3Schema '{keyword}' is not supported");
        }
    }
    if map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        bail!("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined");
    }
    for keyword in ["items", "additionalProperties", "not"] {
        map.get(keyword).map_or(Ok(()), check_structure)?;
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let parts = map.get(keyword).and_then(Value::as_array);
        parts.into_iter().flatten().try_for_each(check_structure)?;
    }
    let properties = map.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().try_for_each(|(_, property)| check_structure(property))
}
