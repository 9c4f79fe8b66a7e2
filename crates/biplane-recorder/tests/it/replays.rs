//! Distinct requests of a time, from lines and from stores.

use std::collections::BTreeSet;

use biplane_proto::redact::Mode;
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::archive::{Archive, Asked, RunFilter};
use biplane_recorder::query::import::read;
use biplane_recorder::query::lines::Lines;
use biplane_recorder::query::print::value;
use biplane_recorder::query::report::{markdown, report};
use serde_json::Value;

use crate::queries::{archive, named, now, runs, stored, stored_on_a_server, story};
use crate::world::redactor;

/// Addresses and counts of distinct requests, and what was asked.
fn requests(archive: &dyn Archive, filter: &RunFilter) -> Vec<(String, i64, String)> {
    let found = archive.requests("function-dummy", filter).unwrap();
    let one = |asked: &Asked| {
        let recorded = archive.recorded(asked).unwrap();
        let mut request = recorded.step.request.clone().unwrap();
        // Each reading has a key of its own for tags.
        request["meta"]["tag"] = Value::Null;
        let request = biplane_go::json::to_string(&request);
        (recorded.address(), asked.calls, request)
    };
    found.iter().map(one).collect()
}

#[test]
fn distinct_requests_are_the_same_in_lines_and_in_stores() {
    let text = runs();
    let lines = archive(&text);
    let (_folder, file) = stored(&text);
    let server = stored_on_a_server(&text);
    let some = lines.runs(&RunFilter::default(), 100, None).unwrap();
    let middle = some[some.len() / 2].started;
    for filter in [
        RunFilter::default(),
        RunFilter { since: Some(middle), ..RunFilter::default() },
        RunFilter { until: Some(middle), ..RunFilter::default() },
        RunFilter { namespace: Some("insp-plain".into()), ..RunFilter::default() },
        RunFilter { composition: Some("fatal".into()), ..RunFilter::default() },
        RunFilter { namespace: Some("nowhere".into()), ..RunFilter::default() },
    ] {
        let here = requests(&lines, &filter);
        assert_eq!(requests(&file, &filter), here, "{filter:?}");
        assert_eq!(requests(&server, &filter), here, "{filter:?}");
        let distinct: BTreeSet<&String> = here.iter().map(|(_, _, request)| request).collect();
        assert!(distinct.len() <= here.len());
        assert_eq!(here.is_empty(), filter.namespace.as_deref() == Some("nowhere"));
    }
    assert_eq!(lines.requests("function-none", &RunFilter::default()).unwrap(), []);
}

/// A run that repeats has the same requests, however often.
#[test]
fn a_request_that_repeats_is_found_once_and_counted() {
    let once = story();
    // The first run again, under another trace and later.
    let again = |trace: &str, time: &str| -> String {
        let lines = once.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let first = lines.filter(|line| {
            line["meta"]["traceId"].as_str().is_some_and(|trace| trace.starts_with("3c57320a"))
        });
        let renamed = first.map(|mut line| {
            line["meta"]["traceId"] = trace.into();
            line["meta"]["timestamp"] = time.into();
            format!("{line}\n")
        });
        renamed.collect()
    };
    let (one, two) = (
        again("3c5732f1-5d0a-4f6c-8f5e-64d1c0f7a001", "2026-11-16T13:51:00Z"),
        again("3c5732f2-5d0a-4f6c-8f5e-64d1c0f7a001", "2026-11-16T13:52:00Z"),
    );
    let text = format!("{once}{one}{two}");
    let function = "function-patch-and-transform";
    let lines = Lines::new(vec![read(&text)], &redactor(Mode::Deep));
    let (_folder, store) = stored(&text);
    for archive in [&lines as &dyn Archive, &store] {
        let found = archive.requests(function, &RunFilter::default()).unwrap();
        assert_eq!(found.len(), 4);
        let calls: Vec<i64> = found.iter().map(|asked| asked.calls).collect();
        assert_eq!(calls.iter().sum::<i64>(), 6);
        let repeated = found.iter().find(|asked| asked.calls == 3).unwrap();
        assert!(repeated.head.trace.starts_with("3c5732f2"), "the last one counts");
    }
}

#[test]
fn a_report_for_an_issue_says_what_happened_and_what_the_failed_step_was_given() {
    let archive = archive(&story());
    let made = report(&archive, &named("9822d93d"), now()).unwrap();
    let text = markdown(&made);
    assert!(text.starts_with("## Store north, namespace team-a, composition stores\n"), "{text}");
    for part in [
        "size 5 is not one of 1, 3",
        "<summary>What step 2 compose was given</summary>",
        "`biplane inspector run 9822d93d` prints this",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"));
    let fine = report(&archive, &named("6a3ac86e"), now()).unwrap();
    let text = markdown(&fine);
    assert!(!text.contains("<details>") && text.ends_with("Secrets are redacted.\n"), "{text}");
    assert_eq!(fine.steps.len(), 3);
    assert!(fine.steps[1].resources.iter().any(|slot| slot.resource == "bucket"));
    let shown = value(&Answer::Run(Box::new(fine.run)));
    assert_eq!(shown["run"], "6a3ac86e-1eaf-4021-a6f2-555cc0b8a003");
}
