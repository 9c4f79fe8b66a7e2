//! Parses mutated formats, patterns and quantities. Each must be accepted or refused without a
//! panic.

use biplane_go::fmt::{Arg, sprintf};
use biplane_go::quantity;
use biplane_go::regex::GoRegex;
use biplane_testkit::mutate;
use serde_json::json;

#[test]
fn damaged_formats_print_something() {
    let corpus: [&[u8]; 4] =
        [b"%[1]*.[2]*[3]f|%v", b"%+#08.3x %q %U", b"%-12s%%%T", b"% e %.3g %b"];
    let document = json!({"items": [{"a": 1}, null, ["b"]], "x.y": {"*": 2.5}});
    mutate("formats", &corpus, 2_000, |bytes| {
        let args =
            [Arg::Int(5), Arg::Float(-2.5), Arg::Text(b"a\xff"), Arg::Nil, Arg::from(&document)];
        sprintf(bytes, &args);
    });
}

#[test]
fn damaged_patterns_only_ever_err() {
    let corpus: [&[u8]; 5] = [
        br"(?i)^[a-z\d-]+(?P<n>x{2,5})?$",
        br"\Qa.b\E|[[:alpha:]\pL]*?",
        br"(?ms:.)\x{41}\101\b",
        br"((a|b)*c)+\z",
        br"[^\x00-\x{10FFFF}]",
    ];
    mutate("patterns", &corpus, 2_500, |bytes| {
        let pattern = String::from_utf8_lossy(bytes);
        let Ok(regex) = GoRegex::new(&pattern) else { return };
        // The engine must accept every pattern that Go accepts, except for size and depth.
        if let Err(error) = regex.group(b"abc-\xff1", 0) {
            let is_deep = pattern.matches('(').count() > 50;
            let is_expected = match error.what {
                "expression nests too deeply" => is_deep,
                what => what == "expression too large",
            };
            assert!(is_expected, "{error}");
        }
    });
}

#[test]
fn damaged_quantities_are_refused_or_have_an_opposite() {
    let corpus: [&[u8]; 6] =
        [b"100m", b"1.5Gi", b"12e6", b".000000001", b"9223372036854775807", b"8Ei"];
    mutate("quantities", &corpus, 100_000, |bytes| {
        if bytes.starts_with(b"-") || bytes.starts_with(b"+") {
            return;
        }
        let signed = |sign: u8| quantity::parse(&[&[sign], bytes].concat());
        // An empty string without a sign is refused for another reason than a sign alone.
        let plain = if bytes.is_empty() { signed(b'+') } else { quantity::parse(bytes) };
        let same = |a: Result<f64, _>, b: Result<f64, _>| match (a, b) {
            (Ok(a), Ok(b)) => a.total_cmp(&b).is_eq() || (a.is_nan() && b.is_nan()),
            (a, b) => a == b,
        };
        let text = String::from_utf8_lossy(bytes);
        assert!(same(plain, signed(b'+')), "{text}");
        // Zero has no sign.
        assert!(same(plain.map(|size| 0.0 - size), signed(b'-')), "{text}");
    });
}
