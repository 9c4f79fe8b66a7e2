//! What each rendered document means for the response.

use std::collections::BTreeMap;

use biplane_function::resource::{Composite, DesiredComposed};
use biplane_function::v1::resource_selector::Match;
use biplane_function::v1::{
    Condition, MatchLabels, Ready, Requirements, ResourceSelector, RunFunctionRequest,
    RunFunctionResponse, Status, Target,
};
use biplane_function::{Budget, request as asked, response as reply};
use biplane_go::base64;
use biplane_go::fmt::quote;
use biplane_go::time::GoDuration;
use biplane_model::{Map, Object, Value};

use super::context::{self, Base};
use super::typed::{self, Struct};

/// Names the composed resource that a document describes.
pub(super) const NAME_ANNOTATION: &str = "gotemplating.fn.crossplane.io/composition-resource-name";
const READY_ANNOTATION: &str = "gotemplating.fn.crossplane.io/ready";
const TTL_ANNOTATION: &str = "gotemplating.fn.crossplane.io/ttl";
/// The version of documents that are not resources.
const META_VERSION: &str = "meta.gotemplating.fn.crossplane.io/v1alpha1";
/// Conditions that only Crossplane sets.
const RESERVED: [&str; 4] = ["Ready", "Synced", "Healthy", "UpToDate"];
const OBJECT: &str = "map[string]interface {}";

/// A field of an object that is a string, or an empty text.
pub(super) fn text_of<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Applies documents in their order, and writes the desired state.
pub(super) fn apply(
    documents: Vec<Map<String, Value>>,
    request: &RunFunctionRequest,
    response: &mut RunFunctionResponse,
    budget: &Budget,
) -> Result<(), String> {
    let observed = asked::observed_composite(request).resource;
    if let Some(ttl) = annotation(&observed, TTL_ANNOTATION) {
        // A text that is no duration is zero.
        super::set_ttl(response, ttl.parse::<GoDuration>().unwrap_or_default());
    }
    let desired = Composite { ready: Ready::Unspecified, ..asked::desired_composite(request) };
    let mut desired = Desired {
        composite: desired,
        composed: asked::desired_composed(request),
        requirements: Requirements::default(),
        base: Base::of(request.context.as_ref()),
        is_composite: (observed.api_version().to_owned(), observed.kind().to_owned()),
    };
    for document in documents {
        budget.check().map_err(|exceeded| exceeded.to_string())?;
        desired.apply(document, response)?;
    }
    let Desired { composite, composed, requirements, base, .. } = desired;
    reply::set_desired_composed(response, composed);
    reply::set_desired_composite(response, composite);
    if requirements != Requirements::default() {
        response.requirements = Some(requirements);
    }
    context::add_resources(base, &request.extra_resources, response);
    context::add_resources(base, &request.required_resources, response);
    Ok(())
}

/// An annotation. There is none if any annotation is not a string.
fn annotation<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    let annotations = object.get("metadata")?.get("annotations")?.as_object()?;
    if annotations.values().any(|value| !value.is_string()) {
        return None;
    }
    annotations.get(key)?.as_str()
}

fn remove_annotation(document: &mut Map<String, Value>, key: &str) {
    let metadata = document.get_mut("metadata").and_then(Value::as_object_mut);
    let annotations = metadata.and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.remove(key);
    }
}

/// The desired state while documents are applied.
struct Desired {
    composite: Composite,
    composed: BTreeMap<String, DesiredComposed>,
    requirements: Requirements,
    base: Base,
    /// The version and kind of the composite resource.
    is_composite: (String, String),
}

