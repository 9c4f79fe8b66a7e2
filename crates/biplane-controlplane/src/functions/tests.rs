//! Tests of functions: which one is called where, with which certificates, and within which limits.

use std::sync::atomic::{AtomicUsize, Ordering};

use biplane_cluster::Change;
use biplane_function::serve::{self, Config};
use biplane_function::{PureFunction, Status, response};
use biplane_model::Object;
use biplane_testkit::certs::Certs;
use biplane_testkit::echo::{Echo, config, serve};
use serde_json::{Value, json};

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn revision(name: &str, state: &str, endpoint: &str) -> Object {
    object(json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision",
        "metadata": {"name": name, "labels": {"pkg.crossplane.io/package": "function-echo"}},
        "spec": {"desiredState": state, "image": "xpkg.example.org/acme/function-echo:v1"},
        "status": {"endpoint": endpoint},
    }))
}

fn function(annotation: &str) -> Object {
    object(json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
        "metadata": {"name": "function-echo", "annotations": {"render.crossplane.io/runtime": annotation}},
        "spec": {"package": "xpkg.example.org/acme/function-echo:v1"},
    }))
}

/// Tells the watches of functions about an object.
fn tell(functions: &Arc<Functions>, object: Object) {
    let kind = object.gvk();
    let change = Change::Changed { object, before: None };
    for watch in functions.watches().iter().filter(|watch| watch.gvk == kind) {
        watch.mapping.keys(&change);
    }
}

fn functions(options: Options) -> Arc<Functions> {
    Functions::new(options, &Metrics::default()).unwrap()
}

async fn run(functions: &Arc<Functions>) -> Result<String, String> {
    let deadline = Some(Instant::now() + Duration::from_mins(1));
    let call = Call { function: "function-echo".into(), deadline, ..Call::default() };
    let answer = functions.run(&call, RunFunctionRequest::default()).await;
    answer.map(|answer| answer.results[0].message.clone()).map_err(|e| e.to_string())
}

#[tokio::test]
async fn the_active_revision_is_called() {
    // FN-1
    let functions = functions(Options::default());
    let none = "cannot get gRPC client connection for Function \"function-echo\": cannot find an \
        active FunctionRevision (a FunctionRevision with spec.desiredState: Active)";
    assert_eq!(run(&functions).await.unwrap_err(), none);
    tell(&functions, revision("echo-1", "Inactive", "dns:///nowhere.invalid:1"));
    assert_eq!(run(&functions).await.unwrap_err(), none);
    let running = serve(Echo::default()).await;
    tell(&functions, revision("echo-2", "Active", running.target()));
    assert_eq!(run(&functions).await.unwrap(), "hello");
    tell(&functions, revision("echo-2", "Inactive", running.target()));
    assert_eq!(run(&functions).await.unwrap_err(), none);
}

struct BuiltIn;

impl PureFunction for BuiltIn {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut answer = response::to(&request, response::DEFAULT_TTL);
        response::normal(&mut answer, "built in");
        Ok(answer)
    }
}

#[tokio::test]
async fn a_function_runs_in_this_process_if_it_says_so_or_if_all_do() {
    let built_in = Registry::default().with("function-echo", BuiltIn);
    let running = serve(Echo::default()).await;
    let endpoint = running.target();
    for (in_process, annotation, want) in [
        (false, "", "hello"),
        (false, "InProcess", "built in"),
        (true, "", "built in"),
        (true, "External", "hello"),
    ] {
        let options = Options { built_in: built_in.clone(), in_process, ..Options::default() };
        let functions = functions(options);
        tell(&functions, function(annotation));
        tell(&functions, revision("echo-1", "Active", endpoint));
        assert_eq!(run(&functions).await.unwrap(), want);
    }
    // Others are not touched, unless they insist.
    for (annotation, want) in [
        ("", Ok("hello".to_owned())),
        (
            "InProcess",
            Err(
                "cannot get gRPC client connection for Function \"function-echo\": its runtime is \
                InProcess, but this program does not have it"
                    .to_owned(),
            ),
        ),
    ] {
        let functions = functions(Options { in_process: true, ..Options::default() });
        tell(&functions, function(annotation));
        tell(&functions, revision("echo-1", "Active", endpoint));
        assert_eq!(run(&functions).await, want);
    }
}

