//! Tests that functions keep running while others are restarted.

use crate::fixtures::{composition, process, project};
use crate::support::Folder;
use crate::watch::{Watching, XR};

/// Two steps, each with a resource that its function composes.
const COMPOSITION: &str = composition!(
    "  - step: paint
    functionRef:
      name: acme-appspaint
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: paint
        base:
          apiVersion: example.org/v1
          kind: Paint
  - step: frame
    functionRef:
      name: acme-appsframe
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: frame
        base:
          apiVersion: example.org/v1
          kind: Frame
"
);
const PROJECT: &str = project!("");

/// The command that serves a function.
fn serve() -> String {
    let program = env!("CARGO_BIN_EXE_biplane");
    format!("exec '{program}' function serve function-patch-and-transform --metrics-address=")
}

/// Waits for a render, and returns the functions that were started since the last one.
fn started(watching: &mut Watching) -> Vec<String> {
    watching.prints("composition-resource-name: frame");
    let notes = watching.folder.at("started");
    let mut names: Vec<_> =
        std::fs::read_to_string(&notes).unwrap().lines().map(ToOwned::to_owned).collect();
    std::fs::write(notes, "").unwrap();
    names.sort();
    names
}

#[test]
fn only_the_function_whose_source_changes_is_started_anew() {
    let folder = Folder::new();
    for (name, text) in
        [("xr.yaml", XR), ("composition.yaml", COMPOSITION), ("crossplane-project.yaml", PROJECT)]
    {
        folder.write(name, text);
    }
    // A fake interpreter that records which function it runs.
    let interpreter =
        format!("#!/bin/sh\necho \"${{PWD##*/}}\" >> ../../started\nshift 2\n{} \"$@\"\n", serve());
    for name in ["paint", "frame"] {
        folder.write(&format!("functions/{name}/pyproject.toml"), "");
        folder.write(&format!("functions/{name}/function/main.py"), "");
        let python = folder.write(&format!("functions/{name}/.venv/bin/python"), &interpreter);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(python, mode).unwrap();
    }
    let words = ["render", "--watch", "xr.yaml", "composition.yaml", "--allow-process"];
    let mut watching = Watching::run_in(folder, &words);
    assert_eq!(started(&mut watching), ["frame", "paint"]);
    let more = PROJECT.replace("spec:", "# The same.\nspec:");
    for (file, text, want) in [
        ("functions/paint/function/main.py", "pass", &["paint"][..]),
        ("functions/frame/function/more.py", "pass", &["frame"]),
        // A file outside of the functions' folders may be used by all of them.
        ("functions/shared/colours.py", "pass", &["frame", "paint"]),
        ("schemas/python/types.py", "pass", &["frame", "paint"]),
        ("crossplane-project.yaml", &more, &["frame", "paint"]),
        ("xr.yaml", &XR.replace("red", "green"), &[]),
    ] {
        watching.folder.write(file, text);
        assert_eq!(started(&mut watching), want, "{file}");
    }
    assert_eq!(watching.stop().0, Some(130));
}

/// Functions that are local processes and record their start.
fn functions(paint: &str, frame: &str) -> String {
    let function = |name: &str, first: &str| {
        let script = format!(
            "echo {name} >> started; {first}{} --insecure --address {{address}}",
            serve().replace('\'', "")
        );
        process(&format!("acme-apps{name}"), &["sh", "-c", &script])
    };
    function("paint", paint) + &function("frame", frame)
}

const WORDS: [&str; 4] = ["xr.yaml", "composition.yaml", "functions.yaml", "--allow-process"];

#[test]
fn only_the_function_that_is_listed_anew_is_started_anew() {
    let files = [("composition.yaml", COMPOSITION), ("functions.yaml", &functions("", ""))];
    let mut watching = Watching::start(&files, &WORDS);
    assert_eq!(started(&mut watching), ["frame", "paint"]);
    let paint = functions("true; ", "");
    watching.folder.write("functions.yaml", &paint);
    assert_eq!(started(&mut watching), ["paint"]);
    watching.folder.write("functions.yaml", &functions("true; ", "true; "));
    assert_eq!(started(&mut watching), ["frame"]);
    // Saving the file without a change restarts all functions.
    watching.folder.write("functions.yaml", &functions("true; ", "true; "));
    assert_eq!(started(&mut watching), ["frame", "paint"]);
    // A function that is no longer called is stopped, and is started when it is called again.
    let (step, _) = COMPOSITION.split_once("  - step: frame").unwrap();
    let paint_only = step.replace("name: paint", "name: frame");
    watching.folder.write("composition.yaml", &paint_only);
    assert!(started(&mut watching).is_empty());
    watching.folder.write("composition.yaml", COMPOSITION);
    assert_eq!(started(&mut watching), ["frame"]);
    assert_eq!(watching.stop().0, Some(130));
}

#[test]
fn a_function_that_has_ended_is_started_anew() {
    let listed = functions("", "[ -e repaired ] || exit 3; ");
    let files = [("composition.yaml", COMPOSITION), ("functions.yaml", &listed)];
    let mut watching = Watching::start(&files, &WORDS);
    watching.says("has ended (exit status: 3)");
    watching.folder.write("repaired", "");
    watching.folder.write("xr.yaml", &XR.replace("red", "green"));
    assert_eq!(started(&mut watching), ["frame", "frame", "paint"], "the other stays up");
    assert_eq!(watching.stop().0, Some(130));
}
