//! Kills the control plane at random while composite resources are created, changed and deleted, and
//! asks the API server alone whether everything is as users want it.
//!
//! `BIPLANE_SEED` repeats a run, as far as time allows. `BIPLANE_CRASH_XRS` says how many composite
//! resources there are.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use biplane_devenv::{ApiServer, Client, Part, User};
use biplane_testkit::Random;
use serde_json::{Value, json};

const USER: &str = "system:serviceaccount:crossplane-system:crossplane";
const PATIENCE: Duration = Duration::from_mins(3);
const XRS: &str = "/apis/crash.example.org/v1/namespaces/default/parcels";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const API: &str = "/apis/apiextensions.crossplane.io";
const RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    #[allow(clippy::disallowed_methods)] // whoever runs the test decides
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Asks until there is an answer.
fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(state) => {
                assert!(Instant::now() < until, "{what}: not within {PATIENCE:?}:\n{state}");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

fn create(client: &Client, path: &str, object: &Value) -> Value {
    let answer = client.post(path, object).unwrap();
    assert_eq!(answer.code, 201, "{path}: {}", answer.body);
    answer.json()
}

fn list(client: &Client, path: &str) -> Vec<Value> {
    let answer = client.get(path).unwrap();
    assert_eq!(answer.code, 200, "{path}: {}", answer.body);
    answer.json()["items"].as_array().unwrap().clone()
}

fn condition<'a>(object: &'a Value, r#type: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == r#type)
}

fn is(object: &Value, r#type: &str) -> bool {
    condition(object, r#type).is_some_and(|condition| condition["status"] == "True")
}

/// A kind of composite resources that are made of as many ConfigMaps as they ask for.
fn define(client: &Client) {
    let xrd = json!({
        "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "parcels.crash.example.org"},
        "spec": {
            "group": "crash.example.org", "scope": "Namespaced",
            "names": {"kind": "Parcel", "plural": "parcels"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties":
                    {"color": {"type": "string"}, "count": {"type": "integer"}}}},
            }}}],
        },
    });
    create(client, &format!("{API}/v2/compositeresourcedefinitions"), &xrd);
    let template = concat!(
        "{{ $spec := .observed.composite.resource.spec }}\n",
        "{{ range $i := until (int $spec.count) }}\n",
        "---\n",
        "apiVersion: v1\n",
        "kind: ConfigMap\n",
        "metadata:\n",
        "  annotations:\n",
        "    gotemplating.fn.crossplane.io/composition-resource-name: map-{{ $i }}\n",
        "    gotemplating.fn.crossplane.io/ready: \"True\"\n",
        "data:\n",
        "  color: {{ $spec.color }}\n",
        "{{ end }}\n",
    );
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "parcels"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "crash.example.org/v1", "kind": "Parcel"},
            "mode": "Pipeline",
            "pipeline": [{"step": "maps", "functionRef": {"name": "function-go-templating"}, "input": {
                "apiVersion": "gotemplating.fn.crossplane.io/v1beta1", "kind": "GoTemplate",
                "source": "Inline", "inline": {"template": template}}}],
        },
    });
    create(client, &format!("{API}/v1/compositions"), &composition);
    let function = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
        "metadata": {"name": "function-go-templating"},
        "spec": {"package": "registry.example.org/functions/function-go-templating:v0.0.1"},
    });
    create(client, "/apis/pkg.crossplane.io/v1/functions", &function);
}

/// The control plane as a program of its own.
struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    fn start(kubeconfig: &Path, log: PathBuf) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_biplane"))
            .args(["core", "start", "--package-runtime=Function=InProcess"])
            .args(["--metrics-port=0", "--health-probe-port=0"])
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let program = Self { child, log };
        wait_for("the program", || {
            let log = program.log();
            if log.contains("control plane started") { Ok(()) } else { Err(log) }
        });
        program
    }

    /// Ends the program at once. It has no time to end in order.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What users want of a composite resource.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    color: String,
    count: usize,
}

/// What users do.
struct Users<'a> {
    client: &'a Client,
    random: Random,
    wanted: BTreeMap<String, Wanted>,
    /// The UIDs of everything that they have created.
    uids: BTreeSet<String>,
}

