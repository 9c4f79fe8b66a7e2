//! Functions of lists that Kubernetes adds to the language.

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::cost::Cost;
use super::super::outcome::{Outcome, no_such_overload};
use super::super::value::Value;
use super::arithmetic;

pub(super) fn call<'a>(
    function: &str,
    args: &[Value<'a>],
    cost: &mut Cost<'_>,
) -> Option<Outcome<'a>> {
    if let ("lists.range", [Value::Int(count)]) = (function, args) {
        return Some(range(*count, cost));
    }
    let (target, rest) = match args {
        [target, rest @ ..] if target.is_list() => (target, rest),
        _ => return None,
    };
    if let Err(stopped) = cost.spend(target.size().unwrap_or_default() as u64) {
        return Some(Err(stopped));
    }
    let items = || target.items().into_iter().flatten();
    let made = |items: Vec<Value<'a>>| Ok(Value::List(Rc::new(items)));
    Some(match (function, rest) {
        ("isSorted", []) => is_sorted(items()),
        ("sum", []) => sum(items(), cost),
        ("min", []) => extreme("min", items(), Ordering::Less),
        ("max", []) => extreme("max", items(), Ordering::Greater),
        ("indexOf", [wanted]) => index_of(items().enumerate(), wanted, cost),
        ("lastIndexOf", [wanted]) => {
            let all: Vec<_> = items().enumerate().collect();
            index_of(all.into_iter().rev(), wanted, cost)
        }
        ("slice", [Value::Int(start), Value::Int(end)]) => slice(target, *start, *end),
        ("reverse", []) => {
            let mut all: Vec<_> = items().collect();
            all.reverse();
            made(all)
        }
        ("distinct", []) => distinct(items(), cost).and_then(made),
        ("flatten", []) => flatten(target, 1, cost).and_then(made),
        ("flatten", [Value::Int(depth)]) if *depth < 0 => {
            Err("level must be non-negative".to_owned())
        }
        ("flatten", [Value::Int(depth)]) => flatten(target, *depth, cost).and_then(made),
        ("sort", []) => {
            let all: Vec<_> = items().collect();
            sort(&all, &all)
        }
        ("lists.@sortByAssociatedKeys", [keys]) if keys.is_list() => {
            let all: Vec<_> = items().collect();
            let keys: Vec<_> = keys.items().into_iter().flatten().collect();
            sort(&all, &keys)
        }
        ("sets.contains", [other]) => contains_all(target, other, cost).map(Value::Bool),
        ("sets.equivalent", [other]) => match contains_all(target, other, cost) {
            Ok(true) => contains_all(other, target, cost).map(Value::Bool),
            verdict => verdict.map(Value::Bool),
        },
        ("sets.intersects", [other]) => intersects(target, other, cost),
        _ => return None,
    })
}

fn range<'a>(count: i64, cost: &mut Cost<'_>) -> Outcome<'a> {
    let count = count.max(0);
    cost.spend(count.unsigned_abs())?;
    Ok(Value::List(Rc::new((0..count).map(Value::Int).collect())))
}

fn is_sorted<'a>(items: impl Iterator<Item = Value<'a>>) -> Outcome<'a> {
    let mut previous: Option<Value<'a>> = None;
    for item in items {
        if let Some(previous) = previous {
            match previous.compare(&item) {
                Some(Ordering::Greater) => return Ok(Value::Bool(false)),
                Some(_) => {}
                None => return no_such_overload(),
            }
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(mut items: impl Iterator<Item = Value<'a>>, cost: &mut Cost<'_>) -> Outcome<'a> {
    let Some(mut total) = items.next() else { return Ok(Value::Int(0)) };
    for item in items {
        total = arithmetic("_+_", &total, &item, cost)?;
    }
    Ok(total)
}

fn extreme<'a>(
    name: &str,
    items: impl Iterator<Item = Value<'a>>,
    better: Ordering,
) -> Outcome<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in items {
        best = match best {
            None => Some(item),
            Some(best) => match item.compare(&best) {
                Some(order) if order == better => Some(item),
                Some(_) => Some(best),
                None => return no_such_overload(),
            },
        };
    }
    best.ok_or_else(|| format!("{name} called on empty list"))
}

