//! Runs `convert` on recorded cases: output, files, exit codes and messages are the reference's. What
//! was converted renders like the original.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use biplane_model::yaml::{parse_documents, parse_one};
use biplane_testkit::Recording;
use serde_json::Value;

use crate::support::{Folder, run};

fn yaml(text: &str) -> Value {
    parse_one("test.yaml", text).unwrap().value
}

/// The documents of a text, as data.
fn documents(text: &str) -> Vec<Value> {
    let documents = parse_documents("test.yaml", text).unwrap();
    documents.into_iter().map(|document| document.value).collect()
}

/// Replaces times, which are those of the recording or of now.
fn without_time(text: &str) -> String {
    let masked = text.lines().map(|line| match line.split_once("creationTimestamp: ") {
        Some((before, time)) if time != "null" => format!("{before}creationTimestamp: TIME\n"),
        _ => format!("{line}\n"),
    });
    masked.collect()
}

/// The last line of an error message, without the name of the program and the usage.
fn error_of(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("Usage: "));
    let mut shown: Vec<_> = lines.map(ToOwned::to_owned).collect();
    for line in &mut shown {
        *line =
            line.replace("biplane: error: ", "error: ").replace("crossplane: error: ", "error: ");
        // Continued lines are indented by the length of the program's name.
        *line = line.trim_start().to_owned();
    }
    shown.join("\n")
}

/// CV-1 to CV-5, PTC-1, PTC-3, PTC-10
#[test]
fn the_command_does_what_the_reference_does() {
    let mut compared = 0;
    for recording in Recording::load_area("convert") {
        let name = &recording.name;
        let case = yaml(recording.text("case.yaml").unwrap());
        if case.get("informative").is_some() {
            continue;
        }
        let folder = Folder::new();
        for (file, text) in recording.folder("input") {
            folder.write(file, text);
        }
        for directory in case["directories"].as_array().into_iter().flatten() {
            std::fs::create_dir_all(folder.at(directory.as_str().unwrap())).unwrap();
        }
        let words = case["command"].as_str().unwrap().split(' ').skip(1);
        let mut command = Command::new(env!("CARGO_BIN_EXE_biplane"))
            .args(words)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = case["stdin"].as_str().map(|file| format!("input/{file}"));
        let stdin = stdin.and_then(|file| recording.text(&file)).unwrap_or_default();
        // A program that fails early does not read it.
        let _ = command.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = command.wait_with_output().unwrap();
        let outcome = recording.json("outcome.json").unwrap();
        let real = folder.path().canonicalize().unwrap();
        let stderr = String::from_utf8(output.stderr)
            .unwrap()
            .replace(real.to_str().unwrap(), "CASE")
            .replace(folder.path().to_str().unwrap(), "CASE");
        assert_eq!(error_of(&stderr), error_of(outcome["stderr"].as_str().unwrap()), "{name}");
        let exit = output.status.code().map(i64::from);
        if case.get("usage").is_some() {
            assert_eq!(exit, Some(80), "{name}");
            continue;
        }
        assert_eq!(exit, outcome["exit"].as_i64(), "{name}");
        let same = |ours: &str, theirs: &str| {
            let (ours, theirs) = (without_time(ours), without_time(theirs));
            assert_eq!(documents(&ours), documents(&theirs), "{name}");
        };
        let stdout = String::from_utf8(output.stdout).unwrap();
        same(&stdout, recording.text("stdout").unwrap_or_default());
        for file in case["outputs"].as_array().into_iter().flatten() {
            let file = file.as_str().unwrap();
            let ours = std::fs::read_to_string(folder.at(file)).ok();
            let theirs = recording.text(&format!("output/{file}"));
            assert_eq!(ours.is_some(), theirs.is_some(), "{name}: {file}");
            same(&ours.unwrap_or_default(), theirs.unwrap_or_default());
        }
        compared += 1;
    }
    assert!(compared > 190, "{compared}");
}

