//! What providers did.

use biplane_recorder::query::answer::{Answer, ChangeItem};
use biplane_recorder::query::archive::{ChangeFilter, kind_and_group};
use biplane_recorder::query::ask::Question;
use biplane_recorder::query::time;
use biplane_recorder::store::rows::ChangeRow;

use super::{Context, Reply, Result, from};
use crate::http::Request;
use crate::ids::{Ended, Filter};
use crate::links::object_ref;
use crate::page::change;
use crate::page::changes::{self, Changes, operation_name};
use crate::page::failure::Failure;
use crate::parts;
use crate::tree::Position;

/// How many changes a list has.
const LIMIT: usize = 20;

/// The list.
pub(super) fn list(context: &Context<'_>, request: &Request) -> Result<Reply> {
    let store = context.stored.store();
    let filter = Filter::of_text(request.query("f").unwrap_or_default());
    let object = match filter.object {
        None => None,
        Some(key) => {
            let gone = || Failure::NotFound("the resource is no longer kept".to_owned());
            Some(object_ref(&store.object(key)?.ok_or_else(gone)?))
        }
    };
    let named = ChangeFilter {
        kind: object.as_ref().map(kind_and_group),
        name: object.as_ref().map(|object| object.name.clone()),
        namespace: object.as_ref().map(|object| object.namespace.clone()),
        operation: filter.operation.map(|number| operation_name(number).to_owned()),
        failed: filter.ended.is_some(),
        since: filter.since.as_deref().and_then(|since| time::back(since, context.now)),
        ..ChangeFilter::default()
    };
    let after = request.query("after").map(str::to_owned);
    let question = Question::Changes { filter: named, limit: LIMIT, after };
    let Answer::Changes(list) = context.ask(&question)? else { return Err(Failure::NoPage) };
    let has_changes = !list.changes.is_empty() || store.has_changes()?;
    let page = Changes { list, filter, object, has_changes };
    Ok(changes::page(&page, &context.links).into())
}

/// A filter that was posted.
pub(super) fn filtered(context: &Context<'_>, request: &Request) -> Result<Reply> {
    let name = request.field("name");
    let filter = Filter {
        since: Some(request.field("since")).filter(|since| !since.is_empty()),
        operation: request.field("operation").parse().ok(),
        ended: (request.field("failed") == "1").then_some(Ended::Failed),
        ..Filter::default()
    };
    let mut filter = Filter::of_text(&filter.text());
    if name.is_empty() {
        return Ok(Reply::Redirect(filter.href("/changes")));
    }
    let rows = context.stored.store().objects(None, None, None, Some(&name))?;
    match rows.as_slice() {
        [one] => {
            filter.object = Some(one.id);
            Ok(Reply::Redirect(filter.href("/changes")))
        }
        _ => super::search::search(context, &name),
    }
}

/// One change.
pub(super) fn one(context: &Context<'_>, request: &Request, id: &str) -> Result<Reply> {
    if id.parse::<i64>().is_err() {
        return Err(Failure::NoPage);
    }
    let Answer::Change(detail) = context.ask(&Question::Change(id.to_owned()))? else {
        return Err(Failure::NoPage);
    };
    let position = Position::of_text(request.query("p").unwrap_or_default());
    let position = position.ok_or(Failure::NoPage)?;
    let page = change::page(&detail, &position, from(request), &context.links);
    Ok(page.ok_or(Failure::NoPage)?.into())
}

/// Changes of a store as tables show them, without the runs that they belong to.
pub(super) fn items(rows: &[ChangeRow]) -> Vec<ChangeItem> {
    let item = |row: &ChangeRow| ChangeItem {
        id: row.id.to_string(),
        at: parts::rfc3339(row.at),
        operation: match row.operation {
            number @ 1..=3 => operation_name(number).to_owned(),
            other => other.to_string(),
        },
        object: object_ref(&row.object),
        provider: row.provider.clone(),
        external_name: row.external_name.clone(),
        error: row.error.clone().filter(|_| row.failed),
        cause: Some(row.cause.clone()).filter(|cause| !cause.is_empty()),
        link: None,
    };
    rows.iter().map(item).collect()
}
