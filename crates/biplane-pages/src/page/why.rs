//! The cause of something in words, with its evidence.

use biplane_recorder::query::answer::{Evidence, Verb, Why};
use biplane_recorder::query::time;
use maud::{Markup, html};

use super::changes;
use crate::draw;
use crate::ids;
use crate::layout::{Page, Place};
use crate::parts::{self, Links};

/// The question as words.
pub fn words(verb: Verb) -> &'static str {
    match verb {
        Verb::Deleted => "Why is it gone?",
        Verb::Created => "Why is it there?",
        Verb::Changed => "Why did it change?",
        Verb::NotReady => "Why is it not ready?",
        Verb::Failed => "Why did it fail?",
        Verb::Slow => "Why is it slow?",
    }
}

/// The page. `slot` is the id of the resource.
pub fn page(why: &Why, slot: &str, command: String, links: &dyn Links) -> Page {
    let label = if why.resource.is_empty() { "composite" } else { &why.resource };
    let title = words(why.verb);
    let tone = if why.verb == Verb::Failed { "fail" } else { "" };
    let body = html! {
        h1 { (title) }
        p.path {
            a rel="up" href={ "/r/" (slot) } { (label) }
            span { "of " (parts::object(&why.owner, links)) }
            @if let Some(at) = &why.at { span { (parts::when(at)) } }
        }
        (parts::lead(tone, &why.sentence))
        div.row {
            @for verb in Verb::ALL {
                @if verb != why.verb { a href={ "/r/" (slot) "/why/" (verb.name()) } { (words(verb)) } }
            }
        }
        @if let (Some(before), Some(run)) = (&why.run_before, &why.run) {
            p { a href={ "/compare/" (ids::trace(before)) "/" (ids::trace(run)) } { "Compare the runs" } }
        }
        h2 { "Evidence" }
        @if why.evidence.is_empty() { p.dim { "There is none." } } @else {
            ol { @for evidence in why.evidence.iter().take(50) { li { (piece(evidence)) } } }
            @if why.evidence.len() > 50 { p.dim { (why.evidence.len() - 50) " more" } }
        }
    };
    Page::new(Place::Resources, title, body).command(command)
}

fn piece(evidence: &Evidence) -> Markup {
    let step = evidence.step.as_ref().zip(evidence.run.as_ref());
    html! {
        p { (parts::cut(&evidence.text, 600)) }
        div.row {
            @if let Some((step, run)) = step {
                a href={ "/runs/" (ids::trace(run)) "/" (step.number) } { (parts::step_name(step)) " in run " (ids::trace(run)) }
            } @else if let Some(run) = &evidence.run {
                span { "Run " (parts::run(run)) }
            }
            @if let Some(part) = &evidence.part { span.second { (part) } }
            @if let Some(took) = evidence.took_micros {
                span { (time::took(took)) @if let Some(median) = evidence.median_micros { ", usually " (time::took(median)) } }
            }
            @if let Some(same) = &evidence.same_value { span.second { "same value: " (same) } }
            @if let Some(change) = &evidence.change {
                a href={ "/changes/" (change.id) } { (change.operation) " " (parts::when(&change.at)) } (changes::link(change))
            }
        }
        @if let Some(field) = &evidence.field { (draw::fields(std::slice::from_ref(field), &draw::Setting::default())) }
    }
}
