//! Real API servers with a control plane of this process, which runs the functions in the box or
//! calls others.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use biplane_cluster::{Cluster, Quiet, Skipping};
use biplane_controlplane::start::{self, Server};
use biplane_controlplane::{ControlPlane, Options, composite, definitions, functions, init};
use biplane_devenv::{ApiServer, Client, Part, User};
use biplane_engine::{Clock as _, SystemClock};
use biplane_function::Registry;
use biplane_function::metrics::Metrics;
use biplane_functions::registry;
use biplane_kube::{Endpoint, EventSink};
use biplane_model::Value;
use biplane_runner::{FunctionRunner, InProcess};
use serde_json::json;
use tokio::sync::oneshot;

/// The user of the control plane.
pub(crate) const USER: &str = "system:serviceaccount:crossplane-system:crossplane";
/// The longest time that anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// An API server that has the kinds of the control plane and its functions.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
    controllers: Mutex<()>,
    kubectl: OnceLock<PathBuf>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(init::Features::default())
    }

    /// A server whose Compositions can have these features.
    pub(crate) fn with(features: init::Features) -> Self {
        let server = ApiServer::options()
            .controllers()
            .audit_log()
            .user(User::service_account("crossplane-system", "crossplane").cluster_admin())
            .start()
            .unwrap();
        let client = server.client("admin").unwrap();
        let world =
            Self { server, client, controllers: Mutex::default(), kubectl: OnceLock::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (metrics, options) = (Metrics::default(), biplane_kube::Options::default());
            let at = Server::At(world.endpoint());
            let (cluster, _) = start::connect(&at, options, &metrics).await.unwrap();
            let wanted = init::Options { webhooks: None, features, ..init::Options::default() };
            init::run(Arc::new(cluster), &SystemClock, &wanted).await.unwrap();
        });
        for function in registry().names() {
            world.install(function);
        }
        world
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint {
            url: self.server.url.clone(),
            ca_pem: self.server.ca_pem.clone(),
            token: self.server.token_of(USER).unwrap(),
        }
    }

    /// A `kubectl` command of the admin.
    pub(crate) fn kubectl(&self) -> Command {
        let path = self.kubectl.get_or_init(|| {
            let command = self.server.kubectl().unwrap();
            PathBuf::from(command.get_program())
        });
        let mut command = Command::new(path);
        command.arg("--kubeconfig").arg(&self.server.kubeconfig);
        command
    }

    /// Installs a function by hand. It is paused, so that nothing is said about its package.
    pub(crate) fn install(&self, function: &str) {
        const API: &str = "/apis/pkg.crossplane.io/v1";
        let image = format!("registry.example.org/functions/{function}:v0.0.1");
        self.create(
            &format!("{API}/functions"),
            &json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
                "metadata": {"name": function, "annotations": {"crossplane.io/paused": "true"}},
                "spec": {"package": image},
            }),
        );
        let name = format!("{function}-live");
        self.create(
            &format!("{API}/functionrevisions"),
            &json!({
                "apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision",
                "metadata": {"name": name, "labels": {"pkg.crossplane.io/package": function},
                    "annotations": {"crossplane.io/paused": "true"}},
                "spec": {"image": image, "desiredState": "Active", "revision": 1},
            }),
        );
        let status =
            json!({"status": {"endpoint": "dns:///127.0.0.1:1", "capabilities": ["composition"]}});
        self.patch(&format!("{API}/functionrevisions/{name}/status"), &status);
    }

    /// Says where an installed function is.
    pub(crate) fn locate(&self, function: &str, endpoint: &str) {
        let path = format!("/apis/pkg.crossplane.io/v1/functionrevisions/{function}-live/status");
        self.patch(&path, &json!({"status": {"endpoint": endpoint}}));
    }

    /// Creates an object.
    pub(crate) fn create(&self, path: &str, object: &Value) -> Value {
        let answer = self.client.post(path, object).unwrap();
        assert!(matches!(answer.code, 200 | 201), "{path}: {}", answer.body);
        answer.json()
    }

    /// Changes an object.
    pub(crate) fn patch(&self, path: &str, patch: &Value) {
        let answer = self.client.merge_patch(path, patch).unwrap();
        assert_eq!(answer.code, 200, "{path}: {}", answer.body);
    }

    /// Applies fields of an object for a field manager. The answer is the object.
    pub(crate) fn apply(&self, path: &str, manager: &str, fields: &Value) -> Value {
        let path = format!("{path}?fieldManager={manager}&force=true");
        let form = "application/apply-patch+yaml";
        let answer = self.client.send("PATCH", &path, form, &fields.to_string()).unwrap();
        assert!(matches!(answer.code, 200 | 201), "{path}: {}", answer.body);
        answer.json()
    }

    /// Deletes an object.
    pub(crate) fn delete(&self, path: &str) {
        let answer = self.client.delete(path).unwrap();
        assert_eq!(answer.code, 200, "{path}: {}", answer.body);
    }

    /// The objects of a list. There are none of a kind that does not exist.
    pub(crate) fn list(&self, path: &str) -> Vec<Value> {
        let answer = self.client.get(path).unwrap();
        match answer.code {
            200 => {
                let list = answer.json();
                let api_version = list["apiVersion"].clone();
                let kind = list["kind"].as_str().unwrap().trim_end_matches("List").to_owned();
                let mut items = list["items"].as_array().unwrap().clone();
                for item in &mut items {
                    item["apiVersion"] = api_version.clone();
                    item["kind"] = json!(kind);
                }
                items
            }
            404 => Vec::new(),
            code => panic!("{path}: {code} {}", answer.body),
        }
    }

    /// An object, if it exists.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let answer = self.client.get(path).unwrap();
        match answer.code {
            200 => Some(answer.json()),
            404 => None,
            code => panic!("{path}: {code} {}", answer.body),
        }
    }

    /// Makes the garbage collector look for new kinds.
    pub(crate) fn restart_controllers(&self) {
        let _alone = self.controllers.lock().unwrap_or_else(PoisonError::into_inner);
        self.server.restart(Part::Controllers).unwrap();
    }
}

