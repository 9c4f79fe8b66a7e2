//! Tests of protobuf JSON against Go's output and input.

use serde_json::json;

use super::*;
use crate::changelogs::ChangeLogEntry;
use crate::function::v1::{
    Capability, Condition, RequestMeta, Resource, ResponseMeta, RunFunctionResponse, Target,
};
use crate::{Duration, Struct, Timestamp};

fn strict(value: Value) -> Result<RunFunctionResponse, String> {
    from_value(value).map_err(|e| e.to_string())
}

#[test]
fn fields_stand_in_the_order_of_the_contract_and_defaults_are_left_out() {
    // CL-40
    let entry = ChangeLogEntry {
        timestamp: Some(Timestamp { seconds: 1_768_473_005, nanos: 0 }),
        provider: "p:v1".into(),
        operation: 1,
        error_message: Some(String::new()),
        snapshot: Some(Struct::default()),
        additional_details: [
            ("b".into(), "<&>".into()),
            ("a".into(), "\u{1}\u{7f}\u{2028}".into()),
        ]
        .into(),
        ..ChangeLogEntry::default()
    };
    assert_eq!(
        to_string(&entry).unwrap(),
        "{\"timestamp\":\"2026-01-15T10:30:05Z\",\"provider\":\"p:v1\",\
         \"operation\":\"OPERATION_TYPE_CREATE\",\"snapshot\":{},\"errorMessage\":\"\",\
         \"additionalDetails\":{\"a\":\"\\u0001\u{7f}\u{2028}\",\"b\":\"<&>\"}}"
    );
}

#[test]
fn numbers_are_those_of_go() {
    let Value::Object(map) = json!({"n": [1, 1.0, -0.0, 1.5, 1e21, 1e-7, 1e300, 12_345_678.9]})
    else {
        panic!("not an object")
    };
    assert_eq!(
        to_string(&Struct::from(map)).unwrap(),
        r#"{"n":[1,1,-0,1.5,1e+21,1e-7,1e+300,12345678.9]}"#
    );
}

