//! Questions about recorded runs, asked of lines and of a store.

use std::io::Read;
use std::path::Path;

use biplane_function::server::{Asked, Page, PlainHttp};
use biplane_proto::redact::Mode;
use biplane_recorder::Format;
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::archive::{Archive, ChangeFilter, RunFilter};
use biplane_recorder::query::ask::{self, Named, Question};
use biplane_recorder::query::import::{Printed, read};
use biplane_recorder::query::lines::Lines;
use biplane_recorder::query::print::{self, Options};
use biplane_recorder::query::stored::{ImportOptions, Stored, import};
use biplane_recorder::query::{export, otlp};
use biplane_recorder::store::Location;
use serde_json::Value;

use crate::recordings::{lines, recorded};
use crate::world::redactor;

/// What upstream's controller emitted for ten pipelines, as the sidecar prints it.
pub(crate) fn runs() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/runs.jsonl.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text
}

/// Where something is redacted, each reading replaces the tag by a hash with a key of its own.
fn without_tags(text: &str) -> String {
    let is_hex = |c: char| c.is_ascii_hexdigit();
    text.split("tag")
        .map(|part| {
            let start = part.find(is_hex).unwrap_or(0);
            match part.get(start..start + 64) {
                Some(tag) if start < 5 && tag.chars().all(is_hex) => part.replace(tag, ""),
                _ => part.to_owned(),
            }
        })
        .collect()
}

pub(crate) fn archive(text: &str) -> Lines {
    let reading = read(text);
    assert_eq!(reading.skipped, []);
    Lines::new(vec![reading], &redactor(Mode::Deep))
}

pub(crate) fn now() -> jiff::Timestamp {
    "2026-11-17T00:00:00Z".parse().unwrap()
}

pub(crate) fn named(address: &str) -> Named {
    Named { address: address.to_owned(), namespace: None }
}

fn ask(archive: &dyn Archive, question: &Question) -> Answer {
    ask::answer(archive, question, now()).unwrap()
}

fn text(answer: &Answer) -> String {
    print::print(answer, Options::default())
}

/// What the reference sidecar printed is read and printed again, byte by byte.
#[test]
fn lines_of_the_reference_are_read_and_printed_again() {
    let redactor = redactor(Mode::None);
    let mut count = 0;
    for (file, is_entry) in [("inspector.jsonl.gz", false), ("changelogs.jsonl.gz", true)] {
        for case in recorded(file) {
            let printed = lines(&case);
            let reading = read(&printed);
            assert_eq!(reading.skipped, [], "{}", case["name"]);
            let mut again = String::new();
            for (_, one) in reading.printed {
                again += &match one {
                    Printed::Emission(emission) => {
                        assert!(!is_entry);
                        let payload =
                            redactor.line_payload(emission.half, &emission.payload, false);
                        let meta = emission.meta.as_ref();
                        let half = emission.half;
                        biplane_recorder::line::emission(
                            Format::Json,
                            half,
                            meta,
                            payload,
                            &emission.error,
                        )
                        .unwrap()
                    }
                    Printed::Entry(entry) => {
                        assert!(is_entry);
                        biplane_recorder::line::entry(&redactor.entry(*entry)).unwrap()
                    }
                };
                count += 1;
            }
            assert_eq!(again, printed, "{}", case["name"]);
        }
    }
    assert!(count > 50, "{count}");
}

/// The same for blocks of text.
#[test]
fn blocks_of_text_are_read_and_printed_again() {
    let archive = archive(&runs());
    let heads = archive.runs(&RunFilter::default(), 100, None).unwrap();
    for head in heads {
        let run = archive.load(&head).unwrap();
        let printed: String = export::emissions(&run, Format::Text).concat();
        let reading = read(&printed);
        assert_eq!(reading.skipped, []);
        let again = Lines::new(vec![reading], &redactor(Mode::None));
        let found = again.by_trace(&head.trace).unwrap().remove(0);
        let run_again = again.load(&found).unwrap();
        // The format has milliseconds.
        let printed_again = export::emissions(&run_again, Format::Text).concat();
        assert_eq!(without_tags(&printed_again), without_tags(&printed));
        assert_eq!(run_again.head.outcome, run.head.outcome);
        assert_eq!(run_again.desired(), run.desired());
    }
}