impl Desired {
    fn apply(
        &mut self,
        mut document: Map<String, Value>,
        response: &mut RunFunctionResponse,
    ) -> Result<(), String> {
        let is_meta = text_of(&document, "apiVersion") == META_VERSION;
        let mut ready = None;
        if !is_meta && let Some(text) = annotation(&document, READY_ANNOTATION) {
            ready = Some(readiness(text)?);
            remove_annotation(&mut document, READY_ANNOTATION);
        }
        let name = annotation(&document, NAME_ANNOTATION).map(str::to_owned);
        let (api_version, kind) = &self.is_composite;
        let is_composite = text_of(&document, "apiVersion") == api_version
            && text_of(&document, "kind") == kind
            && name.is_none();
        if is_composite {
            return self.composite(document, ready);
        }
        if is_meta {
            return self.meta(document, response);
        }
        let Some(name) = name else {
            let kind = quote(text_of(&document, "kind"));
            return Err(format!(
                "{kind} template is missing required {} annotation",
                quote(NAME_ANNOTATION)
            ));
        };
        remove_annotation(&mut document, NAME_ANNOTATION);
        let ready = ready.unwrap_or(Ready::Unspecified);
        self.composed.insert(name, DesiredComposed { resource: Object::from(document), ready });
        Ok(())
    }

    /// Of the composite resource, only status and readiness count.
    fn composite(
        &mut self,
        mut document: Map<String, Value>,
        ready: Option<Ready>,
    ) -> Result<(), String> {
        let below = status(self.composite.resource.get("status").cloned())
            .map_err(|error| format!("cannot get desired composite status: {error}"))?;
        let above = status(document.remove("status"))
            .map_err(|error| format!("cannot get templated composite status: {error}"))?;
        if below.is_some() || above.is_some() {
            let status = match (below, above.unwrap_or_else(|| Value::Object(Map::new()))) {
                (Some(Value::Object(mut below)), Value::Object(above)) => {
                    context::merge_over(&mut below, above);
                    Value::Object(below)
                }
                (Some(below), Value::Null) => below,
                (_, above) => above,
            };
            self.composite.resource.make_mut().insert("status".to_owned(), status);
        }
        if let Some(ready) = ready {
            self.composite.ready = ready;
        }
        Ok(())
    }

    fn meta(
        &mut self,
        mut document: Map<String, Value>,
        response: &mut RunFunctionResponse,
    ) -> Result<(), String> {
        match text_of(&document, "kind") {
            "CompositeConnectionDetails" => self.connection_details(document.get("data")),
            "ClaimConditions" => return conditions(document.get("conditions"), response),
            "Context" => {
                let data = match document.remove("data") {
                    None => Err("data: no such field".to_owned()),
                    Some(Value::Object(data)) => Ok(data),
                    Some(Value::Null) => Ok(Map::new()),
                    Some(other) => Err(cannot_decode(&typed::mismatch(&other, OBJECT))),
                };
                let data =
                    data.map_err(|error| format!("cannot get Contexts from input: {error}"))?;
                context::merge(self.base, data, response);
            }
            "ExtraResources" => return self.require(document.get("requirements")),
            kind => {
                return Err(format!(
                    "invalid kind {} for apiVersion {} - must be one of \
                     CompositeConnectionDetails, Context or ExtraResources",
                    quote(kind),
                    quote(META_VERSION)
                ));
            }
        }
        Ok(())
    }

    /// Upstream ignores data that is not an object of strings. Of a value that is not base64, it
    /// takes what can be decoded.
    fn connection_details(&mut self, data: Option<&Value>) {
        let Some(Value::Object(data)) = data else { return };
        if data.values().any(|value| !value.is_string()) {
            return;
        }
        for (key, value) in data {
            let text = value.as_str().unwrap_or_default().as_bytes();
            self.composite.connection_details.insert(key.clone(), base64::decode_prefix(text));
        }
    }

    fn require(&mut self, requirements: Option<&Value>) -> Result<(), String> {
        let fail = |error: String| format!("cannot get extra resources requirements: {error}");
        let requirements = match requirements {
            None => return Err(fail("requirements: no such field".to_owned())),
            Some(Value::Null) => return Ok(()),
            Some(Value::Object(requirements)) => requirements,
            Some(other) => {
                let error = typed::mismatch(other, "main.ExtraResourcesRequirements");
                return Err(fail(cannot_decode(&error)));
            }
        };
        let mut error = None;
        let mut selectors = Vec::new();
        for (name, requirement) in requirements {
            if let Some(selector) = selector(requirement, &mut error) {
                selectors.push((name.clone(), selector));
            }
        }
        if let Some(error) = error {
            return Err(fail(cannot_decode(&error)));
        }
        for (name, (namespaced, selector)) in selectors {
            if self.requirements.extra_resources.contains_key(&name) {
                return Err(format!("duplicate extra resource key {}", quote(&name)));
            }
            if !namespaced {
                // Control planes of the first line know only this field.
                self.requirements.extra_resources.insert(name.clone(), selector.clone());
            }
            self.requirements.resources.insert(name, selector);
        }
        Ok(())
    }
}

