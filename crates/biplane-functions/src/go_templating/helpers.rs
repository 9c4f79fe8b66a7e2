//! The functions that templates can call besides Go's own and Sprig's.

use biplane_function::request;
use biplane_function::v1::RunFunctionRequest;
use biplane_go::time::GoTime;
use biplane_model::Value as Json;
use biplane_model::fieldpath::{FieldPath, Segment};
use biplane_template::func::{Call, Failure, Func};
use biplane_template::types::Type;
use biplane_template::value::{List, Map, Text, Value};

use super::condition::{CONDITION, Condition};
use super::context::EXTRA_RESOURCES;
use super::documents::NAME_ANNOTATION;
use super::typed::Struct;
use super::{data, json, yaml};

/// A map argument, and a name.
const MAP_AND_NAME: &[Type] = &[Type::DICT, Type::String];

/// All of them, except `include`.
pub(super) fn functions() -> Vec<Func> {
    vec![
        Func::variadic("randomChoice", &[Type::String], Type::String, random_choice),
        Func::new("toYaml", &[Type::Any], Type::String, yaml::to_yaml),
        Func::new("fromYaml", &[Type::String], Type::Any, yaml::from_yaml),
        Func::new("getResourceCondition", &[Type::String, Type::DICT], CONDITION, condition),
        Func::new("setResourceNameAnnotation", &[Type::String], Type::String, |_, args| {
            let [Value::Str(name)] = args else { return wrong() };
            Ok(Value::text([NAME_ANNOTATION.as_bytes(), b": ", name].concat()))
        }),
        Func::new("getComposedResource", MAP_AND_NAME, Type::DICT, |call, args| {
            dict_at(call, args, |name| format!("observed.resources[{name}]resource"))
        }),
        Func::new("getCompositeResource", &[Type::DICT], Type::DICT, |call, args| {
            dict_at(call, args, |_| "observed.composite.resource".to_owned())
        }),
        Func::new("getComposedConnectionDetails", MAP_AND_NAME, Type::DICT, |call, args| {
            dict_at(call, args, |name| format!("observed.resources[{name}]connectionDetails"))
        }),
        Func::new("getExtraResources", MAP_AND_NAME, Type::LIST, |call, args| {
            list_at(call, args, |name| {
                ["requiredResources", "extraResources"]
                    .map(|field| format!("{field}[{name}].items"))
                    .into()
            })
        }),
        Func::new("getExtraResourcesFromContext", MAP_AND_NAME, Type::LIST, |call, args| {
            list_at(call, args, |name| vec![format!("context[{EXTRA_RESOURCES}][{name}].items")])
        }),
        Func::new("getCredentialData", MAP_AND_NAME, Type::BYTES_MAP, credential_data),
    ]
}

/// The engine checks arguments before it calls a function.
fn wrong() -> Result<Value, Failure> {
    Err(Failure::new("wrong arguments"))
}

fn random_choice(call: &mut Call<'_>, choices: &[Value]) -> Result<Value, Failure> {
    let mut random = [0; 8];
    call.host().random(&mut random);
    let count = choices.len().max(1) as u64;
    let index = usize::try_from(u64::from_le_bytes(random) % count).unwrap_or_default();
    choices.get(index).cloned().ok_or_else(|| Failure::new("invalid argument to Intn"))
}

/// The value at a path. `None` if the path is invalid or nothing is there.
fn at(map: &Map, path: &str) -> Option<Value> {
    let path = FieldPath::parse(path).ok()?;
    let mut here = Value::Map(map.clone());
    for segment in path.segments() {
        here = match (segment, here) {
            (Segment::Field(name), Value::Map(map)) if map.element() == &Type::Any => {
                map.get(name.as_bytes())?
            }
            (Segment::Index(index), Value::List(list)) if list.element() == &Type::Any => {
                list.get(usize::try_from(*index).ok()?)?
            }
            _ => return None,
        };
    }
    Some(here)
}

