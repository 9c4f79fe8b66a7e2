//! Compares with the real function-go-templating: generated calls, and calls of recorded pipelines.

use std::sync::Arc;

use biplane_function::PureFunction;
use biplane_function::v1::{Requirements, RunFunctionRequest, RunFunctionResponse, Severity};
use biplane_functions::go_templating::GoTemplating;
use biplane_model::yaml;
use biplane_proto::json;
use serde_json::{Map, Value, json};

use crate::recorded::{
    Recording, assert_answers_equal, assert_served_answers_equal, assert_survives_damage, unpack,
};

fn recordings() -> Vec<Recording> {
    unpack(include_bytes!("../data/tmpl.jsonl.gz"))
}

#[test]
fn answers_every_recorded_call_as_the_real_function_did() {
    let recordings = recordings();
    assert_eq!(recordings.len(), 2580);
    assert_answers_equal(&GoTemplating::default(), recordings);
}

#[tokio::test]
async fn answers_the_same_over_the_wire() {
    assert_served_answers_equal(Arc::new(GoTemplating::default()), recordings()).await;
}

#[test]
fn answers_whatever_it_is_asked() {
    assert_survives_damage("function-go-templating", &GoTemplating::default(), &recordings());
}

/// The rows of the specification's table of cases for this function.
fn rows() -> Vec<Map<String, Value>> {
    let page = include_str!("../../../../spec/go-templating.md");
    let (_, section) = page.split_once("### 14.2 Function").unwrap();
    let (_, table) = section.split_once("```yaml\n").unwrap();
    let (table, _) = table.split_once("\n```").unwrap();
    let Value::Array(rows) = yaml::parse_one("table", table).unwrap().value else {
        panic!("a table is a list of rows")
    };
    rows.into_iter().map(|row| row.as_object().unwrap().clone()).collect()
}

/// The request of a row, and the function with its settings.
fn ask(row: &mut Map<String, Value>, folder: &std::path::Path) -> RunFunctionResponse {
    let mut function = GoTemplating::default();
    if let Some(settings) = row.remove("settings") {
        let options = settings["defaultOptions"].as_str().unwrap();
        function = function.with_default_options(options);
    }
    let template = row.remove("tpl").unwrap_or_default();
    let mut input = json!({"source": "Inline", "inline": {"template": template}});
    if let Some(files) = row.remove("files") {
        for (name, text) in files.as_object().unwrap() {
            let path = folder.join("templates").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.as_str().unwrap()).unwrap();
        }
        function = function.with_template_root(folder);
        input = json!({"source": "FileSystem", "fileSystem": {"dirPath": "/templates"}});
    }
    let input = row.remove("input").unwrap_or(input);
    let composite = row.remove("xr").unwrap_or_else(|| {
        json!({
            "apiVersion": "example.org/v1", "kind": "XR",
            "metadata": {"name": "cool-xr"}, "spec": {"count": 2},
        })
    });
    let mut request = json!({"observed": {"composite": {"resource": composite}}});
    if !input.is_null() {
        request["input"] = input;
    }
    for key in ["desired", "context", "requiredResources"] {
        if let Some(value) = row.remove(key) {
            request[key] = value;
        }
    }
    let request: RunFunctionRequest = json::from_value(request).unwrap();
    function.run(request).unwrap()
}

/// What is wrong with a response.
fn complaints(mut want: Map<String, Value>, answer: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, found: &Value, wanted: &Value| {
        if found != wanted {
            wrong.push(format!("{what} is {found} and not {wanted}"));
        }
    };
    let at = |path: &str| answer.pointer(path).cloned().unwrap_or_default();
    let or_empty = |value: Value| if value.is_null() { json!({}) } else { value };
    let message = at("/results/0/message");
    match (want.remove("fatal"), want.remove("fatalContains")) {
        (Some(text), _) => compare("the result", &message, &text),
        (None, Some(part)) => {
            let contains = message.as_str().unwrap_or_default().contains(part.as_str().unwrap());
            compare("a result with that part", &contains.into(), &true.into());
        }
        (None, None) => compare("the result", &message, &Value::Null),
    }
    let resources = or_empty(at("/desired/resources"));
    let resources = resources.as_object().unwrap();
    let ready = |resource: &Value| {
        resource.get("ready").cloned().unwrap_or_else(|| "READY_UNSPECIFIED".into())
    };
    for (key, mut wanted) in want {
        if key == "requirements" {
            // In protobuf JSON, empty fields are left out.
            let message: Requirements = json::from_value(wanted).unwrap();
            wanted = json::to_value(&message).unwrap();
        }
        let found = match key.as_str() {
            "composed" => {
                let objects = resources.iter();
                objects.map(|(name, one)| (name.clone(), one["resource"].clone())).collect()
            }
            "ready" => resources.iter().map(|(name, one)| (name.clone(), ready(one))).collect(),
            "composite" => at("/desired/composite/resource"),
            "status" => at("/desired/composite/resource/status"),
            "xrReady" => ready(&at("/desired/composite")),
            "conditions" => at("/conditions"),
            "context" => or_empty(at("/context")),
            "requirements" => at("/requirements"),
            "connectionDetailsBase64" => or_empty(at("/desired/composite/connectionDetails")),
            "ttlSeconds" => {
                let ttl = at("/meta/ttl");
                let seconds = ttl.as_str().unwrap().trim_end_matches('s');
                seconds.parse::<i64>().unwrap().into()
            }
            // What a template renders is seen only if it is no document.
            "rendered" => continue,
            other => panic!("unknown key {other}"),
        };
        compare(&key, &found, &wanted);
    }
    wrong
}

