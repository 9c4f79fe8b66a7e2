//! Replays every recorded run of Crossplane's engine and compares the responses: one test per case.

use std::sync::Arc;

use biplane_engine::render::{RenderError, Settings, render};
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};
use biplane_runner::{FunctionRunner, InProcess};
use biplane_testkit::compare::{comparable_error, comparable_response};
use biplane_testkit::player::difference;
use biplane_testkit::{Player, Recording};
use libtest_mimic::{Arguments, Failed, Trial};

const AREAS: [&str; 8] = ["engine", "op", "cron", "watch", "pt", "env", "ready", "tmpl"];

fn main() {
    let mut trials = Vec::new();
    for area in AREAS {
        for recording in Recording::load_area(area) {
            if recording.text("request.json").is_none() {
                continue;
            }
            let live = matches!(area, "engine" | "op") && needs_only_dummy(&recording);
            let recording = Arc::new(recording);
            let case = recording.clone();
            let name = format!("{area}/{}", recording.name);
            trials.push(Trial::test(format!("played_back::{name}"), move || played_back(&case)));
            if live {
                trials.push(Trial::test(format!("with_dummy::{name}"), move || {
                    with_dummy(&recording)
                }));
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn needs_only_dummy(recording: &Recording) -> bool {
    let calls = recording.json("calls.json").unwrap_or_default();
    calls.as_array().is_none_or(|calls| calls.iter().all(|c| c["function"] == "function-dummy"))
}

fn played_back(recording: &Recording) -> Result<(), Failed> {
    let player = Arc::new(Player::new(recording));
    check(recording, player.clone())?;
    match player.complaints() {
        complaints if complaints.is_empty() => Ok(()),
        complaints => Err(complaints.join("\n").into()),
    }
}

fn with_dummy(recording: &Recording) -> Result<(), Failed> {
    check(recording, Arc::new(InProcess::new(biplane_functions::registry())))
}

fn check(recording: &Recording, runner: Arc<dyn FunctionRunner>) -> Result<(), Failed> {
    let request: RenderRequest =
        serde_json::from_value(recording.json("request.json").unwrap_or_default())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rendered = runtime.block_on(render(request, runner, &Settings::default()));
    let outcome = recording.json("outcome.json").unwrap_or_default();
    let (exit, stderr, response) = match rendered {
        Ok(response) => (0, String::new(), Some(response)),
        Err(RenderError::Fatal { text, partial, .. }) => (3, text, Some(*partial)),
        Err(RenderError::Failed(text)) => (1, text, None),
    };
    if outcome["engine"]["exit"] != exit {
        return Err(format!("exit {exit}, recorded {}: {stderr}", outcome["engine"]).into());
    }
    let recorded = outcome["engine"]["stderr"].as_str().unwrap_or_default();
    let recorded =
        comparable_error(recorded.trim_end_matches('\n').trim_start_matches("crossplane: error: "));
    if comparable_error(&stderr) != recorded {
        return Err(format!("error {stderr:?}, recorded {recorded:?}").into());
    }
    match (response, recording.json("response.json")) {
        (None, None) => Ok(()),
        (Some(ours), Some(theirs)) => {
            let theirs: RenderResponse = serde_json::from_value(theirs)?;
            let ours = comparable_response(serde_json::to_value(ours)?);
            let theirs = comparable_response(serde_json::to_value(theirs)?);
            difference("response", &ours, &theirs).map_or(Ok(()), |d| Err(d.into()))
        }
        (ours, _) => Err(format!("a response: {}, recorded otherwise", ours.is_some()).into()),
    }
}
