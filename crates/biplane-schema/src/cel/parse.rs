//! Parses tokens into an expression.

use super::ast::{Expr, IF_PRESENT, Kind, Literal};
use super::lex::{Token, Word, words};
use super::macros;
use super::report::Problem;

/// How deeply expressions may nest.
const MAX_DEPTH: usize = 250;

const BEGINNINGS: &str = "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                          NUM_UINT, STRING, BYTES, IDENTIFIER";

/// Operators from the loosest to the tightest.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["<", "<=", ">=", ">", "==", "!=", "in"], &["+", "-"], &["*", "/", "%"]];

/// Names that may only be used as fields.
const RESERVED: [&str; 18] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "in",
];

/// Parses an expression, with optional values and their macros if `optionals` is set.
pub(super) fn parse(source: &[char], optionals: bool) -> Result<Expr, Vec<Problem>> {
    let (words, problems) = words(source);
    let mut parser = Parser { source, words, next: 0, nesting: 0, problems, optionals };
    match parser.whole() {
        Ok(expression) if parser.problems.is_empty() => Ok(expression),
        Ok(_) => Err(parser.problems),
        Err(problem) => {
            parser.problems.push(problem);
            Err(parser.problems)
        }
    }
}

struct Parser<'a> {
    source: &'a [char],
    words: Vec<Word>,
    next: usize,
    nesting: usize,
    /// Problems that do not stop the parser.
    problems: Vec<Problem>,
    /// Whether the syntax of optional values is allowed, and quoted names are not.
    optionals: bool,
}

type Parsed<T> = Result<T, Problem>;

fn is(word: &Word, symbols: &[&str]) -> Option<&'static str> {
    match word.token {
        Token::Symbol(symbol) if symbols.contains(&symbol) => Some(symbol),
        _ => None,
    }
}

