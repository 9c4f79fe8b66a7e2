//! Tests of the `Struct` codec against prost's message of the same name.

use std::collections::BTreeMap;

use biplane_proto::Struct;
use biplane_proto::structs::{MAX_DEPTH, number};
use proptest::prelude::*;
use prost::Message as _;
use prost_types::value::Kind;
use serde_json::{Map, Value, json};

fn object(value: Value) -> Struct {
    let Value::Object(map) = value else { panic!("not an object") };
    map.into()
}

fn theirs(value: &Value) -> prost_types::Value {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(b) => Kind::BoolValue(*b),
        Value::Number(n) => Kind::NumberValue(n.as_f64().unwrap()),
        Value::String(s) => Kind::StringValue(s.clone()),
        Value::Array(items) => {
            Kind::ListValue(prost_types::ListValue { values: items.iter().map(theirs).collect() })
        }
        Value::Object(map) => Kind::StructValue(their_struct(map)),
    };
    prost_types::Value { kind: Some(kind) }
}

fn their_struct(map: &Map<String, Value>) -> prost_types::Struct {
    let fields: BTreeMap<_, _> = map.iter().map(|(k, v)| (k.clone(), theirs(v))).collect();
    prost_types::Struct { fields }
}

/// JSON whose numbers fit into a double. `key` is the pattern for keys.
fn values(key: &'static str) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        proptest::num::f64::NORMAL.prop_map(number),
        any::<i32>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn bytes_are_those_of_prost(value in values(".{1,6}")) {
        let ours = object(json!({"value": value}));
        let bytes = ours.encode_to_vec();
        prop_assert_eq!(&bytes, &their_struct(&ours).encode_to_vec());
        prop_assert_eq!(bytes.len(), ours.encoded_len());
    }

    #[test]
    fn what_is_written_is_read(value in values(".{0,6}")) {
        let ours = object(json!({"value": value}));
        let bytes = ours.encode_to_vec();
        prop_assert_eq!(bytes.len(), ours.encoded_len());
        prop_assert_eq!(&Struct::decode(&*bytes).unwrap(), &ours);
        // prost also reads the same value.
        prop_assert_eq!(prost_types::Struct::decode(&*bytes).unwrap(), their_struct(&ours));
    }

    #[test]
    fn no_part_of_a_message_makes_it_panic(value in values(".{0,6}"), cut in 0..4096_usize) {
        let bytes = object(json!({"value": value})).encode_to_vec();
        let _ = Struct::decode(&bytes[..cut.min(bytes.len())]);
    }
}

#[test]
fn empty_keys_are_written_as_go_writes_them() {
    let bytes = object(json!({"": ""})).encode_to_vec();
    assert_eq!(bytes, [0x0a, 0x06, 0x0a, 0x00, 0x12, 0x02, 0x1a, 0x00]);
    assert_eq!(Struct::decode(&*bytes).unwrap(), object(json!({"": ""})));
}

#[test]
fn an_entry_without_key_or_value_is_an_empty_key_and_null() {
    assert_eq!(Struct::decode(&[0x0a, 0x00][..]).unwrap(), object(json!({"": null})));
    // A value without a kind is null.
    let no_kind = [0x0a, 0x05, 0x0a, 0x01, b'k', 0x12, 0x00];
    assert_eq!(Struct::decode(&no_kind[..]).unwrap(), object(json!({"k": null})));
}

#[test]
fn whole_numbers_read_as_integers_and_others_as_doubles() {
    // FN test case 6
    let back = |value: Value| {
        let bytes = object(json!({"n": value})).encode_to_vec();
        Struct::decode(&*bytes).unwrap()["n"].clone()
    };
    for (value, text) in [
        (json!(3), "3"),
        (json!(3.0), "3"),
        (json!(1.5), "1.5"),
        (json!(-0.0), "-0.0"),
        (json!(9_007_199_254_740_991_i64), "9007199254740991"),
        (json!(9_007_199_254_740_993_i64), "9007199254740992.0"),
        (json!(u64::MAX), "1.8446744073709552e+19"),
        (json!(1e300), "1e+300"),
    ] {
        assert_eq!(back(value).to_string(), text);
    }
}

#[test]
fn numbers_that_json_cannot_hold_are_refused() {
    for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let value = prost_types::Value { kind: Some(Kind::NumberValue(float)) };
        let fields = [("n".to_owned(), value)].into();
        let bytes = prost_types::Struct { fields }.encode_to_vec();
        let error = Struct::decode(&*bytes).unwrap_err().to_string();
        assert!(error.contains("number is not finite"), "{error}");
    }
}

#[test]
fn the_last_entry_of_a_key_counts() {
    let mut bytes = object(json!({"k": {"a": 1}, "other": 1})).encode_to_vec();
    bytes.extend(object(json!({"k": {"b": 2}})).encode_to_vec());
    let ours = Struct::decode(&*bytes).unwrap();
    assert_eq!(ours, object(json!({"k": {"b": 2}, "other": 1})));
    assert_eq!(their_struct(&ours), prost_types::Struct::decode(&*bytes).unwrap());
}

