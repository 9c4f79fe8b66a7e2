//! What calls of functions cost, and how large their results are.

use super::{Call, Estimate, Estimator, Node, Range};
use crate::cel::ast::{Expr, Kind, Literal};
use crate::cel::charges::LIST;
use crate::cel::types::Type;

/// The share of a unit that it costs to walk over one character.
const PER_CHARACTER: f64 = 0.1;
/// The share of a unit that it costs to match one character of a pattern.
const PER_CHARACTER_OF_PATTERN: f64 = 0.25;
/// The assumed length of the patterns behind named formats.
const LONGEST_FORMAT_PATTERN: f64 = 128.0;
/// The longest name of a format.
const LONGEST_FORMAT: u64 = 64;
/// The bytes of an address.
const ADDRESS: Range = Range { least: 4, most: 16 };

#[allow(clippy::unnecessary_wraps)] // each is an arm of a match that may have no estimate
impl Estimate {
    fn cost(cost: Range) -> Option<Self> {
        Some(Self { cost, size: None })
    }

    fn sized(cost: Range, size: Range) -> Option<Self> {
        Some(Self { cost, size: Some(size) })
    }
}

impl<'a> Estimator<'a> {
    /// What a call costs, its arguments included.
    pub(super) fn estimate(
        &mut self,
        expression: &'a Expr,
        call: &Call<'_, 'a>,
        costs: &[Range],
    ) -> Estimate {
        let of_args = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        let known = of_list(call).or_else(|| self.of_library(call));
        if let Some(Estimate { cost, size }) = known.or_else(|| self.of_language(expression, call))
        {
            return Estimate { cost: cost.plus(of_args), size };
        }
        match (call.function, costs) {
            // The right side may not be needed.
            ("_&&_" | "_||_", [left, right]) => {
                let cost = Range { least: left.least, most: left.plus(*right).most };
                Estimate { cost, size: None }
            }
            ("_?_:_", [test, yes, no]) => {
                let size = match call.args {
                    [_, yes, no] => {
                        let entries = (self.entries(yes.expression), self.entries(no.expression));
                        if let (Some(yes), Some(no)) = entries {
                            self.note(expression, None, Some(yes.or(no)));
                        }
                        yes.size().or(no.size())
                    }
                    _ => Range::UNKNOWN,
                };
                Estimate { cost: test.plus(yes.or(*no)), size: Some(size) }
            }
            _ => Estimate { cost: of_args.plus(Range::exactly(1)), size: None },
        }
    }

    /// The functions of the language itself whose cost depends on sizes.
    fn of_language(&mut self, expression: &'a Expr, call: &Call<'_, 'a>) -> Option<Estimate> {
        let args = call.args;
        match (call.function, call.target, args) {
            ("format", Some(target), _) => Estimate::cost(target.size().scaled(PER_CHARACTER)),
            ("bytes", None, [text]) if call.overload.args == [Type::Text] => {
                let size = text.size();
                let result = Range { least: size.least, most: size.most.wrapping_mul(4) };
                Estimate::sized(size.scaled(PER_CHARACTER), result)
            }
            ("string", None, [bytes]) if call.overload.args == [Type::Bytes] => {
                let size = bytes.size();
                let result = Range { least: size.least / 4, most: size.most };
                Estimate::sized(size.scaled(PER_CHARACTER), result)
            }
            ("strings.quote", None, [text]) => {
                let size = text.size();
                let result = Range {
                    least: size.least.wrapping_add(2),
                    most: size.most.wrapping_mul(2).wrapping_add(2),
                };
                Estimate::sized(size.scaled(PER_CHARACTER), result)
            }
            ("startsWith" | "endsWith", Some(_), [part]) => {
                Estimate::cost(part.size().scaled(PER_CHARACTER))
            }
            ("@in", None, [_, list])
                if matches!(call.overload.args.get(1), Some(Type::List(_))) =>
            {
                Estimate::cost(list.size())
            }
            ("matches", Some(target), [pattern]) => Estimate::cost(matching(target, pattern)),
            ("contains", Some(target), [part]) => {
                let cost = target.size().scaled(PER_CHARACTER);
                Estimate::cost(cost.times(part.size().scaled(PER_CHARACTER)))
            }
            ("_+_", None, [left, right]) => {
                let is_list = match call.overload.args.first() {
                    Some(Type::List(_)) => true,
                    Some(Type::Text | Type::Bytes) => false,
                    _ => return None,
                };
                let size = left.size().plus(right.size());
                let entries = (self.entries(left.expression), self.entries(right.expression));
                if let (Some(left), Some(right)) = entries {
                    self.note(expression, None, Some(left.or(right)));
                }
                let cost = if is_list { Range::exactly(1) } else { size.scaled(PER_CHARACTER) };
                Estimate::sized(cost, size)
            }
            ("_==_" | "_!=_", None, [left, right]) => Estimate::cost(comparing(left, right)),
            ("_<_" | "_<=_" | "_>_" | "_>=_", None, [left, right])
                if matches!(call.overload.args.as_slice(), [Type::Text | Type::Bytes, _]) =>
            {
                Estimate::cost(comparing(left, right))
            }
            _ => None,
        }
    }

