//! A recorded run as files that `render` takes: what its pipeline was given, and what it desired.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use biplane_model::yaml;
use serde_json::{Map, Value, json};

use super::archive::Error;
use super::record::{OPERATIONS, ObjectRef, Outcome, Run, Step};
use super::replay::{redacted, unrecorded};
use super::{print, state};

/// The annotation that has the name of a composed resource.
const RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";

/// The annotation that says where `render` runs a function.
const RUNTIME: &str = "render.crossplane.io/runtime";

/// Files with their names, and how to use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// Names and contents.
    pub files: Vec<(String, String)>,
    /// The arguments of `biplane` that render them, in their folder.
    pub command: Vec<String>,
    /// What a reader must know: what was redacted, and what was not recorded.
    pub notes: Vec<String>,
}

/// Says which function of the box a name means, if it is one.
pub type InBox<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Makes the files of a run.
pub fn case(run: &Run, in_box: &InBox<'_>) -> Result<Case, Error> {
    let calls = run.last_calls();
    let (Some(first), Some(last)) = (calls.first(), calls.last()) else {
        return Err(Error::NotFound("no step of this run was recorded".to_owned()));
    };
    let has_gap = calls.iter().zip(0..).any(|(step, index)| step.index != index);
    if has_gap || calls.iter().any(|step| step.request.is_none()) {
        let reason = "a request of this run was not recorded, so its pipeline is not known";
        return Err(Error::NotFound(reason.to_owned()));
    }
    let mut made = Maker { case: Case::default(), required: BTreeMap::new(), secrets: Vec::new() };
    let pipeline: Vec<Value> = calls.iter().map(|step| made.step(run, step)).collect();
    let is_operation = run.head.owner.is_operation();
    if is_operation {
        made.operation(run, &pipeline);
    } else {
        made.composite(run, &pipeline)?;
    }
    made.functions(&calls, in_box);
    if is_operation {
        let names = ["operation", "render", "operation.yaml", "functions.yaml"];
        made.case.command = names.map(str::to_owned).to_vec();
    } else {
        let names = ["render", "xr.yaml", "composition.yaml", "functions.yaml"];
        made.case.command = names.map(str::to_owned).to_vec();
        made.observed(run);
    }
    made.beside(first);
    made.expected(run, last);
    Ok(made.finish(run))
}

struct Maker {
    case: Case,
    /// What steps were given because they required it, by name.
    required: BTreeMap<ObjectRef, Value>,
    /// The credentials of steps.
    secrets: Vec<Value>,
}

/// A copy in which whole numbers are written as such.
fn whole(value: &Value) -> Value {
    let mut value = value.clone();
    print::whole_numbers(&mut value);
    value
}

fn fields<'a>(value: Option<&'a Value>, name: &str) -> Vec<(&'a String, &'a Value)> {
    let found = value.and_then(|value| value.get(name)).and_then(Value::as_object);
    found.into_iter().flatten().collect()
}

fn items(required: &Value) -> Vec<&Value> {
    let list = required.get("items").and_then(Value::as_array);
    list.into_iter().flatten().map(state::body).collect()
}

/// The name of a step. Some emitters do not tell it.
fn step_name(step: &Step) -> String {
    if step.name.is_empty() { format!("step-{}", step.index + 1) } else { step.name.clone() }
}

impl Maker {
    fn file(&mut self, name: &str, documents: &[Value]) {
        self.case.files.push((name.to_owned(), yaml::write_documents(documents)));
    }

    fn note(&mut self, text: String) {
        self.case.notes.push(text);
    }

    /// A step of a pipeline, as a Composition has it.
    fn step(&mut self, run: &Run, last: &Step) -> Value {
        let name = step_name(last);
        let mut step = json!({"step": name, "functionRef": {"name": last.function}});
        let set = |step: &mut Value, field: &str, value: Value| {
            if let Some(fields) = step.as_object_mut() {
                fields.insert(field.to_owned(), value);
            }
        };
        let request = last.request.as_ref();
        if let Some(input) = request.and_then(|request| request.get("input")) {
            set(&mut step, "input", whole(input));
        }
        let mut credentials = Vec::new();
        for (credential, value) in fields(request, "credentials") {
            let secret = format!("{name}-{credential}");
            credentials.push(json!({
                "name": credential,
                "source": "Secret",
                "secretRef": {"namespace": "default", "name": secret},
            }));
            let data = value.pointer("/credentialData/data").cloned().unwrap_or_else(|| json!({}));
            self.secrets.push(json!({
                "apiVersion": "v1", "kind": "Secret", "data": data,
                "metadata": {"namespace": "default", "name": secret},
            }));
        }
        if !credentials.is_empty() {
            set(&mut step, "credentials", credentials.into());
        }
        let calls: Vec<&Step> = run.steps.iter().filter(|s| s.index == last.index).collect();
        for call in &calls {
            for part in ["requiredResources", "extraResources"] {
                for (_, required) in fields(call.request.as_ref(), part) {
                    for object in items(required) {
                        self.required.insert(ObjectRef::of_object(object), whole(object));
                    }
                }
            }
        }
        let bootstrap = calls.first().map(|first| self.bootstrap(first)).unwrap_or_default();
        if !bootstrap.is_empty() {
            set(&mut step, "requirements", json!({"requiredResources": bootstrap}));
        }
        if !fields(request, "requiredSchemas").is_empty() {
            let text =
                "was given schemas; give render their OpenAPI documents with --required-schemas";
            self.note(format!("Step {name} {text}."));
        }
        if calls.len() == 1 {
            let lacking = unrecorded(last);
            if !lacking.is_empty() {
                let lacking = lacking.join(", ");
                let text =
                    "which were fetched while it ran and not recorded; add them to required.yaml";
                self.note(format!("Step {name} required {lacking}, {text}."));
            }
        }
        step
    }

