//! Tests that errors in files show their location: file, document, line, column and the line
//! itself.

use crate::mistakes::{COMPOSITION, FUNCTIONS, XR, render};
use biplane::environment::Environment;

use crate::support::{Folder, example, run, run_on, run_with, run_with_bytes, shown};

/// Renders with one file replaced, and checks the whole error message.
fn shows(file: &str, text: &str, flags: &[&str], error: &str) {
    let ran = render(&[(file, text)], flags);
    let said = ran.stderr.replace("\n                ", "\n");
    assert_eq!(said, format!("biplane: error: {error}\n"), "{file}:\n{text}");
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{error}");
}

/// Broken YAML in each file, with the context that the file's loader adds.
#[test]
fn broken_yaml_is_shown_in_every_kind_of_file() {
    let text = "kind: A\nspec:\n  a: b: c\n";
    let broken = |file: &str| {
        format!(
            "error converting YAML to JSON: yaml: line 3: mapping values are not allowed in this context\n--> DIR/{file}, document 1, line 3, column 7\n 3 |   a: b: c\n   |       ^"
        )
    };
    for (file, flag, attempted) in [
        (
            "xr.yaml",
            "",
            "cannot load composite resource from \"DIR/xr.yaml\": cannot unmarshal composite resource YAML",
        ),
        (
            "composition.yaml",
            "",
            "cannot load Composition from \"DIR/composition.yaml\": cannot unmarshal composition resource YAML",
        ),
        (
            "functions.yaml",
            "",
            "cannot load functions from \"DIR/functions.yaml\": cannot parse YAML Function manifest",
        ),
        (
            "o.yaml",
            "-o=DIR/o.yaml",
            "cannot load observed composed resources from \"DIR/o.yaml\": cannot parse YAML composed resource manifest",
        ),
        (
            "e.yaml",
            "-e=DIR/e.yaml",
            "cannot load required resources from \"DIR/e.yaml\": cannot parse YAML resource manifest",
        ),
        (
            "e.yaml",
            "--extra-resources=DIR/e.yaml",
            "cannot load extra resources from \"DIR/e.yaml\": cannot parse YAML resource manifest",
        ),
        (
            "xrd.yaml",
            "--xrd=DIR/xrd.yaml",
            "cannot load XRD from \"DIR/xrd.yaml\": cannot unmarshal XRD YAML",
        ),
    ] {
        let flags: Vec<_> = [flag].into_iter().filter(|flag| !flag.is_empty()).collect();
        shows(file, text, &flags, &format!("{attempted}: {}", broken(file)));
    }
}

/// The most frequent syntax errors in YAML.
#[test]
fn broken_yaml_is_explained() {
    let attempted = "cannot load observed composed resources from \"DIR/o.yaml\": ";
    let manifest = "cannot parse YAML composed resource manifest: error converting YAML to JSON: ";
    for (text, problem) in [
        (
            "kind: A\n\tname: b\n",
            "yaml: line 2: found a tab character that violates indentation\n--> DIR/o.yaml, document 1, line 2, column 1\n 2 |  name: b\n   | ^",
        ),
        (
            "kind: A\nspec:\n\tname: b\n",
            "yaml: line 3: found character that cannot start any token\n--> DIR/o.yaml, document 1, line 3, column 1\n 3 |  name: b\n   | ^",
        ),
        // The documents of a stream are parsed separately, and the first line is not mentioned.
        (
            "kind: A\n---\nkind: \"B\nspec: {}\n",
            "yaml: line 3: found unexpected end of stream\n--> DIR/o.yaml, document 2, line 3, column 7\n 3 | kind: \"B\n   |       ^",
        ),
        (
            "kind: A\n---\nkind: B: C\n",
            "yaml: mapping values are not allowed in this context\n--> DIR/o.yaml, document 2, line 3, column 8\n 3 | kind: B: C\n   |        ^",
        ),
        (
            "kind: A\nspec:\n  a: b\n c: d\n",
            "yaml: line 3: did not find expected key\n--> DIR/o.yaml, document 1, line 4, column 2\n 4 |  c: d\n   |  ^",
        ),
        (
            "kind: A\nspec: *b\n",
            "yaml: unknown anchor 'b' referenced\n--> DIR/o.yaml, document 1, line 2, column 7\n 2 | spec: *b\n   |       ^",
        ),
        (
            "kind: A\nspec: {{ b }}\n",
            "yaml: invalid map key: map[interface {}]interface {}{\"b\":interface {}(nil)}\n--> DIR/o.yaml, document 1, line 2, column 8: an object cannot be the key of an object\n 2 | spec: {{ b }}\n   |        ^",
        ),
        (
            "kind: A\nspec: .inf\n",
            "json: unsupported value: +Inf\n--> DIR/o.yaml, document 1, line 2, column 7: .inf is not a number that JSON can hold\n 2 | spec: .inf\n   |       ^",
        ),
    ] {
        let error = format!("{attempted}{manifest}{problem}");
        shows("o.yaml", text, &["-o=DIR/o.yaml"], &error);
    }
    let separator = "cannot parse YAML stream: invalid Yaml document separator: B\n--> DIR/o.yaml, document 2, line 2, column 1\n 2 | --- B\n   | ^";
    let error = format!("{attempted}{separator}");
    shows("o.yaml", "kind: A\n--- B\n", &["-o=DIR/o.yaml"], &error);
    shows(
        "unused",
        "",
        &["--context-values=k=a: b: c"],
        "cannot parse context data: cannot unmarshal context value for key \"k\": error converting YAML to JSON: yaml: mapping values are not allowed in this context\n--> k, document 1, line 1, column 5",
    );
}