#[test]
fn composes_as_the_table_of_the_specification_says() {
    let rows = rows();
    assert!(rows.len() > 60, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for mut row in rows {
        let folder = tempfile::tempdir().unwrap();
        let id = row.remove("id").unwrap();
        let want = row.remove("want").unwrap().as_object().unwrap().clone();
        let answer = json::to_value(&ask(&mut row, folder.path())).unwrap();
        assert!(row.is_empty(), "{id}: unknown keys {row:?}");
        let complaints = complaints(want, &answer);
        wrong.extend(complaints.into_iter().map(|text| format!("{id}: {text}\n  in {answer}")));
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// Templates that would take for ever, or all memory.
#[test]
fn hostile_templates_end_with_a_fatal_result() {
    let long = format!("{{{{ $x := 1 }}}}{}", "{{ $x }}".repeat(1 << 17));
    // Each level contains the one before it twice.
    let shared = |more: &str| {
        format!(
            "{{{{ $x := dict }}}}{{{{ range until 30 }}}}{{{{ $x = dict \"a\" $x \"b\" $x }}}}\
             {{{{ end }}}}{more}"
        )
    };
    let (steps, memory) = ("more than 10000000 steps", "more than 268435456 bytes of memory");
    let (output, document) = ("writes more than 16777216 bytes", "larger than 4194304 bytes");
    let json = shared("{{ toJson $x }}");
    let rows = [
        ("{{ range until 10000000 }}{{ . }}{{ end }}", steps),
        ("{{ range $i := until 5000 }}{{ range until 5000 }}{{ end }}{{ end }}", steps),
        ("{{ range until 4000 }}{{ repeat 1000000 \"x\" }}{{ end }}", output),
        ("{{ repeat 2147483647 \"x\" }}", memory),
        ("{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}", "exceeded"),
        ("{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}", "nested"),
        ("{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ toYaml $d }}", "deep"),
        ("{{ $_ := fromYaml (printf \"[%s]\" (repeat 10000000 \"1,\")) }}", memory),
        ("{{ $_ := fromJson (printf \"[%s1]\" (repeat 20000000 \"1,\")) }}", memory),
        ("a: [{{ repeat 30000000 \"1,\" }}]", output),
        ("a: [{{ repeat 4000000 \"1,\" }}]", document),
        ("{\"a\": [{{ repeat 4000000 \"1,\" }}1]}", document),
        (
            "{{ range until 3 }}\n---\nkind: A\na: [{{ repeat 280000 \"{a: 1},\" }}]{{ end }}",
            "more than 268435456 bytes",
        ),
        ("{{ $_ := regexMatch `a{1000}` (repeat 20000000 \"b\") }}", steps),
        ("{{ fail (repeat 1000000 \"x\") }}", "error calling fail"),
        (json.as_str(), steps),
        (long.as_str(), "cannot unmarshal string"),
    ];
    let rows = rows.map(|(template, part)| (template.to_owned(), part));
    let calls = [
        "{{ toYaml $x }}",
        "{{ toString $x }}",
        "{{ quote $x }}",
        "{{ squote $x }}",
        "{{ cat $x }}",
        "{{ join \",\" (list $x) }}",
        "{{ sortAlpha $x }}",
        "{{ sortAlpha (list $x) }}",
        "{{ toStrings (list $x) }}",
        "{{ toDecimal $x }}",
        "{{ dict $x 1 }}",
        "{{ getResourceCondition \"Ready\" (dict \"status\" $x) }}",
        "{{ getCompositeResource (dict \"observed\" (dict \"composite\" (dict \"resource\" $x))) }}",
        "{{ getExtraResources (dict \"extraResources\" (dict \"a\" (dict \"items\" (list $x)))) \"a\" }}",
        "{{ getCredentialData (dict \"context\" $x) \"a\" }}",
    ];
    let mut wrong = Vec::new();
    for (template, part) in rows.into_iter().chain(calls.map(|call| (shared(call), memory))) {
        let request = json!({"input": {"source": "Inline", "inline": {"template": template}}});
        let answer = GoTemplating::default().run(json::from_value(request).unwrap()).unwrap();
        let shown = template.chars().rev().take(100).collect::<Vec<_>>();
        let shown: String = shown.into_iter().rev().collect();
        let [result] = answer.results.as_slice() else {
            wrong.push(format!("{shown}: {} results", answer.results.len()));
            continue;
        };
        let message = result.message.chars().take(200).collect::<String>();
        let fatal = result.severity == Severity::Fatal as i32;
        if !fatal || !result.message.contains(part) || result.message.len() > 300_000 {
            wrong.push(format!("{shown}: {} bytes: {message}", result.message.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is large, but not too large, is answered.
#[test]
fn large_templates_are_answered() {
    let nested = format!("{}{}", "{{ if true }}".repeat(10_000), "{{ end }}".repeat(10_000));
    for template in [nested.as_str(), "{{ $_ := printf \"%2147483647d\" 1 }}"] {
        let request = json!({"input": {"source": "Inline", "inline": {"template": template}}});
        let answer = GoTemplating::default().run(json::from_value(request).unwrap()).unwrap();
        assert_eq!(answer.results, [], "{}", template.chars().take(60).collect::<String>());
    }
}
