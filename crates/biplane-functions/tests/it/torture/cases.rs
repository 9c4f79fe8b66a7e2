//! The inputs that hurt, and what is said about each.

#![allow(clippy::needless_pass_by_value)] // requests read better without borrows

use std::sync::Arc;

use biplane_function::Function;
use biplane_function::v1::RunFunctionRequest;
use biplane_functions::auto_ready::AutoReady;
use biplane_functions::environment_configs::EnvironmentConfigs;
use biplane_functions::go_templating::GoTemplating;
use biplane_functions::patch_and_transform::PatchAndTransform;
use biplane_proto::json;
use serde_json::{Map, Value, json};

#[derive(Clone, Copy)]
enum Called {
    Patches,
    Ready,
    Environment,
    Templates,
}

/// An input that hurt.
pub(super) struct Case {
    pub(super) name: &'static str,
    called: Called,
    pub(super) request: fn() -> RunFunctionRequest,
    /// What the fatal result says, or nothing if it is answered.
    says: &'static str,
    /// Whether copies of it take long to make.
    pub(super) heavy: bool,
}

impl Case {
    pub(super) fn function(&self) -> Arc<dyn Function> {
        match self.called {
            Called::Patches => Arc::new(PatchAndTransform::default()),
            Called::Ready => Arc::new(ready()),
            Called::Environment => Arc::new(EnvironmentConfigs),
            Called::Templates => Arc::new(GoTemplating::default()),
        }
    }