/// LOAD-2, LOAD-4, LOAD-5, LOAD-6: an empty document has no kind.
#[test]
fn files_without_an_object_are_said_to_have_none() {
    let xrd = "cannot apply XRD defaults to XR \"app\": the specified API version 'example.org/v1' does not exist in the XRD";
    for text in ["", "# nothing\n", "---\n", "null\n"] {
        shows(
            "xr.yaml",
            text,
            &[],
            "composition's compositeTypeRef.kind (XApp) does not match XR's kind ()\n--> DIR/xr.yaml: there is no object in it",
        );
        shows(
            "composition.yaml",
            text,
            &[],
            "cannot load Composition from \"DIR/composition.yaml\": not a composition: /\n--> DIR/composition.yaml: there is no object in it",
        );
        let ran = render(&[("xrd.yaml", text)], &["--xrd=DIR/xrd.yaml"]);
        let warning = "biplane: warning: there is no object in DIR/xrd.yaml\n";
        let place = "                --> DIR/xrd.yaml: there is no object in it\n";
        let error = format!("biplane: error: {xrd}\n{place}");
        assert_eq!((ran.exit, ran.stderr), (1, format!("{warning}{error}")));
        // Files that may have many documents may also have none.
        for flag in ["-o=DIR/o.yaml", "-e=DIR/o.yaml", "--function-credentials=DIR/o.yaml"] {
            let ran = render(&[("o.yaml", text)], &[flag]);
            assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{text:?} {flag}");
        }
        let ran = render(&[("functions.yaml", &format!("{text}---\n{FUNCTIONS}"))], &[]);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{text:?}");
    }
}

/// A document may begin on the line of its separator.
#[test]
fn a_single_object_may_stand_beside_its_separator() {
    let plain = render(&[], &[]);
    let flow = "--- {apiVersion: example.org/v1, kind: XApp, metadata: {name: app}, spec: {}}\n";
    for text in [flow.to_owned(), format!("# first\n{flow}"), format!("{flow}--- {{}}\n")] {
        let ran = render(&[("xr.yaml", &text)], &[]);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{text}");
        assert_eq!(ran.stdout, plain.stdout);
    }
    shows(
        "xr.yaml",
        "# first\n--- {kind: A, b: c: d}\n",
        &[],
        "cannot load composite resource from \"DIR/xr.yaml\": cannot unmarshal composite resource YAML: error converting YAML to JSON: yaml: line 1: did not find expected ',' or '}'\n--> DIR/xr.yaml, document 1, line 2, column 19\n 2 | --- {kind: A, b: c: d}\n   |                   ^",
    );
}

