//! Tests the sidecars as processes, and what a render emits to one.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use biplane::environment::Environment;
use biplane_proto::changelogs::change_log_service_client::ChangeLogServiceClient;
use biplane_proto::changelogs::{ChangeLogEntry, SendChangeLogRequest};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::{Value, json};
use tonic::transport::Endpoint;

use crate::support::{Folder, Ran, run, run_in, run_on};

const XR: &str = "\
apiVersion: example.org/v1
kind: Store
metadata: {name: north, namespace: shop}
spec: {size: 3}
";

const COMPOSITION: &str = "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: stores}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Store}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: function-dummy}
    credentials:
    - {name: api, source: Secret, secretRef: {namespace: shop, name: token}}
    input:
      apiVersion: dummy.fn.crossplane.io/v1beta1
      kind: Response
      response:
        desired:
          resources:
            config: {resource: {apiVersion: v1, kind: ConfigMap}}
  - step: again
    functionRef: {name: function-dummy}
    input:
      apiVersion: dummy.fn.crossplane.io/v1beta1
      kind: Response
      response: {results: [{severity: SEVERITY_FATAL, message: it broke}]}
";

const FUNCTIONS: &str = "\
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-dummy
  annotations: {render.crossplane.io/runtime: InProcess}
spec: {package: example.org/function-dummy:v1}
";

const CREDENTIALS: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: shop}
data: {password: UExBTlRFRA==}
";

/// A sidecar that listens.
struct Sidecar {
    child: Child,
    socket: String,
    _folder: Folder,
}

impl Sidecar {
    /// Starts a sidecar and waits until it says that it listens. `SOCKET` denotes its socket.
    fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let folder = Folder::new();
        let socket = folder.at("socket").to_str().unwrap().to_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_biplane"));
        command.args(arguments.iter().map(|word| word.replace("SOCKET", &socket)));
        command
            .envs(environment.iter().map(|(name, text)| (name, text.replace("SOCKET", &socket))));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it has ended");
        }
        child.stderr = Some(said.into_inner());
        Self { child, socket, _folder: folder }
    }

    /// Tells it to stop, and returns what it printed.
    fn stop(mut self) -> String {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap());
        nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
        let mut printed = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(!std::path::Path::new(&self.socket).exists());
        printed
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// Renders. The result does not depend on whether anything is emitted.
fn render(inspect: &[&str], environment: &Environment) -> Ran {
    let folder = Folder::new();
    let file = |name: &str, text: &str| folder.write(name, text);
    let credentials = format!("--function-credentials={}", file("credentials.yaml", CREDENTIALS));
    let mut arguments = vec!["render".to_owned()];
    arguments.push(file("xr.yaml", XR));
    arguments.push(file("composition.yaml", COMPOSITION));
    arguments.push(file("functions.yaml", FUNCTIONS));
    arguments.push(credentials);
    arguments.extend(inspect.iter().map(|word| (*word).to_owned()));
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let ran = run_in(&arguments, "", environment);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("it broke"), "{}", ran.stderr);
    ran
}

#[test]
fn a_render_emits_to_a_sidecar_which_prints_lines() {
    let sidecar = Sidecar::start(&["inspector", "serve", "--socket=SOCKET"], &[]);
    let ran = render(&[&format!("--inspect={}", sidecar.socket)], &Environment::default());
    assert!(!ran.stderr.contains("did not arrive"), "{}", ran.stderr);
    let printed = sidecar.stop();
    assert!(!printed.contains("PLANTED") && !printed.contains("UExBTlRFR"), "{printed}");
    let lines: Vec<Value> = printed.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let of = |key: &str| lines.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("type"), ["REQUEST", "RESPONSE", "REQUEST", "RESPONSE"]);
    let metas = of("meta");
    assert_eq!(metas[0], metas[1]);
    assert_eq!(metas[0]["traceId"], metas[3]["traceId"]);
    assert_eq!(
        (&metas[0]["stepName"], &metas[2]["stepName"]),
        (&json!("compose"), &json!("again"))
    );
    assert_eq!(metas[2]["stepIndex"], 1);
    let composition = &metas[0]["compositionMeta"];
    assert_eq!(composition["compositionName"], "stores");
    assert_eq!(composition["compositeResourceName"], "north");
    let payloads = of("payload");
    assert_eq!(
        payloads[0]["credentials"]["api"]["credentialData"]["data"]["password"],
        "KipSRURBQ1RFRCoq"
    );
    assert_eq!(payloads[3]["results"][0]["message"], "it broke");
}

#[test]
fn the_variable_names_the_socket_at_both_ends() {
    let arguments = ["inspector", "serve", "--format", "text"];
    let sidecar = Sidecar::start(&arguments, &[("PIPELINE_INSPECTOR_SOCKET", "SOCKET")]);
    let socket = Some(sidecar.socket.clone().into());
    render(&["--inspect"], &Environment { inspector_socket: socket, ..Environment::default() });
    let printed = sidecar.stop();
    let heads: Vec<_> = printed.lines().filter(|line| line.starts_with("===")).collect();
    assert_eq!(heads.len(), 4, "{printed}");
    assert!(printed.contains("  XR:          example.org/v1/Store (north)\n"), "{printed}");
}

#[test]
fn emissions_that_do_not_arrive_are_reported_and_change_nothing() {
    let folder = Folder::new();
    let socket = folder.at("nobody");
    let ran = render(&[&format!("--inspect={}", socket.display())], &Environment::default());
    let text = format!(
        "4 emissions did not arrive: failed to emit pipeline response for function function-dummy: \
         rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while \
         dialing: dial unix {}: connect: no such file or directory\"\n",
        socket.display()
    );
    assert!(ran.stderr.contains(&text), "{}", ran.stderr);
}

