//! Formats integers.

use super::{Printer, quote};
use crate::text::is_printable;

impl Printer {
    /// Prints an integer. Returns whether the verb is for integers.
    pub(super) fn integer(&mut self, size: u64, negative: bool, verb: char) -> bool {
        // Codes of characters are small. Anything else is invalid.
        let integer = i64::try_from(size).map_or(-1, |size| if negative { -size } else { size });
        match verb {
            'v' | 'd' => self.digits(size, negative, 10, verb),
            'b' => self.digits(size, negative, 2, verb),
            'o' | 'O' => self.digits(size, negative, 8, verb),
            'x' | 'X' => self.digits(size, negative, 16, verb),
            'c' => {
                let mut buffer = [0; 4];
                let text = character(integer).encode_utf8(&mut buffer);
                self.pad(text.as_bytes());
            }
            'q' => {
                let quoted = quote::quote_char(character(integer), self.flags.plus);
                self.pad(&quoted);
            }
            'U' => self.unicode(if negative { size.wrapping_neg() } else { size }),
            _ => return false,
        }
        true
    }

    fn digits(&mut self, size: u64, negative: bool, base: u32, verb: char) {
        let flags = self.flags;
        let minimum = match flags.precision {
            Some(0) if size == 0 => {
                let zero = std::mem::take(&mut self.flags.zero);
                self.fill(flags.width.unwrap_or_default());
                self.flags.zero = zero;
                return;
            }
            Some(precision) => precision,
            None if flags.zero && !flags.minus => {
                let signed = negative || flags.plus || flags.space;
                flags.width.unwrap_or_default().saturating_sub(usize::from(signed))
            }
            None => 0,
        };
        let digits = match (base, verb) {
            (2, _) => format!("{size:b}"),
            (8, _) => format!("{size:o}"),
            (16, 'X') => format!("{size:X}"),
            (16, _) => format!("{size:x}"),
            _ => size.to_string(),
        };
        let mut text = "0".repeat(minimum.saturating_sub(digits.len())) + &digits;
        if flags.sharp {
            match base {
                2 => text.insert_str(0, "0b"),
                8 if !text.starts_with('0') => text.insert(0, '0'),
                16 => text.insert_str(0, if verb == 'X' { "0X" } else { "0x" }),
                _ => {}
            }
        }
        if verb == 'O' {
            text.insert_str(0, "0o");
        }
        if negative {
            text.insert(0, '-');
        } else if flags.plus {
            text.insert(0, '+');
        } else if flags.space {
            text.insert(0, ' ');
        }
        self.pad_blank(text.as_bytes());
    }

    fn unicode(&mut self, code: u64) {
        let digits = self.flags.precision.unwrap_or_default().max(4);
        let hex = format!("{code:X}");
        let mut text = format!("U+{}{hex}", "0".repeat(digits.saturating_sub(hex.len())));
        if self.flags.sharp
            && let Some(c) = u32::try_from(code).ok().and_then(char::from_u32)
            && is_printable(c)
        {
            text.push_str(" '");
            text.push(c);
            text.push('\'');
        }
        self.pad_blank(text.as_bytes());
    }
}

/// The character with that code, or the replacement character if the code is invalid.
fn character(code: i64) -> char {
    u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}