impl Users<'_> {
    fn wish(&mut self) -> Wanted {
        let color = self.random.pick(&["red", "green", "blue"]).unwrap().to_owned();
        // There is always one.
        Wanted { color, count: 1 + self.random.below(4) }
    }

    /// Creates, changes or deletes a composite resource.
    fn act(&mut self, name: &str) {
        let path = format!("{XRS}/{name}");
        let Wanted { color, count } = self.wish();
        let spec = json!({"color": color, "count": count});
        if !self.wanted.contains_key(name) {
            let xr = json!({"apiVersion": "crash.example.org/v1", "kind": "Parcel",
                "metadata": {"name": name}, "spec": spec});
            let answer = self.client.post(XRS, &xr).unwrap();
            // An earlier one of this name may still be there.
            if answer.code == 201 {
                self.uids.insert(answer.json()["metadata"]["uid"].as_str().unwrap().to_owned());
                self.wanted.insert(name.to_owned(), Wanted { color, count });
            } else {
                assert_eq!(answer.code, 409, "{}", answer.body);
            }
        } else if self.random.below(4) == 0 {
            let answer = self.client.delete(&path).unwrap();
            assert_eq!(answer.code, 200, "{}", answer.body);
            self.wanted.remove(name);
        } else {
            let answer = self.client.merge_patch(&path, &json!({"spec": spec})).unwrap();
            assert_eq!(answer.code, 200, "{}", answer.body);
            self.wanted.insert(name.to_owned(), Wanted { color, count });
        }
    }
}

/// Says what is not as users want it.
fn complaints(client: &Client, wanted: &BTreeMap<String, Wanted>) -> Vec<String> {
    let mut complaints = Vec::new();
    let (xrs, maps) = (list(client, XRS), list(client, MAPS));
    // By the UID of the owner.
    let mut composed: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for map in &maps {
        let metadata = &map["metadata"];
        let is_composed = metadata["labels"]["crossplane.io/composite"].is_string()
            || metadata["annotations"][RESOURCE_NAME].is_string()
            || metadata["ownerReferences"].is_array();
        if is_composed {
            let owner = metadata["ownerReferences"][0]["uid"].as_str().unwrap_or_default();
            composed.entry(owner.to_owned()).or_default().push(map);
        }
    }
    let mut left: BTreeSet<&str> = wanted.keys().map(String::as_str).collect();
    for xr in &xrs {
        let name = xr["metadata"]["name"].as_str().unwrap();
        let Some(wish) = wanted.get(name) else {
            complaints.push(format!("{name} is still there"));
            continue;
        };
        left.remove(name);
        let current = condition(xr, "Synced")
            .is_some_and(|c| c["observedGeneration"] == xr["metadata"]["generation"]);
        if !is(xr, "Ready") || !is(xr, "Synced") || !current {
            complaints.push(format!("{name} is not ready: {}", xr["status"]));
        }
        let maps = composed.remove(xr["metadata"]["uid"].as_str().unwrap()).unwrap_or_default();
        let mut names: Vec<&str> = maps
            .iter()
            .filter_map(|m| m["metadata"]["annotations"][RESOURCE_NAME].as_str())
            .collect();
        names.sort_unstable();
        let expected: Vec<String> = (0..wish.count).map(|i| format!("map-{i}")).collect();
        if names != expected {
            complaints.push(format!("{name} has {names:?}, not {expected:?}"));
        }
        if maps.iter().any(|map| map["data"] != json!({"color": wish.color})) {
            complaints.push(format!("{name} is not {}", wish.color));
        }
        let stored: BTreeSet<&str> =
            maps.iter().filter_map(|m| m["metadata"]["name"].as_str()).collect();
        let references = xr["spec"]["crossplane"]["resourceRefs"].as_array();
        let references: Vec<&str> =
            references.into_iter().flatten().filter_map(|r| r["name"].as_str()).collect();
        if references.len() != stored.len() || references.iter().any(|r| !stored.contains(r)) {
            complaints.push(format!("{name} refers to {references:?}, and there are {stored:?}"));
        }
    }
    complaints.extend(left.into_iter().map(|name| format!("{name} is not there")));
    complaints.extend(
        composed
            .into_iter()
            .map(|(uid, maps)| format!("{} ConfigMaps of {uid} are left over", maps.len())),
    );
    complaints
}

