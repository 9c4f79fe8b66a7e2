//! Tests render engines in containers.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::Case;
use crate::daemon::Daemon;
use crate::images::{BROKEN, DEAF, ENGINE, FUNCTION};
use crate::work::{Ran, Work, stop, until};

pub(crate) const CASES: &[Case] = &[
    ("an_engine_calls_functions_in_containers", an_engine_calls_functions_in_containers),
    ("an_engine_calls_functions_on_this_machine", an_engine_calls_functions_on_this_machine),
    ("an_engine_is_given_context", an_engine_is_given_context),
    ("nobody_else_reaches_functions_for_an_engine", nobody_else_reaches_functions_for_an_engine),
    ("a_warm_container_serves_engines_and_others", a_warm_container_serves_engines_and_others),
    ("an_engine_joins_the_network_it_is_given", an_engine_joins_the_network_it_is_given),
    ("an_engine_that_fails_is_quoted", an_engine_that_fails_is_quoted),
    ("an_image_that_is_missing_is_reported", an_image_that_is_missing_is_reported),
    (
        "a_function_that_ends_is_reported_under_an_engine",
        a_function_that_ends_is_reported_under_an_engine,
    ),
    ("an_engine_that_is_interrupted_is_removed", an_engine_that_is_interrupted_is_removed),
    ("an_engine_far_away_has_no_context", an_engine_far_away_has_no_context),
];

fn image(image: &str) -> String {
    format!("--crossplane-image={image}")
}

