//! Plays a recorded scenario on a real API server, and compares what is there after each stage.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use biplane_model::Value;
use biplane_testkit::Recording;
use regex::Regex;
use serde_json::json;

use crate::printed::{self, Printed};
use crate::side::{Side, Stage, differences};
use crate::world::{PATIENCE, World, condition, shared, wait_for};

/// How a recorded scenario is played.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// After which of its steps each stage was recorded. A single stage comes last.
    pub(crate) stages: &'static [usize],
    /// The steps that the garbage collector has to know the kinds of the scenario for.
    pub(crate) collects: bool,
    /// The differences that are right, as regular expressions.
    pub(crate) but: &'static [&'static str],
}

/// Differences in all scenarios that are right.
const EVERYWHERE: &[&str] = &[
    // The schema of status declares what the control plane writes there.
    r"\.status\.properties\.lastHandledReconcileAt: expected nothing got",
];
/// The longest time until a stage is reached.
const REACHED: std::time::Duration = std::time::Duration::from_secs(30);

/// Plays a scenario in the world that scenarios share. Panics with all differences.
pub(crate) fn play(scenario: &Scenario) {
    let (world, plane) = shared();
    play_in(world, scenario);
    plane.assert_no_wrong_skips();
}

/// Plays a scenario. Panics with all differences.
pub(crate) fn play_in(world: &World, scenario: &Scenario) {
    let recording = Recording::load("live", scenario.name);
    let stages = recorded_stages(&recording);
    let steps = recording.text("README.txt").unwrap().split_once("Steps:\n - ").unwrap().1;
    let steps: Vec<&str> = steps.trim_end().split("\n - ").collect();
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in recording.folder("in") {
        std::fs::create_dir_all(folder.path().join("in")).unwrap();
        std::fs::write(folder.path().join("in").join(path), text).unwrap();
    }
    let last = [steps.len()];
    let ends = if scenario.stages.is_empty() { &last[..] } else { scenario.stages };
    assert_eq!(ends.len(), stages.len(), "the stages are {:?}", stages.len());
    let mut run = Run {
        world,
        scenario,
        folder: folder.path(),
        group: format!("{}.golden.example.org", scenario.name),
        recorded: stages,
        reached: Vec::new(),
    };
    for (number, step) in steps.iter().enumerate() {
        run.step(step);
        if let Some(index) = ends.iter().position(|end| *end == number + 1) {
            let get = format!("{}/get.txt", run.recorded[index].0);
            run.stage(index, recording.text(&get).unwrap());
        }
    }
    assert_eq!(run.reached.len(), run.recorded.len());
}

fn recorded_stages(recording: &Recording) -> Vec<(String, Stage)> {
    let is_stage = |path: &String| path.starts_with(|c: char| c.is_ascii_digit());
    let names: BTreeSet<&str> = recording
        .files
        .keys()
        .filter(|path| is_stage(path))
        .filter_map(|path| path.split_once('/').map(|(stage, _)| stage))
        .collect();
    let stage = |name: &str| {
        let files = recording.folder(name).filter_map(|(file, _)| {
            let docs = recording.json(&format!("{name}/{}.json", file.strip_suffix(".json")?))?;
            Some((file.strip_suffix(".json")?.to_owned(), docs.as_array()?.clone()))
        });
        (name.to_owned(), files.collect())
    };
    names.into_iter().map(stage).collect()
}

struct Run<'a> {
    world: &'a World,
    scenario: &'a Scenario,
    folder: &'a Path,
    group: String,
    recorded: Vec<(String, Stage)>,
    reached: Vec<(String, Stage)>,
}