/// CV-4: the reference leaves the end of a longer file.
#[test]
fn a_longer_file_is_replaced() {
    let folder = Folder::new();
    let input = folder.write(
        "cc.yaml",
        "apiVersion: pkg.crossplane.io/v1alpha1\nkind: ControllerConfig\nmetadata: {name: cc}\n",
    );
    let output = folder.write("out.yaml", &"# old\n".repeat(1000));
    let ran = run(&["convert", "deployment-runtime", &input, "-o", &output]);
    assert_eq!((ran.exit, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
    let text = std::fs::read_to_string(output).unwrap();
    assert!(text.starts_with("apiVersion: ") && text.ends_with("spec: {}\n"), "{text}");
}

/// CLI-2, CV-5: every path of the command, of this and of older versions.
#[test]
fn every_path_leads_to_the_same_command() {
    let folder = Folder::new();
    let input = folder.write(
        "c.yaml",
        "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nspec: {mode: Pipeline}\n",
    );
    for path in [&["convert"][..], &["composition", "convert"], &["beta", "convert"]] {
        for conversion in ["pipeline-composition", "composition-environment"] {
            let ran = run(&[path, &[conversion, &input]].concat());
            assert_eq!((ran.exit, ran.stderr.as_str()), (0, "No changes needed.\n"), "{path:?}");
        }
    }
}

/// Cases that render differently after the conversion, because functions differ from what the control
/// plane did. The guide lists the reasons.
const DIFFERENT: [(&str, &str); 14] = [
    ("anonymous-with-existing", "resources of templates without names are not found again"),
    ("combine-ignores-merge-options", "a combined value is merged too"),
    ("convert-error", "a transform that fails is fatal"),
    ("integer-transforms", "functions have no integers"),
    ("merge-options-live", "values are merged with what is desired, not with what exists"),
    ("patched-name-of-existing", "a resource that exists keeps its name"),
    ("required-missing-existing", "a resource that exists stays if a required value is missing"),
    ("transform-error", "a transform that fails is fatal"),
    ("default-data-only", "default data counts only beside an EnvironmentConfig"),
    ("environment-patch-to-composite-spec", "a function changes the status alone"),
    ("environment-patches", "functions have no integers"),
    ("existing-refs-kept", "references are resolved each time"),
    ("existing-refs-without-environment", "references of the composite resource are not read"),
    ("to-environment-between-templates", "all that exists is read before anything is composed"),
];

/// What v1 writes instead of a name that it draws at random.
const GENERATED: &str = "GENERATED_NAME";

/// Composed resources by the names of their templates.
fn composed(objects: &[Value]) -> BTreeMap<String, Value> {
    let named = objects.iter().enumerate().map(|(index, object)| {
        let mut object = object.clone();
        let metadata = object["metadata"].as_object_mut().unwrap();
        let annotations = metadata.remove("annotations").unwrap_or_default();
        let name = annotations["crossplane.io/composition-resource-name"].as_str();
        let name = name.map_or_else(|| format!("resource-{index}"), str::to_owned);
        // These say who made the object.
        for key in ["generateName", "labels", "ownerReferences", "resourceVersion", "uid"] {
            metadata.remove(key);
        }
        (name, object)
    });
    named.collect()
}

/// The documents that `render` prints after the composite resource.
fn rendered(area: &str, case: &Recording) -> Result<BTreeMap<String, Value>, String> {
    let folder = Folder::new();
    for (file, text) in &case.files {
        // The function asks for the later version.
        let text = text
            .replace("apiextensions.crossplane.io/v1alpha1", "apiextensions.crossplane.io/v1beta1");
        folder.write(file, &text);
    }
    let file = |name: &str| folder.at(name).to_str().unwrap().to_owned();
    let composition = file("composition.yaml");
    let has_pipeline = yaml(case.text("composition.yaml").unwrap())["spec"]["mode"] == "Pipeline";
    let conversion = if has_pipeline { "composition-environment" } else { "pipeline-composition" };
    let ran = run(&["convert", conversion, &composition, "-o", &composition]);
    assert_eq!(ran.exit, 0, "{area}/{}: {}", case.name, ran.stderr);
    let mut words = vec!["render".to_owned(), file("xr.yaml"), composition];
    for (flag, name) in [("--xrd", "xrd.yaml"), ("-o", "observed.yaml"), ("-e", "required.yaml")] {
        if case.text(name).is_some() {
            words.extend([flag.to_owned(), file(name)]);
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = run(&words);
    if ran.exit != 0 {
        return Err(ran.stderr);
    }
    Ok(composed(documents(&ran.stdout).get(1..).unwrap_or_default()))
}

#[test]
fn a_converted_composition_composes_what_the_original_did() {
    let mut same = 0;
    for area in ["resources", "nativeenv"] {
        for case in Recording::load_area(area) {
            let description = yaml(case.text("case.yaml").unwrap());
            if description["expect"] != "ok" {
                continue;
            }
            let expected = yaml(case.text("expected.yaml").unwrap());
            let none = Vec::new();
            let wanted = composed(expected["composed"].as_array().unwrap_or(&none));
            let mut ours = rendered(area, &case);
            for (name, object) in ours.iter_mut().flatten() {
                let drawn = wanted.get(name).is_some_and(|o| o["metadata"]["name"] == GENERATED);
                if drawn {
                    object["metadata"]["name"] = GENERATED.into();
                }
            }
            let name = &case.name;
            if let Some((_, reason)) = DIFFERENT.iter().find(|(case, _)| case == name) {
                assert_ne!(ours.as_ref(), Ok(&wanted), "{name} is the same: {reason}");
            } else {
                assert_eq!(ours, Ok(wanted), "{area}/{name}");
                same += 1;
            }
        }
    }
    assert!(same > 20, "{same}");
}

/// CLI-11, CV-1
#[test]
fn usage_errors_are_worded_as_upstream_words_them() {
    let conversions = "expected one of \"deployment-runtime\", \"pipeline-composition\", \"composition-environment\"";
    for (words, error) in [
        (&["beta", "convert"][..], conversions),
        (&["convert"], conversions),
        (&["composition", "convert"], "expected \"composition-environment\""),
        (&["beta", "convert", "nothing"], "unexpected argument nothing"),
        (&["convert", "pipeline-composition", "a", "b"], "unexpected argument b"),
        (&["convert", "deployment-runtime", "--nope"], "unknown flag --nope"),
        (
            &["convert", "pipeline-composition", "--function-patch-and-transform-ref"],
            "--function-patch-and-transform-ref: expected string value but got \"EOL\" (<EOL>)",
        ),
    ] {
        let ran = run(words);
        assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""), "{words:?}");
        let first = ran.stderr.lines().next().unwrap_or_default();
        assert_eq!(first, format!("biplane: error: {error}"), "{words:?}");
    }
}

/// PTC-2
#[test]
fn a_folder_cannot_be_read() {
    let folder = Folder::new();
    let path = folder.path().to_str().unwrap();
    let ran = run(&["convert", "pipeline-composition", path]);
    let error = format!("biplane: error: Unable to read inputFile: read {path}: is a directory\n");
    assert_eq!((ran.exit, ran.stdout.as_str(), ran.stderr), (1, "", error));
}
