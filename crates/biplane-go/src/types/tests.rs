//! Tests of which values each decoder accepts.

use super::{Decoder, KUBERNETES, META, Mismatch, Type, Types, to_int64, trim_json, unsigned};
use serde_json::{Value, json};

const TABLE: &str = "# a comment
thing name:string count:int32 big:int64 least:uint64 on:bool when:meta.Time size:resource.Quantity \
port:intstr.IntOrString parts:[]part labels:{}string raw:any
part name:string mode:string=v1.Mode";

fn check(value: &Value, decoder: Decoder) -> Result<(), Mismatch> {
    Types::read(&[TABLE]).check(value.as_object().unwrap(), "thing", decoder)
}

#[test]
fn null_fits_every_type() {
    let value = json!({"name": null, "count": null, "when": null, "size": null, "port": null,
        "parts": [null], "labels": {"a": null}, "raw": null, "least": null, "on": null});
    for decoder in [Decoder::Strict, Decoder::Lenient, Decoder::Converter] {
        assert_eq!(check(&value, decoder), Ok(()));
    }
}

#[test]
fn kinds_are_never_turned_into_one_another() {
    for value in [
        json!({"name": 1}),
        json!({"count": "1"}),
        json!({"on": "true"}),
        json!({"when": 5}),
        json!({"size": true}),
        json!({"port": true}),
        json!({"parts": {}}),
        json!({"parts": [{"name": []}]}),
        json!({"labels": {"a": 1}}),
        json!({"labels": []}),
    ] {
        for decoder in [Decoder::Strict, Decoder::Lenient, Decoder::Converter] {
            assert!(check(&value, decoder).is_err(), "{value} {decoder:?}");
        }
    }
}

#[test]
fn texts_may_have_a_type_of_their_own() {
    assert_eq!(check(&json!({"parts": [{"mode": "x"}]}), Decoder::Strict), Ok(()));
    assert_eq!(
        check(&json!({"parts": [{"mode": 5}]}), Decoder::Strict).unwrap_err().to_string(),
        "json: cannot unmarshal JSON number into Go value of type v1.Mode"
    );
}

#[test]
fn only_the_strict_decoder_minds_unknown_members() {
    let value = json!({"parts": [{"Name": "x"}]});
    assert_eq!(check(&value, Decoder::Lenient), Ok(()));
    assert_eq!(check(&value, Decoder::Converter), Ok(()));
    assert_eq!(
        check(&value, Decoder::Strict).unwrap_err().to_string(),
        r#"json: cannot unmarshal Go value of type part: unknown name "Name""#
    );
}

#[test]
fn the_converter_wraps_large_numbers_and_refuses_fractions() {
    assert_eq!(check(&json!({"count": 3e9}), Decoder::Converter), Ok(()));
    assert!(check(&json!({"count": 3e9}), Decoder::Lenient).is_err());
    assert_eq!(check(&json!({"big": 1e300}), Decoder::Converter), Ok(()));
    assert!(check(&json!({"big": 1e300}), Decoder::Lenient).is_err());
    for decoder in [Decoder::Strict, Decoder::Lenient, Decoder::Converter] {
        assert_eq!(check(&json!({"count": 2.0}), decoder), Ok(()));
        assert!(check(&json!({"count": 2.5}), decoder).is_err());
        assert!(check(&json!({"port": 3e9}), decoder).is_err());
    }
}

#[test]
fn unsigned_numbers_are_read_from_their_text() {
    assert_eq!(unsigned(&json!(2.0)), Some(2));
    assert_eq!(unsigned(&json!(9_007_199_254_740_992.0)), Some(9_007_199_254_740_992));
    for value in [json!(-1), json!(-0.0), json!(1.5), json!(1e20), json!(1e21), json!("1")] {
        assert_eq!(unsigned(&value), None, "{value}");
    }
}

#[test]
fn doubles_beyond_the_range_of_integers_become_the_smallest() {
    assert_eq!(to_int64(2.9), 2);
    assert_eq!(to_int64(-2.9), -2);
    assert_eq!(to_int64(1e19), i64::MIN);
    assert_eq!(to_int64(f64::NAN), i64::MIN);
}

/// A struct that is missing in the table would accept everything.
#[test]
fn every_struct_that_a_table_names_is_in_it() {
    fn named(wanted: &Type) -> Option<&'static str> {
        match wanted {
            Type::List(item) | Type::Map(item) => named(item),
            Type::Struct(name) => Some(name),
            _ => None,
        }
    }
    for tables in [&[META][..], &[META, KUBERNETES]] {
        let types = Types::read(tables);
        for (name, fields) in &types.0 {
            for (field, wanted) in fields.fields() {
                let there = named(wanted).is_none_or(|wanted| types.0.contains_key(wanted));
                assert!(there, "{name}.{field}");
            }
        }
    }
}

#[test]
fn spaces_that_json_escapes_are_not_cut() {
    assert_eq!(trim_json(" 1Gi\u{a0}"), "1Gi");
    assert_eq!(trim_json("1Gi\n"), "1Gi\n");
}
