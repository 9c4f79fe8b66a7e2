//! Tests `internal render` and `internal serve` as other programs use them: one process for each
//! recorded case, with functions over gRPC.

#![allow(clippy::unwrap_used)] // clippy.toml covers test functions only, not their helpers

#[allow(dead_code)] // peers in other languages have their own tests
#[path = "../../biplane-functions/tests/it/peers/builds.rs"]
mod builds;

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, OnceLock};

use biplane_function::Function;
use biplane_function::serve::{Config, start};
use biplane_proto::render::service::render_service_client::RenderServiceClient;
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse, render_request::Input};
use biplane_testkit::compare::{comparable_error, comparable_response};
use biplane_testkit::player::difference;
use biplane_testkit::{Player, Recording};
use libtest_mimic::{Arguments, Failed, Trial};
use prost::Message;
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::transport::Endpoint;

const AREAS: [&str; 8] = ["engine", "op", "cron", "watch", "pt", "env", "ready", "tmpl"];

fn main() {
    let mut trials = vec![
        Trial::test("refuses_what_is_not_a_request", refuses_what_is_not_a_request),
        Trial::test("refuses_objects_that_nest_without_end", refuses_objects_that_nest_without_end),
        Trial::test("refuses_a_request_without_input", refuses_a_request_without_input),
        Trial::test("refuses_wrong_flags_with_code_80", refuses_wrong_flags_with_code_80),
        Trial::test("renders_at_the_time_it_is_told", renders_at_the_time_it_is_told),
        Trial::test(
            "a_function_that_hangs_meets_the_timeout",
            a_function_that_hangs_meets_the_timeout,
        ),
        Trial::test(
            "a_response_of_five_megabytes_is_refused",
            a_response_of_five_megabytes_is_refused,
        ),
        Trial::test(
            "a_server_answers_many_requests_and_stops_when_told",
            a_server_answers_many_requests_and_stops_when_told,
        ),
        Trial::test("a_server_logs_what_it_is_asked_to", a_server_logs_what_it_is_asked_to),
        Trial::test(
            "a_server_with_a_silent_peer_ends_when_told_twice",
            a_server_with_a_silent_peer_ends_when_told_twice,
        ),
        Trial::test(
            "a_socket_in_use_is_not_replaced_and_a_stale_one_is",
            a_socket_in_use_is_not_replaced_and_a_stale_one_is,
        ),
        Trial::test(
            "a_server_describes_itself_in_both_versions",
            a_server_describes_itself_in_both_versions,
        ),
        Trial::test("clients_in_python_are_answered", clients_in_python_are_answered),
        Trial::test("the_program_is_position_independent", the_program_is_position_independent),
    ];
    for area in AREAS {
        for recording in Recording::load_area(area) {
            if recording.text("request.json").is_none() {
                continue;
            }
            let recording = Arc::new(recording);
            let name = format!("{area}/{}", recording.name);
            if matches!(area, "engine" | "op") && needs_only_dummy(&recording) {
                let case = recording.clone();
                trials.push(Trial::test(format!("with_served_dummy::{name}"), move || {
                    check(&case, dummy())
                }));
            }
            trials.push(Trial::test(format!("process::{name}"), move || played_back(&recording)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("a runtime"))
}

/// Serves a function for as long as the tests run, and returns its address.
fn serve(function: Arc<dyn Function>) -> String {
    let config = Config {
        address: "127.0.0.1:0".into(),
        insecure: true,
        metrics_address: None,
        ..Config::default()
    };
    let running = runtime().block_on(start(function, config, std::future::pending()));
    running.expect("a server").target().to_owned()
}

fn dummy() -> &'static str {
    static TARGET: OnceLock<String> = OnceLock::new();
    TARGET.get_or_init(|| {
        let registry = biplane_functions::registry();
        serve(registry.get("function-dummy").expect("function-dummy").clone())
    })
}

fn needs_only_dummy(recording: &Recording) -> bool {
    let calls = recording.json("calls.json").unwrap_or_default();
    calls.as_array().is_none_or(|calls| calls.iter().all(|c| c["function"] == "function-dummy"))
}

fn played_back(recording: &Recording) -> Result<(), Failed> {
    let player = Arc::new(Player::new(recording));
    check(recording, &serve(player.clone()))?;
    match player.complaints() {
        complaints if complaints.is_empty() => Ok(()),
        complaints => Err(complaints.join("\n").into()),
    }
}

/// The recorded request, with every function at one address.
fn request(recording: &Recording, target: &str) -> RenderRequest {
    let request = recording.json("request.json").unwrap_or_default();
    let mut request: RenderRequest = serde_json::from_value(request).expect("a request");
    let functions = match &mut request.input {
        Some(Input::Composite(input)) => &mut input.functions,
        Some(Input::Operation(input)) => &mut input.functions,
        _ => return request,
    };
    for function in functions {
        target.clone_into(&mut function.address);
    }
    request
}

/// The output of a process.
struct Said {
    code: i32,
    stdout: Vec<u8>,
    stderr: String,
}

fn biplane(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_biplane"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str], stdin: &[u8]) -> Said {
    let mut child = biplane(arguments).spawn().expect("the program starts");
    // A program that does not read its stdin is not an error here.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin);
    let output = child.wait_with_output().expect("the program ends");
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn check(recording: &Recording, target: &str) -> Result<(), Failed> {
    let said = run(&["internal", "render"], &request(recording, target).encode_to_vec());
    let outcome = recording.json("outcome.json").unwrap_or_default();
    if outcome["engine"]["exit"] != said.code {
        return Err(
            format!("exit {}, recorded {}: {}", said.code, outcome["engine"], said.stderr).into()
        );
    }
    let recorded = outcome["engine"]["stderr"].as_str().unwrap_or_default();
    let recorded = recorded.replacen("crossplane: error: ", "biplane: error: ", 1);
    if comparable_error(&said.stderr) != comparable_error(&recorded) {
        return Err(format!("stderr {:?}, recorded {recorded:?}", said.stderr).into());
    }
    match recording.json("response.json") {
        None if said.stdout.is_empty() => Ok(()),
        None => Err("a response, and none is recorded".into()),
        Some(theirs) => {
            let ours = RenderResponse::decode(said.stdout.as_slice())?;
            let theirs: RenderResponse = serde_json::from_value(theirs)?;
            let ours = comparable_response(serde_json::to_value(ours)?);
            let theirs = comparable_response(serde_json::to_value(theirs)?);
            difference("response", &ours, &theirs).map_or(Ok(()), |d| Err(d.into()))
        }
    }
}

fn expect(said: &Said, code: i32, text: &str) -> Result<(), Failed> {
    if said.code == code && said.stdout.is_empty() && said.stderr.contains(text) {
        return Ok(());
    }
    Err(format!(
        "exit {}, stdout of {} bytes, stderr {:?}",
        said.code,
        said.stdout.len(),
        said.stderr
    )
    .into())
}

fn refuses_what_is_not_a_request() -> Result<(), Failed> {
    let case = Recording::load("engine", "hundred-resources");
    let whole = request(&case, "localhost:1").encode_to_vec();
    for input in [b"garbage".as_slice(), &whole[..whole.len() / 2]] {
        expect(
            &run(&["internal", "render"], input),
            1,
            "biplane: error: cannot unmarshal render request: ",
        )?;
    }
    Ok(())
}

/// An encoded bytes field with a number below sixteen.
fn field(number: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![(number << 3) | 2];
    prost::encoding::encode_varint(body.len() as u64, &mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

fn refuses_objects_that_nest_without_end() -> Result<(), Failed> {
    let mut value = vec![8, 0];
    let mut object = Vec::new();
    for _ in 0..20_000 {
        let entry = [field(1, b"a"), field(2, &value)].concat();
        object = field(1, &entry);
        value = field(5, &object);
    }
    let request = field(2, &field(1, &object));
    expect(&run(&["internal", "render"], &request), 1, "cannot unmarshal render request: ")
}

fn refuses_a_request_without_input() -> Result<(), Failed> {
    let text = "render request must set exactly one of: composite, operation, cron_operation, watch_operation";
    expect(&run(&["internal", "render"], b""), 1, text)
}

fn refuses_wrong_flags_with_code_80() -> Result<(), Failed> {
    expect(&run(&["internal", "render", "--tiemout=1s"], b""), 80, "--tiemout")?;
    expect(&run(&["internal", "render", "--timeout=soon"], b""), 80, "--timeout")?;
    expect(&run(&["internal", "rendr"], b""), 80, "rendr")
}

fn renders_at_the_time_it_is_told() -> Result<(), Failed> {
    let case = Recording::load("engine", "empty-pipeline");
    let request = request(&case, "localhost:1").encode_to_vec();
    let once = run(&["internal", "render", "--time=2031-02-03T04:05:06Z"], &request);
    let again = run(&["internal", "render", "--time=2031-02-03T04:05:06Z"], &request);
    assert_eq!(once.stdout, again.stdout, "same input, same bytes");
    let response = serde_json::to_string(&RenderResponse::decode(once.stdout.as_slice())?)?;
    assert!(response.contains("\"lastTransitionTime\":\"2031-02-03T04:05:06Z\""), "{response}");
    Ok(())
}

/// Listens, but never responds.
fn a_function_that_hangs_meets_the_timeout() -> Result<(), Failed> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let target = listener.local_addr()?.to_string();
    let case = Recording::load("engine", "one-step-one-resource");
    let said =
        run(&["internal", "render", "--timeout=300ms"], &request(&case, &target).encode_to_vec());
    expect(&said, 1, "rpc error: code = DeadlineExceeded desc = ")
}

fn a_response_of_five_megabytes_is_refused() -> Result<(), Failed> {
    let case = Recording::load("engine", "one-step-one-resource");
    let mut request = request(&case, dummy());
    let Some(Input::Composite(input)) = &mut request.input else {
        return Err("not composite".into());
    };
    let big = "x".repeat(3 * 1024 * 1024);
    let pipeline = serde_json::json!([{
        "step": "big", "functionRef": {"name": "function-dummy"},
        "input": {"apiVersion": "dummy.fn.crossplane.io/v1beta1", "kind": "Response",
                  "response": {"context": {"a": big}, "output": {"b": big}}},
    }]);
    if let Some(composition) = &mut input.composition {
        composition.make_mut()["spec"]["pipeline"] = pipeline;
    }
    // Over four MiB, so that the function's server rejects it.
    let said = run(&["internal", "render"], &request.encode_to_vec());
    expect(
        &said,
        1,
        "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (",
    )
}

/// A server that is also stopped when a test fails.
struct Server {
    child: Child,
    /// The address that it reports.
    address: String,
    stderr: Lines<BufReader<ChildStderr>>,
}

impl Server {
    /// Starts it and waits until it listens.
    fn start(address: &str, flags: &[&str]) -> Result<Self, Failed> {
        let line = [&["internal", "serve", "--address", address], flags].concat();
        let mut child = biplane(&line).spawn()?;
        let stderr = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
        let mut server = Self { child, address: String::new(), stderr };
        let first = server.stderr.next().ok_or("the server said nothing")??;
        let address = first.strip_prefix("listening on ").ok_or_else(|| first.clone())?;
        address.clone_into(&mut server.address);
        Ok(server)
    }

    /// On a free TCP port.
    fn over_tcp(flags: &[&str]) -> Result<Self, Failed> {
        Self::start("127.0.0.1:0", flags)
    }

    /// Stops it, and returns the rest of its output.
    fn stop(mut self) -> Result<Vec<String>, Failed> {
        let terminated = Command::new("kill").arg(self.child.id().to_string()).status()?;
        assert!(terminated.success());
        let said = self.stderr.by_ref().collect::<Result<_, _>>()?;
        assert!(self.child.wait()?.success(), "it stops in good order");
        Ok(said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compares a response with the recorded one.
fn compare(response: &RenderResponse, recording: &Recording) -> Result<(), Failed> {
    let ours = comparable_response(serde_json::to_value(response)?);
    let theirs = recording.json("response.json").unwrap_or_default();
    let theirs: RenderResponse = serde_json::from_value(theirs)?;
    let theirs = comparable_response(serde_json::to_value(theirs)?);
    difference("response", &ours, &theirs).map_or(Ok(()), |difference| Err(difference.into()))
}

fn a_server_answers_many_requests_and_stops_when_told() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("render.sock");
    let address = format!("unix://{}", socket.display());
    let server = Server::start(&address, &[])?;
    assert_eq!(server.address, address);

    let case = Recording::load("engine", "one-step-one-resource");
    let fatal = Recording::load("engine", "fatal-first-step");
    // Started here, because it could not be started inside the runtime that is entered below.
    let (whole, ended) = (request(&case, dummy()), request(&fatal, dummy()));
    runtime().block_on(async {
        let mut client = RenderServiceClient::connect(address.clone()).await?;
        for _ in 0..20 {
            compare(&client.render(whole.clone()).await?.into_inner(), &case)?;
        }
        let status = client.render(ended).await.expect_err("a fatal result");
        assert_eq!(status.code(), Code::Aborted);
        assert!(status.message().contains("returned a fatal result: "), "{status:?}");
        let details = tonic_types::Status::decode(status.details())?;
        assert_eq!((details.code, details.message.as_str()), (10, status.message()));
        let [partial] = &details.details[..] else { panic!("one detail: {details:?}") };
        assert_eq!(
            partial.type_url,
            "type.googleapis.com/crossplane.render.v1alpha1.RenderResponse"
        );
        let partial = RenderResponse::decode(partial.value.as_slice())?;
        assert!(partial.output.is_some(), "the partial response comes with the status");
        let status = client.render(RenderRequest::default()).await.expect_err("no input");
        assert_eq!(status.code(), Code::FailedPrecondition);
        Ok::<_, Failed>(())
    })?;

    assert_eq!(server.stop()?, [""; 0], "nothing is logged that was not asked for");
    assert!(!socket.exists(), "and leaves no socket behind");
    Ok(())
}

/// One such peer kept it alive for ever.
fn a_server_with_a_silent_peer_ends_when_told_twice() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("render.sock");
    let mut server = Server::start(&format!("unix://{}", socket.display()), &[])?;
    let _silent = std::os::unix::net::UnixStream::connect(&socket)?;
    for signal in ["-TERM", "-INT"] {
        let id = server.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status()?.success());
    }
    assert!(server.child.wait()?.success(), "it stops in good order");
    assert!(!socket.exists(), "and leaves no socket behind");
    Ok(())
}

fn a_socket_in_use_is_not_replaced_and_a_stale_one_is() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let address = format!("unix://{}", folder.path().join("render.sock").display());
    let mut first = Server::start(&address, &[])?;
    let said = Server::start(&address, &[]).err().ok_or("it took the place of the first")?;
    let want = format!("biplane: error: cannot listen at {address}: another server listens there");
    assert_eq!(said.message(), Some(want.as_str()));
    // A server that is killed leaves its socket behind.
    first.child.kill()?;
    first.child.wait()?;
    Server::start(&address, &[])?.stop()?;
    Ok(())
}

fn a_server_logs_what_it_is_asked_to() -> Result<(), Failed> {
    let case = Recording::load("engine", "one-step-one-resource");
    let request = request(&case, dummy());
    for flag in ["--debug", "--verbose"] {
        let server = Server::over_tcp(&[flag])?;
        let address = format!("http://{}", server.address);
        runtime().block_on(async {
            let mut client = RenderServiceClient::connect(address).await?;
            client.render(request.clone()).await?;
            client.render(RenderRequest::default()).await.expect_err("no input");
            Ok::<_, Failed>(())
        })?;
        let said = server.stop()?;
        let bytes = request.encoded_len();
        for want in [
            format!("\tDEBUG\tread render request\t{{\"bytes\":{bytes}}}"),
            "\tDEBUG\trendered\t{\"bytes\":".to_owned(),
            "\tDEBUG\trender failed\t{\"error\":\"render request must set".to_owned(),
        ] {
            assert!(said.iter().any(|line| line.contains(&want)), "{want} is not in {said:#?}");
        }
    }
    Ok(())
}

/// The services that a version of reflection lists. The two versions have the same messages, with
/// different names.
macro_rules! services {
    ($version:ident, $address:expr) => {
        runtime().block_on(async {
            use tonic_reflection::pb::$version::ServerReflectionRequest;
            use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
            use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
            use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;
            let ask = ServerReflectionRequest {
                host: String::new(),
                message_request: Some(MessageRequest::ListServices(String::new())),
            };
            let channel = Endpoint::from_shared($address)?.connect().await?;
            let mut client = ServerReflectionClient::new(channel);
            let answers = client.server_reflection_info(tokio_stream::once(ask)).await?;
            let answer = answers.into_inner().message().await?.ok_or("no answer")?;
            let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
                return Err(Failed::from(format!("{answer:?}")));
            };
            let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
            names.sort();
            Ok(names)
        })?
    };
}

fn a_server_describes_itself_in_both_versions() -> Result<(), Failed> {
    let server = Server::over_tcp(&[])?;
    let address = format!("http://{}", server.address);
    let services = [services!(v1, address.clone()), services!(v1alpha, address.clone())];
    for names in services {
        assert_eq!(
            names,
            [
                "biplane.render.v1alpha1.RenderService",
                "grpc.health.v1.Health",
                "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
            ]
        );
    }
    Ok(())
}

/// Renders with Python's gRPC in a folder. Returns the server's response, or the status.
fn in_python(
    folder: &Path,
    flags: &[&str],
    request: &RenderRequest,
) -> Result<Result<RenderResponse, String>, Failed> {
    let mut command = Command::new(builds::python("python"));
    command
        .arg(biplane_testkit::peers::source("function-python/render.py"))
        .args(flags)
        .current_dir(folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("no pipe")?.write_all(&request.encode_to_vec())?;
    let output = child.wait_with_output()?;
    match output.status.code() {
        Some(0) => Ok(Ok(RenderResponse::decode(output.stdout.as_slice())?)),
        Some(3) => Ok(Err(String::from_utf8_lossy(&output.stdout).into_owned())),
        code => Err(format!("{code:?}").into()),
    }
}

/// By default, Python sends the path of a socket as the authority.
fn clients_in_python_are_answered() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let case = Recording::load("engine", "one-step-one-resource");
    let request = request(&case, dummy());

    let server = Server::over_tcp(&[])?;
    let answer = in_python(folder.path(), &["--target", &server.address], &request)?;
    compare(&answer?, &case)?;

    let socket = folder.path().join("render.sock");
    let address = format!("unix://{}", socket.display());
    let _server = Server::start(&address, &[])?;
    for flags in [
        &["--target", &address][..],
        &["--target", &address, "--authority", "localhost"],
        &["--target", "unix:render.sock"],
    ] {
        compare(&in_python(folder.path(), flags, &request)??, &case)?;
    }
    Ok(())
}

/// The code is loaded at an unpredictable address.
fn the_program_is_position_independent() -> Result<(), Failed> {
    let program = std::fs::read(env!("CARGO_BIN_EXE_biplane"))?;
    if cfg!(target_os = "linux") {
        assert_eq!(&program[..4], b"\x7fELF");
        let kind = u16::from_ne_bytes([program[16], program[17]]);
        assert_eq!(kind, 3, "not ET_DYN");
    }
    Ok(())
}