fn readiness(text: &str) -> Result<Ready, String> {
    match text {
        "True" => Ok(Ready::True),
        "False" => Ok(Ready::False),
        "Unspecified" => Ok(Ready::Unspecified),
        other => Err(format!(
            "invalid function input: invalid {} annotation value {}: must be True, False, or \
             Unspecified",
            quote(READY_ANNOTATION),
            quote(other)
        )),
    }
}

fn cannot_decode(error: &str) -> String {
    format!("cannot unmarshal value from JSON: {error}")
}

/// A status, which must be an object or null.
fn status(status: Option<Value>) -> Result<Option<Value>, String> {
    match status {
        None | Some(Value::Object(_) | Value::Null) => Ok(status),
        Some(other) => Err(cannot_decode(&typed::mismatch(&other, OBJECT))),
    }
}

/// A selector, and whether the requirement has a namespace.
fn selector(requirement: &Value, error: &mut Option<String>) -> Option<(bool, ResourceSelector)> {
    let mut fields = Struct::of("ExtraResourcesRequirement", requirement, error)?;
    let api_version = fields.text("apiVersion", "string");
    let kind = fields.text("kind", "string");
    let labels = fields.texts("matchLabels");
    let name = fields.text("matchName", "string");
    let namespace = fields.text("namespace", "string");
    let namespaced = !namespace.is_empty();
    let mut selector = ResourceSelector { api_version, kind, ..ResourceSelector::default() };
    if name.is_empty() {
        let labels = labels.into_iter().collect();
        selector.r#match = Some(Match::MatchLabels(MatchLabels { labels }));
    } else {
        selector.r#match = Some(Match::MatchName(name));
        selector.namespace = namespaced.then_some(namespace);
    }
    Some((namespaced, selector))
}

/// Sets conditions on the composite resource and its claim.
fn conditions(
    conditions: Option<&Value>,
    response: &mut RunFunctionResponse,
) -> Result<(), String> {
    let fail = |error: String| format!("cannot get Conditions from input: {error}");
    let conditions = match conditions {
        None => return Err(fail("conditions: no such field".to_owned())),
        Some(Value::Null) => return Ok(()),
        Some(Value::Array(conditions)) => conditions,
        Some(other) => {
            let error = typed::mismatch(other, "[]main.TargetedCondition");
            return Err(fail(cannot_decode(&error)));
        }
    };
    let mut error = None;
    let mut decoded = Vec::new();
    for condition in conditions {
        let Some(mut fields) = Struct::of("TargetedCondition", condition, &mut error) else {
            continue;
        };
        // Go decodes the members in the order of their names.
        fields.time("lastTransitionTime").map_err(|error| fail(cannot_decode(&error)))?;
        let message = fields.text("message", "string");
        fields.integer("observedGeneration");
        let reason = fields.text("reason", "v2.ConditionReason");
        let status = fields.text("status", "v1.ConditionStatus");
        let target = fields.text("target", "main.CompositionTarget");
        let kind = fields.text("type", "v2.ConditionType");
        let status = match status.as_str() {
            "True" => Status::ConditionTrue,
            "False" => Status::ConditionFalse,
            _ => Status::ConditionUnknown,
        };
        let target = match target.as_str() {
            "CompositeAndClaim" => Target::CompositeAndClaim,
            _ => Target::Composite,
        };
        decoded.push(Condition {
            r#type: kind,
            status: status.into(),
            reason,
            message: (!message.is_empty()).then_some(message),
            target: Some(target.into()),
        });
    }
    if let Some(error) = error {
        return Err(fail(cannot_decode(&error)));
    }
    for condition in decoded {
        if RESERVED.contains(&condition.r#type.as_str()) {
            return Err(format!(
                "cannot set ClaimCondition type: {} is a reserved Crossplane Condition",
                condition.r#type
            ));
        }
        response.conditions.push(condition);
    }
    Ok(())
}