#[test]
fn an_export_of_runs_imports_to_the_same_runs() {
    let first = archive(&runs());
    let export_all = |archive: &Lines| -> String {
        let mut heads = archive.runs(&RunFilter::default(), 100, None).unwrap();
        heads.reverse();
        let runs = heads.iter().map(|head| archive.load(head).unwrap());
        runs.flat_map(|run| export::emissions(&run, Format::Json)).collect()
    };
    let exported = export_all(&first);
    assert_eq!(exported.lines().count(), runs().lines().count());
    let again = Lines::new(vec![read(&exported)], &redactor(Mode::None));
    assert_eq!(without_tags(&export_all(&again)), without_tags(&exported));
    // Where nothing was redacted, it is what was imported, but for the order of runs.
    let plain = |text: &str| -> std::collections::BTreeSet<String> {
        let mut of: Vec<String> = text.lines().map(str::to_owned).collect();
        of.retain(|line| line.contains("\"compositionName\":\"plain\""));
        of.into_iter().collect()
    };
    assert!(plain(&exported).len() >= 4);
    assert_eq!(plain(&exported), plain(&runs()));
}

#[test]
fn a_run_and_each_of_its_calls_are_spans() {
    let archive = archive(&runs());
    let filter = RunFilter { composition: Some("fatal".into()), ..RunFilter::default() };
    let head = archive.runs(&filter, 1, None).unwrap().remove(0);
    let traces = otlp::traces(&[archive.load(&head).unwrap()]);
    let spans = traces["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 3);
    let run = &spans[0];
    assert_eq!(run["traceId"], head.trace.replace('-', ""));
    assert_eq!(run["status"]["code"], 2);
    for span in &spans[1..] {
        assert_eq!(span["parentSpanId"], run["spanId"]);
        assert_eq!(span["traceId"], run["traceId"]);
        assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
    }
    assert_eq!(spans[1]["name"], "good");
    let events = spans[2]["events"].as_array().unwrap();
    let severities = events.iter().map(|event| &event["attributes"][0]["value"]["stringValue"]);
    assert!(severities.clone().any(|severity| severity == "fatal"), "{events:?}");
    // Payloads do not belong into spans.
    assert!(!traces.to_string().contains("ConfigMap"));
}

/// The answers to all questions about the recordings, in all forms, as they are written down.
#[test]
fn answers_read_as_they_are_written_down() {
    let archive = archive(&runs());
    let all = Question::Runs { filter: RunFilter::default(), limit: 100, after: None };
    let fatal = || named("Gauge.fatal.insp.example.org/one");
    let plain = || named("Gauge.plain.insp.example.org/one");
    let mut questions = vec![("runs", all)];
    questions.extend([
        ("run-fatal", Question::Run(fatal())),
        ("steps-fatal", Question::Steps(fatal())),
        ("compare-fatal", Question::Compare { before: fatal(), after: None }),
        ("run-plain", Question::Run(plain())),
        ("blame-plain", Question::Blame(plain())),
    ]);
    written_down(&archive, questions);
}

/// A store where regions, tags and rules change, a step fails, and a provider carries it out.
#[test]
fn answers_about_a_story_read_as_they_are_written_down() {
    let example = |file: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recorder").join(file);
        std::fs::read_to_string(path).unwrap()
    };
    let archive = archive(&(example("emissions.jsonl") + &example("changes.jsonl")));
    let last = || named("Store/north");
    let before = || named("Store/north@{1}");
    let changes = Question::Changes { filter: ChangeFilter::default(), limit: 10, after: None };
    let whole = |before: Named, after: Option<&str>| Question::Diff {
        before,
        after: after.map(str::to_owned),
        observed: false,
    };
    written_down(
        &archive,
        vec![
            ("story-runs", Question::Runs { filter: RunFilter::default(), limit: 10, after: None }),
            ("story-run-failed", Question::Run(last())),
            ("story-run-changed", Question::Run(before())),
            ("story-step", Question::Steps(named("6a3ac86e/3"))),
            ("story-diff-run", whole(before(), None)),
            ("story-diff-step", whole(named("6a3ac86e/ready"), None)),
            ("story-diff-slots", whole(named("5be31f72:bucket"), Some("6a3ac86e:bucket"))),
            ("story-diff-nothing", whole(named("5be31f72"), None)),
            ("story-blame", Question::Blame(named("6a3ac86e:bucket"))),
            ("story-compare", Question::Compare { before: last(), after: None }),
            ("story-changes", changes),
            ("story-change", Question::Change("4".to_owned())),
        ],
    );
}

fn written_down(archive: &dyn Archive, questions: Vec<(&str, Question)>) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (name, question) in questions {
        let answer = ask(archive, &question);
        for form in ["table", "wide", "json", "yaml", "name", "md"] {
            let options = Options { format: form.parse().unwrap(), bookkeeping: false };
            let printed = print::print(&answer, options);
            settings.bind(|| insta::assert_snapshot!(format!("{name}.{form}"), printed));
        }
    }
}