/// Numbers and booleans are accepted as strings, like in upstream's decoder.
#[test]
fn a_text_need_not_be_quoted() {
    let labels = "  name: apps\n  labels:\n    team: 7\n    on: yes\n    share: 0.5\n";
    let composition =
        COMPOSITION.replace("  name: apps\n", labels).replace("step: ready", "step: 5");
    let functions = FUNCTIONS.replace("spec:", "  annotations:\n    example.org/port: 9443\nspec:");
    let plain = render(&[], &[]);
    let files = [("composition.yaml", composition.as_str()), ("functions.yaml", &functions)];
    let ran = render(&files, &[]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran.stdout, plain.stdout);
}

/// LOAD-5, LOAD-6, LOAD-7
#[test]
fn what_has_the_wrong_type_is_shown() {
    let composition = |from: &str, to: &str| COMPOSITION.replace(from, to);
    let unfit = "cannot load Composition from \"DIR/composition.yaml\": cannot unmarshal composition resource YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ";
    for (text, problem) in [
        (
            composition("  - step: ready\n", "  - step: [5]\n"),
            "array into Go struct field PipelineStep.spec.pipeline.step of type string\n--> DIR/composition.yaml, document 1, line 11, column 11: spec.pipeline.0.step must be a string but is a list\n 11 |   - step: [5]\n    |           ^",
        ),
        (
            composition(
                "    functionRef:\n      name: function-auto-ready\n",
                "    functionRef: f\n",
            ),
            "string into Go struct field PipelineStep.spec.pipeline.functionRef of type v1.FunctionReference\n--> DIR/composition.yaml, document 1, line 12, column 18: spec.pipeline.0.functionRef must be an object but is a string\n 12 |     functionRef: f\n    |                  ^",
        ),
        (
            composition(
                "  mode: Pipeline\n  pipeline:\n  - step",
                "  mode: Pipeline\n  pipeline:\n    step",
            ),
            "object into Go struct field CompositionSpec.spec.pipeline of type []v1.PipelineStep\n--> DIR/composition.yaml, document 1, line 10, column 3: spec.pipeline must be a list but is an object\n 10 |   pipeline:\n    |   ^",
        ),
        (
            "- kind: Composition\n".to_owned(),
            "array into Go value of type v1.Composition\n--> DIR/composition.yaml, document 1, line 1, column 1: expected an object but found a list\n 1 | - kind: Composition\n   | ^",
        ),
    ] {
        shows("composition.yaml", &text, &[], &format!("{unfit}{problem}"));
    }
    shows(
        "composition.yaml",
        &COMPOSITION.replace("/v1\nkind: Composition", "/v2\nkind: Composition"),
        &[],
        "cannot load Composition from \"DIR/composition.yaml\": not a composition: Composition/apps\n--> DIR/composition.yaml, document 1, line 1, column 13\n 1 | apiVersion: apiextensions.crossplane.io/v2\n   |             ^",
    );
    let annotated =
        FUNCTIONS.replace("spec:", "  annotations:\n    example.org/port: [9443]\nspec:");
    let functions = "cannot load functions from \"DIR/functions.yaml\": ";
    for (text, problem) in [
        (
            format!("{FUNCTIONS}---\nkind: ConfigMap\nmetadata:\n  name: c\n"),
            "not a function: ConfigMap/c\n--> DIR/functions.yaml, document 2, line 8, column 7\n 8 | kind: ConfigMap\n   |       ^",
        ),
        (
            annotated,
            "cannot parse YAML Function manifest: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go struct field ObjectMeta.metadata.annotations of type string\n--> DIR/functions.yaml, document 1, line 6, column 23: metadata.annotations.example.org/port must be a string but is a list\n 6 |     example.org/port: [9443]\n   |                       ^",
        ),
        (
            "- kind: Function\n".to_owned(),
            "cannot parse YAML Function manifest: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type v1.Function\n--> DIR/functions.yaml, document 1, line 1, column 1: expected an object but found a list\n 1 | - kind: Function\n   | ^",
        ),
    ] {
        shows("functions.yaml", &text, &[], &format!("{functions}{problem}"));
    }
    // For Secrets, only the location is shown.
    let secrets = "cannot load secrets from \"DIR/s.yaml\": cannot parse YAML secret manifest: error unmarshaling JSON: while decoding JSON: ";
    for (text, problem) in [
        (
            "kind: Secret\ndata:\n  key: 5\n",
            "json: cannot unmarshal number into Go struct field Secret.data of type []uint8\n--> DIR/s.yaml, document 1, line 3, column 8: data.key must be a string in base64 but is a number",
        ),
        (
            "kind: Secret\ndata: [key]\n",
            "json: cannot unmarshal array into Go struct field Secret.data of type map[string][]uint8\n--> DIR/s.yaml, document 1, line 2, column 7: data must be an object but is a list",
        ),
        (
            "kind: Secret\ndata:\n  key: '%'\n",
            "illegal base64 data at input byte 0\n--> DIR/s.yaml, document 1, line 3, column 8: data.key is not base64",
        ),
    ] {
        let flags = ["--function-credentials=DIR/s.yaml"];
        shows("s.yaml", text, &flags, &format!("{secrets}{problem}"));
    }
    shows(
        "xr.yaml",
        &XR.replace("name: app", "name: 1"),
        &[],
        "cannot load composite resource from \"DIR/xr.yaml\": cannot unmarshal composite resource YAML: metadata.name must be a string but is a number; put it in quotes\n--> DIR/xr.yaml, document 1, line 4, column 9\n 4 |   name: 1\n   |         ^",
    );
    shows(
        "o.yaml",
        "kind: A\n---\nspec: {}\n",
        &["-o=DIR/o.yaml"],
        "cannot load observed composed resources from \"DIR/o.yaml\": cannot parse YAML composed resource manifest: error unmarshaling JSON: while decoding JSON: Object 'Kind' is missing in '{\"spec\":{}}'\n--> DIR/o.yaml, document 2, line 3, column 1\n 3 | spec: {}\n   | ^",
    );
}