    /// The program of the original, by its upstream name, and the flags that turn on what is tried.
    pub(super) fn original(&self) -> (&'static str, &'static [&'static str]) {
        match self.called {
            Called::Patches => ("function-patch-and-transform", &[]),
            Called::Ready => {
                ("function-auto-ready", &["--feature-gates=CELHealthcheckCustomizations=true"])
            }
            Called::Environment => ("function-environment-configs", &[]),
            Called::Templates => ("function-go-templating", &[]),
        }
    }

    pub(super) fn expects(&self, verdict: &str) -> bool {
        match self.says {
            "" => verdict == "answered",
            says => says.split('…').all(|part| verdict.contains(part)),
        }
    }
}

fn ready() -> AutoReady {
    AutoReady::default().with_feature_gates("AllAlpha=true").unwrap()
}

pub(super) fn functions() -> Vec<Arc<dyn Function>> {
    vec![
        Arc::new(PatchAndTransform::default()),
        Arc::new(ready()),
        Arc::new(EnvironmentConfigs),
        Arc::new(GoTemplating::default()),
    ]
}

const BYTES: &str = "a call may make 128 MiB of values, and this one needs more";
const STEPS: &str = "a call may take 200000000 steps, and this one needs more";

pub(super) const MANY_SETS: &str = "a patch set of 2,000 patches in 2,000 templates";

pub(super) fn all() -> Vec<Case> {
    use Called::{Environment, Patches, Ready, Templates};
    let case = |name, called, request, says, heavy| Case { name, called, request, says, heavy };
    vec![
        case(
            "a format of ten million characters, 200 times",
            Patches,
            wide_formats,
            "patch at index 0: transform at index 0 returned error: string transform could not resolve: …a call may make 128 MiB",
            false,
        ),
        case(
            "100 regular expressions of a thousand letters each",
            Patches,
            many_patterns,
            "the regular expressions of an input may take 64 MiB when compiled",
            false,
        ),
        case("a regular expression of a hundred letters", Patches, one_pattern, "", false),
        case("a search for 2,000 repetitions in a megabyte", Patches, long_search, STEPS, true),
        case("a replacement of every character by a megabyte", Patches, replacements, BYTES, true),
        case("a search text that almost matches everywhere", Patches, near_misses, "", true),
        case("a list joined by a megabyte", Patches, joins, BYTES, true),
        case("a text that doubles with every patch", Patches, doubling, BYTES, false),
        case(MANY_SETS, Patches, many_sets, "composed resource…may", true),
        case(
            "a megabyte copied into 1,000 templates",
            Patches,
            copies,
            "composed resource…a call may make 128 MiB",
            true,
        ),
        case("5,000 numbers appended to a list 200 times", Patches, appended, "", true),
        case(
            "a patch into every item of an array, 1,000 times",
            Patches,
            wildcards,
            "composed resource…may",
            true,
        ),
        case(
            "indexes of a thousand, 50 deep, in 2,000 templates",
            Patches,
            deep_indexes,
            BYTES,
            true,
        ),
        case("a warning of a megabyte for each of 1,000 patches", Patches, long_names, BYTES, true),
        case("a megabyte of JSON that is objects only", Patches, json_objects, BYTES, true),
        case(
            "a rule that doubles a list 24 times",
            Ready,
            doubling_rule,
            "cannot evaluate celHealthCheckCustomization \"acme.example_v1_Thing\": operation cancelled: actual cost limit exceeded",
            false,
        ),
        case(
            "a rule of nested loops for 100 resources",
            Ready,
            nested_rule,
            "actual cost limit exceeded",
            false,
        ),
        case("a rule with 100 errors for 1,000 resources", Ready, wrong_rule, BYTES, false),
        case(
            "a rule with a pattern of a thousand letters",
            Ready,
            pattern_rule,
            "actual cost limit exceeded",
            false,
        ),
        case(
            "indexes of a thousand, 200 deep, in 300 sources",
            Environment,
            deep_sources,
            BYTES,
            true,
        ),
        case(
            "a template of a megabyte",
            Templates,
            || template(&format!("{{{{ $x := 1 }}}}{}", "{{ $x }}".repeat(1 << 17))),
            "cannot unmarshal string",
            true,
        ),
        case(
            "a template that nests 10,000 deep",
            Templates,
            || template(&format!("{}{}", "{{if true}}".repeat(10_000), "{{end}}".repeat(10_000))),
            "",
            true,
        ),
        case(
            "ten million rounds",
            Templates,
            || template("{{ range until 10000000 }}{{ . }}{{ end }}"),
            "the template takes more than 10000000 steps",
            false,
        ),
        case(
            "loops in loops in loops",
            Templates,
            || template(&format!("{}{}", "{{range until 5000}}".repeat(3), "{{end}}".repeat(3))),
            "the template takes more than 10000000 steps",
            false,
        ),
        case(
            "a gigabyte of output",
            Templates,
            || template("{{ range until 1000 }}{{ repeat 1000000 \"x\" }}{{ end }}"),
            "the template writes more than 16777216 bytes",
            false,
        ),
        case(
            "a letter two billion times",
            Templates,
            || template("{{ repeat 2147483647 \"x\" }}"),
            "the template needs more than 268435456 bytes of memory",
            false,
        ),
        case(
            "a number two billion characters wide",
            Templates,
            || template("{{ $_ := printf \"%2147483647d\" 1 }}"),
            "",
            false,
        ),
        case(
            "a map that contains itself twice, 30 deep",
            Templates,
            || {
                template(
                    "{{ $x := dict }}{{ range until 30 }}{{ $x = dict \"a\" $x \"b\" $x }}\
                     {{ end }}{{ toYaml $x }}",
                )
            },
            "the template needs more than 268435456 bytes of memory",
            false,
        ),
        case(
            "a template that includes itself",
            Templates,
            || template("{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}"),
            "error calling include: template: manifests:1:19",
            false,
        ),
    ]
}

fn request(value: Value) -> RunFunctionRequest {
    json::from_value(value).unwrap()
}

fn template(text: &str) -> RunFunctionRequest {
    request(json!({"input": {"source": "Inline", "inline": {"template": text}}}))
}

fn base() -> Value {
    json!({"apiVersion": "acme.example/v1", "kind": "Thing", "spec": {"list": []}})
}

/// A request with one template that has these patches, and a composite resource with this spec.
fn patches(spec: &Value, patches: Vec<Value>) -> RunFunctionRequest {
    templates(spec, &json!({}), vec![json!({"name": "r", "base": base(), "patches": patches})])
}

fn templates(spec: &Value, more: &Value, templates: Vec<Value>) -> RunFunctionRequest {
    let mut input = json!({"resources": templates});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request(json!({
        "observed": {"composite": {"resource": {
            "apiVersion": "example.org/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec,
        }}},
        "input": input,
    }))
}

fn string(config: Value) -> Value {
    json!([{"type": "string", "string": config}])
}

fn patch(to: &str, transforms: Value) -> Value {
    json!({"fromFieldPath": "spec.a", "toFieldPath": to, "transforms": transforms})
}

pub(super) fn usual() -> RunFunctionRequest {
    let format = string(json!({"type": "Format", "fmt": "%s!"}));
    patches(&json!({"a": "text"}), vec![patch("spec.b", format)])
}

fn megabyte() -> String {
    "a".repeat(1 << 20)
}

fn wide_formats() -> RunFunctionRequest {
    let format = string(json!({"type": "Format", "fmt": "%9999999[1]s".repeat(200)}));
    patches(&json!({"a": "x"}), vec![patch("spec.b", format)])
}

fn many_patterns() -> RunFunctionRequest {
    let pattern =
        |n: usize| json!({"type": "regexp", "regexp": format!(r"^\pL{{999}}{n}$"), "result": n});
    let patterns: Vec<Value> = (0..100).map(pattern).collect();
    let transforms = json!([{"type": "match", "match": {"patterns": patterns}}]);
    patches(
        &json!({"a": 1}),
        vec![
            json!({"fromFieldPath": "metadata.name", "toFieldPath": "spec.b", "transforms": transforms,
            "policy": {"fromFieldPath": "Required"}}),
        ],
    )
}

fn one_pattern() -> RunFunctionRequest {
    // Ten times as many fit, but tests run without optimization.
    let pattern = string(json!({"type": "Regexp", "regexp": {"match": r"^\pL{100}$|x"}}));
    patches(&json!({"a": "x"}), vec![patch("spec.b", pattern)])
}

fn long_search() -> RunFunctionRequest {
    let pattern = string(json!({"type": "Regexp", "regexp": {"match": "(a?){1000}(a?){1000}z"}}));
    patches(&json!({"a": megabyte()}), vec![patch("spec.b", pattern)])
}

fn replacements() -> RunFunctionRequest {
    let replace = json!({"type": "Replace", "replace": {"search": "a", "replace": megabyte()}});
    patches(&json!({"a": megabyte()}), vec![patch("spec.b", string(replace))])
}

fn near_misses() -> RunFunctionRequest {
    let search = "a".repeat(1 << 19) + "b";
    let replace = json!({"type": "Replace", "replace": {"search": search, "replace": ""}});
    patches(&json!({"a": megabyte()}), vec![patch("spec.b", string(replace))])
}

fn joins() -> RunFunctionRequest {
    let join = json!({"type": "Join", "join": {"separator": megabyte()}});
    patches(&json!({"a": vec!["x"; 100_000]}), vec![patch("spec.b", string(join))])
}

fn doubling() -> RunFunctionRequest {
    let double = json!({"type": "string", "string": {"type": "Format", "fmt": "%[1]s%[1]s"}});
    patches(&json!({"a": "xx"}), vec![patch("spec.b", Value::from(vec![double; 30]))])
}

fn many_sets() -> RunFunctionRequest {
    let set: Vec<Value> = (0..2_000).map(|n| patch(&format!("spec.f{n}.g"), Value::Null)).collect();
    let template = |n: usize| {
        json!({"name": format!("r{n}"), "base": base(),
            "patches": [{"type": "PatchSet", "patchSetName": "s"}]})
    };
    let more = json!({"patchSets": [{"name": "s", "patches": set}]});
    templates(&json!({"a": 1}), &more, (0..2_000).map(template).collect())
}

fn copies() -> RunFunctionRequest {
    let template = |n: usize| json!({"name": format!("r{n}"), "base": base(), "patches": [patch("spec.b", Value::Null)]});
    templates(&json!({"a": megabyte()}), &json!({}), (0..1_000).map(template).collect())
}

fn appended() -> RunFunctionRequest {
    let append = json!({"fromFieldPath": "spec.a", "toFieldPath": "spec.list",
        "policy": {"toFieldPath": "AppendArray"}});
    let items: Vec<usize> = (0..5_000).collect();
    patches(&json!({"a": items}), vec![append; 200])
}

fn wildcards() -> RunFunctionRequest {
    let mut base = base();
    base["spec"]["list"] = Value::from(vec![json!({}); 1_000]);
    let patches = vec![patch("spec.list[*]", Value::Null); 1_000];
    let template = json!({"name": "r", "base": base, "patches": patches});
    templates(&json!({"a": "x".repeat(1_000)}), &json!({}), vec![template])
}

fn deep_indexes() -> RunFunctionRequest {
    let path = format!("spec.x{}", "[1000]".repeat(50));
    let set = json!([patch(&path, Value::Null)]);
    let template = |n: usize| {
        json!({"name": format!("r{n}"), "base": base(),
            "patches": [{"type": "PatchSet", "patchSetName": "s"}]})
    };
    let more = json!({"patchSets": [{"name": "s", "patches": set}]});
    templates(&json!({"a": 1}), &more, (0..2_000).map(template).collect())
}

fn long_names() -> RunFunctionRequest {
    let name = megabyte();
    let required = json!({"fromFieldPath": "spec.missing", "toFieldPath": "spec.b",
        "policy": {"fromFieldPath": "Required"}});
    let template = json!({"name": name, "base": base(), "patches": vec![required; 1_000]});
    let mut request = templates(&json!({"a": 1}), &json!({}), vec![template]);
    let observed = request.observed.get_or_insert_default();
    let resource = biplane_function::Object::from_value(base()).unwrap();
    let resource =
        biplane_function::v1::Resource { resource: Some(resource.into()), ..Default::default() };
    observed.resources.insert(name, resource);
    request
}

fn json_objects() -> RunFunctionRequest {
    let text = format!("[{}]", vec![r#"{"a":0}"#; 250_000].join(","));
    let convert = json!([{"type": "convert", "convert": {"toType": "array", "format": "json"}}]);
    patches(&json!({"a": text}), vec![patch("spec.b", convert)])
}

/// A request with one rule and that many resources of its kind.
fn ruled(rule: &str, count: usize) -> RunFunctionRequest {
    let thing = json!({"apiVersion": "acme.example/v1", "kind": "Thing", "spec": {"text": "x"}});
    let of = |resource: &Value| -> Map<String, Value> {
        (0..count).map(|n| (format!("r{n}"), json!({"resource": resource}))).collect()
    };
    request(json!({
        "input": {"celHealthCheckCustomization": {"acme.example_v1_Thing": rule}},
        "observed": {"resources": of(&thing)},
        "desired": {"resources": of(&json!({}))},
    }))
}

fn doubling_rule() -> RunFunctionRequest {
    let list = (0..24).fold("[1,1]".to_owned(), |v, _| format!("[{v}].map(x,x+x)[0]"));
    ruled(&format!("size({list}) > 0"), 1)
}

fn nested_rule() -> RunFunctionRequest {
    let list = "[0,1,2,3,4,5,6,7,8,9]";
    let rule = (0..8).fold("true".to_owned(), |rule, n| format!("{list}.all(x{n}, {rule})"));
    ruled(&rule, 100)
}

fn wrong_rule() -> RunFunctionRequest {
    ruled(&"#".repeat(20_000), 1_000)
}

fn pattern_rule() -> RunFunctionRequest {
    ruled(r"object.spec.text.matches('\\pL{999}' + object.spec.text + '|\\pL{200}')", 10)
}

fn deep_sources() -> RunFunctionRequest {
    let path = |n: usize| format!("f{n}{}", "[1000]".repeat(200));
    let sources: Vec<Value> = (0..300)
        .map(|n| json!({"type": "Reference", "ref": {"name": "c"}, "toFieldPath": path(n)}))
        .collect();
    let found: Map<String, Value> = (0..300)
        .map(|n| {
            let config = json!({"metadata": {"name": "c"}, "data": {"k": "v"}});
            (format!("environment-config-{n}"), json!({"items": [{"resource": config}]}))
        })
        .collect();
    request(json!({
        "input": {"spec": {"environmentConfigs": sources}}, "requiredResources": found,
    }))
}