impl Run<'_> {
    fn step(&mut self, step: &str) {
        if let Some(rest) = step.strip_prefix("kubectl ") {
            let (arguments, answer) = rest.split_once(" -> rc ").unwrap();
            self.kubectl_step(arguments, answer);
        } else if step.starts_with("waited ") {
            self.wait(step.split_once(" for: ").unwrap().1.trim());
            if self.scenario.collects && step.contains("XRD established") {
                self.world.restart_controllers();
            }
        } else if step == "70 x kubectl annotate" {
            let path = format!(
                "/apis/{}/v1/namespaces/g-{}/widgets/alpha",
                self.group, self.scenario.name
            );
            for number in 0..70 {
                let annotation = json!({"example.org/touch": number.to_string()});
                self.world.patch(&path, &json!({"metadata": {"annotations": annotation}}));
            }
        } else {
            // Remarks on what was seen on the way.
            assert!(
                step.starts_with("XRD with wrong name") || step.starts_with("event "),
                "{step}"
            );
        }
    }

    fn kubectl(&self) -> Command {
        let mut command = self.world.kubectl();
        command.current_dir(self.folder).env("KUBECACHEDIR", self.folder.join("cache"));
        command
    }

    fn kubectl_step(&self, arguments: &str, answer: &str) {
        let recorded = Side::new(self.scenario.name, &self.recorded);
        let mut stages = self.reached.clone();
        if recorded.varies(arguments) || recorded.varies(answer) {
            stages.push(("now".to_owned(), self.dump()));
        }
        let live = Side::new(self.scenario.name, &stages);
        let translated = recorded.translate(arguments, &live);
        // The only argument with blanks is the last.
        let (words, patch) = match translated.split_once(" -p ") {
            Some((words, patch)) => (words, Some(patch)),
            None => (translated.as_str(), None),
        };
        if let Some(file) = words.strip_prefix("apply -f ") {
            self.give_owner(file);
        }
        let mut command = self.kubectl();
        command.args(words.split(' ')).args(patch.into_iter().flat_map(|patch| ["-p", patch]));
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (code, out, err) =
            (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr));
        let expected = settled(&recorded.text(answer));
        let got = settled(&live.text(&format!("{code} {out} {err}")));
        assert_eq!(got, expected, "kubectl {arguments}");
    }

    /// A manifest that names an owner by its UID gets the UID of today.
    fn give_owner(&self, file: &str) {
        let file = self.folder.join(file);
        let text = std::fs::read_to_string(&file).unwrap();
        if text.contains("name: boss\n    uid: ") {
            let namespace = format!("g-{}", self.scenario.name);
            let boss = format!("/api/v1/namespaces/{namespace}/configmaps/boss");
            let uid =
                self.world.get(&boss).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
            let named = Regex::new(r"uid: \S+").unwrap();
            std::fs::write(&file, named.replace(&text, format!("uid: {uid}")).as_bytes()).unwrap();
        }
    }

    fn wait(&self, what: &str) {
        if let Some(rest) = what.strip_prefix("XRD established") {
            let conditions =
                if rest.is_empty() { &["Established"][..] } else { &["Established", "Offered"] };
            wait_for(what, PATIENCE, || {
                let xrds = self.definitions();
                let is = |xrd: &Value| conditions.iter().all(|c| condition(xrd, c) == "True");
                if xrds.iter().any(is) { Ok(()) } else { Err(format!("{xrds:?}")) }
            });
            return;
        }
        let words: Vec<&str> = what.split_whitespace().collect();
        let wanted: Vec<(&str, &str)> = match words[..] {
            [_, _, "Synced", "and", "Ready"] => vec![("Synced", "True"), ("Ready", "True")],
            [_, _, condition] => match condition.split_once('=') {
                Some((_, "None")) | None => return,
                Some(condition) => vec![condition],
            },
            // The stage that follows is waited for anyway.
            _ => return,
        };
        let plural = format!("{}s", words[0].to_lowercase().trim_end_matches('s'));
        wait_for(what, PATIENCE, || {
            let mut objects = self.list(&plural);
            objects.retain(|object| object["metadata"]["name"] == words[1]);
            let is =
                |object: &Value| wanted.iter().all(|(c, status)| condition(object, c) == *status);
            let done = !objects.is_empty() && objects.iter().all(is);
            if done { Ok(()) } else { Err(format!("{objects:#?}")) }
        });
    }

    /// The definitions of the scenario.
    fn definitions(&self) -> Vec<Value> {
        let path = "/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions";
        let mut xrds = self.world.list(path);
        xrds.retain(|xrd| xrd["spec"]["group"] == self.group.as_str());
        xrds
    }

    fn recorded_definitions(&self) -> impl Iterator<Item = &Value> {
        self.recorded.iter().filter_map(|(_, docs)| docs.get("xrd")).flatten()
    }

    /// The objects of a kind of the scenario.
    fn list(&self, plural: &str) -> Vec<Value> {
        let group = self.world.get(&format!("/apis/{}", self.group));
        let Some(group) = group else { return Vec::new() };
        let version = group["preferredVersion"]["version"].as_str().unwrap().to_owned();
        self.world.list(&format!("/apis/{}/{version}/{plural}", self.group))
    }

    fn dump(&self) -> Stage {
        const API: &str = "/apis/apiextensions.crossplane.io/v1";
        let (world, name) = (self.world, self.scenario.name);
        let mut stage = Stage::new();
        let side = Side::new(name, &[]);
        let xrds = self.definitions();
        let mut kinds: BTreeSet<(&str, String)> = BTreeSet::new();
        for xrd in xrds.iter().chain(self.recorded_definitions()) {
            let plural = |names: &str| xrd["spec"][names]["plural"].as_str().map(str::to_owned);
            kinds.extend(plural("names").map(|plural| ("xr", plural)));
            kinds.extend(plural("claimNames").map(|plural| ("claim", plural)));
        }
        stage.insert("xrd".to_owned(), xrds);
        let mut crds = world.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
        crds.retain(|crd| crd["spec"]["group"] == self.group.as_str());
        stage.insert("crd".to_owned(), crds);
        for (file, plural) in
            [("composition", "compositions"), ("compositionrevision", "compositionrevisions")]
        {
            let mut objects = world.list(&format!("{API}/{plural}"));
            let prefix = format!("{name}-");
            objects.retain(|object| {
                object["metadata"]["name"].as_str().unwrap().starts_with(&prefix)
                    && !side.is_foreign(object)
            });
            stage.insert(file.to_owned(), objects);
        }
        for (file, plural) in kinds {
            stage.entry(file.to_owned()).or_default().extend(self.list(&plural));
        }
        let composed = self.composed(&stage);
        stage.insert("composed".to_owned(), composed);
        let mut events = world.list("/api/v1/events?limit=10000");
        let group = format!("{}/", self.group);
        let definitions: BTreeSet<&str> = self
            .recorded_definitions()
            .filter_map(|xrd| xrd["metadata"]["name"].as_str())
            .collect();
        events.retain(|event| {
            let about = &event["involvedObject"];
            let is = |key: &str, test: &dyn Fn(&str) -> bool| about[key].as_str().is_some_and(test);
            is("apiVersion", &|api_version| api_version.starts_with(&group))
                || is("name", &|name| definitions.contains(name))
                || is("kind", &|kind| kind.starts_with("Composition"))
        });
        stage.insert("events".to_owned(), events);
        stage
    }

    /// The composed resources, and the connection secrets.
    fn composed(&self, stage: &Stage) -> Vec<Value> {
        let mut paths = BTreeSet::new();
        let empty = Vec::new();
        let of = |file: &str| stage.get(file).unwrap_or(&empty).iter();
        for object in of("xr").chain(of("claim")) {
            let own = object["metadata"]["namespace"].as_str();
            let spec = &object["spec"];
            let refs = spec["crossplane"]["resourceRefs"].as_array();
            let refs = refs.or(spec["resourceRefs"].as_array()).into_iter().flatten();
            paths.extend(refs.map(|r| path(r, r["namespace"].as_str().or(own))));
            let secret = &spec["writeConnectionSecretToRef"];
            if secret["name"].is_string() {
                let secret = json!({"apiVersion": "v1", "kind": "Secret", "name": secret["name"],
                    "namespace": secret["namespace"]});
                paths.insert(path(&secret, secret["namespace"].as_str().or(own)));
            }
        }
        let mut objects: Vec<Value> =
            paths.iter().filter_map(|path| self.world.get(path)).collect();
        let labelled = format!("/api/v1/configmaps?labelSelector=golden%3D{}", self.scenario.name);
        for object in self.world.list(&labelled) {
            let same = |other: &Value| other["metadata"]["uid"] == object["metadata"]["uid"];
            if !objects.iter().any(same) {
                objects.push(object);
            }
        }
        objects
    }

    /// Waits until everything is as it was recorded.
    fn stage(&mut self, index: usize, get: &str) {
        let (name, expected) = &self.recorded[index];
        let recorded = Side::new(self.scenario.name, &self.recorded[..=index]);
        let but: Vec<Regex> = EVERYWHERE
            .iter()
            .chain(self.scenario.but)
            .map(|but| Regex::new(but).unwrap())
            .collect();
        let what = format!("{} {name}", self.scenario.name);
        let reached = wait_for(&what, REACHED, || {
            let stage = self.dump();
            let stages = [&self.reached[..], &[(name.clone(), stage.clone())]].concat();
            let live = Side::new(self.scenario.name, &stages);
            let mut lines = Vec::new();
            for file in expected.keys().chain(stage.keys()).collect::<BTreeSet<_>>() {
                let place = format!("{name}/{file}");
                let of = |side: &Side, stage: &Stage| {
                    let docs = stage.get(file).map_or(&[][..], |docs| docs.as_slice());
                    if file == "events" { side.events(docs) } else { side.objects(docs) }
                };
                differences(&place, &of(&recorded, expected), &of(&live, &stage), &mut lines);
            }
            lines.retain(|line| !but.iter().any(|but| but.is_match(line)));
            if lines.is_empty() {
                lines = self.differences_in_print(name, get, &recorded, &live);
                lines.retain(|line| !but.iter().any(|but| but.is_match(line)));
            }
            if lines.is_empty() { Ok(stage) } else { Err(lines.join("\n")) }
        });
        self.reached.push((name.clone(), reached));
    }

    fn differences_in_print(
        &self,
        stage: &str,
        get: &str,
        recorded: &Side,
        live: &Side,
    ) -> Vec<String> {
        let expected = printed::read(get);
        let got: Vec<Printed> = expected
            .iter()
            .filter_map(|Printed { arguments, .. }| {
                let mut words: Vec<&str> = arguments.split(' ').collect();
                if printed::is_of_compositions(words[0]) {
                    words.retain(|w| printed::is_of_compositions(w) || recorded.has_composition(w));
                    if words.len() == 1 {
                        return None;
                    }
                }
                let output = self.kubectl().arg("get").args(words).output().unwrap();
                let text = [output.stdout, output.stderr].concat();
                let text = String::from_utf8_lossy(&text).into_owned();
                Some(Printed { arguments: arguments.clone(), text })
            })
            .collect();
        let (expected, got) = (printed::tables(recorded, &expected), printed::tables(live, &got));
        let mut lines = Vec::new();
        differences(&format!("{stage}/get.txt"), &expected, &got, &mut lines);
        lines
    }
}

/// An answer of kubectl without what depends on its version and on earlier runs.
fn settled(answer: &str) -> String {
    let words: Vec<&str> = answer.split_whitespace().collect();
    let text = words.join(" ");
    let namespace = Regex::new(r"(namespace/\S+) (?:created|unchanged)").unwrap();
    let text = namespace.replace_all(&text, "$1 there");
    let deleted = Regex::new(r" deleted from \S+ namespace\b").unwrap();
    deleted.replace_all(&text, " deleted").into_owned()
}

/// The path of an object that a reference names.
fn path(reference: &Value, namespace: Option<&str>) -> String {
    let text = |key: &str| reference[key].as_str().unwrap_or_default();
    let api_version = text("apiVersion");
    let api = if api_version.contains('/') { "apis" } else { "api" };
    let (plural, name) = (format!("{}s", text("kind").to_lowercase()), text("name"));
    let namespace = namespace.map(|ns| format!("/namespaces/{ns}")).unwrap_or_default();
    format!("/{api}/{api_version}{namespace}/{plural}/{name}")
}
