//! Sentences about many runs, about an owner, a resource, changes and the store.

use jiff::Timestamp;

use super::counted;
use crate::query::record::Outcome;
use crate::query::time;

/// A number with separators and its noun: `1,204 runs`.
pub fn many(count: i64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{} {noun}s", separated(count)) }
}

/// A number with separators: `1,204`.
pub fn separated(count: i64) -> String {
    let digits = count.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if count < 0 { format!("-{text}") } else { text }
}

/// What is known of the runs of a time.
#[derive(Clone, Debug, Default)]
pub struct RunCounts {
    /// The time: `in the last 24 hours`.
    pub window: String,
    /// How many runs ended.
    pub runs: i64,
    /// How many of them failed.
    pub failed: i64,
    /// The step and the Composition in which all failures were, if it is one.
    pub failed_in: Option<(String, String)>,
    /// How many repeated the run before.
    pub repeated: i64,
    /// How many emissions were lost.
    pub lost: i64,
    /// When the last run of all began.
    pub latest: Option<Timestamp>,
}

/// What happened in a time.
pub fn runs(counts: &RunCounts) -> String {
    let RunCounts { window, runs, failed, repeated, lost, .. } = counts;
    let mut sentences = Vec::new();
    match (runs, counts.latest) {
        (0, Some(latest)) => {
            sentences.push(format!("No run ended {window}."));
            sentences.push(format!("The last one began at {}.", time::date(latest)));
        }
        (0, None) => sentences.push(format!("No run ended {window}.")),
        (runs, _) => {
            sentences.push(format!("{} {window}.", many(*runs, "run")));
            sentences.push(match (failed, &counts.failed_in) {
                (0, _) => "None failed.".to_owned(),
                (1, Some((step, composition))) => {
                    format!("1 failed, in step {step} of {composition}.")
                }
                (_, Some((step, composition))) => {
                    let failed = separated(*failed);
                    format!("{failed} failed, all in step {step} of {composition}.")
                }
                (_, None) => format!("{} failed.", separated(*failed)),
            });
        }
    }
    if *repeated > 0 {
        sentences.push(format!("{} repeated the run before.", separated(*repeated)));
    }
    if *lost > 0 {
        let were = if *lost == 1 { "was" } else { "were" };
        sentences.push(format!("{} {were} lost.", many(*lost, "emission")));
    }
    sentences.join(" ")
}

/// A run in the history of an owner.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    /// When it began.
    pub started: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether more steps may come.
    pub open: bool,
}

/// How an owner is, from its last runs, the newest first. `step` is the one in which the last run
/// failed.
pub fn owner(beats: &[Beat], step: Option<&str>, now: Timestamp) -> String {
    let closed: Vec<&Beat> = beats.iter().filter(|beat| !beat.open).collect();
    let Some(last) = closed.first() else {
        return match beats.len() {
            0 => "No run of it is kept.".to_owned(),
            _ => "Its first run goes on.".to_owned(),
        };
    };
    let streak = closed.iter().take_while(|beat| beat.outcome.is_failure()).count();
    if streak > 0 {
        let since = closed.get(streak - 1).map_or(last.started, |beat| beat.started);
        let age = now.as_microsecond().saturating_sub(since.as_microsecond());
        let step = step.map(|step| format!(": step {step}")).unwrap_or_default();
        let failing = format!("Failing for {}{step}.", time::took(age));
        let before = closed.iter().skip(streak).take_while(|b| !b.outcome.is_failure()).count();
        let before = match (before, closed.len() - streak) {
            (0, 0) => "No run without a failure is kept.".to_owned(),
            (count, _) => {
                format!("Before that, {} without a failure.", counted(count, "run"))
            }
        };
        return format!("{failing} {before}");
    }
    let failed = closed.iter().filter(|beat| beat.outcome.is_failure()).count();
    let runs = counted(closed.len(), "run");
    let history = match failed {
        0 if closed.len() == 1 => "It is the only run that is kept.".to_owned(),
        0 => format!("None of the last {runs} failed."),
        count => {
            let last = closed.iter().find(|beat| beat.outcome.is_failure());
            let at = last.map(|beat| time::date(beat.started)).unwrap_or_default();
            format!("{count} of the last {runs} failed, the last at {at}.")
        }
    };
    let warned = if last.outcome == Outcome::Warning { ", with a warning" } else { "" };
    format!("The last run, at {}, got to its end{warned}. {history}", time::date(last.started))
}

