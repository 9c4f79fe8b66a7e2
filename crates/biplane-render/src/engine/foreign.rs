//! Runs another binary as the engine: request on stdin, response on stdout, errors on stderr.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use async_trait::async_trait;
use biplane_console::Deadline;
use biplane_console::os::reason;
use biplane_function::Function;
use biplane_function::serve::{self, Config};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::render::v1alpha1::{
    FunctionInput, RenderRequest, RenderResponse, render_request::Input,
};
use biplane_runner::{Call, FunctionRunner, context};
use biplane_runtime::Runners;
use biplane_runtime::process_group::ProcessGroup;
use prost::Message;
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;
use tonic::Status;

/// The command of an engine, as errors name it.
const INTERNAL_RENDER: &str = "crossplane internal render";
/// The exit code of an engine when a function ended the pipeline.
const FATAL: i32 = 3;
const USAGE_ERROR: i32 = 80;
const HINT: &str = "\nThe binary must be the one of the controller, which knows `internal render`. Without --crossplane-binary neither it nor Docker is needed.";

/// Renders with a binary. Functions without an address are served while it runs.
pub(in crate::engine) async fn render(
    binary: &Path,
    mut request: RenderRequest,
    runners: &Runners,
    deadline: Deadline,
) -> Result<RenderResponse> {
    let (functions, _served) = addresses(runners, "127.0.0.1:0").await?;
    set_functions(&mut request, functions);
    let run = run(binary, request.encode_to_vec());
    let output = tokio::select! {
        output = tokio::time::timeout(deadline.remaining(), run) => output,
        end = runners.first_end() => bail!(end),
    };
    let output = output.map_err(|_| {
        anyhow!(
            "{INTERNAL_RENDER} returned error with output: : signal: killed\nIt was ended since the time that --timeout allows was over."
        )
    })??;
    let status = status(output.status);
    answer(INTERNAL_RENDER, output.status.code(), &output.stdout, &output.stderr, &status)
}

/// Functions that are served to another engine. The servers stop when this is dropped.
#[derive(Default)]
pub(in crate::engine) struct ServedFunctions(Vec<oneshot::Sender<()>>);

/// The addresses of the functions. Functions without an address are served at `listen`, on a local
/// port.
pub(in crate::engine) async fn addresses(
    runners: &Runners,
    listen: &str,
) -> Result<(Vec<FunctionInput>, ServedFunctions)> {
    let (mut inputs, mut served) = (Vec::new(), ServedFunctions::default());
    for (name, running) in runners.iter() {
        let address = if let Some(target) = &running.target {
            target.clone()
        } else {
            let (stop, stopped) = oneshot::channel();
            served.0.push(stop);
            serve(name, running.runner.clone(), listen, stopped).await?
        };
        inputs.push(FunctionInput { name: name.clone(), address });
    }
    Ok((inputs, served))
}

pub(in crate::engine) fn set_functions(request: &mut RenderRequest, functions: Vec<FunctionInput>) {
    match &mut request.input {
        Some(Input::Composite(input)) => input.functions = functions,
        Some(Input::Operation(input)) => input.functions = functions,
        _ => {}
    }
}

async fn run(binary: &Path, request: Vec<u8>) -> Result<std::process::Output> {
    let attempted = || format!("{INTERNAL_RENDER} returned error with output: ");
    let mut engine = tokio::process::Command::new(binary);
    engine.args(["internal", "render"]).stdin(Stdio::piped());
    // An engine may be a script that starts the real one.
    let (mut child, _group) = ProcessGroup::lead(&mut engine)
        .map_err(|error| anyhow!("fork/exec {}: {}", binary.display(), reason(&error)))
        .with_context(attempted)?;
    let mut stdin = child.stdin.take();
    let write = async {
        if let Some(stdin) = &mut stdin {
            // An engine that does not read its input reports the reason on stderr.
            let _ = stdin.write_all(&request).await;
        }
        drop(stdin);
    };
    let (output, ()) = tokio::join!(child.wait_with_output(), write);
    output.with_context(attempted)
}

/// How a process ended, with Go's message.
fn status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(2)) => "signal: interrupt".to_owned(),
        (None, Some(6)) => "signal: aborted".to_owned(),
        (None, Some(11)) => "signal: segmentation fault".to_owned(),
        (None, Some(15)) => "signal: terminated".to_owned(),
        (None, _) => "signal: killed".to_owned(),
    }
}

/// The result of an engine. `attempted` is the command, `status` its exit status.
pub(in crate::engine) fn answer(
    attempted: &str,
    code: Option<i32>,
    stdout: &[u8],
    stderr: &[u8],
    status: &str,
) -> Result<RenderResponse> {
    let stderr = String::from_utf8_lossy(stderr);
    let response = || RenderResponse::decode(stdout);
    match code {
        Some(0) => response().context("cannot unmarshal render response"),
        Some(FATAL) if !stdout.is_empty() => match response() {
            Ok(_) => bail!("{attempted}: pipeline returned fatal: {stderr}"),
            Err(error) => bail!(
                "cannot unmarshal partial render response after pipeline fatal: {stderr}: {error}"
            ),
        },
        code => {
            let unaware =
                code == Some(USAGE_ERROR) && stderr.contains("unexpected argument internal");
            let hint = if unaware { HINT } else { "" };
            bail!("{attempted} returned error with output: {stderr}: {status}{hint}")
        }
    }
}

/// Serves an in-process function until `stopped` and returns its local address.
async fn serve(
    name: &str,
    runner: Arc<dyn FunctionRunner>,
    listen: &str,
    stopped: oneshot::Receiver<()>,
) -> Result<String> {
    let config = Config {
        address: listen.to_owned(),
        insecure: true,
        metrics_address: None,
        max_receive_size: usize::MAX,
        ..Config::default()
    };
    let function = Arc::new(Served { name: name.to_owned(), runner });
    let stop = async move { drop(stopped.await) };
    // The future is large, and it is part of every render.
    let running = Box::pin(serve::start(function, config, stop)).await;
    let attempted = if name == context::FUNCTION {
        "cannot start context function".to_owned()
    } else {
        format!("cannot serve function {name:?}")
    };
    Ok(running.context(attempted)?.target().to_owned())
}

struct Served {
    name: String,
    runner: Arc<dyn FunctionRunner>,
}

#[async_trait]
impl Function for Served {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let call = Call { function: self.name.clone(), ..Call::default() };
        self.runner.run(&call, request).await.map_err(|e| Status::unknown(e.to_string()))
    }
}
