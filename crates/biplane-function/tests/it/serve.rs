//! Tests of the server: start errors, services, shutdown.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, Condvar, Mutex, mpsc};
use std::thread::ThreadId;

use biplane_function::PureFunction;
use biplane_function::serve::{self, Config, Network};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_testkit::certs::Certs;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tonic::Status;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::world::{self, Echo, PATIENCE, call, client, config, request};

async fn refused(config: Config) -> String {
    let started = serve::start(Arc::new(Echo::default()), config, std::future::pending()).await;
    started.unwrap_err().to_string()
}

/// FN-D4
#[tokio::test]
async fn it_must_be_said_how_calls_are_protected() {
    assert_eq!(
        refused(Config { insecure: false, ..config() }).await,
        "no credentials provided - did you specify the Insecure or MTLSCertificates options?"
    );
}

/// FN-D3
#[tokio::test]
async fn insecure_wins_over_certificates_that_are_not_there() {
    let config = Config { certs_dir: Some("/no/such/folder".into()), ..config() };
    let running =
        serve::start(Arc::new(Echo::default()), config, std::future::pending()).await.unwrap();
    assert!(call(running.target()).await.is_ok());
}

/// FN-D3
#[tokio::test]
async fn certificates_that_cannot_be_used_are_named() {
    let certs = Certs::new(&["localhost"]);
    let with = || Config { certs_dir: Some(certs.server()), insecure: false, ..config() };
    std::fs::write(certs.server().join("ca.crt"), "").unwrap();
    assert_eq!(refused(with()).await, "cannot apply ServeOption: invalid CA certificate");
    std::fs::remove_file(certs.server().join("ca.crt")).unwrap();
    let text = refused(with()).await;
    assert!(text.starts_with("cannot apply ServeOption: cannot read CA certificate: "), "{text}");
    std::fs::remove_file(certs.server().join("tls.crt")).unwrap();
    let text = refused(with()).await;
    assert!(text.starts_with("cannot apply ServeOption: cannot load X509 keypair: "), "{text}");
}

/// FN-D4
#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let running = world::serve(Echo::default()).await;
    let address = running.target().to_owned();
    let text = refused(Config { address: address.clone(), ..config() }).await;
    assert_eq!(
        text,
        format!(
            "cannot listen for tcp connections at address \"{address}\": listen tcp {address}: \
             bind: address already in use"
        )
    );
}

#[tokio::test]
async fn an_address_without_a_host_is_every_address() {
    let config = Config { address: ":0".into(), ..config() };
    let running =
        serve::start(Arc::new(Echo::default()), config, std::future::pending()).await.unwrap();
    let (host, port) = running.target().split_once(':').unwrap();
    assert_eq!(host, "localhost");
    assert!(call(&format!("127.0.0.1:{port}")).await.is_ok());
}

#[tokio::test]
async fn a_socket_in_the_file_system_is_removed_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fn.sock");
    let config = Config { network: Network::Unix, address: path.display().to_string(), ..config() };
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { drop(stopped.await) };
    let running = serve::start(Arc::new(Echo::default()), config, shutdown).await.unwrap();
    assert_eq!(running.target(), format!("unix://{}", path.display()));
    assert!(call(running.target()).await.is_ok());
    assert!(call(&format!("unix:{}", path.display())).await.is_ok());
    drop(stop);
    running.wait().await.unwrap();
    assert!(!path.exists());
}

/// FN-W9
#[tokio::test]
async fn a_request_that_is_too_large_is_refused_in_the_words_of_go() {
    let config = Config { max_receive_size: 1024, ..config() };
    let running =
        serve::start(Arc::new(Echo::default()), config, std::future::pending()).await.unwrap();
    let large = request("t", &json!({"padding": "x".repeat(2000)}));
    let answer = client(running.target()).call(large, Some(PATIENCE)).await;
    let text = biplane_function::status::text(&answer.unwrap_err());
    let expected =
        "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (";
    assert!(text.starts_with(expected) && text.ends_with(" vs. 1024)"), "{text}");
}

#[tokio::test]
async fn a_service_that_is_not_there_is_named_in_the_words_of_go() {
    let running = world::serve(Echo::default()).await;
    let address = format!("http://{}", running.target());
    let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
    let mut health = HealthClient::new(channel);
    let refused = health.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(
        biplane_function::status::text(&refused),
        "rpc error: code = Unimplemented desc = unknown service grpc.health.v1.Health"
    );
}

#[tokio::test]
async fn a_panic_fails_its_call_only() {
    let running = world::serve(Echo::default()).await;
    let client = client(running.target());
    let answer = client.call(request("t", &json!({"panic": "now"})), Some(PATIENCE)).await;
    assert_eq!(
        biplane_function::status::text(&answer.unwrap_err()),
        "rpc error: code = Internal desc = the function panicked"
    );
    assert!(client.call(request("t", &Value::Null), Some(PATIENCE)).await.is_ok());
}

