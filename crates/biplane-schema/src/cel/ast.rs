//! The syntax tree of an expression.

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// The name of a type, as a value.
    Type(&'static str),
}

/// An expression and its location in the source, as errors report it.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) at: usize,
    /// The nesting depth of expressions.
    pub(super) depth: usize,
    /// The number under which the check of types notes what it finds.
    pub(super) id: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Literal(Literal),
    Name(String),
    /// `operand.field`, or a test whether the field exists.
    Field {
        operand: Box<Expr>,
        field: String,
        test: bool,
    },
    Call {
        function: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    /// A protobuf message. None is supported.
    Message(String),
    Loop(Box<Loop>),
    /// A value that is used under a name.
    Bind(Box<Bind>),
}

/// `value` under the name `variable` inside of `body`.
#[derive(Debug)]
pub(super) struct Bind {
    pub(super) variable: String,
    pub(super) value: Expr,
    pub(super) body: Expr,
}

/// The expansion of macros over lists and maps. The accumulator is [`RESULT`].
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) range: Expr,
    pub(super) variable: String,
    /// The value beside the index or key, in loops with two variables.
    pub(super) second: Option<String>,
    pub(super) start: Expr,
    pub(super) condition: Expr,
    pub(super) step: Expr,
    pub(super) result: Expr,
}

/// A name that no expression can contain.
pub(super) const RESULT: &str = "@result";

/// The function around an entry of a literal that is left out if it has no value: `[?x]`.
pub(super) const IF_PRESENT: &str = "@if_present";

/// The functions that give a value another type.
pub(super) const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

impl Expr {
    pub(super) fn new(at: usize, kind: Kind) -> Self {
        let mut deepest = 0;
        kind.each(&mut |child| deepest = deepest.max(child.depth));
        Self { at, depth: deepest + 1, id: 0, kind }
    }

    pub(super) fn call(at: usize, function: &str, args: Vec<Expr>) -> Self {
        Self::new(at, Kind::Call { function: function.to_owned(), target: None, args })
    }

    pub(super) fn name(at: usize, name: &str) -> Self {
        Self::new(at, Kind::Name(name.to_owned()))
    }

    /// Calls `see` for this expression and all nested ones.
    pub(super) fn visit(&self, see: &mut dyn FnMut(&Self)) {
        see(self);
        self.kind.each(&mut |child| child.visit(see));
    }

    /// Whether its value is known before the program runs: a literal, one that is converted, or a
    /// list or map of nothing but such.
    pub(super) fn is_constant(&self) -> bool {
        match &self.kind {
            Kind::Literal(_) => true,
            Kind::Call { function, target: None, args } => match args.as_slice() {
                [only] => CONVERSIONS.contains(&function.as_str()) && only.is_constant(),
                _ => false,
            },
            Kind::List(items) => items.iter().all(Self::is_constant),
            Kind::Map(entries) => {
                entries.iter().all(|(key, value)| key.is_constant() && value.is_constant())
            }
            _ => false,
        }
    }

    /// The dotted name of a chain of fields.
    pub(super) fn dotted(&self) -> Option<String> {
        match &self.kind {
            Kind::Name(name) => Some(name.clone()),
            Kind::Field { operand, field, test: false } => {
                Some(format!("{}.{field}", operand.dotted()?))
            }
            _ => None,
        }
    }

    /// The pattern, if this is a match against a literal pattern.
    pub(super) fn literal_pattern(&self) -> Option<&str> {
        match &self.kind {
            Kind::Call { function, args, .. }
                if matches!(function.as_str(), "matches" | "find" | "findAll") =>
            {
                // `findAll` may have a limit after the pattern.
                let pattern = if function == "findAll" { args.first() } else { args.last() };
                match &pattern?.kind {
                    Kind::Literal(Literal::Text(pattern)) => Some(pattern),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

impl Kind {
    fn each<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        match self {
            Self::Literal(_) | Self::Name(_) | Self::Message(_) => {}
            Self::Field { operand, .. } => see(operand),
            Self::Call { target, args, .. } => {
                if let Some(target) = target {
                    see(target);
                }
                args.iter().for_each(see);
            }
            Self::List(items) => items.iter().for_each(see),
            Self::Map(entries) => entries.iter().for_each(|(key, value)| {
                see(key);
                see(value);
            }),
            Self::Loop(parts) => {
                let Loop { range, start, condition, step, result, .. } = parts.as_ref();
                [range, start, condition, step, result].into_iter().for_each(see);
            }
            Self::Bind(parts) => [&parts.value, &parts.body].into_iter().for_each(see),
        }
    }
}
