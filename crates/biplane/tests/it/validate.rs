//! Replays recorded runs of `resource validate` through the program: same output, same errors, same
//! exit code, same files afterwards.

mod compare;
mod schemas;

use std::path::Path;
use std::process::{Command, Stdio};

use biplane_model::yaml;
use biplane_testkit::Recording;
use serde_json::Value;

use crate::support::{Folder, Ran, run_on};
use compare::{chatter, same_stderr, same_stdout, without_chatter};

/// Cases in which the API server's verdict wins over the recording: it takes integers that a double
/// cannot hold, and refuses those that their format does not allow.
const EXCEPTIONS: [&str; 2] = ["cel-error-arithmetic", "type-large-numbers"];

fn list<'a>(case: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    case[name].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Writes the files of a case.
fn prepare(recording: &Recording, case: &Value, folder: &Folder) {
    for (name, text) in recording.folder("input") {
        match name.strip_suffix(".base64") {
            Some(name) => {
                let bytes =
                    base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text);
                folder.write(name, "");
                std::fs::write(folder.at(name), bytes.unwrap()).unwrap();
            }
            None => {
                folder.write(name, text);
            }
        }
    }
    for name in list(case, "directories") {
        std::fs::create_dir_all(folder.at(name)).unwrap();
    }
    for (name, target) in case["links"].as_object().into_iter().flatten() {
        let link = folder.at(name);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target.as_str().unwrap(), link).unwrap();
    }
    for shared in list(case, "shared") {
        // The recordings used Crossplane's own CRDs. Ours are the same contract.
        let target = shared.split_once(':').unwrap().1;
        let crds = biplane_schema::own_kinds::definitions();
        let mut values: Vec<Value> = crds.iter().map(biplane_model::Object::to_value).collect();
        // But for one that Crossplane does not serve any more.
        let configs =
            values.iter_mut().filter(|v| v["spec"]["names"]["kind"] == "EnvironmentConfig");
        for versions in configs.filter_map(|crd| crd["spec"]["versions"].as_array_mut()) {
            versions.retain(|version| version["name"] != "v1alpha1");
        }
        folder.write(&format!("{target}/package.yaml"), &yaml::write_documents(&values));
    }
}

fn run_case(case: &Value, folder: &Folder, home: &Folder) -> Ran {
    let command = case["command"].as_str().unwrap();
    let words = compare::words(command);
    let stdin = match case["stdin"].as_str() {
        Some(name) => Stdio::from(std::fs::File::open(folder.at(name)).unwrap()),
        None => Stdio::null(),
    };
    let ran = Command::new(env!("CARGO_BIN_EXE_biplane"))
        .args(words.iter().skip(1))
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", home.path())
        .stdin(stdin)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let real = folder.path().canonicalize().unwrap();
        text.replace(real.to_str().unwrap(), "CASE")
            .replace(folder.path().to_str().unwrap(), "CASE")
            .replace(home.path().to_str().unwrap(), "HOME")
    };
    let exit = u8::try_from(ran.status.code().unwrap()).unwrap();
    Ran { exit, stdout: text(ran.stdout), stderr: text(ran.stderr) }
}

/// The files below a folder, or the text of a file.
fn output(path: &Path) -> Option<String> {
    if !path.is_dir() {
        return std::fs::read_to_string(path).ok();
    }
    let mut names = Vec::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                waiting.push(entry);
            } else {
                names.push(format!("{}\n", entry.strip_prefix(path).unwrap().display()));
            }
        }
    }
    names.sort();
    Some(names.concat())
}

fn differences(recording: &Recording) -> Vec<String> {
    differences_from(recording, recording.text("stdout").unwrap_or_default())
}

