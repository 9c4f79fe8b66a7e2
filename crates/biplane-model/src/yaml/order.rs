//! The natural order of keys: numbers inside keys are compared as numbers, and letters come last.

use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;

use super::Dialect;

/// Sorts by key.
///
/// The order has cycles (`9`, `10`, `1a`). For these, upstream's result is random, and the standard
/// library's sort may panic. A merge sort works with any comparison and gives the same order for
/// the same keys.
pub(super) fn sort_by_key<T: Copy>(entries: &mut Vec<(&str, T)>) {
    sort_by(entries, |a, b| compare(a.0, b.0, Dialect::V2));
}

/// Sorts by a comparison that may have cycles.
pub(super) fn sort_by<T: Copy>(entries: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
    if entries.is_sorted_by(|a, b| compare(a, b).is_le()) {
        return;
    }
    let mut width = 1;
    while width < entries.len() {
        let mut merged = Vec::with_capacity(entries.len());
        for pair in entries.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &mut merged, &compare);
        }
        *entries = merged;
        width *= 2;
    }
}

fn merge<T: Copy>(
    mut left: &[T],
    mut right: &[T],
    merged: &mut Vec<T>,
    compare: &impl Fn(&T, &T) -> Ordering,
) {
    while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
        if compare(second, first).is_lt() {
            merged.push(*second);
            right = right_rest;
        } else {
            merged.push(*first);
            left = left_rest;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
}

/// Compares two keys at the first character that differs.
pub(super) fn compare(a: &str, b: &str, dialect: Dialect) -> Ordering {
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8());
    let (before, rest_a) = a.split_at(same.sum());
    let rest_b = b.get(before.len()..).unwrap_or_default();
    let (Some(first_a), Some(first_b)) = (rest_a.chars().next(), rest_b.chars().next()) else {
        return a.len().cmp(&b.len());
    };
    // In the newer version, a number ends before a letter.
    let after_digit = dialect == Dialect::V3 && before.chars().next_back().is_some_and(is_digit);
    match (is_letter(first_a), is_letter(first_b)) {
        (true, false) if after_digit => return Ordering::Less,
        (false, true) if after_digit => return Ordering::Greater,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (true, true) => return first_a.cmp(&first_b),
        (false, false) => {}
    }
    // A zero counts only after another digit: in `10` it does, as a leading zero it does not.
    let zero = first_a == '0' || first_b == '0';
    let within_number =
        zero && before.chars().rev().take_while(|c| is_digit(*c)).any(|digit| digit != '0');
    let (number_a, length_a) = leading_number(rest_a, within_number);
    let (number_b, length_b) = leading_number(rest_b, within_number);
    number_a.cmp(&number_b).then(length_a.cmp(&length_b)).then(first_a.cmp(&first_b))
}

/// The number at the start of the string, and its number of digits. Long numbers wrap around.
fn leading_number(text: &str, behind_digit: bool) -> (i64, usize) {
    let digits = text.chars().take_while(|c| is_digit(*c));
    digits.fold((i64::from(behind_digit), 0), |(number, length), digit| {
        let value = i64::from(u32::from(digit)) - i64::from(u32::from('0'));
        (number.wrapping_mul(10).wrapping_add(value), length + 1)
    })
}

fn is_letter(c: char) -> bool {
    static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{L}$").ok());
    in_class(c, char::is_ascii_alphabetic, &LETTER)
}

fn is_digit(c: char) -> bool {
    static DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{Nd}$").ok());
    in_class(c, char::is_ascii_digit, &DIGIT)
}

/// The standard library's character classes are wider than these general categories.
fn in_class(c: char, ascii: fn(&char) -> bool, other: &LazyLock<Option<Regex>>) -> bool {
    if c.is_ascii() {
        return ascii(&c);
    }
    other.as_ref().is_some_and(|class| class.is_match(c.encode_utf8(&mut [0; 4])))
}
