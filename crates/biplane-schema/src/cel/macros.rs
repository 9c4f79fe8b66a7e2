//! Macros over lists, maps and optional values, and what they expand to.

use super::ast::{Bind, Expr, Kind, Literal, Loop, RESULT};
use super::report::Problem;

/// The name of an optional value that a macro tests.
pub(super) const TARGET: &str = "@target:";

/// The name of the same value where Go evaluates it a second time, which costs as much again.
pub(super) const AGAIN: &str = "@again:";

/// Whether a call of this shape is a macro. Some macros exist only where optional values do.
pub(super) fn known(name: &str, args: usize, optionals: bool) -> bool {
    match (name, args) {
        ("all" | "exists" | "exists_one" | "filter", 2) | ("map", 2 | 3) => true,
        ("optMap" | "optFlatMap" | "sortBy", 2)
        | ("all" | "exists" | "existsOne" | "exists_one", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => optionals,
        _ => false,
    }
}

/// Expands a macro.
pub(super) fn expand(
    at: usize,
    name: &str,
    target: Expr,
    mut args: Vec<Expr>,
) -> Result<Expr, Problem> {
    let two = args.len() > 2 && name != "map";
    let variable = variable(at, &mut args)?;
    let second = if two { Some(self::variable(at, &mut args)?) } else { None };
    if second.as_ref() == Some(&variable) {
        return Err(Problem { at, text: format!("duplicate variable name: {variable}") });
    }
    let mut args = args.into_iter();
    let Some(first) = args.next() else {
        return Err(Problem { at, text: "unexpected number of arguments".to_owned() });
    };
    let body = Body { first, rest: args.next() };
    Ok(match name {
        "optMap" | "optFlatMap" => optional(at, name, target, variable, body.first),
        "sortBy" => sort_by(at, target, &variable, body.first),
        _ => {
            Expr::new(at, Kind::Loop(Box::new(unroll(at, name, target, (variable, second), body))))
        }
    })
}

/// What a macro does with each item, with a condition before it if there are two expressions.
struct Body {
    first: Expr,
    rest: Option<Expr>,
}

fn variable(at: usize, args: &mut Vec<Expr>) -> Result<String, Problem> {
    if args.is_empty() {
        return Err(Problem { at, text: "unexpected number of arguments".to_owned() });
    }
    let variable = args.remove(0);
    match variable.kind {
        Kind::Name(variable) => Ok(variable),
        _ => Err(Problem { at: variable.at, text: "argument must be a simple name".to_owned() }),
    }
}

/// The loop that a macro expands to.
fn unroll(
    at: usize,
    name: &str,
    range: Expr,
    (variable, second): (String, Option<String>),
    Body { first, rest }: Body,
) -> Loop {
    let literal = |literal| Expr::new(at, Kind::Literal(literal));
    let result = || Expr::name(at, RESULT);
    let call = |function: &str, args| Expr::call(at, function, args);
    let add = |item| call("_+_", vec![result(), Expr::new(at, Kind::List(vec![item]))]);
    let only_if = |test, then| call("_?_:_", vec![test, then, result()]);
    let going_on = |test| call("@not_strictly_false", vec![test]);
    let always = || literal(Literal::Bool(true));
    let (start, condition, step) = match name {
        "all" => {
            let step = call("_&&_", vec![result(), first]);
            (literal(Literal::Bool(true)), going_on(result()), step)
        }
        "exists" => {
            let step = call("_||_", vec![result(), first]);
            (literal(Literal::Bool(false)), going_on(call("!_", vec![result()])), step)
        }
        "exists_one" | "existsOne" => {
            let more = call("_+_", vec![result(), literal(Literal::Int(1))]);
            (literal(Literal::Int(0)), always(), only_if(first, more))
        }
        "transformMap" | "transformMapEntry" => {
            let insert = |value| {
                let mut args = vec![result()];
                if name == "transformMap" {
                    args.push(Expr::name(at, &variable));
                }
                args.push(value);
                call("cel.@mapInsert", args)
            };
            let step = match rest {
                Some(value) => only_if(first, insert(value)),
                None => insert(first),
            };
            (Expr::new(at, Kind::Map(Vec::new())), always(), step)
        }
        kind => {
            let step = match (kind, rest) {
                ("filter", _) => only_if(first, add(Expr::name(at, &variable))),
                (_, Some(item)) => only_if(first, add(item)),
                (_, None) => add(first),
            };
            (Expr::new(at, Kind::List(Vec::new())), always(), step)
        }
    };
    let result = match name {
        "exists_one" | "existsOne" => call("_==_", vec![result(), literal(Literal::Int(1))]),
        _ => result(),
    };
    Loop { range, variable, second, start, condition, step, result }
}

/// `target.hasValue() ? optional.of(body) : optional.none()`, with the value under a name.
fn optional(at: usize, name: &str, target: Expr, variable: String, body: Expr) -> Expr {
    let hidden = format!("{TARGET}{at}");
    let value = Expr::new(
        at,
        Kind::Call {
            function: "value".to_owned(),
            target: Some(Box::new(Expr::name(at, &format!("{AGAIN}{at}")))),
            args: Vec::new(),
        },
    );
    let test = Expr::new(
        at,
        Kind::Call {
            function: "hasValue".to_owned(),
            target: Some(Box::new(Expr::name(at, &hidden))),
            args: Vec::new(),
        },
    );
    let inner = Expr::new(at, Kind::Bind(Box::new(Bind { variable, value, body })));
    let then = match name {
        "optMap" => Expr::call(at, "optional.of", vec![inner]),
        _ => inner,
    };
    let none = Expr::call(at, "optional.none", Vec::new());
    let body = Expr::call(at, "_?_:_", vec![test, then, none]);
    Expr::new(at, Kind::Bind(Box::new(Bind { variable: hidden, value: target, body })))
}

/// The list in the order of the keys that the expression gives its items.
fn sort_by(at: usize, target: Expr, variable: &str, key: Expr) -> Expr {
    let hidden = "@__sortBy_input__";
    let body = Body { first: key, rest: None };
    let range = Expr::name(at, hidden);
    let keys = unroll(at, "map", range, (variable.to_owned(), None), body);
    let keys = Expr::new(at, Kind::Loop(Box::new(keys)));
    let body = Expr::call(at, "lists.@sortByAssociatedKeys", vec![Expr::name(at, hidden), keys]);
    Expr::new(at, Kind::Bind(Box::new(Bind { variable: hidden.to_owned(), value: target, body })))
}