/// How the program differs from a recording that would have printed this.
fn differences_from(recording: &Recording, stdout: &str) -> Vec<String> {
    let case = recording.json("case.json").unwrap();
    let outcome = recording.json("outcome.json").unwrap();
    let (folder, home) = (Folder::new(), Folder::new());
    prepare(recording, &case, &folder);
    let ran = run_case(&case, &folder, &home);
    let mut differences = Vec::new();
    if u64::from(ran.exit) != outcome["exit"].as_u64().unwrap() {
        differences.push(format!("exit: recorded {}, got {}", outcome["exit"], ran.exit));
    }
    let stderr = outcome["stderr"].as_str().unwrap();
    if chatter(stdout, stderr) != chatter(&ran.stdout, &ran.stderr) {
        differences.push(format!("downloads: {:?}", chatter(&ran.stdout, &ran.stderr)));
    }
    let usage = case["usage"] == true;
    if !same_stderr(usage, stderr, &ran.stderr) {
        differences.push(format!("stderr: recorded {stderr}, got {}", ran.stderr));
    }
    let form = case["compare"].as_str().unwrap_or("text");
    let (recorded, got) = match form {
        "exact" => (stdout.to_owned(), ran.stdout.clone()),
        _ => (without_chatter(stdout), without_chatter(&ran.stdout)),
    };
    if !usage && !same_stdout(form, &recorded, &got) {
        differences.push(format!("stdout: recorded {recorded}, got {got}"));
    }
    for name in list(&case, "outputs") {
        let recorded = recording.text(&format!("output/{name}")).map(str::to_owned);
        let got = output(&folder.at(name));
        if recorded != got {
            differences.push(format!("{name}: recorded {recorded:?}, got {got:?}"));
        }
    }
    differences
}

/// VA-1, VA-2, VA-3, VA-4, VA-5, VA-6, VA-7, VA-8
#[test]
fn recorded_validations_are_repeated() {
    let mut failed = Vec::new();
    for recording in Recording::load_area("validate") {
        if EXCEPTIONS.contains(&recording.name.as_str()) {
            continue;
        }
        let differences = differences(&recording);
        if !differences.is_empty() {
            failed.push(format!("{}:\n{}", recording.name, differences.join("\n")));
        }
    }
    assert!(failed.is_empty(), "{} cases differ:\n{}", failed.len(), failed.join("\n\n"));
}

/// An exception that no longer differs is to be removed.
#[test]
fn exceptions_differ_in_integers_only() {
    for name in EXCEPTIONS {
        let recording = Recording::load("validate", name);
        assert!(!differences(&recording).is_empty(), "{name}");
        let as_decided = as_a_server_decides(recording.text("stdout").unwrap());
        assert_eq!(differences_from(&recording, &as_decided), [""; 0], "{name}");
    }
}