impl Parser<'_> {
    fn peek(&self) -> Word {
        let end = Word { token: Token::End, at: self.source.len(), end: self.source.len() };
        self.words.get(self.next).cloned().unwrap_or(end)
    }

    fn take(&mut self, symbols: &[&str]) -> Option<(&'static str, usize)> {
        let word = self.peek();
        let symbol = is(&word, symbols)?;
        self.next += 1;
        Some((symbol, word.at))
    }

    fn text(&self, word: &Word) -> String {
        if word.token == Token::End {
            return "<EOF>".to_owned();
        }
        self.source.get(word.at..word.end).unwrap_or_default().iter().collect()
    }

    fn unexpected(&self, how: &str, expecting: &str) -> Problem {
        let word = self.peek();
        let text = self.text(&word);
        Problem {
            at: word.at,
            text: format!("Syntax error: {how} input '{text}' expecting {expecting}"),
        }
    }

    fn expect(&mut self, symbol: &'static str, expecting: &str) -> Parsed<()> {
        if self.take(&[symbol]).is_some() {
            return Ok(());
        }
        if expecting.is_empty() {
            let word = self.peek();
            let text = format!("Syntax error: missing '{symbol}' at '{}'", self.text(&word));
            return Err(Problem { at: word.at, text });
        }
        Err(self.unexpected("mismatched", expecting))
    }

    /// Refuses expressions that are nested too deeply for later recursion.
    fn made(&self, expression: Expr) -> Parsed<Expr> {
        if expression.depth > MAX_DEPTH { Err(self.too_deep()) } else { Ok(expression) }
    }

    fn too_deep(&self) -> Problem {
        let text = format!("expression recursion limit exceeded: {MAX_DEPTH}");
        Problem { at: self.peek().at, text }
    }

    fn whole(&mut self) -> Parsed<Expr> {
        let expression = self.expression()?;
        if self.peek().token == Token::End {
            return Ok(expression);
        }
        // If there is one token too many, report that token. If there are more, the cause is
        // unclear.
        let last = self.words.get(self.next + 1).is_none_or(|word| word.token == Token::End);
        Err(self.unexpected(if last { "extraneous" } else { "mismatched" }, "<EOF>"))
    }

    fn expression(&mut self) -> Parsed<Expr> {
        self.nesting += 1;
        if self.nesting > MAX_DEPTH / 2 {
            return Err(self.too_deep());
        }
        let condition = self.chain(0)?;
        let expression = if let Some((_, at)) = self.take(&["?"]) {
            let yes = self.chain(0)?;
            self.expect(":", "':'")?;
            let no = self.expression()?;
            self.made(Expr::call(at, "_?_:_", vec![condition, yes, no]))?
        } else {
            condition
        };
        self.nesting -= 1;
        Ok(expression)
    }

    /// Operands joined by operators that bind at least as tightly as the given level.
    fn chain(&mut self, loosest: usize) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while let Some(level) = self.level().filter(|level| *level >= loosest) {
            let symbols = LEVELS.get(level).copied().unwrap_or_default();
            let mut operands = Vec::new();
            while let Some((symbol, at)) = self.take(symbols) {
                let right = self.chain(level + 1)?;
                if level < 2 {
                    operands.push((at, right));
                    continue;
                }
                let function =
                    if symbol == "in" { "@in".to_owned() } else { format!("_{symbol}_") };
                left = self.made(Expr::call(at, &function, vec![left, right]))?;
            }
            left = self.made(balanced(if level == 0 { "_||_" } else { "_&&_" }, left, operands))?;
        }
        Ok(left)
    }

    /// The precedence of the next operator.
    fn level(&self) -> Option<usize> {
        let word = self.words.get(self.next)?;
        LEVELS.iter().position(|symbols| is(word, symbols).is_some())
    }

    fn unary(&mut self) -> Parsed<Expr> {
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            let Some((_, at)) = self.take(&[symbol]) else { continue };
            if symbol == "-"
                && let Token::Int(digits, base) = self.peek().token
            {
                self.next += 1;
                let literal = self.integer(at, &format!("-{digits}"), base);
                return self.members(literal);
            }
            if symbol == "-"
                && let Token::Literal(Literal::Double(number)) = self.peek().token
            {
                self.next += 1;
                return self.members(Expr::new(at, Kind::Literal(Literal::Double(-number))));
            }
            let mut count = 1;
            while self.take(&[symbol]).is_some() {
                count += 1;
            }
            let operand = self.primary()?;
            let operand = self.members(operand)?;
            // Pairs of the same operator cancel out.
            if count % 2 == 0 {
                return Ok(operand);
            }
            return self.made(Expr::call(at, function, vec![operand]));
        }
        let primary = self.primary()?;
        self.members(primary)
    }

    fn integer(&mut self, at: usize, digits: &str, base: u32) -> Expr {
        let number = i64::from_str_radix(digits, base).unwrap_or_else(|_| {
            self.problems.push(Problem { at, text: "invalid int literal".to_owned() });
            0
        });
        Expr::new(at, Kind::Literal(Literal::Int(number)))
    }

    fn members(&mut self, mut operand: Expr) -> Parsed<Expr> {
        while let Some((symbol, at)) = self.take(&[".", "["]) {
            let optional = self.take(&["?"]).is_some();
            if optional && !self.optionals {
                let (text, at) = if symbol == "." { (".?", at) } else { ("[?", at) };
                let text = format!("unsupported syntax '{text}'");
                return Err(Problem { at, text });
            }
            operand = if symbol == "[" {
                let index = self.expression()?;
                self.expect("]", "']'")?;
                let function = if optional { "_[?_]" } else { "_[_]" };
                Expr::call(at, function, vec![operand, index])
            } else if optional {
                self.optional_member(operand, at)?
            } else {
                self.member(operand, at)?
            };
            operand = self.made(operand)?;
        }
        Ok(operand)
    }

    fn optional_member(&mut self, operand: Expr, at: usize) -> Parsed<Expr> {
        let word = self.peek();
        let Token::Name(field) = word.token else {
            let text =
                format!("Syntax error: no viable alternative at input '.?{}'", self.text(&word));
            return Err(Problem { at: word.at, text });
        };
        self.next += 1;
        let field = Expr::new(word.at, Kind::Literal(Literal::Text(field)));
        Ok(Expr::call(at, "_?._", vec![operand, field]))
    }

    fn member(&mut self, operand: Expr, at: usize) -> Parsed<Expr> {
        let word = self.peek();
        let (field, callable) = match word.token {
            Token::Name(ref name) => (name.clone(), true),
            Token::Quoted(_) if self.optionals => {
                return Err(Problem { at: word.at, text: "unsupported syntax: '`'".to_owned() });
            }
            Token::Quoted(ref name) => (name.clone(), false),
            _ => {
                let end = if word.token == Token::End { String::new() } else { self.text(&word) };
                let text = format!("Syntax error: no viable alternative at input '.{end}'");
                return Err(Problem { at: word.at, text });
            }
        };
        self.next += 1;
        if callable && let Some((_, at)) = self.take(&["("]) {
            let args = self.arguments()?;
            return self.call(at, field, Some(operand), args);
        }
        Ok(Expr::new(at, Kind::Field { operand: Box::new(operand), field, test: false }))
    }

    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        if self.take(&[")"]).is_some() {
            return Ok(Vec::new());
        }
        if self.peek().token == Token::End {
            let beginnings = BEGINNINGS.replacen("'(', ", "'(', ')', ", 1);
            return Err(self.unexpected("mismatched", &format!("{{{beginnings}}}")));
        }
        let mut args = vec![self.expression()?];
        while self.take(&[","]).is_some() {
            args.push(self.expression()?);
        }
        self.expect(")", "")?;
        Ok(args)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let leading_dot =
            matches!(self.words.get(self.next + 1).map(|word| &word.token), Some(Token::Name(_)))
                && self.take(&["."]).is_some();
        let word = self.peek();
        let at = word.at;
        self.next += 1;
        let kind = match word.token {
            Token::Literal(literal) => Kind::Literal(literal),
            Token::Int(digits, base) => return Ok(self.integer(at, &digits, base)),
            Token::Name(name) => return self.named(at, name, leading_dot),
            Token::Symbol("(") => {
                let inner = self.expression()?;
                self.expect(")", "")?;
                return Ok(inner);
            }
            Token::Symbol("[") => Kind::List(self.items("]", |parser, optional| {
                let item = parser.expression()?;
                Ok(if_present(optional, item))
            })?),
            Token::Symbol("{") => Kind::Map(self.items("}", |parser, optional| {
                let key = parser.expression()?;
                parser.expect(":", "")?;
                let value = parser.expression()?;
                Ok((key, if_present(optional, value)))
            })?),
            _ => {
                self.next -= 1;
                return Err(self.unexpected("mismatched", &format!("{{{BEGINNINGS}}}")));
            }
        };
        self.made(Expr::new(at, kind))
    }

    fn items<T>(
        &mut self,
        close: &'static str,
        item: impl Fn(&mut Self, bool) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        // A comma alone is accepted, as if it followed an item.
        let alone = self.words.get(self.next + 1).is_some_and(|word| is(word, &[close]).is_some());
        if alone {
            self.take(&[","]);
        }
        loop {
            if self.take(&[close]).is_some() {
                return Ok(items);
            }
            let optional = self.take(&["?"]);
            if let Some((_, at)) = optional.filter(|_| !self.optionals) {
                return Err(Problem { at, text: "unsupported syntax '?'".to_owned() });
            }
            items.push(item(self, optional.is_some())?);
            if self.take(&[","]).is_none() {
                self.expect(close, &format!("{{'{close}', ','}}"))?;
                return Ok(items);
            }
        }
    }

    fn named(&mut self, at: usize, name: String, leading_dot: bool) -> Parsed<Expr> {
        if RESERVED.contains(&name.as_str()) {
            self.problems.push(Problem { at, text: format!("reserved identifier: {name}") });
        }
        let name = if leading_dot { format!(".{name}") } else { name };
        if let Some((_, at)) = self.take(&["("]) {
            let args = self.arguments()?;
            return self.call(at, name, None, args);
        }
        if let Some((_, at)) = self.take(&["{"]) {
            self.items("}", |parser, _| {
                parser.next += 1;
                parser.expect(":", "")?;
                parser.expression()
            })?;
            return Ok(Expr::new(at, Kind::Message(name)));
        }
        Ok(Expr::new(at, Kind::Name(name)))
    }

    /// A call, or the expansion of a macro with that name and shape.
    fn call(
        &mut self,
        at: usize,
        function: String,
        target: Option<Expr>,
        mut args: Vec<Expr>,
    ) -> Parsed<Expr> {
        let expression = match (function.as_str(), target, args.len()) {
            ("has", None, 1) => {
                let Some(arg) = args.pop() else { return Err(self.too_deep()) };
                let Kind::Field { operand, field, test: false } = arg.kind else {
                    let text = "invalid argument to has() macro".to_owned();
                    return Err(Problem { at: arg.at, text });
                };
                Expr::new(at, Kind::Field { operand, field, test: true })
            }
            (name, Some(target), count) if macros::known(name, count, self.optionals) => {
                macros::expand(at, &function, target, args)?
            }
            (_, target, _) => {
                let target = target.map(Box::new);
                Expr::new(at, Kind::Call { function, target, args })
            }
        };
        self.made(expression)
    }
}

/// An entry of a literal that may be left out.
fn if_present(optional: bool, entry: Expr) -> Expr {
    if optional { Expr::call(entry.at, IF_PRESENT, vec![entry]) } else { entry }
}

/// Turns a long chain of one operator into a balanced tree.
fn balanced(function: &str, first: Expr, mut rest: Vec<(usize, Expr)>) -> Expr {
    if rest.is_empty() {
        return first;
    }
    let mut right = rest.split_off(rest.len() / 2);
    let (at, middle) = right.remove(0);
    let left = balanced(function, first, rest);
    Expr::call(at, function, vec![left, balanced(function, middle, right)])
}
