//! A function that is a program on this machine: started for one command, gone with it.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use async_trait::async_trait;
use biplane_function::grpc::Security;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Call, FunctionRunner, GrpcRunner, RunError};
use biplane_model::gojson::quote;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Stands for the address in a command; without it the address is appended as a flag.
const PLACEHOLDER: &str = "{address}";
/// How much of its log is shown when a program ends.
const LOG_LINES: usize = 20;

/// A program that runs.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    grpc: GrpcRunner,
    ended: watch::Receiver<Option<String>>,
    log: Log,
    _group: Group,
}

type Log = Arc<Mutex<VecDeque<String>>>;

/// Everything that the program started, ended when this is dropped.
#[derive(Debug)]
struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::process::Command::new("kill")
            .args(["-KILL", "--", &format!("-{}", self.0)])
            .stderr(Stdio::null())
            .status();
    }
}

/// Becomes true when someone asks this process to stop, which it then does not do by itself.
pub(super) fn interrupted() -> Result<watch::Receiver<bool>> {
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let (mut interrupt, mut terminate) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let (send, receive) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        send.send_replace(true);
    });
    Ok(receive)
}

impl Process {
    /// Starts a program and returns it with its address. It is called once it listens.
    pub(super) fn start(name: &str, command: &[String]) -> Result<(Self, String)> {
        let address = free_address().context("cannot find a free port")?;
        let (program, arguments) =
            command.split_first().ok_or_else(|| anyhow!("there is no program to start"))?;
        let mut child = tokio::process::Command::new(program);
        child.args(arguments.iter().map(|argument| argument.replace(PLACEHOLDER, &address)));
        if !command.iter().any(|argument| argument.contains(PLACEHOLDER)) {
            child.args(["--insecure".to_owned(), format!("--address={address}")]);
        }
        let mut child = child
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start program {}", quote(program)))?;
        let group = Group(child.id().unwrap_or_default());
        let log = Log::default();
        let readers = [
            child.stdout.take().map(|out| tokio::spawn(follow(out, log.clone()))),
            child.stderr.take().map(|err| tokio::spawn(follow(err, log.clone()))),
        ];
        let (end, ended) = watch::channel(None);
        tokio::spawn(async move {
            let status = child.wait().await;
            for reader in readers.into_iter().flatten() {
                let _ = reader.await;
            }
            let status = status.map_or_else(|e| e.to_string(), |status| status.to_string());
            end.send_replace(Some(status));
        });
        let grpc = GrpcRunner::new(&address, Security::Plaintext).map_err(|e| anyhow!("{e}"))?;
        Ok((Self { name: name.to_owned(), grpc, ended, log, _group: group }, address))
    }

    async fn failure(&self) -> RunError {
        let mut ended = self.ended.clone();
        let status = match ended.wait_for(Option::is_some).await {
            Ok(status) => status.clone().unwrap_or_default(),
            Err(_) => "unknown status".to_owned(),
        };
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let log: Vec<_> = log.iter().map(String::as_str).collect();
        let log = if log.is_empty() { "it wrote nothing".into() } else { log.join("\n") };
        RunError::Failed(format!(
            "the program of function {} has ended ({status}):\n{log}",
            quote(&self.name)
        ))
    }
}

#[async_trait]
impl FunctionRunner for Process {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        tokio::select! {
            answer = self.grpc.run(call, request) => answer,
            failure = self.failure() => Err(failure),
        }
    }
}

async fn follow(out: impl AsyncRead + Unpin, log: Log) {
    let mut lines = BufReader::new(out).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == LOG_LINES {
            log.pop_front();
        }
        log.push_back(line);
    }
}

fn free_address() -> std::io::Result<String> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