/// LOAD-9
#[test]
fn broken_json_is_shown_too() {
    shows(
        "s/a.json",
        "{\n  \"a\": 1,\n  b: 2\n}\n",
        &["-s=DIR/s"],
        "cannot load required schemas from \"DIR/s\": cannot parse OpenAPI JSON from \"DIR/s/a.json\": key must be a string at line 3 column 3\n--> DIR/s/a.json, document 1, line 3, column 3\n 3 |   b: 2\n   |   ^",
    );
}

const MAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  annotations:
    crossplane.io/composition-resource-name: map
";

/// RE-17
#[test]
fn an_observed_resource_that_is_there_twice_is_shown() {
    let (one, two) = (format!("{MAP}data:\n  k: one\n"), format!("{MAP}data:\n  k: two\n"));
    for (files, there, place) in [
        (
            vec![("o/a.yaml", format!("{one}---\n{two}"))],
            "DIR/o/a.yaml, document 1",
            "DIR/o/a.yaml, document 2, line 13",
        ),
        (
            vec![("o/a.yaml", one.clone()), ("o/b.yaml", two.clone())],
            "DIR/o/a.yaml, document 1",
            "DIR/o/b.yaml, document 1, line 4",
        ),
    ] {
        let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        for format in ["v2", "v1"] {
            let ran = render(&files, &["-o=DIR/o", &format!("--output-format={format}")]);
            assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
            let text = format!(
                "cannot load observed composed resources from \"DIR/o\": observed resource ConfigMap a is there twice, with other content in {there}: keep one of them"
            );
            assert!(ran.stderr.contains(&text), "{}", ran.stderr);
            assert!(ran.stderr.contains(&format!("--> {place}, column ")), "{}", ran.stderr);
        }
    }
}

#[test]
fn observed_resources_that_are_there_twice_but_the_same_are_no_matter() {
    let same = render(&[("o.yaml", &format!("{MAP}---\n{MAP}"))], &["-o=DIR/o.yaml"]);
    assert_eq!((same.exit, same.stderr.as_str()), (0, ""));

    let two = format!("{MAP}---\n{}", MAP.replace("name: a", "name: b"));
    let ran = render(&[("o.yaml", &two)], &["-o=DIR/o.yaml"]);
    assert_eq!(
        (ran.exit, ran.stderr.as_str()),
        (
            0,
            "biplane: warning: observed resources ConfigMap a and ConfigMap b are both \"map\" of the Composition; the last one counts\n"
        )
    );
}