fn arguments(args: &[Value]) -> Option<(&Map, String)> {
    match args {
        [Value::Map(map)] => Some((map, String::new())),
        [Value::Map(map), Value::Str(name)] => Some((map, name.to_lossy().into_owned())),
        _ => None,
    }
}

/// The JSON of what is at a path, if there is something that has JSON.
fn encoded_at(call: &mut Call<'_>, map: &Map, path: &str) -> Result<Option<Json>, Failure> {
    at(map, path).map_or(Ok(None), |value| json::encode(call, &value))
}

/// A copy of the object at a path, or a nil map.
fn dict_at(
    call: &mut Call<'_>,
    args: &[Value],
    path: impl Fn(&str) -> String,
) -> Result<Value, Failure> {
    let Some((map, name)) = arguments(args) else { return wrong() };
    let found = encoded_at(call, map, &path(&name))?;
    Ok(match found {
        Some(object @ Json::Object(_)) => data::of_json(&object),
        _ => Value::Map(Map::nil_dict()),
    })
}

/// A copy of the list at the first path that leads to one, or a nil list.
fn list_at(
    call: &mut Call<'_>,
    args: &[Value],
    paths: impl Fn(&str) -> Vec<String>,
) -> Result<Value, Failure> {
    let Some((map, name)) = arguments(args) else { return wrong() };
    for path in paths(&name) {
        match encoded_at(call, map, &path)? {
            Some(list @ Json::Array(_)) => return Ok(data::of_json(&list)),
            Some(Json::Null) => break,
            _ => {}
        }
    }
    Ok(Value::List(List::nil(&Type::Any)))
}

fn credential_data(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let Some((map, name)) = arguments(args) else { return wrong() };
    let nothing = || Value::Map(Map::nil(&Type::String, &Type::BYTES));
    // The whole map must still be a request.
    let request = json::encode(call, &Value::Map(map.clone()))?
        .and_then(|json| biplane_proto::json::from_value::<RunFunctionRequest>(json).ok());
    let Some(request) = request else { return Ok(nothing()) };
    let Ok(found) = request::credentials(&request, &name) else { return Ok(nothing()) };
    if found.is_empty() {
        return Ok(nothing());
    }
    let entries = found.iter().map(|(key, bytes)| (Text::from(key.as_str()), Value::bytes(bytes)));
    Ok(Value::Map(Map::typed(&Type::BYTES, entries)))
}

fn condition(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let [Value::Str(kind), Value::Map(map)] = args else { return wrong() };
    let kind = kind.to_lossy().into_owned();
    let mut known = None;
    for path in ["resource.status", "status"] {
        if known.is_none() {
            known = encoded_at(call, map, path)?.as_ref().and_then(conditions);
        }
    }
    let found = known.unwrap_or_default().into_iter().find(|condition| condition.kind == kind);
    Ok(Value::object(found.unwrap_or_else(|| Condition {
        kind,
        status: "Unknown".to_owned(),
        last_transition_time: GoTime::zero(),
        reason: String::new(),
        message: String::new(),
        observed_generation: 0,
    })))
}

/// The conditions of a status. One that does not fit makes all of them unreadable.
fn conditions(status: &Json) -> Option<Vec<Condition>> {
    let list = match status {
        Json::Null => return Some(Vec::new()),
        Json::Object(status) => match status.get("conditions") {
            None | Some(Json::Null) => return Some(Vec::new()),
            Some(Json::Array(list)) => list,
            Some(_) => return None,
        },
        _ => return None,
    };
    list.iter()
        .map(|one| {
            let mut error = None;
            let mut fields = Struct::of("Condition", one, &mut error)?;
            let time = fields.time("lastTransitionTime").ok()?;
            let condition = Condition {
                kind: fields.text("type", "string"),
                status: fields.text("status", "string"),
                last_transition_time: time.map_or_else(GoTime::zero, |instant| {
                    GoTime::utc(instant.seconds(), instant.subsecond())
                }),
                reason: fields.text("reason", "string"),
                message: fields.text("message", "string"),
                observed_generation: fields.integer("observedGeneration"),
            };
            error.is_none().then_some(condition)
        })
        .collect()
}