/// The name of the first composed resource of a composite resource. Names follow from UIDs.
fn first_of(client: &Client) -> BTreeMap<String, String> {
    let maps = list(client, MAPS);
    let first = maps.iter().filter(|m| m["metadata"]["annotations"][RESOURCE_NAME] == "map-0");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    first.map(|m| (text(&m["metadata"]["name"]), text(&m["metadata"]["uid"]))).collect()
}

#[test]
fn apiserver_killed_at_random() {
    #[allow(clippy::disallowed_methods)] // a seed, which is printed
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = number("BIPLANE_SEED").unwrap_or(now.as_nanos() as u64);
    let count = number("BIPLANE_CRASH_XRS").unwrap_or(40) as usize;
    println!("BIPLANE_SEED={seed} BIPLANE_CRASH_XRS={count}");
    let server = ApiServer::options()
        .controllers()
        .audit_log()
        .user(User::service_account("crossplane-system", "crossplane").cluster_admin())
        .start()
        .unwrap();
    let client = server.client("admin").unwrap();
    let kubeconfig = server.kubeconfig_of(USER).unwrap();
    let init = Command::new(env!("CARGO_BIN_EXE_biplane"))
        .args(["core", "init", "--enable-webhooks=false"])
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .output()
        .unwrap();
    assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(&kubeconfig, folder.path().join("0.log"));
    define(&client);
    wait_for("the definition", || {
        let xrd = format!("{API}/v2/compositeresourcedefinitions/parcels.crash.example.org");
        let xrd = client.get(&xrd).unwrap().json();
        if is(&xrd, "Established") { Ok(()) } else { Err(format!("{xrd}\n{}", program.log())) }
    });
    // The garbage collector looks for new kinds when it starts.
    server.restart(Part::Controllers).unwrap();

    let mut users = Users {
        client: &client,
        random: Random::new(seed),
        wanted: BTreeMap::new(),
        uids: BTreeSet::new(),
    };
    let names: Vec<String> = (0..count).map(|number| format!("parcel-{number}")).collect();
    let done = AtomicBool::new(false);
    let (mut kills, mut firsts) = (0, BTreeMap::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for name in &names {
                users.act(name);
            }
            for _ in 0..4 * count {
                let pause = users.random.below(60) as u64;
                std::thread::sleep(Duration::from_millis(pause));
                let name = &names[users.random.below(count)];
                users.act(name);
            }
            done.store(true, Ordering::SeqCst);
        });
        let mut random = Random::new(seed ^ 1);
        while !done.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(20 + random.below(1_200) as u64));
            program.kill();
            kills += 1;
            program = Program::start(&kubeconfig, folder.path().join(format!("{kills}.log")));
            // What exists while nobody may delete it.
            for (name, uid) in first_of(&client) {
                firsts.entry(name).or_insert(uid);
            }
        }
    });
    println!("killed {kills} times, {} composite resources were created", users.uids.len());
    assert!(kills >= 3, "killed only {kills} times");
    wait_for("what users want", || {
        let complaints = complaints(&client, &users.wanted);
        if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
    });

    // The first resource of each was always desired: nobody has deleted it, and it is the same.
    let deleted = server.audit_log().unwrap().requests().unwrap().of_user(USER);
    let deleted = deleted.of_verbs(&["delete"]).of_resource("configmaps");
    assert!(!deleted.is_empty(), "nothing was removed at all");
    for (name, uid) in first_of(&client) {
        assert!(firsts.get(&name).is_none_or(|first| *first == uid), "{name} was made anew");
        firsts.insert(name, uid);
    }
    let wrong = deleted.clone().filter(|request| firsts.contains_key(&request.name));
    assert!(wrong.is_empty(), "{:#?}", wrong.iter().map(|r| &r.uri).collect::<Vec<_>>());
    // And then it is quiet.
    assert_eq!(complaints(&client, &users.wanted), [""; 0]);
}
