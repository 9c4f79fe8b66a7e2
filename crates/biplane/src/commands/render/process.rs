//! A function that is a program on this machine: started for one command, gone with it.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use async_trait::async_trait;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Call, FunctionRunner, RunError};
use biplane_model::gojson::quote;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::watch;

use super::watched::{self, Ended, Watched};

/// Stands for the address in a command; without it the address is appended as a flag.
const PLACEHOLDER: &str = "{address}";

/// A program that runs.
#[derive(Debug)]
pub(super) struct Process {
    watched: Watched,
    _group: Group,
}

type Log = Arc<Mutex<VecDeque<String>>>;

/// A program that leads a group of its own, with everything that it started: ended when this is
/// dropped.
#[derive(Debug)]
pub(super) struct Group(Option<u32>);

impl Group {
    /// The group of a program that has just been started as the leader of one.
    pub(super) fn of(leader: &tokio::process::Child) -> Self {
        Self(leader.id())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(group) = self.0 else { return };
        let _ = std::process::Command::new("kill")
            .args(["-KILL", "--", &format!("-{group}")])
            .stderr(Stdio::null())
            .status();
    }
}

impl Process {
    /// Starts a program that listens on a host's address, and returns it with its address on this
    /// machine. It is called once it listens.
    pub(super) fn start(name: &str, command: &[String], host: &str) -> Result<(Self, String)> {
        let port = free_port(host).context("cannot find a free port")?;
        let address = format!("{host}:{port}");
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
        let group = Group::of(&child);
        let log = Log::default();
        let readers = [
            child.stdout.take().map(|out| tokio::spawn(follow(out, log.clone()))),
            child.stderr.take().map(|err| tokio::spawn(follow(err, log.clone()))),
        ];
        let (end, ended) = watch::channel(None);
        let what = format!("the program of function {}", quote(name));
        tokio::spawn(async move {
            let status = child.wait().await;
            for reader in readers.into_iter().flatten() {
                let _ = reader.await;
            }
            let status = status.map_or_else(|e| e.to_string(), |status| status.to_string());
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            let log: Vec<_> = log.iter().map(String::as_str).collect();
            end.send_replace(Some(watched::obituary(&what, &status, &log)));
        });
        let target = format!("127.0.0.1:{port}");
        Ok((Self { watched: Watched::new(&target, ended)?, _group: group }, target))
    }

    pub(super) fn ended(&self) -> Ended {
        self.watched.ended()
    }
}

#[async_trait]
impl FunctionRunner for Process {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        self.watched.run(call, request).await
    }
}

async fn follow(out: impl AsyncRead + Unpin, log: Log) {
    let mut lines = BufReader::new(out).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == watched::LOG_LINES {
            log.pop_front();
        }
        log.push_back(line);
    }
}

fn free_port(host: &str) -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind((host, 0))?.local_addr()?.port())
}
