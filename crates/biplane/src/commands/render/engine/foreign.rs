//! Another binary as the engine: request on stdin, response on stdout, words on stderr.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use async_trait::async_trait;
use biplane_function::serve::{self, Config};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Call, Function, FunctionRunner};
use biplane_proto::render::v1alpha1::{
    FunctionInput, RenderRequest, RenderResponse, render_request::Input,
};
use prost::Message;
use tokio::io::AsyncWriteExt;
use tonic::Status;

use super::super::functions::Runners;

/// What an engine exits with whose pipeline was ended by a function.
const FATAL: i32 = 3;
const USAGE_ERROR: i32 = 80;
const HINT: &str = "\nThe binary must be the one of the controller, which knows `internal render`. Without --crossplane-binary neither it nor Docker is needed.";

/// Renders with a binary. Functions without an address are served for as long as it runs.
pub(super) async fn render(
    binary: &Path,
    mut request: RenderRequest,
    runners: &Runners,
    timeout: Duration,
) -> Result<RenderResponse> {
    let mut inputs = Vec::new();
    for (name, running) in runners {
        let address = match &running.target {
            Some(target) => target.clone(),
            None => serve(name, running.runner.clone()).await?,
        };
        inputs.push(FunctionInput { name: name.clone(), address });
    }
    match &mut request.input {
        Some(Input::Composite(input)) => input.functions = inputs,
        Some(Input::Operation(input)) => input.functions = inputs,
        _ => {}
    }
    let run = run(binary, request.encode_to_vec());
    let output = tokio::time::timeout(timeout, run).await.map_err(|_| {
        anyhow!("crossplane internal render returned error with output: : signal: killed")
    })??;
    answer(&output)
}

async fn run(binary: &Path, request: Vec<u8>) -> Result<std::process::Output> {
    let attempted = "crossplane internal render returned error with output: ";
    let mut child = tokio::process::Command::new(binary)
        .args(["internal", "render"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context(attempted)?;
    let mut stdin = child.stdin.take();
    let write = async {
        if let Some(stdin) = &mut stdin {
            // An engine that does not read says why on stderr.
            let _ = stdin.write_all(&request).await;
        }
        drop(stdin);
    };
    let (output, ()) = tokio::join!(child.wait_with_output(), write);
    output.context(attempted)
}

fn answer(output: &std::process::Output) -> Result<RenderResponse> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let response = || RenderResponse::decode(output.stdout.as_slice());
    match output.status.code() {
        Some(0) => response().context("cannot unmarshal render response"),
        Some(FATAL) if !output.stdout.is_empty() => match response() {
            Ok(_) => bail!("crossplane internal render: pipeline returned fatal: {stderr}"),
            Err(error) => bail!(
                "cannot unmarshal partial render response after pipeline fatal: {stderr}: {error}"
            ),
        },
        code => {
            let status = code.map_or("signal: killed".into(), |code| format!("exit status {code}"));
            let unaware =
                code == Some(USAGE_ERROR) && stderr.contains("unexpected argument internal");
            let hint = if unaware { HINT } else { "" };
            bail!("crossplane internal render returned error with output: {stderr}: {status}{hint}")
        }
    }
}

/// Serves a function of ours on loopback and returns its address.
async fn serve(name: &str, runner: Arc<dyn FunctionRunner>) -> Result<String> {
    let config = Config {
        address: "127.0.0.1:0".to_owned(),
        insecure: true,
        metrics_address: None,
        max_receive_size: usize::MAX,
        ..Config::default()
    };
    let function = Arc::new(Served { name: name.to_owned(), runner });
    let running = serve::start(function, config, std::future::pending()).await;
    Ok(running.with_context(|| format!("cannot serve function {name:?}"))?.target().to_owned())
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