/// What was printed, if integers that a double cannot hold were valid, and those that their format
/// does not allow were not.
fn as_a_server_decides(stdout: &str) -> String {
    if let Ok(mut printed) = serde_json::from_str::<Value>(stdout) {
        let errors = printed["resources"][0]["errors"].as_array_mut().unwrap();
        errors.retain(|error| error["type"] != "schema");
        return serde_json::to_string_pretty(&printed).unwrap() + "\n";
    }
    let thing = "conf.example.org/v1, Kind=Thing,";
    let mut lines: Vec<String> = Vec::new();
    for line in stdout.lines() {
        let named = |name: &&str| line.contains(&format!("{thing} {name} "));
        let line = if let Some(name) = ["two-pow-53", "max-int64"].iter().find(|name| named(name)) {
            format!("[✓] {thing} {name} validated successfully")
        } else if let Some(name) = ["above-int32", "below-int32"].iter().find(|name| named(name)) {
            format!(
                "[x] schema validation error {thing} {name} : <nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.k"
            )
        } else {
            line.to_owned()
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.x.org}
spec:
  group: x.org
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
";

const THING: &str = "\
apiVersion: x.org/v1
kind: Thing
metadata: {name: a}
spec:
  size: large
  colour: red
";

#[test]
fn errors_have_their_place_in_the_file_if_asked_for() {
    for command in [&["validate"][..], &["resource", "validate"], &["beta", "validate"]] {
        let flags =
            ["DIR/crd.yaml", "DIR/thing.yaml", "--crossplane-image=", "--cache-dir=DIR/cache"];
        let arguments = [command, &flags, &["--locations=always"]].concat();
        let ran = run_on(&[("crd.yaml", CRD), ("thing.yaml", THING)], &arguments);
        assert_eq!(ran.exit, 1);
        let want = "\
spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"
--> DIR/thing.yaml, document 1, line 5, column 9
 5 |   size: large
   |         ^
spec.colour: Invalid value: \"colour\": unknown field: \"colour\"
--> DIR/thing.yaml, document 1, line 6, column 11
 6 |   colour: red
   |           ^
biplane: error: could not validate all resources
";
        assert_eq!(ran.stderr, want);
        let without = [command, &flags].concat();
        let ran = run_on(&[("crd.yaml", CRD), ("thing.yaml", THING)], &without);
        assert_eq!(ran.stderr, "biplane: error: could not validate all resources\n");
    }
}

/// Each of these ends with a clear error, or with none, and soon.
#[test]
fn odd_schemas_are_told_or_endured() {
    let validate = |crd: &str| {
        let arguments = [
            "validate",
            "DIR/crd.yaml",
            "DIR/thing.yaml",
            "--crossplane-image=",
            "--cache-dir=DIR/c",
        ];
        run_on(&[("crd.yaml", crd), ("thing.yaml", THING)], &arguments)
    };
    let cyclic = CRD.replace("{type: integer}", "{$ref: '#/properties/spec'}");
    let ran = validate(&cyclic);
    assert_eq!(ran.exit, 1);
    assert!(ran.stderr.ends_with("OpenAPIV3Schema '$ref' is not supported\n"), "{}", ran.stderr);

    let definition = "\
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xs.x.org}
spec: {group: x.org, names: {kind: X, plural: xs}}
";
    let ran = validate(definition);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("[!] could not find CRD/XRD for: x.org/v1, Kind=Thing\n"));

    let arguments = [
        "validate",
        "DIR/crd.yaml",
        "DIR/thing.yaml",
        "--crossplane-image=",
        "--cache-dir=DIR/c",
        "--locations=always",
    ];
    let ran = run_on(&[("crd.yaml", definition), ("thing.yaml", THING)], &arguments);
    let want = "biplane: warning: CompositeResourceDefinition \"xs.x.org\" has no versions, so no resource is checked against it\n--> DIR/crd.yaml, document 1, line 4, column 7\n";
    assert!(ran.stderr.starts_with(want), "{}", ran.stderr);

    // 10 MB.
    let description = "x".repeat(160);
    let property =
        |n| format!("              p{n}: {{type: string, description: '{description}'}}\n");
    let properties: String = (0..50_000).map(property).collect();
    let ran = validate(&format!("{CRD}{properties}"));
    assert_eq!(ran.exit, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("spec.size in body must be of type integer"), "{}", ran.stdout);

    let rule = "self.size.map(a, self.size.map(b, self.size.map(c, a + b + c))).size() > 0";
    let costly = CRD.replace("{type: integer}", "{type: array, items: {type: integer}}").replace(
        "            properties:\n              size",
        &format!(
            "            x-kubernetes-validations: [{{rule: \"{rule}\"}}]\n            properties:\n              size"
        ),
    );
    let list: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let thing = THING.replace("large", &format!("[{}]", list.join(",")));
    let arguments =
        ["validate", "DIR/crd.yaml", "DIR/thing.yaml", "--crossplane-image=", "--cache-dir=DIR/c"];
    let ran = run_on(&[("crd.yaml", &costly), ("thing.yaml", &thing)], &arguments);
    assert!(ran.stdout.contains("running out of cost budget"), "{}", ran.stdout);
}
