//! Parses the format: directives, their flags, and which argument each directive uses.

use super::{Arg, Flags, Item, Printer, runes};

/// The largest width or precision that Go accepts.
const TOO_LARGE: i64 = 1_000_000;

/// A cursor over a format.
struct Directives<'a> {
    format: &'a [u8],
    at: usize,
    args: &'a [Arg<'a>],
    next: usize,
    /// Whether any directive selected its argument by number.
    reordered: bool,
    /// Whether the argument numbers of the current directive are valid.
    good: bool,
    printer: Printer,
}

pub(super) fn run(format: &[u8], args: &[Arg<'_>], room: usize) -> Printer {
    let mut directives = Directives {
        format,
        at: 0,
        args,
        next: 0,
        reordered: false,
        good: true,
        printer: Printer { room, ..Printer::default() },
    };
    while directives.at < format.len() && !directives.printer.full {
        if !directives.one() {
            break;
        }
    }
    directives.extra();
    directives.printer
}

impl Directives<'_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    /// Copies text up to the next directive and executes that directive. Returns whether there is
    /// more.
    fn one(&mut self) -> bool {
        self.good = true;
        let rest = self.format.get(self.at..).unwrap_or_default();
        let plain = rest.iter().position(|b| *b == b'%').unwrap_or(rest.len());
        self.printer.bytes(rest.get(..plain).unwrap_or_default());
        self.at += plain;
        if self.at >= self.format.len() {
            return false;
        }
        self.at += 1;
        self.flags();
        let mut numbered = self.number();
        numbered = self.width(numbered);
        numbered = self.precision(numbered);
        if !numbered {
            self.number();
        }
        let rest = self.format.get(self.at..).unwrap_or_default();
        let Some((verb, bytes)) = runes(rest).next() else {
            self.printer.text("%!(NOVERB)");
            return false;
        };
        self.at += bytes.len();
        let verb = verb.unwrap_or(char::REPLACEMENT_CHARACTER);
        match self.args.get(self.next) {
            _ if verb == '%' => self.printer.push('%'),
            _ if !self.good => self.complain(verb, "(BADINDEX)"),
            None => self.complain(verb, "(MISSING)"),
            Some(arg) => {
                self.printer.verb(*arg, verb);
                self.next += 1;
            }
        }
        true
    }

    fn complain(&mut self, verb: char, what: &str) {
        self.printer.text("%!");
        self.printer.push(verb);
        self.printer.text(what);
    }

    fn flags(&mut self) {
        let mut flags = Flags::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
        self.printer.flags = flags;
    }

    /// Decimal digits, if any. A number that is too large ends the format.
    fn digits(&mut self) -> Option<usize> {
        let mut number = None;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            let so_far = number.unwrap_or_default();
            if so_far > TOO_LARGE as usize {
                self.at = self.format.len();
                return None;
            }
            number = Some(so_far * 10 + usize::from(byte - b'0'));
            self.at += 1;
        }
        number
    }

    /// `[n]`, which selects an argument. Returns whether there was one.
    fn number(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = self.format.get(self.at..).unwrap_or_default();
        let close = if rest.len() < 3 { None } else { rest.iter().position(|b| *b == b']') };
        let Some(close) = close else {
            self.good = false;
            self.at += 1;
            return false;
        };
        self.at += close + 1;
        let index = rest
            .get(1..close)
            .filter(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
            .and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<i64>().ok())
            .filter(|index| *index <= TOO_LARGE * 10 + 9);
        match index {
            Some(index @ 1..) if index as usize <= self.args.len() => {
                self.next = index as usize - 1;
                true
            }
            found => {
                self.good = false;
                found.is_some()
            }
        }
    }

    /// An argument that is used as a width or precision.
    fn int_arg(&mut self) -> Option<i64> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        let number = match arg {
            Arg::Int(number) | Arg::Item(Item::Int(number, _)) => Some(*number),
            Arg::Item(Item::Uint(number, _)) => i64::try_from(*number).ok(),
            _ => None,
        };
        number.filter(|number| (-TOO_LARGE..=TOO_LARGE).contains(number))
    }

    fn width(&mut self, numbered: bool) -> bool {
        if self.peek() == Some(b'*') {
            self.at += 1;
            let width = self.int_arg();
            if width.is_none() {
                self.printer.text("%!(BADWIDTH)");
            }
            if width.is_some_and(i64::is_negative) {
                self.printer.flags.minus = true;
                self.printer.flags.zero = false;
            }
            self.printer.flags.width = width.map(|w| w.unsigned_abs() as usize);
            return false;
        }
        self.printer.flags.width = self.digits();
        if numbered && self.printer.flags.width.is_some() {
            self.good = false;
        }
        numbered
    }

    fn precision(&mut self, numbered: bool) -> bool {
        // A dot at the very end is a verb.
        if self.peek() != Some(b'.') || self.at + 1 >= self.format.len() {
            return numbered;
        }
        self.at += 1;
        if numbered {
            self.good = false;
        }
        let numbered = self.number();
        if self.peek() == Some(b'*') {
            self.at += 1;
            let precision = self.int_arg().and_then(|p| usize::try_from(p).ok());
            if precision.is_none() {
                self.printer.text("%!(BADPREC)");
            }
            self.printer.flags.precision = precision;
            return false;
        }
        self.printer.flags.precision = Some(self.digits().unwrap_or_default());
        numbered
    }

    /// Reports arguments that no directive used.
    fn extra(&mut self) {
        let Some(extra @ [_, ..]) = self.args.get(self.next..) else { return };
        if self.reordered {
            return;
        }
        self.printer.flags = Flags::default();
        self.printer.text("%!(EXTRA ");
        for (index, arg) in extra.iter().enumerate() {
            if index > 0 {
                self.printer.text(", ");
            }
            if let Arg::Nil | Arg::Item(Item::Nil) = arg {
                self.printer.text("<nil>");
            } else {
                self.printer.text(arg.type_name());
                self.printer.push('=');
                self.printer.arg(*arg, 'v');
            }
        }
        self.printer.push(')');
    }
}
