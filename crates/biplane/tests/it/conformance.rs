//! Replays recorded cases of Crossplane through the command line: same documents, same exit code,
//! same error message.

mod compare;
mod server;

use biplane_testkit::Recording;
use serde_json::Value;

use crate::support::{Folder, Ran, run};
use compare::{error_text, same_documents};
use server::Server;

/// Where the functions of a case run.
#[derive(Clone, Copy)]
enum Functions<'a> {
    InProcess,
    At(&'a str),
}

/// Crossplane cannot print control characters; we can.
const DEVIATION: &str = "json-html-escaping";
/// Cases that are not replayed.
const EXCEPTIONS: [&str; 2] = [
    DEVIATION,
    // Recorded without its calls.
    "deeply-nested",
];

/// Runs the command line of a case. `extra` has flags in addition to the case's own.
fn render(area: &str, case: &Recording, functions: Functions<'_>, extra: &[&str]) -> (Ran, Folder) {
    let folder = Folder::new();
    for (name, text) in &case.files {
        let text = if name == "functions.yaml" { place(text, functions) } else { text.clone() };
        folder.write(name, &text);
    }
    let file = |name: &str| folder.at(name).to_str().unwrap().to_owned();
    let positional: &[&str] = match area {
        "op" => &["operation.yaml", "functions.yaml"],
        _ => &["xr.yaml", "composition.yaml", "functions.yaml"],
    };
    let command = if area == "op" { "operation" } else { "composition" };
    let mut arguments = vec![command.to_owned(), "render".to_owned()];
    arguments.extend(positional.iter().map(|name| file(name)));
    for (flag, name) in [
        ("--observed-resources", "observed.yaml"),
        ("--required-resources", "required.yaml"),
        ("--function-credentials", "credentials.yaml"),
        ("--xrd", "xrd.yaml"),
    ] {
        if case.text(name).is_some() {
            arguments.push(format!("{flag}={}", file(name)));
        }
    }
    if case.folder("schemas").next().is_some() {
        arguments.push(format!("--required-schemas={}", file("schemas")));
    }
    for (key, value) in yaml(case.text("context.yaml").unwrap_or("{}")).as_object().unwrap() {
        let path = folder.write(&format!("context/{}", key.replace('/', "-")), &value.to_string());
        arguments.push(format!("--context-files={key}={path}"));
    }
    for flag in yaml(case.text("case.yaml").unwrap())["flags"].as_array().into_iter().flatten() {
        arguments.push(flag.as_str().unwrap().to_owned());
    }
    arguments.extend(extra.iter().map(|&flag| flag.to_owned()));
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    (run(&arguments), folder)
}

fn yaml(text: &str) -> Value {
    biplane_model::yaml::parse_one("case", text).unwrap().value
}

/// Sets in a functions file where the functions run.
fn place(text: &str, functions: Functions<'_>) -> String {
    let line = |line: &str| match (functions, line.split_once("FUNCTION_TARGET/")) {
        (Functions::At(address), Some((before, _))) => Some(format!("{before}{address}")),
        (Functions::InProcess, Some(_)) => None,
        (Functions::InProcess, None) => {
            Some(line.replace("runtime: Development", "runtime: InProcess"))
        }
        _ => Some(line.to_owned()),
    };
    text.lines().filter_map(line).map(|line| line + "\n").collect()
}

/// Whether every function of a case is built in.
fn is_in_box(case: &Recording) -> bool {
    let registry = biplane_functions::registry();
    let text = case.text("functions.yaml").unwrap_or_default();
    let documents = biplane_model::yaml::parse_documents("functions.yaml", text).unwrap();
    documents.iter().all(|document| {
        let name = document.value.pointer("/metadata/name").and_then(Value::as_str);
        document.value["kind"] != "Function" || registry.get(name.unwrap()).is_some()
    })
}

/// The difference between our result and the recorded one, if any.
fn complaint(area: &str, case: &Recording, ran: &Ran, folder: &Folder) -> Option<String> {
    let outcome = case.json("outcome.json").unwrap();
    let exit = outcome["cli"]["exit"].as_u64().unwrap();
    if u64::from(ran.exit) != exit {
        return Some(format!("exit code {} instead of {exit}: {}", ran.exit, ran.stderr));
    }
    if exit != 0 {
        let recorded = outcome["cli"]["stderr"].as_str().unwrap();
        let recorded = recorded.replace("TMP/case", folder.path().to_str().unwrap());
        let (ours, theirs) = (error_text(&ran.stderr), error_text(&recorded));
        if ours != theirs {
            return Some(format!("error\n  {ours}\ninstead of\n  {theirs}"));
        }
    } else if ran.stderr.lines().any(|line| !line.starts_with("biplane: warning: ")) {
        return Some(format!("said {}", ran.stderr));
    }
    let any_order = area == "op" || outcome["order_varies"] == true;
    same_documents(&ran.stdout, case.text("stdout.yaml").unwrap_or_default(), any_order).err()
}

/// Runs the cases of an area and fails with all differences. Returns how many it ran.
fn check(
    area: &str,
    which: impl Fn(&Recording) -> bool,
    run: impl Fn(&Recording) -> Option<String>,
) -> usize {
    let cases = Recording::load_area(area);
    let cases: Vec<_> = cases.iter().filter(|case| which(case)).collect();
    let wrong: Vec<_> = cases
        .iter()
        .filter_map(|case| Some(format!("{area}/{}: {}", case.name, run(case)?)))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    cases.len()
}

