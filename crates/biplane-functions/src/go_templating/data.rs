//! What templates see of a request: its protobuf JSON, read back into untyped Go values.
//!
//! Resources are converted when a template first looks into them. Most are never looked at.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_function::v1::credentials::Source;
use biplane_function::v1::{
    Capability, Ready, Resource, Resources, RunFunctionRequest, Schema, State,
};
use biplane_go::num;
use biplane_model::{Map, Value as Json};
use biplane_proto::Struct;
use biplane_template::value::{self, Text, Value};

/// Converts a request. Fields with their default value are left out.
pub(super) fn of_request(request: &RunFunctionRequest) -> Value {
    let mut fields = Fields::default();
    fields.put(
        "meta",
        request.meta.as_ref().map(|meta| {
            let mut fields = Fields::default();
            fields.put("tag", some_text(&meta.tag));
            let capabilities: Vec<Value> =
                meta.capabilities.iter().map(|c| capability(*c)).collect();
            fields
                .put("capabilities", (!capabilities.is_empty()).then(|| Value::list(capabilities)));
            fields.into()
        }),
    );
    fields.put("observed", request.observed.as_ref().map(state));
    fields.put("desired", request.desired.as_ref().map(state));
    fields.put("input", request.input.as_ref().map(later));
    fields.put("context", request.context.as_ref().map(later));
    fields.put("extraResources", map_of(&request.extra_resources, resources));
    fields.put(
        "credentials",
        map_of(&request.credentials, |credentials| {
            let mut fields = Fields::default();
            if let Some(Source::CredentialData(data)) = &credentials.source {
                let mut inner = Fields::default();
                inner.put("data", map_of(&data.data, |bytes| encoded(bytes)));
                fields.put("credentialData", Some(inner.into()));
            }
            fields.into()
        }),
    );
    fields.put("requiredResources", map_of(&request.required_resources, resources));
    fields.put(
        "requiredSchemas",
        map_of(&request.required_schemas, |schema: &Schema| {
            let mut fields = Fields::default();
            fields.put("openapiV3", schema.openapi_v3.as_ref().map(later));
            fields.into()
        }),
    );
    // Templates may use the old name for what only newer control planes send. Both names are the
    // same map.
    if !fields.has("extraResources") {
        let required = fields.get("requiredResources");
        fields.put("extraResources", required);
    }
    fields.into()
}

#[derive(Default)]
struct Fields(BTreeMap<Text, Value>);

impl Fields {
    fn put(&mut self, name: &'static str, value: Option<Value>) {
        if let Some(value) = value {
            self.0.insert(Text::from(name), value);
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name.as_bytes())
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.0.get(name.as_bytes()).cloned()
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Self::Map(fields.0.into())
    }
}

fn some_text(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| Value::text(text))
}

fn map_of<T>(map: &BTreeMap<String, T>, value: impl Fn(&T) -> Value) -> Option<Value> {
    let entries = map.iter().map(|(key, one)| (Text::from(key.as_str()), value(one)));
    (!map.is_empty()).then(|| Value::dict(entries))
}

fn encoded(bytes: &[u8]) -> Value {
    Value::text(STANDARD.encode(bytes))
}

/// An enum value is its name, or its number if it has none.
fn capability(number: i32) -> Value {
    match Capability::try_from(number) {
        Ok(capability) => Value::text(capability.as_str_name()),
        Err(_) => Value::int64(i64::from(number)),
    }
}

fn state(state: &State) -> Value {
    let mut fields = Fields::default();
    fields.put("composite", state.composite.as_ref().map(resource));
    fields.put("resources", map_of(&state.resources, resource));
    fields.into()
}

fn resource(resource: &Resource) -> Value {
    // The object itself is shared.
    let resource = resource.clone();
    Value::Map(value::Map::lazy(move || fields_of(&resource).0))
}

fn fields_of(resource: &Resource) -> Fields {
    let mut fields = Fields::default();
    fields.put("resource", resource.resource.as_ref().map(later));
    fields.put("connectionDetails", map_of(&resource.connection_details, |one| encoded(one)));
    let ready = match Ready::try_from(resource.ready) {
        Ok(Ready::Unspecified) => None,
        Ok(ready) => Some(Value::text(ready.as_str_name())),
        Err(_) => Some(Value::int64(i64::from(resource.ready))),
    };
    fields.put("ready", ready);
    fields
}

fn resources(resources: &Resources) -> Value {
    let mut fields = Fields::default();
    let items: Vec<Value> = resources.items.iter().map(resource).collect();
    fields.put("items", (!items.is_empty()).then(|| Value::list(items)));
    fields.into()
}

/// An object that is converted as a whole when it is first looked at.
fn later(object: &Struct) -> Value {
    let object = object.clone();
    Value::Map(value::Map::lazy(move || entries(&object)))
}

fn entries(map: &Map<String, Json>) -> BTreeMap<Text, Value> {
    map.iter().map(|(key, value)| (Text::from(key.as_str()), of_json(value))).collect()
}

/// Untyped Go values of JSON. Doubles that Go writes without a fraction are read back as integers.
pub(super) fn of_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => {
            if let Some(integer) = number.as_i64() {
                return Value::int64(integer);
            }
            let float = number.as_f64().unwrap_or_default();
            // The digits that Go writes are not always those of the exact value.
            num::format_float(float).parse().map_or(Value::Float(float), Value::int64)
        }
        Json::String(text) => Value::text(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(of_json).collect()),
        Json::Object(map) => Value::Map(entries(map).into()),
    }
}
