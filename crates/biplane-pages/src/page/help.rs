//! Help: words, signs, keys and commands.

use maud::html;

use crate::layout::{Page, Place};
use crate::parts;

/// The keys and what they do.
pub const KEYS: [(&str, &str); 17] = [
    ("/", "search"),
    ("j k", "next and previous row"),
    ("Enter", "open it"),
    ("u", "up: from a step to its run, from a run to its composite resource"),
    ("[ ]", "older and newer run, previous and next step"),
    ("1 to 9", "a step of the run"),
    ("d q s e w", "difference, request, response, needs, raw"),
    ("b", "blame"),
    ("n p", "next and previous change"),
    (".", "open or close all folds"),
    ("c C", "mark a run, and compare another with it"),
    ("y", "copy the address"),
    ("g r", "go to runs"),
    ("g x", "go to resources"),
    ("g c, g w, g s", "go to changes, warnings, status"),
    ("t", "theme"),
    ("?", "this page"),
];

/// The page.
pub fn page() -> Page {
    let words = [
        (
            "Run",
            "All calls of functions for one reconcile of a composite resource or Operation. Its id is the trace of the Pipeline Inspector; eight digits are enough.",
        ),
        (
            "Step",
            "A call of a function in a pipeline. A function that asks for more resources is called again.",
        ),
        (
            "Composed resource",
            "A resource that a pipeline desires, by its name in the Composition.",
        ),
        ("Unchanged", "The run was given the same and answered the same as the run before."),
        (
            "Bookkeeping",
            "Fields that an API server keeps for itself: versions, managed fields, times of conditions.",
        ),
        ("Redacted", "A secret that was not stored. Whether it differs is unknown."),
        (
            "Lost",
            "Emissions that were received and not stored, because the queue or the disk was full.",
        ),
        (
            "Certain, likely, enforces",
            "How sure it is that a provider's change belongs to a run: it names the run; it was the next change after the run changed what is desired; or it put back what the run had decided.",
        ),
    ];
    let body = html! {
        h1 { "Help" }
        (parts::lead("", "Each page begins with what happened, shows the evidence, and ends with the command that prints the same."))
        h2 { "Words" }
        dl { @for (word, text) in words { dt { (word) } dd { (text) } } }
        h2 { "Keys" }
        p { label.row { input #keys .needs-js type="checkbox" hidden; span.needs-js hidden { "Keys are on" } } span.no-js { "Keys need JavaScript. Everything else works without it." } }
        dl { @for (key, text) in KEYS { dt { @for part in key.split(' ') { kbd { (part) } " " } } dd { (text) } } }
        h2 { "Commands" }
        dl {
            dt.data { "biplane inspector runs" } dd { "which runs there were" }
            dt.data { "biplane inspector run RUN" } dd { "what happened in one" }
            dt.data { "biplane inspector diff RUN" } dd { "what it changed" }
            dt.data { "biplane inspector blame RUN:RESOURCE" } dd { "which step set each field" }
            dt.data { "biplane inspector compare RUN" } dd { "why it differs from the run before" }
            dt.data { "biplane changelogs list" } dd { "what providers did" }
        }
    };
    Page::new(Place::Elsewhere, "Help", body).command("biplane inspector --help")
}