    /// What the Composition requires for a step before it is called: what the first call was given
    /// and the function does not ask for itself.
    fn bootstrap(&mut self, first: &Step) -> Vec<Value> {
        let answer = first.response.as_ref().and_then(|response| response.get("requirements"));
        let asked: BTreeSet<&String> = ["resources", "extraResources"]
            .into_iter()
            .flat_map(|part| fields(answer, part))
            .map(|(name, _)| name)
            .collect();
        let mut found = Vec::new();
        for (name, required) in fields(first.request.as_ref(), "requiredResources") {
            if asked.contains(name) {
                continue;
            }
            if let Some(selector) = selector(name, &items(required)) {
                found.push(selector);
            } else {
                let step = step_name(first);
                let text = "found nothing, so what it looks for is not known and it is left out";
                self.note(format!("Requirement {name} of step {step} {text}."));
            }
        }
        found
    }

    fn composite(&mut self, run: &Run, pipeline: &[Value]) -> Result<(), Error> {
        let missing =
            || Error::NotFound("the composite resource of this run was not recorded".to_owned());
        let xr = state::slot(run.observed(), state::COMPOSITE).ok_or_else(missing)?;
        let body = whole(state::body(xr));
        if !body.is_object() {
            return Err(missing());
        }
        if !fields(Some(xr), "connectionDetails").is_empty() {
            let text = "The composite resource had connection details, which render does not take.";
            self.note(text.to_owned());
        }
        let owner = ObjectRef::of_object(&body);
        let name = match run.head.composition.as_str() {
            "" => "recorded",
            name => name,
        };
        let composition = json!({
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "Composition",
            "metadata": {"name": name},
            "spec": {
                "compositeTypeRef": {"apiVersion": owner.api_version, "kind": owner.kind},
                "mode": "Pipeline",
                "pipeline": pipeline,
            },
        });
        self.file("xr.yaml", &[body]);
        self.file("composition.yaml", &[composition]);
        Ok(())
    }

    fn operation(&mut self, run: &Run, pipeline: &[Value]) {
        let operation = json!({
            "apiVersion": OPERATIONS,
            "kind": "Operation",
            "metadata": {"name": run.head.owner.name},
            "spec": {"mode": "Pipeline", "pipeline": pipeline},
        });
        self.file("operation.yaml", &[operation]);
    }

    fn functions(&mut self, calls: &[&Step], in_box: &InBox<'_>) {
        let names: BTreeSet<&String> = calls.iter().map(|step| &step.function).collect();
        let mut documents = Vec::new();
        for name in names {
            let mut metadata = json!({"name": name});
            let known = in_box(name);
            if known.is_some() {
                metadata["annotations"] = json!({RUNTIME: "InProcess"});
            } else {
                let text =
                    "is not in the box: set its package, or where it runs, in functions.yaml";
                self.note(format!("Function {name} {text}."));
            }
            documents.push(json!({
                "apiVersion": "pkg.crossplane.io/v1",
                "kind": "Function",
                "metadata": metadata,
                "spec": {"package": known.as_ref().unwrap_or(name)},
            }));
        }
        self.file("functions.yaml", &documents);
    }

    fn observed(&mut self, run: &Run) {
        let mut documents = Vec::new();
        for (name, slot) in state::slots(run.observed()) {
            if name.is_empty() {
                continue;
            }
            if !fields(Some(slot), "connectionDetails").is_empty() {
                let text = "had connection details, which render does not take";
                self.note(format!("Composed resource {name} {text}."));
            }
            documents.push(named(name, state::body(slot)));
        }
        if !documents.is_empty() {
            self.file("observed.yaml", &documents);
            self.case.command.push("--observed-resources=observed.yaml".to_owned());
        }
    }