/// No secret that was planted in the pipelines is in any answer, but where INS-Z1 passes it through.
#[test]
fn planted_secrets_are_in_no_answer() {
    let archive = archive(&runs());
    let filter = RunFilter::default();
    let mut count = 0;
    for head in archive.runs(&filter, 100, None).unwrap() {
        for question in [
            Question::Run(named(&head.trace)),
            Question::Blame(named(&head.trace)),
            Question::Diff { before: named(&head.trace), after: None, observed: true },
        ] {
            let answer = print::value(&ask(&archive, &question)).to_string();
            count += 1;
            // The last-applied annotation of a ConfigMap is no secret.
            let answer = answer.replace("{\\\"PLANTED\\\":1}", "");
            if let Some(line) = answer.split("PLANTED").nth(1) {
                let word: String = line.chars().take(24).collect();
                panic!("{question:?}: PLANTED{word}");
            }
        }
    }
    assert!(count > 30, "{count}");
}

#[test]
fn a_server_answers_what_the_command_line_prints() {
    let lines = runs();
    let question = Question::Run(named("Gauge.fatal.insp.example.org/one"));
    let here = print::value(&ask(&archive(&lines), &question));
    let page = biplane_recorder::api::page(&archive(&lines), &question.to_uri(), now()).unwrap();
    assert_eq!((page.status, page.content_type), (200, "application/json"));
    assert_eq!(serde_json::from_str::<Value>(&page.body).unwrap(), here);
    let missing = Question::Run(named("ffff0000")).to_uri();
    let page = biplane_recorder::api::page(&archive(&lines), &missing, now()).unwrap();
    let error =
        "{\"error\":{\"message\":\"no run begins with \\\"ffff0000\\\"\",\"reason\":\"notFound\"}}";
    assert_eq!((page.status, page.body.as_str()), (404, error));
    assert!(biplane_recorder::api::page(&archive(&lines), "/other", now()).is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_gets_the_same_answers_from_a_server() {
    let answer = |asked: Asked| async move {
        let page = biplane_recorder::api::page(&archive(&runs()), &asked.target, now());
        page.unwrap_or_else(|| Page::text(404, "404 page not found\n"))
    };
    let server = PlainHttp::start_asking("127.0.0.1:0", answer).await.unwrap();
    let address = format!("http://{}", server.address());
    let asked = tokio::task::spawn_blocking(move || {
        let here = archive(&runs());
        for question in [
            Question::Runs { filter: RunFilter::default(), limit: 3, after: None },
            Question::Run(named("Gauge.plain.insp.example.org/one")),
            Question::Steps(named("Gauge.fatal.insp.example.org/one/2")),
            Question::Blame(named("Gauge.plain.insp.example.org/one")),
            Question::Compare { before: named("Gauge.fatal.insp.example.org/one"), after: None },
        ] {
            let there = biplane_recorder::api::client::ask(&address, &question).unwrap();
            let here = ask(&here, &question);
            assert_eq!(text(&there), text(&here));
            assert_eq!(print::value(&there), print::value(&here));
        }
        let error = biplane_recorder::api::client::ask(&address, &Question::Run(named("ffff")));
        assert_eq!(error.unwrap_err().to_string(), "no run begins with \"ffff\"");
    });
    asked.await.unwrap();
}

/// The lines of the story.
pub(crate) fn story() -> String {
    let example = |file: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recorder").join(file);
        std::fs::read_to_string(path).unwrap()
    };
    example("emissions.jsonl") + &example("changes.jsonl")
}

/// Imports lines into a new store in a file.
pub(crate) fn stored(text: &str) -> (tempfile::TempDir, Stored) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("recorder.db").to_str().unwrap().to_owned();
    let stored = stored_at(&store, text);
    (folder, stored)
}

/// Imports lines into a new store on a server.
pub(crate) fn stored_on_a_server(text: &str) -> Stored {
    let Location::Server(store) = crate::postgres::database() else { unreachable!() };
    stored_at(&store, text)
}

fn stored_at(store: &str, text: &str) -> Stored {
    let options = ImportOptions {
        store: store.to_owned(),
        id: [7; 16],
        cluster: String::new(),
        source: "import".to_owned(),
        now: now(),
    };
    let done = import(vec![read(text)], &redactor(Mode::Deep), &options).unwrap();
    assert_eq!(done.skipped, Vec::<String>::new());
    let count = text.lines().count();
    assert_eq!(done.emissions + done.entries, count);
    // A second time, runs stay what they are, and entries are known.
    let again = import(vec![read(text)], &redactor(Mode::Deep), &options).unwrap();
    assert_eq!((again.runs, again.entries), (done.runs, 0));
    Stored::open(store).unwrap()
}

