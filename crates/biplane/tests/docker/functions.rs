//! Tests functions in containers.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bollard::query_parameters::InspectContainerOptions;

use crate::Case;
use crate::daemon::Daemon;
use crate::images::{BROKEN, DEAF, FUNCTION};
use crate::work::{Ran, Work, stop, until};

pub(crate) const CASES: &[Case] = &[
    ("a_container_is_removed_after_it_was_called", a_container_is_removed_after_it_was_called),
    ("a_container_may_be_stopped_only", a_container_may_be_stopped_only),
    ("a_container_may_be_left_running", a_container_may_be_left_running),
    ("a_container_with_a_name_is_used_again", a_container_with_a_name_is_used_again),
    ("what_is_never_pulled_must_be_there", what_is_never_pulled_must_be_there),
    ("a_pull_that_fails_is_reported", a_pull_that_fails_is_reported),
    ("a_container_that_ends_is_reported_at_once", a_container_that_ends_is_reported_at_once),
    ("the_first_function_of_the_file_is_reported", the_first_function_of_the_file_is_reported),
    ("a_container_is_made_as_annotations_say", a_container_is_made_as_annotations_say),
    ("a_network_that_is_missing_is_reported", a_network_that_is_missing_is_reported),
    ("a_network_without_the_container_is_reported", a_network_without_the_container_is_reported),
    ("functions_start_side_by_side", functions_start_side_by_side),
    ("an_interrupt_leaves_no_container", an_interrupt_leaves_no_container),
    ("a_deadline_leaves_no_container", a_deadline_leaves_no_container),
    ("the_v1_output_is_rendered_through_containers", the_v1_output_is_rendered_through_containers),
    ("many_are_rendered_with_one_container", many_are_rendered_with_one_container),
    (
        "recorded_requests_are_asked_again_in_a_container",
        recorded_requests_are_asked_again_in_a_container,
    ),
];

