//! Two runs side by side.

use biplane_recorder::query::answer::Compare;
use biplane_recorder::query::sentence;
use maud::html;

use super::runs;
use crate::draw;
use crate::ids;
use crate::layout::{Page, Place};
use crate::parts::{self, Links};

/// The page.
pub fn page(compare: &Compare, links: &dyn Links) -> Page {
    let (before, after) = (ids::trace(&compare.before.run), ids::trace(&compare.after.run));
    // Equal input with different output is a fault of a function.
    let is_fault = compare.first.as_ref().is_some_and(|cause| {
        cause.half == "answered"
            && compare
                .steps
                .iter()
                .all(|step| step.given != "differs" || step.step.number > cause.step.number)
    });
    let pair = [compare.before.clone(), compare.after.clone()];
    let body = html! {
        h1 { "Runs " (before) " and " (after) }
        p.path {
            a rel="prev" href={ "/runs/" (before) } { "Run " (before) }
            a rel="up" href={ "/runs/" (after) } { "Run " (after) }
        }
        (parts::lead(if is_fault { "fail" } else { "" }, &compare.sentence))
        h2 { "Both" }
        (runs::table(&pair, &[], links))
        h2 { "Steps" }
        div.scroll {
            table {
                caption.hidden { "Steps of both runs" }
                thead {
                    tr {
                        th scope="col" { "Step" } th scope="col" { "Function" }
                        th scope="col" { "Given" } th scope="col" { "Answered" }
                        th.number scope="col" { "Took in " (before) } th.number scope="col" { "Took in " (after) }
                    }
                }
                tbody {
                    @for step in &compare.steps {
                        @let same_input = step.given == "same" && step.answered == "differs";
                        tr class=(if same_input { "fail" } else { "" }) {
                            th scope="row" {
                                @let run = if step.given == "absent after" { before } else { after };
                                a href={ "/runs/" (run) "/" (step.step.number) } { (parts::step_name(&step.step)) }
                            }
                            td { (step.step.function) }
                            td { (step.given) }
                            td { (step.answered) @if same_input { " " span.status.fail { "same input" } } }
                            td.number { (parts::took(step.took_before_micros)) }
                            td.number { (parts::took(step.took_after_micros)) }
                        }
                    }
                }
            }
        }
        @if let Some(cause) = &compare.first {
            h2 { "The first difference" }
            p {
                (parts::step_name(&cause.step)) " " (cause.half) " "
                (parts::cut(&sentence::cause(cause), 400))
            }
            @if let Some(field) = &cause.field {
                (draw::fields(std::slice::from_ref(field), &draw::Setting::default()))
            }
            p {
                @let tab = if cause.half == "given" { "request" } else { "response" };
                a href={ "/runs/" (before) "/" (cause.step.number) "/" (tab) } { "In run " (before) } " "
                a href={ "/runs/" (after) "/" (cause.step.number) "/" (tab) } { "In run " (after) }
            }
        }
        form.filters method="post" action="/compare" aria-label="Compare other runs" {
            label { "Run" input type="text" name="before" value=(before) maxlength="64" autocomplete="off"; }
            label { "with" input type="text" name="after" value=(after) maxlength="64" autocomplete="off"; }
            button type="submit" { "Compare" }
        }
    };
    let mut page = Page::new(Place::Runs, format!("Runs {before} and {after}"), body)
        .command(format!("biplane inspector compare {before} {after}"));
    page.run = Some(after.to_owned());
    page
}