#[test]
fn only_the_engine_in_the_program_can_be_inspected() {
    let files = [("xr.yaml", XR), ("composition.yaml", COMPOSITION), ("binary", "")];
    for (flag, text) in [
        (
            "--crossplane-binary=DIR/binary",
            "--inspect and --crossplane-binary can't be used together",
        ),
        ("--output-format=v1", "--inspect and --output-format=v1 can't be used together"),
    ] {
        let ran =
            run_on(&files, &["render", "DIR/xr.yaml", "DIR/composition.yaml", "--inspect", flag]);
        assert_eq!((ran.exit, ran.stderr), (80, format!("biplane: error: {text}\n")));
    }
}

#[tokio::test]
async fn change_logs_are_printed_and_nothing_else() {
    // CL-30, CL-32, C23
    let sidecar = tokio::task::spawn_blocking(|| {
        Sidecar::start(&["changelogs", "serve", "--socket-path=SOCKET", "--debug"], &[])
    });
    let sidecar = sidecar.await.unwrap();
    let endpoint = Endpoint::try_from(format!("unix://{}", sidecar.socket)).unwrap();
    let mut client = ChangeLogServiceClient::new(endpoint.connect().await.unwrap());
    let entry = ChangeLogEntry { kind: "Bucket".into(), ..ChangeLogEntry::default() };
    client.send_change_log(SendChangeLogRequest { entry: Some(entry) }).await.unwrap();
    drop(client);
    let printed = tokio::task::spawn_blocking(|| sidecar.stop()).await.unwrap();
    assert_eq!(printed, "{\"kind\":\"Bucket\"}\n");
}

#[test]
fn sidecars_that_cannot_listen_say_why() {
    let folder = Folder::new();
    let file = folder.write("file", "precious");
    let missing = folder.at("missing/socket");
    let missing = missing.to_str().unwrap();
    for (command, socket, text) in [
        (
            "inspector",
            &*file,
            format!("cannot remove existing socket: {file} exists and is not a socket"),
        ),
        (
            "inspector",
            missing,
            format!(
                "cannot listen on socket: listen unix {missing}: bind: no such file or directory"
            ),
        ),
        (
            "changelogs",
            &*file,
            format!(
                "failed to remove any existing unix domain socket at {file}: {file} exists and is not a socket"
            ),
        ),
        (
            "changelogs",
            missing,
            format!(
                "failed to listen to unix domain socket at {missing}: listen unix {missing}: bind: no such file or directory"
            ),
        ),
    ] {
        let ran = run(&[command, "serve", "--socket", socket]);
        assert_eq!((ran.exit, ran.stderr), (1, format!("biplane: error: {text}\n")));
    }
    for arguments in [
        &["inspector", "serve", "--format=xml"][..],
        &["inspector", "serve", "--max-recv-msg-size=4MB"],
        &["inspector", "serve", "--shutdown-timeout=soon"],
        &["changelogs", "serve", "--redaction=some"],
        &["changelogs", "serve", "--socket="],
    ] {
        assert_eq!(run(arguments).exit, 80, "{arguments:?}");
    }
}

/// What a render emits is stored, with the change log entries of a provider beside it.
#[test]
fn a_recorder_stores_what_it_receives() {
    use biplane_recorder::store::rows::{ChangeFilter, Outcome, RunFilter};
    use biplane_recorder::store::{Location, Store};
    let folder = Folder::new();
    let store = folder.at("recorder.db").to_str().unwrap().to_owned();
    let changes = folder.at("changes").to_str().unwrap().to_owned();
    let arguments = [
        "recorder",
        "serve",
        "--inspector-socket=SOCKET",
        &format!("--changelogs-socket={changes}"),
        &format!("--store={store}"),
        "--listen=127.0.0.1:0",
        "--source=test",
        "--retain-for=36500d",
        "--min-free=1",
    ];
    let sidecar = Sidecar::start(&arguments, &[]);
    let ran = render(&[&format!("--inspect={}", sidecar.socket)], &Environment::default());
    assert!(ran.stderr.contains("it broke"), "{}", ran.stderr);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let entry = ChangeLogEntry { name: "orders".into(), ..ChangeLogEntry::default() };
        let connection = Endpoint::try_from(format!("unix://{changes}")).unwrap().connect().await;
        let mut client = ChangeLogServiceClient::new(connection.unwrap());
        client.send_change_log(SendChangeLogRequest { entry: Some(entry) }).await.unwrap();
    });
    let printed = sidecar.stop();
    assert_eq!(printed.lines().count(), 5, "{printed}");
    assert!(!printed.contains("UExBTlRFRA=="), "{printed}");

    let store = Store::open_existing(&Location::parse(&store)).unwrap();
    let runs = store.runs(&RunFilter::default(), 10, None).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].outcome, runs[0].open), (Outcome::Fatal, false));
    assert_eq!((runs[0].owner.kind.as_str(), runs[0].owner.name.as_str()), ("Store", "north"));
    let steps = store.steps(runs[0].id).unwrap();
    assert_eq!(
        steps.iter().map(|step| step.step.as_str()).collect::<Vec<_>>(),
        ["compose", "again"]
    );
    assert!(steps.iter().all(|step| step.exact));
    let exchange = store.exchange(steps[0].exchange.unwrap()).unwrap().unwrap();
    assert!(exchange.redactions > 0);
    let changes = store.changes(&ChangeFilter::default(), 10, None).unwrap();
    assert_eq!(changes[0].object.name, "orders");
    assert_eq!(store.verify().unwrap()[0].broken, []);
}