/// FN-D5: the two versions of reflection have the same messages with different names.
macro_rules! services {
    ($version:ident, $address:expr) => {{
        use tonic_reflection::pb::$version::ServerReflectionRequest;
        use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
        use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
        use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;
        let ask = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let channel = Endpoint::from_shared($address).unwrap().connect().await.unwrap();
        let mut client = ServerReflectionClient::new(channel);
        let answers = client.server_reflection_info(tokio_stream::once(ask)).await.unwrap();
        let answer = answers.into_inner().message().await.unwrap().unwrap();
        let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
            panic!("{answer:?}");
        };
        let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
        names.sort();
        names
    }};
}

#[tokio::test]
async fn both_versions_of_reflection_name_the_services() {
    let running = world::serve(Echo::default()).await;
    let address = format!("http://{}", running.target());
    for names in [services!(v1, address.clone()), services!(v1alpha, address.clone())] {
        assert_eq!(
            names,
            [
                "apiextensions.fn.proto.v1.FunctionRunnerService",
                "apiextensions.fn.proto.v1beta1.FunctionRunnerService",
                "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
            ]
        );
    }
}

/// Blocks its thread until it is released.
struct Blocking {
    entered: mpsc::Sender<()>,
    released: Mutex<mpsc::Receiver<()>>,
}

impl PureFunction for Blocking {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        if request.input.is_some() {
            self.entered.send(()).unwrap();
            self.released.lock().unwrap().recv().unwrap();
        }
        Ok(RunFunctionResponse::default())
    }
}

/// If the function ran on the only thread, this test would never end.
#[tokio::test(flavor = "current_thread")]
async fn what_computes_holds_up_nobody_else_and_is_finished_on_shutdown() {
    let (entered, has_entered) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let function = Blocking { entered, released: Mutex::new(released) };
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { drop(stopped.await) };
    let running = serve::start(Arc::new(function), config(), shutdown).await.unwrap();
    let target = running.target().to_owned();

    let slow = {
        let client = client(&target);
        tokio::spawn(async move { client.call(request("t", &json!({})), Some(PATIENCE)).await })
    };
    while has_entered.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    let quick = RunFunctionRequest::default();
    assert!(client(&target).call(quick, Some(PATIENCE)).await.is_ok());

    drop(stop);
    release.send(()).unwrap();
    assert!(slow.await.unwrap().is_ok());
    running.wait().await.unwrap();
}

/// Blocks each call until it is released, or until there are more concurrent calls than allowed.
struct Crowded {
    inside: Mutex<(usize, bool)>,
    changed: Condvar,
    room: usize,
}

impl PureFunction for Crowded {
    fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut inside = self.inside.lock().unwrap();
        inside.0 += 1;
        self.changed.notify_all();
        let waits = |inside: &mut (usize, bool)| inside.0 <= self.room && !inside.1;
        let mut inside = self.changed.wait_while(inside, waits).unwrap();
        if inside.0 > self.room {
            return Err(Status::internal("there are too many"));
        }
        inside.0 -= 1;
        Ok(RunFunctionResponse::default())
    }
}

/// There is one more thread than permits, and other work is queued behind the calls. It runs only
/// if calls do not occupy a thread while they wait for a permit.
#[test]
fn only_so_many_calls_compute_at_a_time() {
    let (room, calls) = (2, 5);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(room + 1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (inside, changed) = (Mutex::default(), Condvar::new());
        let function = Arc::new(Crowded { inside, changed, room });
        let config = Config { max_computing: room, max_slow: 0, ..config() };
        let running = serve::start(function.clone(), config, std::future::pending()).await.unwrap();
        let mut answers = tokio::task::JoinSet::new();
        for _ in 0..calls {
            let target = running.target().to_owned();
            answers.spawn(async move { call(&target).await });
        }
        while running.metrics().started() < calls {
            tokio::task::yield_now().await;
        }
        tokio::task::spawn_blocking(|| ()).await.unwrap();
        function.inside.lock().unwrap().1 = true;
        function.changed.notify_all();
        for answer in answers.join_all().await {
            answer.unwrap();
        }
    });
}

/// Notes on which threads it runs. Calls with an input wait for each other.
struct Noting {
    threads: Mutex<Vec<ThreadId>>,
    rush: Barrier,
}

impl PureFunction for Noting {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        if request.input.is_some() {
            self.rush.wait();
        }
        self.threads.lock().unwrap().push(std::thread::current().id());
        Ok(RunFunctionResponse::default())
    }
}