fn secret(certs: &Certs) -> Object {
    use base64::Engine as _;
    let read = |file| {
        let bytes = std::fs::read(certs.client().join(file)).unwrap();
        base64::engine::general_purpose::STANDARD.encode(bytes)
    };
    object(json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "crossplane-tls-client", "namespace": "crossplane-system"},
        "data": {"tls.crt": read("tls.crt"), "tls.key": read("tls.key"), "ca.crt": read("ca.crt")}}))
}

async fn serve_with(certs: &Certs) -> serve::Running {
    let config = Config { certs_dir: Some(certs.server()), insecure: false, ..config() };
    serve::start(Arc::new(Echo::default()), config, std::future::pending()).await.unwrap()
}

fn at_localhost(running: &serve::Running) -> String {
    let (_, port) = running.target().rsplit_once(':').unwrap();
    format!("dns:///localhost:{port}")
}

#[tokio::test]
async fn certificates_come_from_a_secret_and_are_exchanged() {
    // FN-5
    let (old, new) = (Certs::new(&["localhost"]), Certs::new(&["localhost"]));
    let certificates = Some(CertificateSource::Secret {
        namespace: "crossplane-system".into(),
        name: "crossplane-tls-client".into(),
    });
    let functions = functions(Options { certificates, ..Options::default() });
    let (before, after) = (serve_with(&old).await, serve_with(&new).await);
    tell(&functions, revision("echo-1", "Active", &at_localhost(&before)));
    let text = run(&functions).await.unwrap_err();
    assert!(
        text.ends_with(
            "no client TLS certificate in Secret crossplane-system/crossplane-tls-client yet"
        ),
        "{text}"
    );
    tell(&functions, secret(&old));
    assert_eq!(run(&functions).await.unwrap(), "hello");
    // A Secret that makes no sense changes nothing.
    tell(
        &functions,
        object(json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "crossplane-tls-client", "namespace": "crossplane-system"}})),
    );
    assert_eq!(run(&functions).await.unwrap(), "hello");
    tell(&functions, secret(&new));
    tell(&functions, revision("echo-1", "Active", &at_localhost(&after)));
    assert_eq!(run(&functions).await.unwrap(), "hello");
}

#[tokio::test]
async fn certificates_in_files_are_exchanged_without_a_restart() {
    let (old, new) = (Certs::new(&["localhost"]), Certs::new(&["localhost"]));
    let certificates = Some(CertificateSource::Folder(old.client()));
    let functions = functions(Options { certificates, ..Options::default() });
    let (before, after) = (serve_with(&old).await, serve_with(&new).await);
    tell(&functions, revision("echo-1", "Active", &at_localhost(&before)));
    assert_eq!(run(&functions).await.unwrap(), "hello");
    for file in ["tls.crt", "tls.key", "ca.crt"] {
        std::fs::copy(new.client().join(file), old.client().join(file)).unwrap();
    }
    let none = Arc::new(NoRequirements);
    functions.runner(none, &Metrics::default()).1.tidy().await;
    tell(&functions, revision("echo-1", "Active", &at_localhost(&after)));
    assert_eq!(run(&functions).await.unwrap(), "hello");

    let missing = Some(CertificateSource::Folder(old.client().join("missing")));
    let options = Options { certificates: missing, ..Options::default() };
    let error = Functions::new(options, &Metrics::default()).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot load client TLS certificates: cannot load X509 keypair: open"),
        "{error}"
    );
}

struct NoRequirements;