fn index_of<'a>(
    items: impl Iterator<Item = (usize, Value<'a>)>,
    wanted: &Value<'a>,
    cost: &mut Cost<'_>,
) -> Outcome<'a> {
    for (place, item) in items {
        if item.equals(wanted, cost)? {
            return Ok(Value::Int(i64::try_from(place).unwrap_or(i64::MAX)));
        }
    }
    Ok(Value::Int(-1))
}

fn slice<'a>(target: &Value<'a>, start: i64, end: i64) -> Outcome<'a> {
    let length = i64::try_from(target.size().unwrap_or_default()).unwrap_or(i64::MAX);
    let failed = |reason: &str| Err(format!("cannot slice({start}, {end}), {reason}"));
    if start < 0 || end < 0 {
        return failed("negative indexes not supported");
    }
    if start > end {
        return failed("start index must be less than or equal to end index");
    }
    if length < end {
        return failed(&format!("list is length {length}"));
    }
    let (from, to) =
        (usize::try_from(start).unwrap_or_default(), usize::try_from(end).unwrap_or_default());
    Ok(Value::List(Rc::new((from..to).filter_map(|place| target.item(place)).collect())))
}

fn distinct<'a>(
    items: impl Iterator<Item = Value<'a>>,
    cost: &mut Cost<'_>,
) -> Result<Vec<Value<'a>>, String> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    for item in items {
        let mut known = false;
        for other in &kept {
            if item.equals(other, cost)? {
                known = true;
                break;
            }
        }
        if !known {
            kept.push(item);
        }
    }
    Ok(kept)
}

fn flatten<'a>(
    target: &Value<'a>,
    depth: i64,
    cost: &mut Cost<'_>,
) -> Result<Vec<Value<'a>>, String> {
    let mut flat = Vec::new();
    for item in target.items().into_iter().flatten() {
        cost.spend(1)?;
        if item.is_list() && depth > 0 {
            flat.extend(flatten(&item, depth - 1, cost)?);
        } else {
            flat.push(item);
        }
    }
    Ok(flat)
}

fn sort<'a>(items: &[Value<'a>], keys: &[Value<'a>]) -> Outcome<'a> {
    if items.len() != keys.len() {
        return Err(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, \
             but got {} and {} elements respectively",
            items.len(),
            keys.len()
        ));
    }
    if let Some(first) = keys.first() {
        if first.compare(first).is_none() {
            return Err("list elements must be comparable".to_owned());
        }
        if keys.iter().any(|key| key.type_name() != first.type_name()) {
            return Err("list elements must have the same type".to_owned());
        }
    }
    let mut pairs: Vec<(&Value<'a>, &Value<'a>)> = keys.iter().zip(items).collect();
    pairs.sort_by(|(a, _), (b, _)| a.compare(b).unwrap_or(Ordering::Equal));
    Ok(Value::List(Rc::new(pairs.into_iter().map(|(_, item)| item.clone()).collect())))
}

fn holds(list: &Value<'_>, wanted: &Value<'_>, cost: &mut Cost<'_>) -> Result<bool, String> {
    for item in list.items().into_iter().flatten() {
        if item.equals(wanted, cost)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains_all(list: &Value<'_>, part: &Value<'_>, cost: &mut Cost<'_>) -> Result<bool, String> {
    for wanted in part.items().into_iter().flatten() {
        if !holds(list, &wanted, cost)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(list: &Value<'a>, other: &Value<'a>, cost: &mut Cost<'_>) -> Outcome<'a> {
    for item in list.items().into_iter().flatten() {
        if holds(other, &item, cost)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
