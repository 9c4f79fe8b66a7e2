//! Tests cached connections, renders that panic or compute, and the limit of those that wait.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::{Call, FunctionRunner, RunError};
use serde_json::json;

use super::*;
use biplane_console::Progress;
use biplane_console::Stderr;

/// A function that panics in every call.
struct Dying;

#[async_trait]
impl FunctionRunner for Dying {
    async fn run(&self, _: &Call, _: RunFunctionRequest) -> Result<RunFunctionResponse, RunError> {
        panic!("out of luck")
    }
}

fn request(address: &str) -> RenderRequest {
    let pipeline = json!([{"step": "only", "functionRef": {"name": "function-dying"}}]);
    let request = json!({"composite": {
        "compositeResource": {
            "apiVersion": "example.org/v1", "kind": "XThing", "metadata": {"name": "thing"},
        },
        "composition": {
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "Composition",
            "metadata": {"name": "things"},
            "spec": {
                "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"},
                "mode": "Pipeline",
                "pipeline": pipeline,
            },
        },
        "functions": [{"name": "function-dying", "address": address}],
    }});
    serde_json::from_value(request).unwrap()
}

fn serve(flags: &[&str]) -> Serve {
    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        serve: Serve,
    }
    let line = ["serve", "--address=unix:///run/x.sock"].into_iter().chain(flags.iter().copied());
    <Line as clap::Parser>::try_parse_from(line).unwrap().serve
}

/// The log lines of a server with these flags about a render that panics.
fn logged(flags: &[&str]) -> Vec<String> {
    let out = Arc::new(Mutex::new(Vec::new()));
    serve(flags).log(false).during(&Stderr::to(out.clone()), &Progress::default(), || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = logging::on_threads(builder.worker_threads(1).enable_all()).build().unwrap();
        let engine = Engine::new(Settings::default());
        let request = request("dns:///dying:9443");
        engine.connections.replace("dns:///dying:9443", Arc::new(Dying));
        // On a thread of the runtime, as in the server.
        let answer = async move { engine.render(Request::new(request)).await };
        let status = runtime.block_on(runtime.spawn(answer)).unwrap().unwrap_err();
        assert_eq!(status.code(), Code::Internal);
        assert_eq!(status.message(), "the render engine failed unexpectedly");
    });
    let text = String::from_utf8(out.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| line.split_once('\t').unwrap().1.to_owned()).collect()
}

#[test]
fn a_render_that_dies_is_logged_also_when_nothing_else_is() {
    let lines = logged(&[]);
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(line.starts_with("ERROR\trender died\t{\"error\":\"task "), "{line}");
    assert!(line.contains("panicked with message \\\"out of luck\\\""), "{line}");

    let lines = logged(&["--debug"]);
    assert!(lines[0].starts_with("DEBUG\tread render request\t{\"bytes\":"), "{lines:?}");
    assert!(lines.last().unwrap().starts_with("ERROR\trender died\t"), "{lines:?}");
}

/// A function that says that it has begun, and computes until somebody else got something done.
struct Computing(Mutex<Option<oneshot::Sender<()>>>, Mutex<mpsc::Receiver<()>>);

#[async_trait]
impl FunctionRunner for Computing {
    async fn run(&self, _: &Call, _: RunFunctionRequest) -> Result<RunFunctionResponse, RunError> {
        self.0.lock().unwrap().take().unwrap().send(()).unwrap();
        let done = self.1.lock().unwrap().recv_timeout(Duration::from_mins(1));
        done.map_err(|_| RunError::Other("nobody else was served".to_owned()))?;
        Ok(RunFunctionResponse::default())
    }
}

#[test]
fn a_render_that_computes_does_not_hold_up_other_connections() {
    // Its only thread reads and writes all connections.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let engine = Engine::new(Settings::default());
    let (begun, begins) = oneshot::channel();
    let (served, done) = mpsc::channel();
    let computing = Computing(Mutex::new(Some(begun)), Mutex::new(done));
    engine.connections.replace("dns:///busy:9443", Arc::new(computing));
    runtime.block_on(async {
        let render = engine.render(Request::new(request("dns:///busy:9443")));
        let other = async {
            begins.await.unwrap();
            served.send(()).unwrap();
        };
        // The render ends only because the other one goes on meanwhile.
        let (rendered, ()) = tokio::join!(render, other);
        rendered.unwrap();
    });
}

#[tokio::test]
async fn a_render_is_refused_when_too_many_wait() {
    let full = Engine { waiting: Semaphore::new(0), ..Engine::new(Settings::default()) };
    let status = full.render(Request::new(request("dns:///x:9443"))).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "1024 renders are waiting already");
}
