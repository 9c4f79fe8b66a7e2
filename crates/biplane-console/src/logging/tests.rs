//! Which lines reach which stderr, and how they look.

use std::sync::{Arc, Mutex};

use super::*;

/// The lines that a closure logs, without timestamps.
fn logged(log: Log, run: impl FnOnce()) -> Vec<String> {
    let out = Arc::new(Mutex::new(Vec::new()));
    log.during(&Stderr::to(out.clone()), &Progress::default(), run);
    let text = String::from_utf8(out.lock().unwrap().clone()).unwrap();
    let line = |line: &str| match (log.format, line.split_once(['\t', ' '])) {
        (Format::Tabs | Format::Text, Some((_, rest))) => rest.trim_start().to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect()
}

fn events() {
    tracing::error!(error = %"no \"room\"", "died");
    tracing::info!(count = 2_u64, done = true, change = -1_i64, "serving");
    debug("Function runs", &[("function", "a"), ("runs", "b")]);
    tracing::debug!(target: "h2::codec", "frame");
}

#[test]
fn lines_with_tabs_hold_the_fields_as_json() {
    let all = logged(Log::at(LevelFilter::DEBUG), events);
    assert_eq!(
        all,
        [
            "ERROR\tdied\t{\"error\":\"no \\\"room\\\"\"}",
            "INFO\tserving\t{\"change\":-1,\"count\":2,\"done\":true}",
            "DEBUG\tFunction runs\t{\"function\":\"a\",\"runs\":\"b\"}",
        ]
    );
    assert_eq!(logged(Log::at(LevelFilter::ERROR), events), all[..1]);
    assert_eq!(logged(Log::when_asked(false), events), [""; 0]);
}

#[test]
fn other_formats_are_those_of_function_programs() {
    let text = logged(Log { level: LevelFilter::DEBUG, format: Format::Text }, events);
    assert_eq!(
        text[1],
        "INFO biplane_console::logging::tests: serving count=2 done=true change=-1"
    );
    let json = logged(Log { level: LevelFilter::INFO, format: Format::Json }, events);
    let lines: Vec<Value> = json.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["level"], "INFO");
    assert_eq!(lines[1]["fields"]["message"], "serving");
}

/// A message may contain text from a function.
#[test]
fn lines_cannot_steer_a_terminal() {
    let lines = logged(Log::at(LevelFilter::DEBUG), || tracing::info!("\u{1b}[31mred"));
    assert_eq!(lines, ["INFO\t\\u{1b}[31mred\t{}"]);
}

#[test]
fn threads_of_a_runtime_log_where_their_run_does() {
    let runs = ["one", "two"].map(|name| {
        let run = move || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let runtime = on_threads(builder.worker_threads(1)).build().unwrap();
            runtime.block_on(async {
                tokio::spawn(async move { tracing::info!("task of {name}") }).await.unwrap();
                let blocking = move || tracing::info!("computation of {name}");
                tokio::task::spawn_blocking(blocking).await.unwrap();
            });
        };
        std::thread::spawn(move || (name, logged(Log::at(LevelFilter::INFO), run)))
    });
    for run in runs {
        let (name, lines) = run.join().unwrap();
        let want =
            [format!("INFO\ttask of {name}\t{{}}"), format!("INFO\tcomputation of {name}\t{{}}")];
        assert_eq!(lines, want);
    }
}