/// What is known of a composed resource.
#[derive(Clone, Debug, Default)]
pub struct ResourceHistory {
    /// Since when it is desired, as far as is known.
    pub since: Option<Timestamp>,
    /// Since when it is no longer desired.
    pub gone: Option<Timestamp>,
    /// How often what is desired of it changed after that.
    pub changes: usize,
    /// The run that changed it last, by the beginning of its trace, and the step.
    pub last: Option<(String, Option<String>)>,
    /// What the provider did last, and why it failed if it did.
    pub provider: Option<(String, Option<String>)>,
}

/// How a composed resource came to be as it is.
pub fn resource(history: &ResourceHistory) -> String {
    let mut sentences = Vec::new();
    match (history.gone, history.since) {
        (Some(gone), _) => {
            sentences.push(format!("No longer desired since {}.", time::date(gone)));
        }
        (None, Some(since)) => sentences.push(format!("Desired since {}.", time::date(since))),
        (None, None) => sentences.push("No run that got to its end desired it.".to_owned()),
    }
    if let Some((run, step)) = &history.last {
        let by = step.as_ref().map(|step| format!(" by step {step}")).unwrap_or_default();
        sentences.push(match history.changes {
            0 => format!("Not changed after run {run}{by}."),
            1 => format!("Changed once, in run {run}{by}."),
            count => format!("Changed {count} times, last in run {run}{by}."),
        });
    }
    match &history.provider {
        Some((what, Some(error))) => {
            sentences.push(format!("The provider's last {what} failed: {}.", super::quote(error)));
        }
        Some((what, None)) => sentences.push(format!("The provider's last {what} succeeded.")),
        None => {}
    }
    sentences.join(" ")
}

/// How many changes a list has. `whole` says whether the chains were found whole.
pub fn changes(count: usize, failed: usize, is_more: bool, whole: Option<bool>) -> String {
    let mut sentences = vec![match (count, is_more) {
        (0, _) => "No change was found.".to_owned(),
        (count, false) => format!("{}.", counted(count, "change")),
        (count, true) => format!("The last {}.", counted(count, "change")),
    }];
    if count > 0 {
        sentences.push(match failed {
            0 => "None failed.".to_owned(),
            failed => format!("{failed} failed."),
        });
    }
    match whole {
        Some(true) => sentences.push("The chain of entries is whole.".to_owned()),
        Some(false) => sentences.push("The chain of entries is broken.".to_owned()),
        None => {}
    }
    sentences.join(" ")
}

/// How a recorder and its store are.
#[derive(Clone, Debug, Default)]
pub struct StoreState {
    /// How many bytes the store takes.
    pub bytes: u64,
    /// When the oldest run that is kept began.
    pub oldest: Option<Timestamp>,
    /// How many emissions were lost in the last 24 hours.
    pub lost: i64,
    /// Why it cannot be written, if so.
    pub trouble: Option<String>,
}

