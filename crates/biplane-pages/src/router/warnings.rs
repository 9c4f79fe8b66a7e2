//! Warnings, causes and times.

use biplane_recorder::query::answer::{Answer, Verb};
use biplane_recorder::query::archive::{WarningFilter, kind_and_group};
use biplane_recorder::query::ask::{self, Named, Question};
use jiff::Timestamp;

use super::{Context, Reply, Result, composites, from, resources};
use crate::http::Request;
use crate::ids;
use crate::links::object_ref;
use crate::page::failure::Failure;
use crate::page::{at as at_page, warnings as page, why as why_page};
use crate::parts;

/// How many warnings a list has.
const LIMIT: usize = 50;

/// The list.
pub(super) fn list(context: &Context<'_>, request: &Request) -> Result<Reply> {
    let question = Question::Warnings {
        filter: WarningFilter::default(),
        limit: LIMIT,
        after: request.query("after").map(str::to_owned),
    };
    let Answer::Warnings(list) = context.ask(&question)? else { return Err(Failure::NoPage) };
    Ok(page::list(&list, &context.links).into())
}

/// One of them.
pub(super) fn one(context: &Context<'_>, id: &str) -> Result<Reply> {
    if ids::key(id).is_none() {
        return Err(Failure::NoPage);
    }
    let Answer::Warning(warning) = context.ask(&Question::Warning(id.to_owned()))? else {
        return Err(Failure::NoPage);
    };
    Ok(page::one(&warning, &context.links).into())
}

/// Why a resource is as it is.
pub(super) fn why(context: &Context<'_>, slot: &str, verb: &str) -> Result<Reply> {
    let verb: Verb = verb.parse().map_err(|_| Failure::NoPage)?;
    let (row, owner) = resources::slot(context, slot)?;
    let owner = object_ref(&owner);
    let address = format!("{}/{}:{}", kind_and_group(&owner), owner.name, row.name);
    let namespace = (!owner.namespace.is_empty()).then(|| owner.namespace.clone());
    let mut command = format!("biplane why {} {}", verb.name(), parts::quoted(&address));
    if let Some(namespace) = &namespace {
        command.push_str(" --namespace=");
        command.push_str(&parts::quoted(namespace));
    }
    let of = Named { address, namespace };
    let Answer::Why(why) = context.ask(&Question::Why { verb, of, field: None })? else {
        return Err(Failure::NoPage);
    };
    Ok(why_page::page(&why, slot, command, &context.links).into())
}

/// A composite resource at a time, which is in the address as microseconds.
pub(super) fn at(context: &Context<'_>, request: &Request, key: &str, at: &str) -> Result<Reply> {
    let owner = object_ref(&composites::object(context, key)?);
    let micros = ids::key(at).ok_or(Failure::NoPage)?;
    let at = Timestamp::from_microsecond(micros).map_err(|_| Failure::NoPage)?;
    let of = Named {
        address: format!("{}/{}", kind_and_group(&owner), owner.name),
        namespace: (!owner.namespace.is_empty()).then(|| owner.namespace.clone()),
    };
    let (here, from) = (request.path().to_owned(), from(request));
    let shown = from..from.saturating_add(at_page::RESOURCES);
    let found = ask::at(context.stored, &of, at, context.now, shown)?;
    Ok(at_page::page(&found, key, from, &here, &context.links).into())
}