/// LOAD-4, LOAD-5
#[test]
fn two_documents_where_one_is_expected_are_not_passed_over_in_silence() {
    let alone = render(&[], &[]);
    for (file, text) in [("xr.yaml", XR), ("composition.yaml", COMPOSITION)] {
        let ran = render(&[(file, &format!("---\n{text}---\nkind: Other\n"))], &[]);
        let warning = format!(
            "biplane: warning: DIR/{file} holds more than one document; only the first is used\n"
        );
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, warning.as_str()));
        assert_eq!(ran.stdout, alone.stdout);
        // A document that cannot be parsed also counts.
        let ran = render(&[(file, &format!("{text}---\nkind: [Other\n"))], &[]);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, warning.as_str()));
        // A comment alone is not a document.
        let ran = render(&[(file, &format!("---\n{text}---\n# the end\n"))], &[]);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    }
}

/// LOAD-7
#[test]
fn a_secret_written_as_text_is_not_passed_over_in_silence() {
    let secret = "kind: Secret\nmetadata: {namespace: ns, name: s}\nstringData: {k: v}\n";
    let ran = render(&[("s.yaml", secret)], &["--function-credentials=DIR/s.yaml"]);
    let warning = "biplane: warning: stringData of Secret \"s\" in DIR/s.yaml is not used; write it as data, in base64\n";
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, warning));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    for (file, flag, error) in [
        (
            "none",
            "-o=DIR/none",
            "cannot load observed composed resources from \"DIR/none\": cannot load YAML stream from file: cannot open file: open DIR/none: no such file or directory",
        ),
        (
            "none",
            "-e=DIR/none",
            "cannot load required resources from \"DIR/none\": cannot load YAML stream from file: cannot open file: open DIR/none: no such file or directory",
        ),
        (
            "none",
            "-s=DIR/none",
            "cannot load required schemas from \"DIR/none\": cannot walk directory: open DIR/none: no such file or directory",
        ),
    ] {
        shows(&format!("{file}.unused"), "", &[flag], error);
    }
    let folder = Folder::new();
    let composition = folder.write("composition.yaml", COMPOSITION);
    let bytes = folder.at("xr.yaml");
    let xr = bytes.to_str().unwrap();
    for (content, encoding, place) in [
        (&[0xff, 0xfe, b'a'][..], "UTF-16", "line 1, column 1\n 1 | \u{fffd}\n   | ^"),
        (
            b"kind: A\nname: gr\xfcn\n",
            "UTF-8",
            "line 2, column 9\n 2 | name: gr\u{fffd}n\n   |         ^",
        ),
        (b"a: \xc3\xa4\xff", "UTF-8", "line 1, column 5\n 1 | a: \u{e4}\u{fffd}\n   |     ^"),
    ] {
        std::fs::write(&bytes, content).unwrap();
        let ran = run(&["render", xr, &composition]);
        let place = place.replace('\n', "\n                ");
        assert_eq!(
            ran.stderr,
            format!(
                "biplane: error: cannot load composite resource from \"{xr}\": cannot read composite resource file: {xr} is not {encoding} text\n                --> {xr}, document 1, {place}\n"
            )
        );
    }
}

/// LOAD-1
#[test]
fn files_in_utf_16_are_read() {
    let text = "kind: A\nspec:\n  a: b: c\n";
    let units = || std::iter::once(0xfeff).chain(text.encode_utf16());
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    let folder = Folder::new();
    let composition = folder.write("composition.yaml", COMPOSITION);
    let xr = folder.write("xr.yaml", text);
    let expected = run(&["render", &xr, &composition]).stderr;
    assert!(expected.contains("document 1, line 3, column 7\n"), "{expected}");
    let on_stdin = |bytes: &[u8]| {
        run_with_bytes(&["render", "-", &composition], bytes, &Environment::default()).stderr
    };
    for bytes in [little, big] {
        std::fs::write(&xr, &bytes).unwrap();
        assert_eq!(run(&["render", &xr, &composition]).stderr, expected);
        assert_eq!(on_stdin(&bytes), on_stdin(text.as_bytes()));
    }
}