/// RT-7, RT-8, RT-11, T-13
fn a_container_is_removed_after_it_was_called(daemon: &Daemon) {
    let work = Work::with(daemon, FUNCTION, &[]);
    let ran = work.render(&["--verbose"]);
    ran.assert_rendered();
    assert!(ran.stderr.contains("Function runs in a container"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("Cannot clean up"), "{}", ran.stderr);
    assert!(daemon.containers().is_empty());
    let quiet = work.render(&["-a=render.crossplane.io/runtime-docker-cleanup=Remove"]);
    assert_eq!((quiet.stdout, quiet.stderr.as_str()), (ran.stdout, ""));
}

/// RT-11
fn a_container_may_be_stopped_only(daemon: &Daemon) {
    let work = Work::with(daemon, FUNCTION, &[("runtime-docker-cleanup", "Stop")]);
    work.render(&[]).assert_rendered();
    assert_eq!(daemon.only_state(), "exited");
    let id = daemon.containers()[0].id.clone().unwrap();
    let inspect = daemon.docker().inspect_container(&id, None::<InspectContainerOptions>);
    let state = daemon.wait(inspect).unwrap().state.unwrap();
    assert_eq!(state.exit_code, Some(0), "it was not killed");
    daemon.remove_all();
}

/// RT-11
fn a_container_may_be_left_running(daemon: &Daemon) {
    let work = Work::with(daemon, FUNCTION, &[("runtime-docker-cleanup", "Orphan")]);
    work.render(&[]).assert_rendered();
    assert_eq!(daemon.only_state(), "running");
    work.render(&[]).assert_rendered();
    assert_eq!(daemon.containers().len(), 2, "one without a name is not used again");
    daemon.remove_all();
}

/// RT-7
fn a_container_with_a_name_is_used_again(daemon: &Daemon) {
    let name = ("runtime-docker-name", "warm");
    let cleanup = |policy| ("runtime-docker-cleanup", policy);
    Work::with(daemon, FUNCTION, &[name, cleanup("Orphan")]).render(&[]).assert_rendered();
    let id = daemon.containers()[0].id.clone();
    // The image of an existing container is neither compared nor pulled.
    let always = ("runtime-docker-pull-policy", "Always");
    let again = Work::with(daemon, "nowhere.example/x:v1", &[name, cleanup("Stop"), always]);
    again.render(&[]).assert_rendered();
    assert_eq!((daemon.only_state().as_str(), &daemon.containers()[0].id), ("exited", &id));
    // A stopped container is started.
    Work::with(daemon, FUNCTION, &[name, cleanup("Remove")]).render(&[]).assert_rendered();
    let ran = Work::with(daemon, FUNCTION, &[("runtime-docker-name", "a/b")]).render(&[]);
    ran.assert_failed(r#"cannot start Function "first": cannot inspect Docker container "a/b": Invalid container name (a/b), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed"#);
}

/// RT-7
fn what_is_never_pulled_must_be_there(daemon: &Daemon) {
    let never = ("runtime-docker-pull-policy", "Never");
    Work::with(daemon, FUNCTION, &[never]).render(&[]).assert_rendered();
    let ran = Work::with(daemon, "nowhere.example/x:v1", &[never]).render(&[]);
    ran.assert_failed(r#"biplane: error: cannot start function runtimes: cannot start Function "first": cannot create Docker container: image "nowhere.example/x:v1" not found and pull policy is "Never": Error response from daemon: No such image: nowhere.example/x:v1"#);
    assert!(!ran.stderr.contains("Pulling"), "{}", ran.stderr);
    let image = ("runtime-docker-image", FUNCTION);
    Work::with(daemon, "nowhere.example/x:v1", &[never, image]).render(&[]).assert_rendered();
}

/// RT-7, CLI-41
fn a_pull_that_fails_is_reported(daemon: &Daemon) {
    for policy in ["IfNotPresent", "Always"] {
        let policy = ("runtime-docker-pull-policy", policy);
        let ran = Work::with(daemon, "127.0.0.1:9/x:v1", &[policy]).render(&[]);
        ran.assert_failed(r#"cannot start Function "first": cannot pull Docker image "127.0.0.1:9/x:v1": Error response from daemon: "#);
        let said = "Pulling image 127.0.0.1:9/x:v1...\n✗ Pulling image 127.0.0.1:9/x:v1\n";
        assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    }
}

/// RT-12
fn a_container_that_ends_is_reported_at_once(daemon: &Daemon) {
    let ran = Work::with(daemon, BROKEN, &[]).render(&["--timeout=50s"]);
    ran.assert_failed("container");
    assert!(ran.stderr.contains("has ended (exit status: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("function-that-is-not-there"), "{}", ran.stderr);
    assert!(ran.took < Duration::from_secs(40), "{:?}", ran.took);
}

/// RX-12
fn the_first_function_of_the_file_is_reported(daemon: &Daemon) {
    let missing = [("runtime-docker-pull-policy", "Never")];
    let work = Work::with(daemon, FUNCTION, &[])
        .and("second", "nowhere.example/b:v1", &missing)
        .and("third", "nowhere.example/c:v1", &missing);
    for _ in 0..3 {
        let ran = work.render(&[]);
        ran.assert_failed(r#"cannot start Function "second": cannot create Docker container: image "nowhere.example/b:v1""#);
        assert!(daemon.containers().is_empty());
    }
    let unused = Work::new(daemon).and("first", FUNCTION, &[]);
    unused.render(&[]).assert_rendered();
}

/// RT-1, RT-3
fn a_container_is_made_as_annotations_say(daemon: &Daemon) {
    daemon.create_network("mine");
    let annotations = [
        ("runtime-docker-cleanup", "Orphan"),
        ("runtime-docker-env", "A=1,dropped,B=2=3"),
        ("runtime-docker-publish-address", "0.0.0.0"),
        ("runtime-docker-target", "localhost"),
    ];
    Work::with(daemon, FUNCTION, &annotations).render(&[]).assert_rendered();
    let id = daemon.containers()[0].id.clone().unwrap();
    let inspect = daemon.docker().inspect_container(&id, None::<InspectContainerOptions>);
    let found = daemon.wait(inspect).unwrap();
    let config = found.config.unwrap();
    let env = config.env.unwrap();
    assert!(env.contains(&"A=1".to_owned()) && env.contains(&"B=2=3".to_owned()), "{env:?}");
    assert!(!env.iter().any(|e| e.contains("dropped")), "{env:?}");
    assert_eq!(config.cmd.unwrap(), ["--insecure"]);
    let bindings = found.host_config.unwrap().port_bindings.unwrap();
    let binding = &bindings["9443/tcp"].as_ref().unwrap()[0];
    assert_eq!(binding.host_ip.as_deref(), Some("0.0.0.0"));
    daemon.remove_all();
    daemon.remove_network("mine");
}

/// RT-7, RT-9
fn a_network_that_is_missing_is_reported(daemon: &Daemon) {
    let ran = Work::with(daemon, FUNCTION, &[("runtime-docker-network", "not-there")]).render(&[]);
    // Older engines report it when the container starts, newer ones when it is created.
    ran.assert_failed(r#"cannot start Function "first": cannot "#);
    assert!(ran.stderr.contains("network not-there not found"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("Pulling"), "{}", ran.stderr);
}

/// RT-8
fn a_network_without_the_container_is_reported(daemon: &Daemon) {
    daemon.create_network("mine");
    let keep = [("runtime-docker-name", "warm"), ("runtime-docker-cleanup", "Orphan")];
    Work::with(daemon, FUNCTION, &keep).render(&[]).assert_rendered();
    let network = [keep[0], keep[1], ("runtime-docker-network", "mine")];
    let ran = Work::with(daemon, FUNCTION, &network).render(&[]);
    ran.assert_failed(r#"container "warm" is not connected to Docker network "mine"; verify the "render.crossplane.io/runtime-docker-network" annotation value matches an existing network"#);
    assert_eq!(daemon.only_state(), "running");
    daemon.remove_all();
    daemon.remove_network("mine");
}

/// If both waited for the same name, one of them would be missing.
fn functions_start_side_by_side(daemon: &Daemon) {
    let work = Work::with(daemon, FUNCTION, &[])
        .and("second", FUNCTION, &[])
        .and("third", FUNCTION, &[("runtime-docker-name", "shared")])
        .and("fourth", FUNCTION, &[("runtime-docker-name", "shared")]);
    let ran = work.render(&[]);
    ran.assert_rendered();
    assert!(ran.stdout.contains(r#"Pipeline step "fourth": hello"#), "{}", ran.stdout);
}

/// RX-12, RX-13
fn an_interrupt_leaves_no_container(daemon: &Daemon) {
    for signal in ["-INT", "-TERM"] {
        let work = Work::with(daemon, FUNCTION, &[]).and("second", DEAF, &[]);
        let mut command = work.command(&[]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        until("two containers", || {
            let running = |c: &_| matches!(c, Some(state) if format!("{state}") == "running");
            daemon.containers().iter().filter(|c| running(&c.state)).count() == 2
        });
        let (code, stderr) = stop(child, signal);
        assert_eq!((code, stderr.as_str()), (Some(130), "biplane: error: interrupted\n"));
        assert!(daemon.containers().is_empty());
    }
}

/// RX-13
fn a_deadline_leaves_no_container(daemon: &Daemon) {
    let ran = Work::with(daemon, DEAF, &[]).render(&["--timeout=4s"]);
    ran.assert_failed("code = DeadlineExceeded");
    assert!(daemon.containers().is_empty());
}

fn the_v1_output_is_rendered_through_containers(daemon: &Daemon) {
    let ran = Work::with(daemon, FUNCTION, &[]).render(&["--output-format=v1"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("message: hello"), "{}", ran.stdout);
}

fn many_are_rendered_with_one_container(daemon: &Daemon) {
    let annotations = [("runtime-docker-cleanup", "Orphan")];
    let work = Work::with(daemon, FUNCTION, &annotations);
    work.command(&[]);
    let (composition, functions) = (work.path("composition.yaml"), work.path("functions.yaml"));
    let one = std::fs::read_to_string(work.path("xr.yaml")).unwrap();
    let two = one.replace("orders-events", "other-events");
    let xrs = work.write("xrs.yaml", &format!("{one}---\n{two}"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_biplane"));
    command.arg("render").args([composition, functions]).args(["--xrs", &xrs]);
    let ran = Ran::of(command.env("DOCKER_HOST", daemon.host()));
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let has = |name: &str| ran.stdout.contains(&format!("name: {name}\n"));
    assert!(has("orders-events") && has("other-events"), "{}", ran.stdout);
    assert_eq!(daemon.only_state(), "running");
    daemon.remove_all();
}

/// What upstream's controller recorded is given to the function of an image.
fn recorded_requests_are_asked_again_in_a_container(daemon: &Daemon) {
    let work = Work::new(daemon);
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../biplane-recorder/tests/data/runs.jsonl.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let from = format!("--from={}", work.write("runs.jsonl", &text));
    let with = format!("--with={FUNCTION}");
    let step = "Gauge.plain.insp.example.org/one/2";
    let replay = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_biplane"));
        command.args(["inspector", "replay", &from, &with]).args(arguments);
        command.env("DOCKER_HOST", daemon.host()).env("HOME", work.path("")).stdin(Stdio::null());
        command.env_remove("DOCKER_CONFIG");
        Ran::of(&mut command)
    };
    for (arguments, text) in [
        (&[step][..], "The function answers the same as it did."),
        (&["--function=function-dummy"], "answered as before"),
        (&["Gauge.plain.insp.example.org/one", "--pipeline"], "Nothing would differ"),
    ] {
        let ran = replay(arguments);
        assert_eq!(ran.exit, 0, "{} {}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(text), "{}", ran.stdout);
        assert!(daemon.containers().is_empty());
    }
}