/// Each thread keeps memory: if calls took turns on all threads of a rush, all of it would stay.
#[tokio::test]
async fn after_a_rush_one_thread_computes_what_comes_one_by_one() {
    let rush = 4;
    let function = Arc::new(Noting { threads: Mutex::default(), rush: Barrier::new(rush) });
    let config = Config { max_computing: rush, ..config() };
    let running = serve::start(function.clone(), config, std::future::pending()).await.unwrap();
    let client = Arc::new(client(running.target()));
    let mut answers = tokio::task::JoinSet::new();
    for _ in 0..rush {
        let client = Arc::clone(&client);
        answers.spawn(async move { client.call(request("t", &json!({})), Some(PATIENCE)).await });
    }
    for answer in answers.join_all().await {
        answer.unwrap();
    }
    let rushed: HashSet<_> =
        std::mem::take(&mut *function.threads.lock().unwrap()).into_iter().collect();
    assert_eq!(rushed.len(), rush);
    for _ in 0..20 {
        client.call(RunFunctionRequest::default(), Some(PATIENCE)).await.unwrap();
    }
    let threads = std::mem::take(&mut *function.threads.lock().unwrap());
    assert!(rushed.contains(&threads[0]));
    assert_eq!(threads, [threads[0]; 20]);
}

/// FN-D6
#[tokio::test]
async fn calls_are_counted_and_the_counts_are_served() {
    let config = Config { metrics_address: Some("127.0.0.1:0".into()), ..config() };
    let echo = Echo::default();
    let running =
        serve::start(Arc::new(echo.clone()), config, std::future::pending()).await.unwrap();
    let client = client(running.target());
    client.call(request("t", &Value::Null), Some(PATIENCE)).await.unwrap();
    client.call(request("t", &json!({"fail": "no"})), Some(PATIENCE)).await.unwrap_err();
    assert_eq!(echo.0.load(Ordering::SeqCst), 2);

    let mut stream =
        tokio::net::TcpStream::connect(running.metrics_address().unwrap()).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let v1 = "grpc_type=\"unary\",grpc_service=\"apiextensions.fn.proto.v1.FunctionRunnerService\",\
              grpc_method=\"RunFunction\"";
    let v1beta1 = v1.replace("v1.", "v1beta1.");
    for line in [
        format!("grpc_server_started_total{{{v1}}} 2"),
        format!("grpc_server_handled_total{{{v1},grpc_code=\"OK\"}} 1"),
        format!("grpc_server_handled_total{{{v1},grpc_code=\"FailedPrecondition\"}} 1"),
        format!("grpc_server_handled_total{{{v1},grpc_code=\"Internal\"}} 0"),
        format!("grpc_server_msg_received_total{{{v1}}} 2"),
        format!("grpc_server_msg_sent_total{{{v1}}} 1"),
        format!("grpc_server_started_total{{{v1beta1}}} 0"),
        "# HELP grpc_server_started Total number of RPCs started on the server.".to_owned(),
        "# TYPE grpc_server_started counter".to_owned(),
        "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8".to_owned(),
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
    assert!(text.ends_with("\n# EOF\n"), "a scraper would take it for cut off:\n{text}");
}

/// FN-D6
#[tokio::test]
async fn a_metrics_address_that_is_taken_stops_nothing() {
    let first = world::serve(Echo::default()).await;
    let config = Config { metrics_address: Some(first.target().to_owned()), ..config() };
    let running =
        serve::start(Arc::new(Echo::default()), config, std::future::pending()).await.unwrap();
    assert_eq!(running.metrics_address(), None);
    assert!(call(running.target()).await.is_ok());
}

/// Clients on gRPC's C core send the path of the socket.
#[tokio::test]
async fn a_path_as_the_authority_is_no_reason_to_refuse_a_call() {
    const HEADERS: u8 = 1;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("fn.sock");
    let address = socket.display().to_string();
    let config = Config { network: Network::Unix, address, ..config() };
    let _running =
        serve::start(Arc::new(Echo::default()), config, std::future::pending()).await.unwrap();
    let mut stream = tokio::net::UnixStream::connect(&socket).await.unwrap();
    let frame = |r#type: u8, flags: u8, stream: u8, payload: &[u8]| {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, r#type, flags, 0, 0, 0, stream], payload].concat()
    };
    // POST, http, and as text the path, the authority and the content type.
    let mut fields = vec![0x83, 0x86];
    for (first, value) in [(0x44, "/x/Y"), (0x41, "tmp%2Ffn.sock"), (0x5f, "application/grpc")] {
        fields.extend([first, u8::try_from(value.len()).unwrap()]);
        fields.extend(value.as_bytes());
    }
    let sent = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, b""),
        frame(HEADERS, 5, 1, &fields),
    ];
    stream.write_all(&sent.concat()).await.unwrap();
    let answer = tokio::time::timeout(PATIENCE, async {
        loop {
            let mut header = [0; 9];
            stream.read_exact(&mut header).await.unwrap();
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
            let mut payload = vec![0; length as usize];
            stream.read_exact(&mut payload).await.unwrap();
            if header[8] == 1 {
                return header[3];
            }
        }
    });
    assert_eq!(answer.await.unwrap(), HEADERS, "the call was reset");
}
