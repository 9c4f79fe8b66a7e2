//! One step of a run.

use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::ask::Question;

use super::{Context, Reply, Result, by_id, from, part_of};
use crate::http::Request;
use crate::page::failure::Failure;
use crate::page::step::{self, Asked, Tab};
use crate::tree::Position;

/// The page of a step. Steps are numbers, with that of the call if there are several.
pub(super) fn page(
    context: &Context<'_>,
    request: &Request,
    run: &str,
    number: &str,
    tab: &str,
) -> Result<Reply> {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let (first, call) = number.split_once('.').unwrap_or((number, "1"));
    if !is_number(first) || !is_number(call) {
        return Err(Failure::NoPage);
    }
    let asked = Asked {
        step: number.to_owned(),
        tab: Tab::of_text(tab).ok_or(Failure::NoPage)?,
        position: Position::of_text(request.query("p").unwrap_or_default())
            .ok_or(Failure::NoPage)?,
        from: from(request),
    };
    let Answer::Run(detail) = context.ask(&Question::Run(by_id(run)?))? else {
        return Err(Failure::NoPage);
    };
    let named = part_of(&detail.item.run, &format!("/{number}"))?;
    let Answer::Steps(steps) = context.ask(&Question::Steps(named))? else {
        return Err(Failure::NoPage);
    };
    let step = steps.steps.first().ok_or(Failure::NoPage)?;
    let sentence = steps.sentence.as_deref().unwrap_or_default();
    let is_late = || context.is_late();
    let page = step::page(&detail, step, sentence, &asked, &is_late, &context.links);
    Ok(page.ok_or(Failure::NoPage)?.into())
}