fn in_process(area: &str) -> usize {
    check(
        area,
        |case| is_in_box(case) && case.name != DEVIATION,
        |case| {
            let (ran, folder) = render(area, case, Functions::InProcess, &[]);
            complaint(area, case, &ran, &folder)
        },
    )
}

fn played_back(area: &str) -> usize {
    let server = Server::start();
    check(
        area,
        |case| !EXCEPTIONS.contains(&case.name.as_str()),
        |case| {
            let player = server.play(case);
            let (ran, folder) = render(area, case, Functions::At(server.target()), &[]);
            let differences = player.complaints().join("\n");
            complaint(area, case, &ran, &folder)
                .or_else(|| (!differences.is_empty()).then_some(differences))
        },
    )
}

#[test]
fn the_engine_renders_as_recorded_with_functions_in_process() {
    assert_eq!(in_process("engine"), 113);
}

#[test]
fn operations_render_as_recorded_with_functions_in_process() {
    assert_eq!(in_process("op"), 13);
}

#[test]
fn environments_render_as_recorded_with_functions_in_process() {
    assert_eq!(in_process("env"), 39);
}

#[test]
fn templates_render_as_recorded_with_functions_in_process() {
    assert_eq!(in_process("tmpl"), 42);
}

#[test]
fn readiness_renders_as_recorded_with_functions_in_process() {
    assert_eq!(in_process("ready"), 46);
}

#[test]
fn the_engine_renders_as_recorded_with_functions_played_back() {
    assert_eq!(played_back("engine"), 112);
}

#[test]
fn operations_render_as_recorded_with_functions_played_back() {
    assert_eq!(played_back("op"), 13);
}

#[test]
fn patch_and_transform_renders_as_recorded_when_played_back() {
    assert_eq!(played_back("pt"), 239);
}

#[test]
fn environments_render_as_recorded_when_played_back() {
    assert_eq!(played_back("env"), 39);
}

#[test]
fn readiness_renders_as_recorded_when_played_back() {
    assert_eq!(played_back("ready"), 46);
}

#[test]
fn templates_render_as_recorded_when_played_back() {
    assert_eq!(played_back("tmpl"), 42);
}

/// T-18
#[test]
fn a_hundred_runs_print_the_same_bytes() {
    let case = Recording::load("engine", "results-of-several-steps");
    let first = render("engine", &case, Functions::InProcess, &["-r"]).0;
    assert!(!first.stdout.is_empty());
    for _ in 0..99 {
        assert_eq!(render("engine", &case, Functions::InProcess, &["-r"]).0, first);
    }
}

#[test]
fn patch_and_transform_renders_as_recorded_with_functions_in_process() {
    assert_eq!(in_process("pt"), 239);
}

/// Compares with the output of v1 for the same input, where it exists.
fn as_v1(area: &str) -> usize {
    let recorded = |case: &Recording| case.text("stdout-v1.yaml").is_some() && is_in_box(case);
    check(area, recorded, |case| {
        let (ran, _folder) = render(area, case, Functions::InProcess, &["--output-format=v1"]);
        if ran.exit != 0 {
            return Some(ran.stderr);
        }
        same_documents(&ran.stdout, case.text("stdout-v1.yaml")?, false).err()
    })
}

/// Runs every case of an area with an engine in another process.
fn through_another_engine(area: &str) -> usize {
    let engine = concat!("--engine=", env!("CARGO_BIN_EXE_biplane"));
    check(
        area,
        |case| is_in_box(case) && case.name != DEVIATION,
        |case| {
            let (ran, folder) = render(area, case, Functions::InProcess, &[engine]);
            complaint(area, case, &ran, &folder)
        },
    )
}

/// ENG-2, ENG-6, ENG-11
#[test]
fn another_engine_renders_as_recorded_with_functions_of_ours() {
    assert_eq!(["engine", "op", "tmpl"].map(through_another_engine), [113, 13, 42]);
}

/// RL-1
#[test]
fn documents_of_the_v1_line_can_be_asked_for() {
    let counts = ["engine", "env", "ready", "pt", "tmpl"].map(as_v1);
    assert_eq!(counts, [87, 37, 44, 145, 27]);
}

/// YAML-1 to YAML-6
#[test]
fn documents_are_laid_out_to_the_byte_as_recorded() {
    let fixed = |case: &Recording| {
        let outcome = case.json("outcome.json").unwrap();
        outcome["cli"]["exit"] == 0 && outcome["order_varies"] != true && is_in_box(case)
    };
    let mut count = 0;
    for area in ["engine", "env", "ready", "pt"] {
        count += check(area, fixed, |case| {
            let (ran, _folder) = render(area, case, Functions::InProcess, &[]);
            let recorded = case.text("stdout.yaml").unwrap_or_default();
            let mut lines = ran.stdout.lines().zip(recorded.lines());
            match lines.find(|(ours, theirs)| ours != theirs) {
                Some((ours, theirs)) => Some(format!("printed {ours:?} instead of {theirs:?}")),
                None => (ran.stdout != recorded).then(|| "one is longer".to_owned()),
            }
        });
    }
    assert!(count >= 250, "{count}");
}