/// The superuser may read every file, so this test needs another user.
#[test]
fn files_that_may_not_be_read_are_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let composition = folder.write("composition.yaml", COMPOSITION);
    let xr = folder.write("xr.yaml", XR);
    std::fs::set_permissions(&xr, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&xr).is_err() {
        let ran = run(&["render", &xr, &composition]);
        assert_eq!(
            (ran.exit, ran.stderr),
            (
                1,
                format!(
                    "biplane: error: cannot load composite resource from \"{xr}\": cannot read composite resource file: open {xr}: permission denied\n"
                )
            )
        );
    }
    // A folder instead of a file is an error for every user.
    for (flag, error) in [
        ("--observed-resources", "cannot load observed composed resources from"),
        ("--required-resources", "cannot load required resources from"),
        ("--function-credentials", "cannot load secrets from"),
    ] {
        let xr = folder.write("good.yaml", XR);
        std::fs::create_dir_all(folder.at("folder/a.yaml/b.yaml")).unwrap();
        let inner = folder.at("folder/a.yaml");
        let ran = run(&["render", &xr, &composition, &format!("{flag}={}", inner.display())]);
        let inner = inner.display();
        let want = format!(
            "biplane: error: {error} \"{inner}\": cannot load YAML stream from file: no YAML files found in \"{inner}\" (.yaml or .yml)\n"
        );
        assert_eq!((ran.exit, ran.stderr), (1, want));
    }
    let directory = folder.at("folder").display().to_string();
    let context = format!("--context-files=k={directory}");
    let ran = run(&["render", &folder.write("good.yaml", XR), &composition, &context]);
    let want = format!(
        "biplane: error: cannot build context data: cannot read context value for key \"k\": read {directory}: is a directory\n"
    );
    assert_eq!((ran.exit, ran.stderr), (1, want));
}

/// LOAD-4: what YAML allows before a single object.
#[test]
fn a_single_object_may_have_directives() {
    let plain = render(&[], &[]);
    for (file, text) in [("xr.yaml", XR), ("composition.yaml", COMPOSITION)] {
        let ran = render(&[(file, &format!("%YAML 1.1\n---\n{text}"))], &[]);
        assert_eq!(ran, plain, "{file}");
    }
}

#[test]
fn a_file_of_context_is_named() {
    let k = "--context-files=k=DIR/k.yaml";
    shows(
        "k.yaml",
        "a: 1\nb: c: d\n",
        &[k],
        "cannot parse context data: cannot unmarshal context value for key \"k\": error converting YAML to JSON: yaml: line 2: mapping values are not allowed in this context\n--> DIR/k.yaml, document 1, line 2, column 5",
    );
    let ran = render(&[("k.yaml", "a: 1\n---\nb: 2\n")], &[k, "-c"]);
    let warning =
        "biplane: warning: DIR/k.yaml holds more than one document; only the first is used\n";
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, warning));
    assert!(ran.stdout.contains("  k:\n    a: 1\n"), "{}", ran.stdout);
}