    /// The functions that Kubernetes adds.
    fn of_library(&self, call: &Call<'_, 'a>) -> Option<Estimate> {
        match (call.function, call.target, call.args) {
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                let Some((kind, size)) = self.item(target) else {
                    return Estimate::cost(target.size().scaled(PER_CHARACTER));
                };
                let mut each = Range::exactly(1);
                if matches!(kind, Type::Text | Type::Bytes) {
                    each = each.plus(size.scaled(PER_CHARACTER));
                }
                Estimate::cost(target.size().times(each))
            }
            ("url", _, [text]) => Estimate::sized(text.size().scaled(PER_CHARACTER), text.size()),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                Estimate::sized(target.size().scaled(PER_CHARACTER), target.size())
            }
            ("replace", Some(target), [from, to, ..]) => {
                let cost = target.size().scaled(2.0 * PER_CHARACTER);
                Estimate::sized(cost, replaced(target.size(), from.size(), to.size()))
            }
            ("split", Some(target), args) => {
                let most = match args.get(1).map(|limit| &limit.expression.kind) {
                    Some(Kind::Literal(Literal::Int(limit))) => limit.cast_unsigned(),
                    _ => target.size().most,
                };
                let cost = target.size().scaled(2.0 * PER_CHARACTER);
                Estimate::sized(cost, Range { least: 0, most })
            }
            ("join", Some(target), args) => {
                let items = target.size();
                let mut size = match self.item(target) {
                    Some((_, item)) => items.times(item),
                    None => Range::default(),
                };
                if let Some(separator) = args.first() {
                    let between = Range {
                        least: items.least.saturating_sub(1),
                        most: items.most.saturating_sub(1),
                    };
                    size = size.plus(separator.size().times(between));
                }
                Estimate::sized(size.scaled(PER_CHARACTER), size)
            }
            ("find" | "findAll", Some(target), [pattern, ..]) => Estimate::sized(
                matching(target, pattern),
                Range { least: 0, most: target.size().most },
            ),
            ("ip", Some(_), _) => Estimate::cost(Range::exactly(1)),
            (
                "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
                | "isSemver",
                _,
                [text, ..],
            ) => Estimate::cost(text.size().scaled(PER_CHARACTER)),
            ("ip.isCanonical", _, [text]) => {
                Estimate::cost(text.size().scaled(2.0 * PER_CHARACTER))
            }
            ("containsIP" | "containsCIDR", _, [other]) => {
                let mut cost = ADDRESS.plus(ADDRESS).scaled(PER_CHARACTER);
                if call.function == "containsCIDR" {
                    cost = cost.plus(ADDRESS.scaled(PER_CHARACTER)).plus(Range::exactly(1));
                }
                if call.overload.args.last() == Some(&Type::Text) {
                    cost = cost.plus(other.size().scaled(PER_CHARACTER));
                }
                Estimate::cost(cost)
            }
            ("validate", _, [text]) => {
                let pattern = LONGEST_FORMAT_PATTERN * PER_CHARACTER_OF_PATTERN;
                Estimate::cost(text.size().scaled(PER_CHARACTER).scaled(pattern))
            }
            ("_==_", None, [left, right]) if left.kind == right.kind => match left.kind {
                Type::Opaque(
                    "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver",
                ) => Estimate::cost(Range::exactly(1)),
                Type::Opaque("kubernetes.NamedFormat") => {
                    let longest = Range { least: 1, most: LONGEST_FORMAT };
                    Estimate::cost(longest.scaled(PER_CHARACTER))
                }
                Type::Opaque("kubernetes.URL") => {
                    let most = right.size.map_or(1, |size| size.most);
                    Estimate::cost(Range { least: 1, most }.scaled(PER_CHARACTER))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The type and the size of the items of a list.
    fn item(&self, list: &Node<'a>) -> Option<(&'a Type, Range)> {
        let Type::List(kind) = list.kind else { return None };
        let mut path = self.paths.steps(list.path).to_vec();
        if !path.is_empty() {
            path.push(super::ITEMS);
        }
        Some((kind, self.size_in_schema(&path).unwrap_or(Range::UNKNOWN)))
    }
}

/// The functions over lists and sets.
fn of_list(call: &Call<'_, '_>) -> Option<Estimate> {
    let new_list = |size: Range, factor: f64| {
        Estimate::sized(size.scaled(factor).plus(Range::exactly(1 + LIST)), size)
    };
    match (call.function, call.target, call.args) {
        ("slice", Some(target), [start, end]) => {
            let start = whole(start).unwrap_or(0);
            let end = whole(end).unwrap_or(target.size().most);
            new_list(Range::exactly(end.wrapping_sub(start)), 1.0)
        }
        ("lists.range", None, [end]) => {
            new_list(Range::exactly(whole(end).unwrap_or(u64::MAX)), 1.0)
        }
        ("reverse", Some(target), []) => new_list(target.size(), 1.0),
        ("flatten", Some(target), depth) => {
            let depth = depth.first().map_or(1, |depth| whole(depth).unwrap_or(u64::MAX));
            new_list(target.size(), depth as f64)
        }
        ("distinct", Some(target), []) => new_list(target.size().times(target.size()), 2.0),
        ("sort", Some(list), []) | ("lists.@sortByAssociatedKeys", None, [_, list]) => {
            let compared = match call.target {
                Some(_) => call.overload.args.first(),
                None => Some(list.kind),
            };
            let is_text = matches!(compared, Some(Type::List(item))
                if matches!(item.as_ref(), Type::Text | Type::Bytes | Type::Dyn));
            let factor = if is_text { 2.0 + PER_CHARACTER } else { 2.0 };
            new_list(list.size().times(list.size()), factor)
        }
        ("sets.contains" | "sets.intersects" | "sets.equivalent", _, [left, right]) => {
            let factor = if call.function == "sets.equivalent" { 2.0 } else { 1.0 };
            let cost = left.size().times(right.size()).scaled(factor);
            Estimate::cost(cost.plus(Range::exactly(1)))
        }
        _ => None,
    }
}

/// A literal number, if it is one. A negative one counts as none of something.
fn whole(node: &Node<'_>) -> Option<u64> {
    match node.expression.kind {
        Kind::Literal(Literal::Int(number)) => Some(u64::try_from(number).unwrap_or_default()),
        _ => None,
    }
}

/// What it costs to match a pattern. A text without characters is not for free.
fn matching(text: &Node<'_>, pattern: &Node<'_>) -> Range {
    let cost = text.size().plus(Range::exactly(1)).scaled(PER_CHARACTER);
    cost.times(pattern.size().scaled(PER_CHARACTER_OF_PATTERN))
}

/// What it costs to compare two values: it ends with the shorter one.
fn comparing(left: &Node<'_>, right: &Node<'_>) -> Range {
    let most = left.size().most.min(right.size().most);
    Range { least: most.min(1), most }.scaled(PER_CHARACTER)
}

/// The size of a text in which each occurrence of another one was replaced.
fn replaced(size: Range, from: Range, to: Range) -> Range {
    let (mut count, mut kept) = (Range::default(), Range::default());
    if from.least == 0 {
        // Nothing is between all characters, and around them.
        count.most = size.most.saturating_add(1);
        kept.most = size.most;
    } else if to.most <= from.least {
        kept.most = size.most;
    } else {
        count.most = (size.most as f64 / from.least as f64).ceil() as u64;
    }
    if from.most == 0 {
        count.least = size.least.saturating_add(1);
        kept.least = size.least;
    } else if from.most <= to.least {
        kept.least = size.least;
    } else {
        count.least = (size.least as f64 / from.most as f64).ceil() as u64;
    }
    count.times(to).plus(kept)
}
