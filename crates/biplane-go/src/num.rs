//! Parses and prints numbers and booleans like Go.

mod parse;

pub use parse::{parse_bool, parse_float, parse_int};

use crate::digits::{plain, shortest};

/// Prints a double like Go's JSON encoders: with the fewest digits that parse back to the same
/// number, and with an exponent only if the number is very small or very large.
///
/// `NaN` and infinities, which JSON does not have, print like Go's `%v`, without quotes.
pub fn format_float(float: f64) -> String {
    let size = float.abs();
    if let Some(special) = special(float) {
        special.to_owned()
    } else if size == 0.0 || (1e-6..1e21).contains(&size) {
        plain(float)
    } else {
        exponent(float, 1)
    }
}

/// Prints a double like Go's `%v` and `%g`: with an exponent of at least two digits below `1e-4`
/// and from `1e6` on.
pub fn format_general(float: f64) -> String {
    let size = float.abs();
    if let Some(special) = special(float) {
        special.to_owned()
    } else if size == 0.0 || (1e-4..1e6).contains(&size) {
        plain(float)
    } else {
        exponent(float, 2)
    }
}

fn special(float: f64) -> Option<&'static str> {
    if float.is_nan() {
        Some("NaN")
    } else if float.is_infinite() {
        Some(if float > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

fn exponent(float: f64, digits: usize) -> String {
    let text = shortest(float);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Each row as printed by Go: json.Marshal, then fmt.Sprintf("%v").
    #[allow(clippy::unreadable_literal)] // written as Go prints them
    const FLOATS: &[(f64, &str, &str)] = &[
        (-0.0, "-0", "-0"),
        (-1.0, "-1", "-1"),
        (-1.5e-7, "-1.5e-7", "-1.5e-07"),
        (-1e21, "-1e+21", "-1e+21"),
        (0.0, "0", "0"),
        (0.0001, "0.0001", "0.0001"),
        (0.00012, "0.00012", "0.00012"),
        (0.1, "0.1", "0.1"),
        (0.30000000000000004, "0.30000000000000004", "0.30000000000000004"),
        (0.3333333333333333, "0.3333333333333333", "0.3333333333333333"),
        (1.0, "1", "1"),
        (1.2345678901234568e20, "123456789012345680000", "1.2345678901234568e+20"),
        (1.23456789e8, "123456789", "1.23456789e+08"),
        (1.234567e6, "1234567", "1.234567e+06"),
        (1.2345e-5, "0.000012345", "1.2345e-05"),
        (1.25e6, "1250000", "1.25e+06"),
        (1.25e-10, "1.25e-10", "1.25e-10"),
        (1.5, "1.5", "1.5"),
        (1.5e21, "1.5e+21", "1.5e+21"),
        (1.7976931348623157e308, "1.7976931348623157e+308", "1.7976931348623157e+308"),
        (100.0, "100", "100"),
        (100000.0, "100000", "100000"),
        (123456.0, "123456", "123456"),
        (1e6, "1000000", "1e+06"),
        (1e20, "100000000000000000000", "1e+20"),
        (1e21, "1e+21", "1e+21"),
        (1e22, "1e+22", "1e+22"),
        (1e-5, "0.00001", "1e-05"),
        (1e-6, "0.000001", "1e-06"),
        (1e-7, "1e-7", "1e-07"),
        (2.2250738585072014e-308, "2.2250738585072014e-308", "2.2250738585072014e-308"),
        (3.0, "3", "3"),
        (4.503599627370498e15, "4503599627370498", "4.503599627370498e+15"),
        (5e-324, "5e-324", "5e-324"),
        (-1652147969856765.3, "-1652147969856765.2", "-1.6521479698567652e+15"),
        (1652147969856765.8, "1652147969856765.8", "1.6521479698567658e+15"),
        (9.007199254740992e15, "9007199254740992", "9.007199254740992e+15"),
        (9.007199254740994e15, "9007199254740994", "9.007199254740994e+15"),
        (999999.0, "999999", "999999"),
    ];

    #[test]
    fn prints_doubles_as_the_json_encoder_of_go_does() {
        for (float, json, _) in FLOATS {
            assert_eq!(format_float(*float), *json);
        }
    }

    #[test]
    fn prints_doubles_as_the_general_format_of_go_does() {
        for (float, _, general) in FLOATS {
            assert_eq!(format_general(*float), *general);
        }
    }

    #[test]
    fn prints_something_for_what_is_not_a_number() {
        for (float, text) in
            [(f64::NAN, "NaN"), (f64::INFINITY, "+Inf"), (f64::NEG_INFINITY, "-Inf")]
        {
            assert_eq!(format_float(float), text);
            assert_eq!(format_general(float), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn texts_read_back_as_the_same_number(float in proptest::num::f64::NORMAL) {
            for text in [format_float(float), format_general(float)] {
                proptest::prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(float.to_bits()));
            }
        }
    }
}