/// LOAD-3, T-7: files directly in the folder, sorted by name.
#[test]
fn a_folder_stands_for_the_yaml_files_in_it() {
    let named = |name: &str| FUNCTIONS.replace("function-auto-ready\n", &format!("{name}\n"));
    let files = [
        ("f/b.yaml", FUNCTIONS.to_owned()),
        ("f/a.yml", named("other")),
        ("f/c.txt", "not YAML: [".to_owned()),
        ("f/sub/d.yaml", "kind: ConfigMap\n".to_owned()),
        ("o/a.yaml", MAP.to_owned()),
        ("e/a.yaml", MAP.to_owned()),
        ("s/a.yaml", "kind: Secret\ndata: {}\n".to_owned()),
    ];
    let folder = Folder::new();
    for (name, text) in &files {
        folder.write(name, text);
    }
    let (xr, composition) = (folder.write("xr.yaml", XR), folder.write("c.yaml", COMPOSITION));
    let at = |name: &str| folder.at(name).to_str().unwrap().to_owned();
    let [functions, observed, required, secrets] = ["f", "o", "e", "s"].map(at);
    let ran = run(&[
        "render",
        &xr,
        &composition,
        &functions,
        "-o",
        &observed,
        "-e",
        &required,
        "--function-credentials",
        &secrets,
    ]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
}

/// Every argument for a file of documents reads standard input if it is a dash.
#[test]
fn a_dash_is_standard_input_wherever_a_file_is_read() {
    let folder = Folder::new();
    let files = [("xr.yaml", XR), ("composition.yaml", COMPOSITION), ("functions.yaml", FUNCTIONS)];
    let [xr, composition, functions] = files.map(|(name, text)| folder.write(name, text));
    let usual = run(&["render", &xr, &composition, &functions]);
    let definition = "\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: xapps.example.org}
spec:
  group: example.org
  names: {kind: XApp, plural: xapps}
  versions:
  - name: v1
    schema: {openAPIV3Schema: {type: object}}
";
    for (arguments, stdin) in [
        (vec!["-", &composition, &functions], XR),
        (vec![&xr, "-", &functions], COMPOSITION),
        (vec![&xr, &composition, "-"], FUNCTIONS),
        (vec![&xr, &composition, &functions, "-o", "-"], ""),
        (vec![&xr, &composition, &functions, "-e=-"], MAP),
        (vec![&xr, &composition, &functions, "--extra-resources=-"], MAP),
        (vec![&xr, &composition, &functions, "--function-credentials=-"], "kind: Secret\n"),
        (vec![&xr, &composition, &functions, "--context-files=k=-"], "{a: 1}\n"),
        (vec![&xr, &composition, &functions, "--xrd=-"], definition),
        (vec![&composition, &functions, "--xrs=-"], XR),
    ] {
        let arguments: Vec<&str> = [vec!["render"], arguments].concat();
        let ran = run_with(&arguments, stdin);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{arguments:?}");
        assert_eq!(ran.stdout, usual.stdout, "{arguments:?}");
    }
    let ran = run_with(&["render", "-", &composition, &functions], "kind: [A\n");
    assert!(
        ran.stderr.contains("--> standard input, document 1, line 1, column 7"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_documented_mistake_is_shown_as_documented() {
    let file = |name: &str| std::fs::read_to_string(example("first-composition", name)).unwrap();
    let misspelt = file("composition.yaml").replace("kind: Composition", "kind: Compositon");
    let ran = run_on(
        &[
            ("xr.yaml", &file("xr.yaml")),
            ("misspelt.yaml", &misspelt),
            ("functions.yaml", &file("functions.yaml")),
        ],
        &["render", "DIR/xr.yaml", "DIR/misspelt.yaml", "DIR/functions.yaml"],
    );
    let command = "biplane render xr.yaml misspelt.yaml functions.yaml";
    assert_eq!(ran.stderr.replace("DIR/", ""), shown("render.md", command));
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
}

/// A link may lead to a parent, or to unrelated files.
#[test]
fn links_to_directories_are_not_followed() {
    let folder = Folder::new();
    folder.write("elsewhere/broken.yaml", "a: b: c\n");
    folder.write("elsewhere/broken.json", "{");
    for (name, text) in [
        ("xr.yaml", XR),
        ("composition.yaml", COMPOSITION),
        ("functions.yaml", FUNCTIONS),
        ("apis/composition.yaml", &COMPOSITION.replace("name: apps", "name: parts")),
        ("schemas/a.json", "{}"),
    ] {
        folder.write(name, text);
    }
    for directory in ["apis", "schemas"] {
        for (link, target) in [("link", "../elsewhere"), ("up", "..")] {
            std::os::unix::fs::symlink(target, folder.at(directory).join(link)).unwrap();
        }
    }
    let [apis, schemas] = ["apis", "schemas"].map(|name| folder.at(name).display().to_string());
    let ran = folder.render(&["--until-stable", "--compositions", &apis, "-s", &schemas]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
}
