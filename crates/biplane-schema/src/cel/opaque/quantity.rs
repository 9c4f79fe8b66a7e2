//! Quantities, exact to a billionth.

use std::cmp::Ordering;

/// A quantity in billionths.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    /// Whether it was written with a fraction, even if that is zero. Kubernetes then takes it for no
    /// integer, so that `1000m` is none.
    fractional: bool,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

const NANO: i128 = 1_000_000_000;

impl Quantity {
    pub(in crate::cel) fn parse(text: &str) -> Result<Self, String> {
        // The general parser tells what is wrong. What is left is a number and a known suffix.
        biplane_go::quantity::parse(text.as_bytes()).map_err(|error| error.to_string())?;
        let negative = text.starts_with('-');
        let text = text.trim_start_matches(['+', '-']);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let (binary, exponent) = scale(suffix);
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let shift = exponent + 9 - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        // More than this many digits cannot be held, and quantities are capped far below.
        let mut size: i128 =
            if digits.len() > 36 { i128::MAX / 4 } else { digits.parse().unwrap_or(0) };
        let mut inexact = false;
        if shift >= 0 {
            for _ in 0..shift.min(40) {
                size = size.saturating_mul(10);
            }
        } else {
            for _ in 0..(-shift).min(60) {
                inexact |= size % 10 != 0;
                size /= 10;
            }
        }
        if binary > 0 {
            size = size.saturating_mul(1i128 << binary);
            size = size.min(i128::from(i64::MAX) * NANO);
        }
        // Fractions of a billionth are rounded away from zero.
        size = size.saturating_add(i128::from(inexact)).min(i128::MAX / 4);
        let fractional = if binary > 0 { !fraction.is_empty() } else { shift < 9 };
        Ok(Self { nanos: if negative { -size } else { size }, fractional })
    }

    pub(in crate::cel) fn whole(number: i64) -> Self {
        Self { nanos: i128::from(number) * NANO, fractional: false }
    }

    pub(in crate::cel) fn sign(self) -> i64 {
        i64::try_from(self.nanos.signum()).unwrap_or_default()
    }

    /// The value, if it is an integer of 64 bits.
    pub(in crate::cel) fn integer(self) -> Option<i64> {
        if self.fractional || self.nanos % NANO != 0 {
            return None;
        }
        i64::try_from(self.nanos / NANO).ok()
    }

    pub(in crate::cel) fn float(self) -> f64 {
        if self.nanos % NANO == 0 {
            (self.nanos / NANO) as f64
        } else {
            self.nanos as f64 / NANO as f64
        }
    }

    pub(in crate::cel) fn plus(self, other: Self) -> Self {
        self.with(other, self.nanos.saturating_add(other.nanos))
    }

    pub(in crate::cel) fn minus(self, other: Self) -> Self {
        self.with(other, self.nanos.saturating_sub(other.nanos))
    }

    /// A result, which is fractional if an operand that is not zero was.
    fn with(self, other: Self, nanos: i128) -> Self {
        let counts = |one: Self| one.fractional && one.nanos != 0;
        Self { nanos, fractional: counts(self) || counts(other) }
    }
}

/// The powers of two and of ten that a suffix stands for.
fn scale(suffix: &str) -> (u32, i64) {
    match suffix {
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        exponent => {
            let digits = exponent.get(1..).unwrap_or_default();
            (0, digits.parse::<i64>().unwrap_or_default().clamp(-1000, 1000))
        }
    }
}