/// How a recorder and its store are.
pub fn store(state: &StoreState) -> String {
    let mut sentences = Vec::new();
    sentences.extend(state.trouble.as_ref().map(|why| format!("Nothing is stored: {why}.")));
    let bytes = time::bytes(usize::try_from(state.bytes).unwrap_or(usize::MAX));
    sentences.push(match state.oldest {
        Some(oldest) => {
            format!("The store takes {bytes} and has runs since {}.", time::date(oldest))
        }
        None => format!("The store takes {bytes} and has no run."),
    });
    sentences.push(match state.lost {
        0 => "Nothing was lost in the last 24 hours.".to_owned(),
        1 => "1 emission was lost in the last 24 hours.".to_owned(),
        lost => format!("{} were lost in the last 24 hours.", many(lost, "emission")),
    });
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn beats(text: &str) -> Vec<Beat> {
        let outcome = |sign: char| match sign {
            'x' => Outcome::Fatal,
            'w' => Outcome::Warning,
            _ => Outcome::Ok,
        };
        let minute = |back: i64| at("2026-11-16T14:03:00Z") - jiff::SignedDuration::from_mins(back);
        text.chars()
            .zip(0..)
            .map(|(sign, back)| Beat {
                started: minute(back),
                outcome: outcome(sign),
                open: sign == 'o',
            })
            .collect()
    }

    #[test]
    fn sentences_about_many_runs() {
        let window = "in the last hour".to_owned();
        let none = RunCounts { window, ..RunCounts::default() };
        let failed = RunCounts { runs: 1204, failed: 3, repeated: 1166, ..none.clone() };
        let place = Some(("compose".to_owned(), "stores".to_owned()));
        let latest = Some(at("2026-11-16T14:03:07Z"));
        for (counts, want) in [
            (none.clone(), "No run ended in the last hour."),
            (
                RunCounts { latest, ..none.clone() },
                "No run ended in the last hour. The last one began at 2026-11-16 14:03:07.",
            ),
            (
                RunCounts { failed_in: place.clone(), ..failed.clone() },
                "1,204 runs in the last hour. 3 failed, all in step compose of stores. 1,166 repeated the run before.",
            ),
            (
                RunCounts { repeated: 0, lost: 12, ..failed.clone() },
                "1,204 runs in the last hour. 3 failed. 12 emissions were lost.",
            ),
            (
                RunCounts { runs: 1, failed: 1, failed_in: place, ..none.clone() },
                "1 run in the last hour. 1 failed, in step compose of stores.",
            ),
            (RunCounts { runs: 2, ..none }, "2 runs in the last hour. None failed."),
        ] {
            assert_eq!(runs(&counts), want);
        }
    }

    #[test]
    fn sentences_about_an_owner() {
        let now = at("2026-11-16T14:05:00Z");
        let say = |text: &str, step| owner(&beats(text), step, now);
        for (text, step, want) in [
            ("", None, "No run of it is kept."),
            ("o", None, "Its first run goes on."),
            (
                "xx...",
                Some("2, compose"),
                "Failing for 3 m 0 s: step 2, compose. Before that, 3 runs without a failure.",
            ),
            ("x", None, "Failing for 2 m 0 s. No run without a failure is kept."),
            (
                ".",
                None,
                "The last run, at 2026-11-16 14:03:00, got to its end. It is the only run that is kept.",
            ),
            (
                "o.w.",
                None,
                "The last run, at 2026-11-16 14:02:00, got to its end. None of the last 3 runs failed.",
            ),
            (
                "w.x.",
                None,
                "The last run, at 2026-11-16 14:03:00, got to its end, with a warning. 1 of the last 4 runs failed, the last at 2026-11-16 14:01:00.",
            ),
        ] {
            assert_eq!(say(text, step), want, "{text}");
        }
    }

    #[test]
    fn sentences_about_resources_changes_and_the_store() {
        let since = Some(at("2026-11-09T10:00:00Z"));
        let history = ResourceHistory {
            since,
            changes: 4,
            last: Some(("6a3ac86e".to_owned(), Some("2, compose".to_owned()))),
            provider: Some(("update".to_owned(), Some("AccessDenied".to_owned()))),
            ..ResourceHistory::default()
        };
        assert_eq!(
            resource(&history),
            "Desired since 2026-11-09 10:00:00. Changed 4 times, last in run 6a3ac86e by step 2, compose. The provider's last update failed: AccessDenied."
        );
        let gone = ResourceHistory { gone: since, ..ResourceHistory::default() };
        assert_eq!(resource(&gone), "No longer desired since 2026-11-09 10:00:00.");
        assert_eq!(
            changes(4, 1, false, Some(true)),
            "4 changes. 1 failed. The chain of entries is whole."
        );
        assert_eq!(changes(0, 0, false, None), "No change was found.");
        let state = StoreState { bytes: 4096, oldest: since, ..StoreState::default() };
        assert_eq!(
            store(&state),
            "The store takes 4.0 KiB and has runs since 2026-11-09 10:00:00. Nothing was lost in the last 24 hours."
        );
        let state = StoreState { trouble: Some("the disk is full".to_owned()), lost: 1, ..state };
        assert!(store(&state).starts_with("Nothing is stored: the disk is full. The store"));
    }
}
