//! Draws which step set each field of a resource, and since when.

use std::collections::BTreeMap;

use biplane_recorder::query::answer::{BlameField, BlameItem, Since, StepRef};
use maud::{Markup, html};

use super::value;

/// How many fields a table has.
const MOST: usize = 2_000;
/// How many colours steps have.
const HUES: i64 = 8;

/// The number of a step in its colour, with words for those who do not see it.
pub fn stamp(step: &StepRef) -> Markup {
    let name = if step.name.is_empty() { &step.function } else { &step.name };
    let words = format!("set by step {}, {name}", step.number);
    let hue = (step.number - 1).rem_euclid(HUES) + 1;
    html! {
        span class={ "stamp step-" (hue) } title=(words) {
            span aria-hidden="true" { (step.number) }
            span class="hidden" { (words) }
        }
    }
}

/// Who set what in a resource. Fields that changed since the resource exists have a line each. The
/// others are folded, by step. `run` makes the address of a run.
pub fn blame(item: &BlameItem, run: &dyn Fn(&str) -> String) -> Markup {
    let (old, new): (Vec<_>, Vec<_>) =
        item.fields.iter().take(MOST).partition(|field| is_as_old_as(field, item));
    let mut groups: BTreeMap<Option<i64>, Vec<&BlameField>> = BTreeMap::new();
    for field in old {
        groups.entry(field.step.as_ref().map(|step| step.number)).or_default().push(field);
    }
    html! {
        @if !new.is_empty() { (table(&new, run)) }
        @for fields in groups.values() {
            @let count = fields.len();
            details class="fold blamed" open[new.is_empty()] {
                summary {
                    (count) @if count == 1 { " field " } @else { " fields " }
                    @match fields.first().and_then(|field| field.step.as_ref()) {
                        Some(step) => { "by " (stamp(step)) },
                        None => "given to the first step",
                    }
                    @if let Some(since) = &item.since { " since " (time(since)) }
                }
                (table(fields, run))
            }
        }
        @if item.fields.len() > MOST {
            p class="limit" { (item.fields.len() - MOST) " more fields" }
        }
    }
}

fn is_as_old_as(field: &BlameField, item: &BlameItem) -> bool {
    match (&field.since, &item.since) {
        (Some(field), Some(item)) => field.run == item.run,
        _ => true,
    }
}

fn table(fields: &[&BlameField], run: &dyn Fn(&str) -> String) -> Markup {
    html! {
        table class="blame" {
            thead {
                tr {
                    th scope="col" { "Field" }
                    th scope="col" { "Value" }
                    th scope="col" { "Step" }
                    th scope="col" { "Since" }
                    th scope="col" { "Run" }
                }
            }
            tbody {
                @for field in fields {
                    tr data-path=(field.path) {
                        th scope="row" class="field" { (field.path) }
                        td class="v" { (value::one(&field.value)) }
                        td {
                            @match &field.step {
                                Some(step) => (stamp(step)),
                                None => span class="note" { "given" },
                            }
                        }
                        td { @if let Some(since) = &field.since { (time(since)) } }
                        td {
                            @if let Some(since) = &field.since {
                                a href=(run(&since.run)) { (since.run.get(..8).unwrap_or(&since.run)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn time(since: &Since) -> Markup {
    let text = since.at.get(..19).unwrap_or(&since.at).replace('T', " ");
    html! {
        time datetime=(since.at) { (text) }
        @if since.or_earlier { " or earlier" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(number: i64, name: &str) -> StepRef {
        StepRef { number, name: name.to_owned(), function: "f".to_owned() }
    }

    fn since(run: &str) -> Since {
        let at = "2026-11-16T14:01:55.01Z".to_owned();
        Since { run: run.to_owned(), at, or_earlier: false }
    }

    #[test]
    fn fields_that_changed_have_lines_and_others_are_folded_by_step() {
        let field = |path: &str, number, run| BlameField {
            path: path.to_owned(),
            value: json!("<v>"),
            step: Some(step(number, "compose")),
            since: Some(since(run)),
        };
        let item = BlameItem {
            since: Some(since("aaaaaaaa-1")),
            fields: vec![
                field("kind", 1, "aaaaaaaa-1"),
                field("spec.a", 1, "aaaaaaaa-1"),
                field("spec.b", 2, "aaaaaaaa-1"),
                field("spec.region", 2, "bbbbbbbb-1"),
            ],
            ..BlameItem::default()
        };
        let page = blame(&item, &|run| format!("/runs/{}", &run[..8])).into_string();
        let (changed, folded) = page.split_once("<details").unwrap();
        assert!(changed.contains(r#"<tr data-path="spec.region">"#), "{changed}");
        assert!(changed.contains(r#"<a href="/runs/bbbbbbbb">bbbbbbbb</a>"#), "{changed}");
        assert!(changed.contains("set by step 2, compose"), "{changed}");
        assert!(changed.contains("&lt;v&gt;") && !page.contains("<v>"), "{changed}");
        assert!(!changed.contains("spec.a"), "{changed}");
        assert!(folded.contains("2 fields by "), "{folded}");
        assert!(folded.contains("1 field by "), "{folded}");
        assert!(folded.contains("2026-11-16 14:01:55"), "{folded}");
        for path in ["kind", "spec.a", "spec.b"] {
            assert!(folded.contains(&format!("data-path=\"{path}\"")), "{folded}");
        }
    }

    #[test]
    fn a_stamp_has_a_number_a_colour_and_words() {
        let drawn = stamp(&step(9, "ready")).into_string();
        let want = "<span class=\"stamp step-1\" title=\"set by step 9, ready\">\
                    <span aria-hidden=\"true\">9</span>\
                    <span class=\"hidden\">set by step 9, ready</span></span>";
        assert_eq!(drawn, want);
    }
}