#[test]
fn doubles_are_read_to_their_last_digit() {
    for bits in [0x4028_00b4_0000_0000, 0x5018_0000_0000_0000, 0x7fef_ffff_ffff_ffff, 1] {
        let float = f64::from_bits(bits);
        let text = format!(r#"{{"n":{}}}"#, format_float(float));
        assert_eq!(from_str::<Struct>(&text).unwrap()["n"].as_f64(), Some(float), "{text}");
    }
}

#[test]
fn enums_without_a_name_are_numbers() {
    let meta = RequestMeta { tag: String::new(), capabilities: vec![1, 99, -3] };
    let text = to_string(&meta).unwrap();
    assert_eq!(text, r#"{"capabilities":["CAPABILITY_CAPABILITIES",99,-3]}"#);
    assert_eq!(from_str::<RequestMeta>(&text).unwrap(), meta);

    let resource = Resource { ready: 7, ..Resource::default() };
    assert_eq!(to_value(&resource).unwrap(), json!({"ready": 7}));
    assert_eq!(from_value::<Resource>(json!({"ready": 7})).unwrap(), resource);

    let condition = Condition { target: Some(5), ..Condition::default() };
    assert_eq!(from_value::<Condition>(to_value(&condition).unwrap()).unwrap(), condition);
}

#[test]
fn enums_are_read_by_name_and_by_number() {
    for (value, number) in
        [(json!("READY_TRUE"), 1), (json!(1), 1), (json!(2.0), 2), (json!(null), 0)]
    {
        assert_eq!(from_value::<Resource>(json!({"ready": value})).unwrap().ready, number);
    }
    for value in [json!("READY_MAYBE"), json!(1.5), json!(1_i64 << 40), json!(true), json!([])] {
        assert!(from_value::<Resource>(json!({"ready": value})).is_err(), "{value}");
    }
    assert_eq!(Capability::RequiredSchemas as i32, 5);
}

#[test]
fn optional_enums_keep_their_zero() {
    let condition = Condition { target: Some(Target::Unspecified as i32), ..Condition::default() };
    let value = json!({"target": "TARGET_UNSPECIFIED"});
    assert_eq!(to_value(&condition).unwrap(), value);
    assert_eq!(from_value::<Condition>(value).unwrap(), condition);
}

#[test]
fn names_are_read_in_both_spellings() {
    let camel = json!({"desired": {"composite": {"connectionDetails": {"k": "aGk="}}}});
    let snake = json!({"desired": {"composite": {"connection_details": {"k": "aGk"}}}});
    assert_eq!(strict(camel.clone()).unwrap(), strict(snake).unwrap());
    assert_eq!(to_value(&strict(camel.clone()).unwrap()).unwrap(), camel);
}

#[test]
fn both_alphabets_of_base64_are_read() {
    for text in ["+/8=", "-_8=", "+/8", "-_8"] {
        let value = json!({"connectionDetails": {"k": text}});
        let resource: Resource = from_value(value).unwrap();
        assert_eq!(resource.connection_details["k"], [0xfb, 0xff], "{text}");
    }
}

/// Recorded from `protojson`.
#[test]
fn bytes_are_read_as_go_reads_them() {
    let read = |value: Value| {
        from_value::<Resource>(json!({"connectionDetails": {"k": value}}))
            .map(|mut resource| resource.connection_details.remove("k").unwrap())
            .map_err(|error| error.to_string())
    };
    for (text, bytes) in [
        ("aGk=", "hi"),
        ("aGk", "hi"),
        ("aG", "h"),
        ("", ""),
        // Unused bits.
        ("aGl", "hi"),
        ("aGl=", "hi"),
        ("YR==", "a"),
        // Line breaks count as letters for padding.
        ("aGk\r\n", "hi"),
        ("aG\n\n\n\nk=", "hi"),
    ] {
        assert_eq!(read(json!(text)).unwrap(), bytes.as_bytes(), "{text:?}");
    }
    for text in [
        "a", "aGk==", "====", "=", "aGk=\n", "aG\nk=", "-/8=", "+_8", "a b", "YQ=", "YQ==YQ==",
        "YQ==x", "é", "aGk= ",
    ] {
        let said = read(json!(text)).unwrap_err();
        let words = format!("invalid value for bytes field value: {}", json!(text));
        assert!(said.ends_with(&words), "{said}");
    }
    for (value, shown) in [
        (json!(5), "5"),
        (json!(-1), "-1"),
        (json!(1.5), "1.5"),
        (json!(null), "null"),
        (json!(true), "true"),
        (json!([1]), "["),
        (json!({"a": 1}), "{"),
    ] {
        let said = read(value).unwrap_err();
        assert!(said.ends_with(&format!("bytes field value: {shown}")), "{said}");
    }
}

#[test]
fn unknown_fields_are_an_error_unless_discarded() {
    let value = json!({"desire": {"a": 1}, "meta": {"tag": "t", "more": []}});
    let error = strict(value.clone()).unwrap_err();
    assert!(error.ends_with(r#"unknown field "desire""#), "{error}");
    let lenient: RunFunctionResponse = from_value_with(value.clone(), Unknown::Discard).unwrap();
    let meta = ResponseMeta { tag: "t".into(), ttl: None };
    assert_eq!(lenient, RunFunctionResponse { meta: Some(meta), ..RunFunctionResponse::default() });
    // The setting ends with the call, also if the call fails.
    assert!(from_value_with::<RunFunctionResponse>(json!({"meta": 1}), Unknown::Discard).is_err());
    assert!(from_str::<RunFunctionResponse>(&value.to_string()).is_err());
}

#[test]
fn unknown_names_of_enums_are_zero_when_discarded() {
    let value = json!({"ready": "READY_MAYBE"});
    assert_eq!(from_value_with::<Resource>(value, Unknown::Discard).unwrap().ready, 0);
}

#[test]
fn null_is_a_field_that_is_not_there() {
    let value = json!({
        "meta": {"tag": null, "ttl": null},
        "desired": {"resources": null, "composite": {"connectionDetails": null, "resource": null}},
        "results": null,
        "context": null,
        "conditions": [{"type": null, "status": null, "message": null}],
    });
    let response = strict(value).unwrap();
    assert_eq!(
        to_value(&response).unwrap(),
        json!({
            "meta": {}, "desired": {"composite": {}}, "conditions": [{}],
        })
    );
}

#[test]
fn a_field_that_comes_twice_is_an_error() {
    assert!(from_str::<RequestMeta>(r#"{"tag":"a","tag":"b"}"#).is_err());
}

#[test]
fn durations_are_seconds() {
    let meta = ResponseMeta { tag: String::new(), ttl: Some(Duration { seconds: 60, nanos: 0 }) };
    assert_eq!(to_string(&meta).unwrap(), r#"{"ttl":"60s"}"#);
    assert_eq!(from_str::<ResponseMeta>(r#"{"ttl":"60s"}"#).unwrap(), meta);
}

#[test]
fn what_json_cannot_say_is_an_error() {
    let ttl = Some(Duration { seconds: 1, nanos: -1 });
    assert!(matches!(to_string(&ResponseMeta { ttl, ..Default::default() }), Err(Error::Write(_))));
}

#[test]
fn text_after_the_message_is_an_error() {
    assert!(from_str::<RequestMeta>("{} x").is_err());
    assert!(from_str::<RequestMeta>("").is_err());
}

#[test]
fn deep_text_is_read_up_to_the_limit() {
    let nested =
        |levels: usize| format!("{}{}", r#"{"a":"#.repeat(levels) + "1", "}".repeat(levels));
    assert!(from_str::<Struct>(&nested(129)).is_ok());
    assert!(from_str::<Struct>(&nested(MAX_DEPTH)).is_ok());
    assert!(matches!(from_str::<Struct>(&nested(MAX_DEPTH + 1)), Err(Error::Depth)));
    assert!(matches!(from_str::<Struct>(&"[".repeat(1 << 20)), Err(Error::Depth)));
    // Brackets inside strings do not nest.
    let text = format!(r#"{{"a":"\"{}"}}"#, "[".repeat(5000));
    assert!(from_str::<Struct>(&text).is_ok());
}