    /// Required resources, credentials and context.
    fn beside(&mut self, first: &Step) {
        let required: Vec<Value> = std::mem::take(&mut self.required).into_values().collect();
        if !required.is_empty() {
            self.file("required.yaml", &required);
            self.case.command.push("--required-resources=required.yaml".to_owned());
        }
        let secrets = std::mem::take(&mut self.secrets);
        if !secrets.is_empty() {
            self.file("credentials.yaml", &secrets);
            self.case.command.push("--function-credentials=credentials.yaml".to_owned());
        }
        let context = fields(first.request.as_ref(), "context");
        let mut pairs = Vec::new();
        for (number, (key, value)) in context.into_iter().enumerate() {
            let file = format!("context-{}.yaml", number + 1);
            self.file(&file, &[whole(value)]);
            pairs.push(format!("{key}={file}"));
        }
        if !pairs.is_empty() {
            self.case.command.push(format!("--context-files={}", pairs.join(";")));
        }
    }

    /// What the run desired, unless it failed.
    fn expected(&mut self, run: &Run, last: &Step) {
        if !matches!(run.head.outcome, Outcome::Ok | Outcome::Warning) {
            let label = format!("{} {}", last.index + 1, step_name(last));
            self.note(format!("The run ended at step {label}, so nothing is expected."));
            return;
        }
        let mut documents = Vec::new();
        for (name, slot) in state::slots(run.desired()) {
            if !state::body(slot).is_object() {
                // It has readiness or connection details alone.
                continue;
            }
            if name.is_empty() {
                // Functions may leave out what they do not set.
                let mut body = whole(state::body(slot));
                let owner = &run.head.owner;
                if let Some(fields) = body.as_object_mut() {
                    let mut add = |name: &str, value: &str| {
                        fields.entry(name.to_owned()).or_insert_with(|| value.into());
                    };
                    add("apiVersion", &owner.api_version);
                    add("kind", &owner.kind);
                }
                documents.push(body);
            } else {
                documents.push(named(name, state::body(slot)));
            }
        }
        if documents.is_empty() {
            self.note("The run desired nothing.".to_owned());
        } else {
            self.file("expected.yaml", &documents);
        }
    }

    fn finish(mut self, run: &Run) -> Case {
        let mut paths = BTreeSet::new();
        for step in &run.steps {
            paths.extend(step.request.iter().flat_map(redacted));
        }
        for path in paths {
            self.case.notes.push(format!("Redacted, so a marker stands for it: {path}."));
        }
        let owner = &run.head.owner;
        let mut text = format!("# {} {}\n\n", owner.kind, owner.name);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Made of the recorded run {}. Render it with:\n", run.head.trace);
        let _ = writeln!(text, "```sh\nbiplane {}\n```", self.case.shell_words().join(" "));
        if self.case.files.iter().any(|(name, _)| name == "expected.yaml") {
            text.push_str(
                "\n`expected.yaml` has what the functions desired. Rendered resources also have what the control plane \
                 adds: names, labels and owners.\n",
            );
        }
        if !self.case.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.case.notes {
            let _ = writeln!(text, "- {note}");
        }
        self.case.files.push(("README.md".to_owned(), text));
        self.case
    }
}

impl Case {
    /// The arguments as one types them into a shell.
    pub fn shell_words(&self) -> Vec<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:@".contains(c);
        let word = |word: &String| {
            if word.chars().all(is_plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', "'\\''"))
            }
        };
        self.command.iter().map(word).collect()
    }
}

/// A composed resource with the name that the pipeline has for it.
fn named(name: &str, body: &Value) -> Value {
    let mut body = whole(body);
    let Some(fields) = body.as_object_mut() else { return body };
    let below = |fields: &mut Map<String, Value>, field: &str| {
        let value = fields.entry(field.to_owned()).or_insert_with(|| json!({}));
        if !value.is_object() {
            *value = json!({});
        }
    };
    below(fields, "metadata");
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        below(metadata, "annotations");
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.insert(RESOURCE_NAME.to_owned(), name.into());
        }
    }
    body
}