/// A store answers like the lines that were imported into it.
#[test]
fn a_store_answers_like_the_lines_it_was_made_from() {
    for text in [story(), runs()] {
        let (_folder, store) = stored(&text);
        answers_like_its_lines(&store, &text);
    }
}

/// So does one on a server.
#[test]
fn a_store_on_a_server_answers_like_the_lines_it_was_made_from() {
    for text in [story(), runs()] {
        answers_like_its_lines(&stored_on_a_server(&text), &text);
    }
}

fn answers_like_its_lines(store: &Stored, text: &str) {
    let lines = archive(text);
    let all = Question::Runs { filter: RunFilter::default(), limit: 100, after: None };
    let changes = Question::Changes { filter: ChangeFilter::default(), limit: 10, after: None };
    let mut questions = vec![all, changes];
    for head in lines.runs(&RunFilter::default(), 100, None).unwrap() {
        let trace = head.trace;
        questions.extend([
            Question::Run(named(&trace)),
            Question::Steps(named(&trace)),
            Question::Steps(named(&format!("{trace}/1"))),
            Question::Blame(named(&trace)),
            Question::Diff { before: named(&trace), after: None, observed: true },
        ]);
        if !head.outcome.is_failure() {
            let before = named(&trace);
            questions.push(Question::Diff { before, after: None, observed: false });
        }
        if lines.run_before(&lines.by_trace(&trace).unwrap()[0]).unwrap().is_some() {
            questions.push(Question::Compare { before: named(&trace), after: None });
        }
    }
    for question in questions {
        let here = print::value(&ask(&lines, &question)).to_string();
        let there = print::value(&ask(store, &question)).to_string();
        assert_eq!(without_tags(&there), without_tags(&here), "{question:?}");
    }
}

/// Import into a store and export gives the lines back.
#[test]
fn an_export_of_a_store_is_what_was_imported() {
    let text = story();
    let (_folder, store) = stored(&text);
    let mut heads = store.runs(&RunFilter::default(), 100, None).unwrap();
    heads.reverse();
    let mut exported = String::new();
    for head in &heads {
        exported += &export::emissions(&store.load(head).unwrap(), Format::Json).concat();
    }
    let filter = ChangeFilter { newer_than: Some(0), ..ChangeFilter::default() };
    for change in store.changes(&filter, 100, None).unwrap() {
        exported += &export::entry(&change).unwrap();
    }
    let parsed = |text: &str| -> Vec<Value> {
        let mut values: Vec<Value> =
            text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        values.sort_by_key(|value| value.pointer("/meta/spanId").is_none());
        values
    };
    let redacted = text.replace("aHVudGVyMg==", "**REDACTED**");
    assert_eq!(parsed(&exported), parsed(&redacted));
    let whole = ask(&store, &Question::Verify);
    let Answer::Verify(whole) = whole else { panic!("{whole:?}") };
    assert!(whole.whole);
    assert_eq!(whole.sources[0].entries, 4);
}

/// Lines that sidecars printed in the recordings come back from a store, too.
#[test]
fn recorded_lines_come_back_from_a_store() {
    let mut count = 0;
    let mut changed = Vec::new();
    for (file, is_entry) in [("inspector.jsonl.gz", false), ("changelogs.jsonl.gz", true)] {
        for case in recorded(file) {
            let printed = lines(&case);
            let (name, is_code) = (&case["name"], case["code"] == "OK");
            if !is_code || printed.is_empty() {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let options = ImportOptions {
                store: folder.path().join("s.db").to_str().unwrap().to_owned(),
                id: [7; 16],
                cluster: String::new(),
                source: "import".to_owned(),
                now: now(),
            };
            let done = import(vec![read(&printed)], &redactor(Mode::Deep), &options).unwrap();
            if done.emissions + done.entries == 0 {
                continue;
            }
            let store = Stored::open(&options.store).unwrap();
            let mut again = String::new();
            if is_entry {
                let change = store.change(1).unwrap().unwrap();
                again += &export::entry(&change).unwrap();
            } else {
                for head in store.runs(&RunFilter::default(), 9, None).unwrap() {
                    again += &export::emissions(&store.load(&head).unwrap(), Format::Json).concat();
                }
            }
            if again == printed {
                count += 1;
            } else {
                changed.push(name.as_str().unwrap().to_owned());
            }
        }
    }
    // Of what is no JSON object, only the size and the hash are kept.
    let not_kept = ["request-not-json", "request-json-scalar", "request-json-two-values"];
    assert_eq!(changed, not_kept);
    assert_eq!(count, 47, "all others that were accepted and printed");
}