/// ENG-4, ENG-5, ENG-6
fn an_engine_calls_functions_in_containers(daemon: &Daemon) {
    let work = Work::with(daemon, FUNCTION, &[]).and("second", FUNCTION, &[]);
    let ran = work.render(&[&image(ENGINE)]);
    ran.assert_rendered();
    assert!(ran.stdout.contains(r#"Pipeline step "second": hello"#), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
    let ours = work.render(&[]);
    assert_eq!(ran.stdout, ours.stdout);
}

/// A function that listens on all addresses of this machine.
struct Served {
    child: Child,
    port: u16,
}

impl Served {
    fn start() -> Self {
        let port = std::net::TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new(env!("CARGO_BIN_EXE_biplane"))
            .args(["function", "serve", "dummy", "--insecure", "--metrics-address="])
            .arg(format!("--address=0.0.0.0:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("\"serving\""), "{said}");
        Self { child, port }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// ENG-5, T-26
fn an_engine_calls_functions_on_this_machine(daemon: &Daemon) {
    let served = Served::start();
    let port = served.port;
    let program = env!("CARGO_BIN_EXE_biplane");
    for target in [format!("localhost:{port}"), format!("dns:///127.0.0.1:{port}")] {
        let work = Work::with(
            daemon,
            "x",
            &[("runtime", "Development"), ("runtime-development-target", &target)],
        )
        .and("second", "crossplane-contrib/function-dummy:v1", &[])
        .and(
            "third",
            "x",
            &[
                ("runtime", "Process"),
                (
                    "runtime-process-command",
                    &format!(
                        r#"["{program}", "function", "serve", "dummy", "--metrics-address="]"#
                    ),
                ),
            ],
        );
        let ran = work.render(&[&image(ENGINE), "--allow-process"]);
        ran.assert_rendered();
        assert!(ran.stdout.contains(r#"Pipeline step "third": hello"#), "{}", ran.stdout);
        assert!(daemon.containers().is_empty());
    }
}

/// RX-40 to RX-43, ENG-7
fn an_engine_is_given_context(daemon: &Daemon) {
    let ran = Work::with(daemon, FUNCTION, &[]).render(&[
        &image(ENGINE),
        "-c",
        "--context-values=region=eu",
    ]);
    ran.assert_rendered();
    let context =
        "---\napiVersion: render.crossplane.io/v1beta1\nfields:\n  from: first\nkind: Context\n";
    let with_seed = "---\napiVersion: render.crossplane.io/v1beta1\nfields:\n  from: first\n  region: eu\nkind: Context\n";
    assert!(ran.stdout.ends_with(context) || ran.stdout.ends_with(with_seed), "{}", ran.stdout);
}

/// They have no credentials.
fn nobody_else_reaches_functions_for_an_engine(daemon: &Daemon) {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("address");
    let script = format!(
        "echo \"$0\" > {}; exec {} function serve dummy --insecure --metrics-address= --address=\"$0\"",
        told.display(),
        env!("CARGO_BIN_EXE_biplane"),
    );
    let command = serde_json::json!(["sh", "-c", script, "{address}"]).to_string();
    let process = [("runtime", "Process"), ("runtime-process-command", command.as_str())];
    // The last one is never ready, so that the engine waits for it.
    let work = Work::with(daemon, "crossplane-contrib/function-dummy:v1", &[])
        .and("second", "example.org/second:v1", &process)
        .and("third", DEAF, &[]);
    let mut command = work.command(&["-c", "--allow-process", &image(ENGINE)]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("an engine and a function", || daemon.containers().len() == 2);
    // One for the function and one for the context.
    until("listening for the engine", || listeners(child.id()).len() == 2);
    for address in listeners(child.id()) {
        assert!(address.starts_with("172."), "{address}");
    }
    until("a program", || std::fs::read_to_string(&told).is_ok_and(|text| text.ends_with('\n')));
    let told = std::fs::read_to_string(told).unwrap();
    assert!(told.starts_with("172."), "{told}");
    let (code, _) = stop(child, "-INT");
    assert_eq!(code, Some(130));
}

/// The IPv4 addresses on which a process listens. Any that are not IPv4 are shown as they are.
fn listeners(process: u32) -> Vec<String> {
    let sockets = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let sockets = sockets.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    let sockets: Vec<_> = sockets.map(|link| link.display().to_string()).collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let table = std::fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap();
        for line in table.lines().skip(1) {
            let fields: Vec<_> = line.split_whitespace().collect();
            let (address, state, inode) = (fields[1], fields[3], fields[9]);
            if state != "0A" || !sockets.contains(&format!("socket:[{inode}]")) {
                continue;
            }
            let address = address.split(':').next().unwrap();
            let number = u32::from_str_radix(address, 16).map(u32::swap_bytes);
            found.push(
                number.map_or(address.to_owned(), |n| std::net::Ipv4Addr::from(n).to_string()),
            );
        }
    }
    found
}

/// RT-14
fn a_warm_container_serves_engines_and_others(daemon: &Daemon) {
    let keep = [("runtime-docker-name", "warm"), ("runtime-docker-cleanup", "Orphan")];
    let work = Work::with(daemon, FUNCTION, &keep);
    // Created for an engine, then used with another engine, and with the built-in one.
    work.render(&[&image(ENGINE)]).assert_rendered();
    let id = daemon.containers()[0].id.clone();
    assert!(daemon.networks().is_empty(), "{:?}", daemon.networks());
    work.render(&[&image(ENGINE)]).assert_rendered();
    work.render(&[]).assert_rendered();
    work.render(&["-a=render.crossplane.io/runtime-docker-cleanup=Stop", &image(ENGINE)])
        .assert_rendered();
    assert_eq!((daemon.only_state().as_str(), &daemon.containers()[0].id), ("exited", &id));
    work.render(&[&image(ENGINE)]).assert_rendered();
    assert_eq!((daemon.only_state().as_str(), &daemon.containers()[0].id), ("running", &id));
    daemon.remove_all();
}

/// RX-9, ENG-4, T-27
fn an_engine_joins_the_network_it_is_given(daemon: &Daemon) {
    daemon.create_network("n0");
    daemon.create_network("n1");
    let work = Work::with(daemon, FUNCTION, &[]);
    work.render(&[&image(ENGINE), "--crossplane-docker-network=n0"]).assert_rendered();
    assert_eq!(daemon.networks().len(), 2);
    let n1 = [("runtime-docker-network", "n1"), ("runtime-docker-cleanup", "Orphan")];
    Work::with(daemon, FUNCTION, &n1)
        .and("second", FUNCTION, &[("runtime-docker-cleanup", "Orphan")])
        .render(&[&image(ENGINE)])
        .assert_rendered();
    for container in daemon.containers() {
        let networks = container.network_settings.unwrap().networks.unwrap();
        assert_eq!(networks.into_keys().collect::<Vec<_>>(), ["n1"]);
    }
    daemon.remove_all();
    daemon.remove_network("n0");
    daemon.remove_network("n1");
}

/// ENG-6, T-24
fn an_engine_that_fails_is_quoted(daemon: &Daemon) {
    let ran = Work::with(daemon, FUNCTION, &[]).render(&[&image(FUNCTION)]);
    ran.assert_failed("biplane: error: cannot render composite resource: crossplane internal render in Docker returned error with output: ");
    assert!(ran.stderr.contains("internal"), "{}", ran.stderr);
    assert!(ran.stderr.contains(": container exited with status 80"), "{}", ran.stderr);
    let fatal = Work::with(daemon, FUNCTION, &[]);
    let mut command = fatal.command(&[&image(ENGINE)]);
    let composition = std::fs::read_to_string(fatal.path("composition.yaml")).unwrap();
    fatal.write("composition.yaml", &composition.replace("SEVERITY_NORMAL", "SEVERITY_FATAL"));
    let ran = Ran::of(&mut command);
    ran.assert_failed("cannot render composite resource: crossplane internal render in Docker: pipeline returned fatal: ");
    assert_eq!(ran.stderr.matches("returned a fatal result: hello").count(), 1, "{}", ran.stderr);
}

/// ENG-5, T-29
fn an_image_that_is_missing_is_reported(daemon: &Daemon) {
    let work = Work::with(daemon, FUNCTION, &[]);
    let output = "biplane: error: cannot render composite resource: crossplane internal render in Docker returned error with output: : ";
    for (flags, want) in [
        (
            vec![image("engine:v1")],
            r#"cannot resolve registry for image "engine:v1": cannot parse image reference "engine:v1": "#,
        ),
        (
            vec![image("127.0.0.1:9/engine:v1")],
            r#"failed to pull image "127.0.0.1:9/engine:v1": Error response from daemon: "#,
        ),
        (
            vec![image("127.0.0.1:9/engine:v1"), "--crossplane-pull-policy=Never".into()],
            "failed to create container: Error response from daemon: No such image: 127.0.0.1:9/engine:v1",
        ),
        (
            vec![image(ENGINE), "--crossplane-pull-policy=Always".into()],
            r#"failed to pull image "biplane.example/tests:engine": "#,
        ),
    ] {
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        work.render(&flags).assert_failed(&format!("{output}{want}"));
        daemon.assert_empty();
    }
}

/// RT-12
fn a_function_that_ends_is_reported_under_an_engine(daemon: &Daemon) {
    let ran =
        Work::with(daemon, FUNCTION, &[]).and("second", BROKEN, &[]).render(&[&image(ENGINE)]);
    ran.assert_failed("has ended (exit status: ");
    assert!(ran.stderr.contains("function-that-is-not-there"), "{}", ran.stderr);
}

/// RX-13
fn an_engine_that_is_interrupted_is_removed(daemon: &Daemon) {
    let work = Work::with(daemon, FUNCTION, &[]).and("second", DEAF, &[]);
    let mut command = work.command(&[&image(ENGINE)]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("three containers", || daemon.containers().len() == 3);
    let (code, stderr) = stop(child, "-INT");
    assert_eq!((code, stderr.as_str()), (Some(130), "biplane: error: interrupted\n"));
}

/// ENG-7, T-30
fn an_engine_far_away_has_no_context(daemon: &Daemon) {
    let work = Work::with(daemon, "crossplane-contrib/function-dummy:v1", &[]);
    let far = |flags: &[&str]| Ran::of(work.command(flags).env("DOCKER_HOST", "tcp://127.0.0.1:9"));
    far(&["-c", &image(ENGINE)]).assert_failed("biplane: error: context handling via --context-values/--context-files/--include-context requires a local Docker daemon or Crossplane controller binary\n");
    far(&[&image(ENGINE)]).assert_failed("cannot create Docker network for rendering: Cannot connect to the Docker daemon at tcp://127.0.0.1:9. Is the docker daemon running?");
    let binary = format!("--crossplane-binary={}", env!("CARGO_BIN_EXE_biplane"));
    let ran = far(&["-c", &binary]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let docker = far(&["-a=render.crossplane.io/runtime=Docker"]);
    docker.assert_failed(r#"cannot start Function "first": Cannot connect to the Docker daemon at tcp://127.0.0.1:9. Is the docker daemon running?"#);
    assert!(docker.stderr.contains("Functions also run without Docker"), "{}", docker.stderr);
}
