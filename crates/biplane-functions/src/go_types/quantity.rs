//! What reads as a Kubernetes quantity.

/// Cuts the spaces that are still spaces once the text is JSON; the others are escapes by then.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| {
        c.is_whitespace() && !matches!(c, '\t'..='\r' | '\u{2028}' | '\u{2029}')
    })
}

/// Whether the text is a quantity: a decimal number and a suffix.
pub(super) fn is_quantity(text: &str) -> bool {
    if text.is_empty() {
        return false;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    let Some(exponent) = decimal_exponent(suffix) else { return false };
    // A lone point is zero to the fast path and nothing at all to the exact one.
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    has_digits || exponent >= -9
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}

/// The power of ten that a suffix stands for; a power of two counts as zero.
fn decimal_exponent(suffix: &str) -> Option<i64> {
    Some(match suffix {
        "" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => 0,
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => {
            let number = suffix.strip_prefix(['e', 'E'])?;
            return number.parse().ok();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{is_quantity, trim};

    #[test]
    fn accepts_numbers_with_the_suffixes_of_kubernetes() {
        for text in [
            "0", "1", "-1.5", "+.5", "1.", "100m", "1Gi", "1.5Ki", "2E", "1e3", "1E-10", "007", ".",
        ] {
            assert!(is_quantity(text), "{text}");
        }
    }

    #[test]
    fn rejects_everything_else() {
        for text in
            ["", "lots", "1 Gi", "1GiB", "1K", "1e", "1ee3", "0x10", "1,5", "--1", "1Gi1", "é"]
        {
            assert!(!is_quantity(text), "{text}");
        }
    }

    #[test]
    fn spaces_that_json_escapes_are_not_cut() {
        assert_eq!(trim(" 1Gi\u{a0}"), "1Gi");
        assert_eq!(trim("1Gi\n"), "1Gi\n");
    }
}