/// How a control plane of a test runs.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) composites: composite::Settings,
    pub(crate) skipping: Skipping,
    /// The functions that run in this process.
    pub(crate) in_process: Registry,
    /// How functions are called instead.
    pub(crate) functions: Option<functions::Options>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            composites: composite::Settings::default(),
            skipping: Skipping::Verify,
            in_process: registry(),
            functions: None,
        }
    }
}

/// A running control plane.
pub(crate) struct Plane {
    quiet: Arc<Quiet>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Plane {
    /// Starts a control plane, and waits until it has seen what exists.
    pub(crate) fn start(endpoint: Endpoint, composites: composite::Settings) -> Self {
        Self::start_with(endpoint, Setup { composites, ..Setup::default() })
    }

    /// Starts a control plane that runs in a certain way.
    pub(crate) fn start_with(endpoint: Endpoint, setup: Setup) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (say_ready, ready) = mpsc::channel();
        let (say_quiet, quiet) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async move {
                let (metrics, options) = (Metrics::default(), biplane_kube::Options::default());
                let at = Server::At(endpoint);
                let (cluster, counters) = start::connect(&at, options, &metrics).await.unwrap();
                let cluster: Arc<dyn Cluster> = Arc::new(cluster);
                let now = Arc::new(|| SystemClock.now());
                let sink = EventSink::new(Arc::clone(&cluster), counters, "crossplane", now);
                let events = Arc::new(sink);
                let in_process: Arc<dyn FunctionRunner> =
                    Arc::new(InProcess::new(setup.in_process));
                let options = Options {
                    composites: setup.composites,
                    skipping: setup.skipping,
                    runner: setup.functions.is_none().then_some(in_process),
                    functions: setup.functions.unwrap_or_default(),
                    metrics,
                    ..Options::default()
                };
                let mut plane = ControlPlane::new(cluster, events.clone(), options).unwrap();
                plane.add_definitions(&definitions::Options::default());
                plane.when_ready(move || say_ready.send(()).unwrap_or_default());
                say_quiet.send(Arc::clone(&plane.composites().quiet)).unwrap();
                plane.run(async { stopped.await.unwrap_or_default() }).await;
                events.flush(tokio::time::Instant::now() + Duration::from_secs(5)).await;
            });
        });
        let quiet = quiet.recv_timeout(PATIENCE).unwrap();
        ready.recv_timeout(PATIENCE).unwrap();
        Self { quiet, stop, thread }
    }

    /// Fails if an apply was skipped that would have changed something.
    pub(crate) fn assert_no_wrong_skips(&self) {
        assert_eq!(self.quiet.wrong(), 0, "an apply was skipped that would have changed something");
    }

    /// How many applies were not sent.
    pub(crate) fn skipped(&self) -> u64 {
        self.quiet.skipped()
    }

    /// Ends the control plane.
    pub(crate) fn stop(self) {
        self.assert_no_wrong_skips();
        self.stop.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

/// The world that recorded scenarios share. It ends with the process.
pub(crate) fn shared() -> &'static (World, Plane) {
    static SHARED: OnceLock<(World, Plane)> = OnceLock::new();
    SHARED.get_or_init(|| {
        let world = World::new();
        let plane = Plane::start(world.endpoint(), composite::Settings::default());
        (world, plane)
    })
}

/// Asks until there is an answer. Fails with what `otherwise` says when that takes too long.
pub(crate) fn wait_for<T>(
    what: &str,
    patience: Duration,
    mut ask: impl FnMut() -> Result<T, String>,
) -> T {
    let until = Instant::now() + patience;
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(state) => {
                assert!(Instant::now() < until, "{what}: not within {patience:?}:\n{state}");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// The reason and the message of a condition.
pub(crate) fn explained(object: &Value, r#type: &str) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|c| c["type"] == r#type);
    let text = |key: &str| found.and_then(|c| c[key].as_str()).unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

/// The status of a condition. Empty if there is none of that type.
pub(crate) fn condition<'a>(object: &'a Value, r#type: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|c| c["type"] == r#type);
    found.and_then(|c| c["status"].as_str()).unwrap_or_default()
}