#[test]
fn a_value_written_twice_merges_with_its_own_kind_and_replaces_another() {
    let value = |json: Value| theirs(&json).encode_to_vec();
    let entry = |parts: &[Vec<u8>]| {
        let mut body = vec![0x0a, 0x01, b'k'];
        let joined = parts.concat();
        body.extend([0x12, u8::try_from(joined.len()).unwrap()]);
        body.extend(joined);
        let mut bytes = vec![0x0a, u8::try_from(body.len()).unwrap()];
        bytes.extend(body);
        bytes
    };
    for (parts, expected) in [
        ([value(json!({"a": 1})), value(json!({"b": 2}))], json!({"a": 1, "b": 2})),
        ([value(json!([1])), value(json!([2]))], json!([1, 2])),
        ([value(json!([1])), value(json!({"b": 2}))], json!({"b": 2})),
        ([value(json!("x")), value(json!(true))], json!(true)),
    ] {
        let bytes = entry(&parts);
        let ours = Struct::decode(&*bytes).unwrap();
        assert_eq!(ours["k"], expected);
        assert_eq!(their_struct(&ours), prost_types::Struct::decode(&*bytes).unwrap());
    }
}

#[test]
fn fields_that_nobody_knows_are_passed_over() {
    let mut bytes = vec![0x10, 0x07]; // field 2, a number
    bytes.extend(object(json!({"k": 1})).encode_to_vec());
    bytes.extend([0x1a, 0x02, 0xff, 0xff]); // field 3, two bytes
    assert_eq!(Struct::decode(&*bytes).unwrap(), object(json!({"k": 1})));
}

/// Every broken message is paired with a valid one that differs only in the cause.
#[test]
fn broken_messages_are_errors() {
    const VARINT: &str = "invalid varint";
    const SHORT: &str = "buffer underflow";
    const UTF_8: &str = "invalid string value: data is not UTF-8 encoded";
    let rows: [(&[u8], &[u8], &str); 9] = [
        // An entry without a length.
        (&[0x0a], &[0x0a, 0x00], VARINT),
        // An entry shorter than its length, and one with an impossible length.
        (&[0x0a, 0x02, 0x0a], &[0x0a, 0x02, 0x0a, 0x00], SHORT),
        (
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
            SHORT,
        ),
        // A number instead of an entry.
        (&[0x08, 0x00], &[0x0a, 0x00], "invalid wire type: Varint (expected LengthDelimited)"),
        // A key and a string that are not UTF-8.
        (&[0x0a, 0x03, 0x0a, 0x01, 0xff], &[0x0a, 0x03, 0x0a, 0x01, 0x61], UTF_8),
        (
            &[0x0a, 0x05, 0x12, 0x03, 0x1a, 0x01, 0xff],
            &[0x0a, 0x05, 0x12, 0x03, 0x1a, 0x01, 0x61],
            UTF_8,
        ),
        // A number of seven bytes.
        (
            &[0x0a, 0x0a, 0x12, 0x08, 0x11, 0, 0, 0, 0, 0, 0, 0],
            &[0x0a, 0x0b, 0x12, 0x09, 0x11, 0, 0, 0, 0, 0, 0, 0, 0],
            SHORT,
        ),
        // A number that is encoded as a boolean.
        (
            &[0x0a, 0x04, 0x12, 0x02, 0x10, 0x00],
            &[0x0a, 0x04, 0x12, 0x02, 0x20, 0x00],
            "invalid wire type",
        ),
        // An invalid field.
        (&[0x0a, 0x02, 0x00, 0x00], &[0x0a, 0x02, 0x0a, 0x00], "invalid tag value: 0"),
    ];
    for (broken, whole, cause) in rows {
        let error = Struct::decode(broken).unwrap_err().to_string();
        let text = format!("failed to decode Protobuf message: {cause}");
        assert_eq!(error, text, "{broken:02x?}");
        assert!(Struct::decode(whole).is_ok(), "{whole:02x?}");
    }
}

fn nested(levels: usize) -> Vec<u8> {
    let mut value = Value::from(1);
    for _ in 1..levels {
        value = Value::Array(vec![value]);
    }
    object(json!({"deep": value})).encode_to_vec()
}

#[test]
fn sixty_levels_are_read() {
    // FN test case 7
    let mut value = json!({});
    for _ in 0..60 {
        value = json!({"a": value});
    }
    let deep = object(value);
    assert_eq!(Struct::decode(&*deep.encode_to_vec()).unwrap(), deep);
}

#[test]
fn depth_is_limited_and_the_limit_fits_a_small_stack() {
    // Half of the default stack size: other code also needs stack to walk over the value.
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(|| {
        let bytes = nested(MAX_DEPTH);
        let deep = Struct::decode(&*bytes).unwrap();
        assert_eq!(deep.clone(), deep);
        assert_eq!(deep.encode_to_vec(), bytes);
        let text = biplane_proto::json::to_string(&deep).unwrap();
        assert_eq!(biplane_proto::json::from_str::<Struct>(&text).unwrap(), deep);
        drop(deep);
        let error = Struct::decode(&*nested(MAX_DEPTH + 1)).unwrap_err().to_string();
        assert!(error.contains("recursion limit reached"), "{error}");
    });
    thread.unwrap().join().unwrap();
}
