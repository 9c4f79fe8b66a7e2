//! A host and functions for tests, with the signatures that matter.

use biplane_template::budget::Limits;
use biplane_template::func::{Failure, Func, Host};
use biplane_template::types::Type;
use biplane_template::value::{List, Map, Text, Value};
use biplane_template::{Delimiters, Functions, MissingKey, Template};

/// A world in which nothing happens.
pub(crate) struct Nowhere;

impl Host for Nowhere {
    fn now(&self) -> (i64, u32) {
        (0, 0)
    }

    fn random(&self, buffer: &mut [u8]) {
        buffer.fill(0);
    }
}

/// The data of the recorded cases.
pub(crate) const DATA: &str = include_str!("../data/data.json");

fn same(name: &'static str, params: &'static [Type]) -> Func {
    Func::new(name, params, params[0], |_, args| Ok(args[0].clone()))
}

/// The functions that the recordings use besides the built-in ones.
pub(crate) fn functions() -> Functions {
    const INT: &[Type] = &[Type::INT];
    const ANY: &[Type] = &[Type::Any];
    const STRING: &[Type] = &[Type::String];
    Functions::new([
        same("str", STRING),
        same("num", INT),
        same("num64", &[Type::INT64]),
        same("u32", &[Type::UINT32]),
        same("flt", &[Type::Float64]),
        same("boo", &[Type::Bool]),
        same("mp", &[Type::DICT]),
        same("lst", &[Type::LIST]),
        same("any", ANY),
        Func::new("pick", &[Type::Bool, Type::Any, Type::Any], Type::Any, |_, args| {
            let index = if args[0].is_true() { 1 } else { 2 };
            Ok(args[index].clone())
        }),
        Func::variadic("va", &[Type::String, Type::Any], Type::String, |_, args| {
            let Value::Str(text) = &args[0] else { unreachable!() };
            Ok(Value::text([&text[..], (args.len() - 1).to_string().as_bytes()].concat()))
        }),
        Func::variadic("vs", STRING, Type::STRINGS, |_, args| {
            Ok(Value::List(List::new(&Type::String, args.to_vec())))
        }),
        Func::variadic("vi", INT, Type::INTS, |_, args| {
            Ok(Value::List(List::new(&Type::INT, args.to_vec())))
        }),
        Func::variadic("list", ANY, Type::LIST, |_, args| Ok(Value::list(args.to_vec()))),
        Func::new("two", &[Type::String, Type::INT], Type::String, |_, args| {
            let Value::Str(text) = &args[0] else { unreachable!() };
            let Value::Int(_, number) = args[1] else { unreachable!() };
            Ok(Value::text([&text[..], number.to_string().as_bytes()].concat()))
        }),
        Func::new("oops", STRING, Type::String, |_, args| {
            let Value::Str(text) = &args[0] else { unreachable!() };
            Err(Failure::new(text.to_lossy()))
        }),
        Func::new("crash", ANY, Type::Any, |_, _| Err(Failure::new("crashed"))),
        Func::new("nilmap", &[], Type::DICT, |_, _| Ok(Value::Map(Map::nil_dict()))),
        Func::new("nillist", &[], Type::LIST, |_, _| Ok(Value::List(List::nil(&Type::Any)))),
        Func::new("smap", &[], Type::STRING_MAP, |_, _| {
            let entries = [("k", "v"), ("a", "b")];
            let entries = entries.map(|(key, value)| (Text::from(key), Value::text(value)));
            Ok(Value::Map(Map::typed(&Type::String, entries)))
        }),
        Func::new("amap", &[], Type::ANY_MAP, |_, _| {
            let entries = [(Text::from("k"), Value::text("v")), (Text::from("a"), Value::int(1))];
            Ok(Value::Map(Map::any(entries.into(), Vec::new())))
        }),
        Func::new("byt", STRING, Type::BYTES, |_, args| {
            let Value::Str(text) = &args[0] else { unreachable!() };
            Ok(Value::bytes(text))
        }),
        Func::new("lists", &[], Type::LISTS, |_, _| {
            let lists = vec![
                Value::list(vec![Value::int(1), Value::Nil]),
                Value::list(vec![Value::text("x")]),
            ];
            Ok(Value::List(List::new(&Type::LIST, lists)))
        }),
        Func::include(),
    ])
}

pub(crate) fn data() -> Value {
    Value::from_json(&serde_json::from_str(DATA).unwrap())
}

/// Parses and runs a template. The error is its text.
pub(crate) fn render(
    text: &str,
    missing: &str,
    delimiters: &Delimiters,
    data: &Value,
) -> Result<Vec<u8>, String> {
    let missing = match missing {
        "" => MissingKey::Default,
        other => MissingKey::option(&format!("missingkey={other}")).unwrap(),
    };
    let template = Template::parse("manifests", text, &functions(), delimiters);
    let template = template.map_err(|error| error.to_string())?;
    template.run(data, missing, &Nowhere, Limits::default()).map_err(|error| error.to_string())
}