#[async_trait]
impl Requirements for NoRequirements {
    async fn resources(
        &self,
        _: &biplane_proto::function::v1::ResourceSelector,
    ) -> Result<Option<biplane_proto::function::v1::Resources>, biplane_runner::FetchError> {
        Ok(None)
    }

    async fn schema(
        &self,
        _: &biplane_proto::function::v1::SchemaSelector,
    ) -> Result<biplane_proto::function::v1::Schema, biplane_runner::FetchError> {
        Ok(biplane_proto::function::v1::Schema::default())
    }
}

/// Counts how many calls run at a time, and takes an hour.
#[derive(Default)]
struct Busy {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct SlowFunction(Arc<Busy>);

#[async_trait]
impl Function for SlowFunction {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let now = self.0.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(30)).await;
        self.0.now.fetch_sub(1, Ordering::SeqCst);
        Ok(response::to(&request, response::DEFAULT_TTL))
    }
}

fn slow(busy: &Arc<Busy>, step_limit: Option<Duration>) -> Arc<Functions> {
    let built_in = Registry::default().with("function-echo", SlowFunction(Arc::clone(busy)));
    let options = Options { built_in, in_process: true, step_limit, ..Options::default() };
    let functions = functions(options);
    tell(&functions, function(""));
    functions
}

#[tokio::test(start_paused = true)]
async fn at_most_sixty_four_calls_of_a_function_run_at_a_time() {
    let busy = Arc::new(Busy::default());
    let functions = slow(&busy, None);
    let calls = (0..150).map(|_| {
        let functions = Arc::clone(&functions);
        tokio::spawn(async move {
            let call = Call { function: "function-echo".into(), ..Call::default() };
            functions.run(&call, RunFunctionRequest::default()).await.is_ok()
        })
    });
    let begin = Instant::now();
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap());
    }
    assert_eq!(busy.most.load(Ordering::SeqCst), 64);
    assert_eq!(begin.elapsed().as_secs(), 90, "in three rounds");
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_too_long_is_named() {
    let functions = slow(&Arc::default(), Some(Duration::from_secs(20)));
    let (runner, _) = functions.runner(Arc::new(NoRequirements), &Metrics::default());
    let mut call = Call {
        function: "function-echo".into(),
        step: "compose".into(),
        deadline: Some(Instant::now() + Duration::from_mins(2)),
        ..Call::default()
    };
    let begin = Instant::now();
    let error = runner.run(&call, RunFunctionRequest::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "step \"compose\" did not end in time: Function \"function-echo\" did not answer within 20 \
         seconds (--function-timeout)"
    );
    assert_eq!(begin.elapsed().as_secs(), 20);
    // The reconcile's own deadline is reported as such.
    call.deadline = Some(Instant::now() + Duration::from_secs(5));
    let error = runner.run(&call, RunFunctionRequest::default()).await.unwrap_err();
    assert!(error.to_string().contains("DeadlineExceeded"), "{error}");
}

#[tokio::test]
async fn a_step_says_why_its_function_was_not_reached() {
    let limit = Some(Duration::from_millis(50));
    let functions = functions(Options { step_limit: limit, ..Options::default() });
    let folder = tempfile::tempdir().unwrap();
    let nowhere = format!("unix://{}", folder.path().join("fn.sock").display());
    tell(&functions, revision("echo-1", "Active", &nowhere));
    let (runner, _) = functions.runner(Arc::new(NoRequirements), &Metrics::default());
    let call = Call { function: "function-echo".into(), step: "compose".into(), ..Call::default() };
    let error = runner.run(&call, RunFunctionRequest::default()).await.unwrap_err().to_string();
    assert!(error.starts_with("step \"compose\" did not end in time: "), "{error}");
    assert!(error.contains("(--function-timeout): latest balancer error: "), "{error}");
    assert!(error.contains("no such file or directory"), "{error}");
}