/// A selector that finds these objects: one by name, several by what their labels have in common.
/// `None` if there are no objects.
fn selector(name: &str, objects: &[&Value]) -> Option<Value> {
    let first = ObjectRef::of_object(objects.first()?);
    let mut found = json!({
        "requirementName": name, "apiVersion": first.api_version, "kind": first.kind,
    });
    let is_in_one_namespace =
        objects.iter().all(|object| ObjectRef::of_object(object).namespace == first.namespace);
    if !first.namespace.is_empty() && is_in_one_namespace {
        found["namespace"] = first.namespace.into();
    }
    if let [_] = objects {
        found["name"] = first.name.into();
        return Some(found);
    }
    let labels = |object: &Value| -> Map<String, Value> {
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        labels.cloned().unwrap_or_default()
    };
    let mut common = labels(objects.first()?);
    for object in objects {
        let own = labels(object);
        common.retain(|key, value| own.get(key) == Some(value));
    }
    found["matchLabels"] = Value::Object(common);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(request: Value, response: Value) -> Run {
        let step = Step {
            name: "compose".into(),
            function: "function-x".into(),
            request: Some(request),
            response: Some(response),
            asked: true,
            answered: true,
            ..Step::default()
        };
        let owner = ObjectRef {
            api_version: "example.org/v1".into(),
            kind: "Store".into(),
            name: "north".into(),
            ..ObjectRef::default()
        };
        Run::of_steps("trace".into(), owner, "stores".into(), vec![step])
    }

    fn file<'a>(case: &'a Case, name: &str) -> &'a str {
        case.files.iter().find(|(file, _)| file == name).map_or("", |(_, text)| text)
    }

    #[test]
    fn a_run_becomes_the_files_of_render() {
        let config = |name: &str| {
            json!({"resource": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "a", "labels": {"team": "a", "is": name}}}})
        };
        let request = json!({
            "observed": {
                "composite": {"resource": {"apiVersion": "example.org/v1", "kind": "Store",
                    "metadata": {"name": "north"}, "spec": {"size": 3.0}}},
                "resources": {"bucket": {"resource": {"kind": "Bucket", "metadata": {"name": "b"}}}},
            },
            "input": {"kind": "Input"},
            "context": {"example.org/a b": {"x": 1}},
            "credentials": {"login": {"credentialData": {"data": {"password": "KipSRURBQ1RFRCoq"}}}},
            "requiredResources": {
                "one": {"items": [config("x")]},
                "many": {"items": [config("y"), config("z")]},
                "none": {},
                "asked": {"items": [config("w")]},
            },
        });
        let response = json!({
            "desired": {
                "composite": {"resource": {"status": {"ok": true}}},
                "resources": {"bucket": {"resource": {"kind": "Bucket"}, "ready": "READY_TRUE"}},
            },
            "requirements": {"resources": {"asked": {"kind": "ConfigMap"}, "later": {"kind": "Secret"}}},
        });
        let case = case(&run(request, response), &|_| None).unwrap();
        let names: Vec<&str> = case.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "xr.yaml",
                "composition.yaml",
                "functions.yaml",
                "observed.yaml",
                "required.yaml",
                "credentials.yaml",
                "context-1.yaml",
                "expected.yaml",
                "README.md",
            ]
        );
        assert!(file(&case, "xr.yaml").contains("size: 3\n"));
        let composition: Value =
            yaml::read_document(file(&case, "composition.yaml").as_bytes()).unwrap();
        let step = &composition["spec"]["pipeline"][0];
        assert_eq!(step["step"], "compose");
        assert_eq!(
            step["requirements"]["requiredResources"],
            json!([
                {"requirementName": "many", "apiVersion": "v1", "kind": "ConfigMap", "namespace": "a",
                    "matchLabels": {"team": "a"}},
                {"requirementName": "one", "apiVersion": "v1", "kind": "ConfigMap", "namespace": "a",
                    "name": "x"},
            ])
        );
        assert_eq!(step["credentials"][0]["secretRef"]["name"], "compose-login");
        assert!(file(&case, "observed.yaml").contains("composition-resource-name: bucket"));
        assert_eq!(file(&case, "required.yaml").matches("kind: ConfigMap").count(), 4);
        assert!(file(&case, "expected.yaml").contains("kind: Store"));
        assert_eq!(
            case.shell_words().join(" "),
            "render xr.yaml composition.yaml functions.yaml --observed-resources=observed.yaml \
             --required-resources=required.yaml --function-credentials=credentials.yaml \
             '--context-files=example.org/a b=context-1.yaml'"
        );
        let notes = case.notes.join("\n");
        for note in [
            "Requirement none of step compose found nothing",
            "Step compose required later,",
            "Function function-x is not in the box",
            "credentials.login.credentialData.data.password",
        ] {
            assert!(notes.contains(note), "{notes}");
        }
    }

    #[test]
    fn what_was_not_recorded_makes_no_case() {
        let mut lost = run(json!({}), json!({}));
        lost.steps[0].request = None;
        assert!(case(&lost, &|_| None).unwrap_err().to_string().contains("was not recorded"));
        let empty = run(json!({"observed": {}}), json!({}));
        assert!(case(&empty, &|_| None).unwrap_err().to_string().contains("composite resource"));
        assert!(case(&Run::default(), &|_| None).is_err());
    }
}
