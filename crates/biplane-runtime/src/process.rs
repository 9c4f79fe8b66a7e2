//! Runs a function as a local process, which is started for one command and ends with it.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use biplane_go::fmt::quote;
use biplane_runner::supervised::{self, Supervised};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::watch;

use crate::process_group::{ProcessGroup, Program};
use crate::running::{LOG_LINES, Running};

/// The placeholder for the address in a command. Without it, the address is appended as a flag.
const PLACEHOLDER: &str = "{address}";
/// The maximum length of a log line that is kept.
const LINE: usize = 8 * 1024;
/// How many ports are remembered.
const MAX_RECENT_PORTS: usize = 256;

type Log = Arc<Mutex<VecDeque<String>>>;

/// Starts a process that listens on a host's address. It is called once it listens.
pub(crate) fn start(name: &str, command: &[String], host: &str) -> Result<Running> {
    let port = free_port(host).context("cannot find a free port")?;
    let address = format!("{host}:{port}");
    let (program, arguments) =
        command.split_first().ok_or_else(|| anyhow!("there is no program to start"))?;
    let mut child = tokio::process::Command::new(program);
    child.args(arguments.iter().map(|argument| argument.replace(PLACEHOLDER, &address)));
    if !command.iter().any(|argument| argument.contains(PLACEHOLDER)) {
        child.args(["--insecure".to_owned(), format!("--address={address}")]);
    }
    let (mut child, group) = ProcessGroup::lead(child.stdin(Stdio::null()))
        .with_context(|| format!("cannot start program {}", quote(program)))?;
    let group = Arc::new(group);
    let log = Log::default();
    let readers = [
        child.stdout.take().map(|out| tokio::spawn(follow(out, log.clone()))),
        child.stderr.take().map(|err| tokio::spawn(follow(err, log.clone()))),
    ];
    let (end, ended) = watch::channel(None);
    let what = format!("the program of function {}", quote(name));
    let all = group.clone();
    tokio::spawn(async move {
        let status = child.wait().await;
        // The children of the process are also killed, including those that keep its log open. This
        // must happen now, because the process group id may be reused later.
        all.end();
        let read = async {
            for reader in readers.into_iter().flatten() {
                let _ = reader.await;
            }
        };
        // A child that left the group may still keep the log open.
        let _ = tokio::time::timeout(supervised::EXIT_GRACE, read).await;
        let status = status.map_or_else(|e| e.to_string(), |status| status.to_string());
        let log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let log: Vec<_> = log.iter().map(String::as_str).collect();
        end.send_replace(Some(supervised::exit_report(&what, &status, &log)));
    });
    let target = format!("127.0.0.1:{port}");
    Ok(Running {
        runner: Arc::new(Supervised::new(&target, ended.clone())?),
        target: Some(target),
        ended: Some(ended),
        program: Some(Arc::new(Program::new(group))),
    })
}

/// Reads a log to its end, whatever it contains, because a process whose log is no longer read
/// would be killed by a broken pipe. Only the beginning of a long line is kept.
async fn follow(out: impl AsyncRead + Unpin, log: Log) {
    let mut out = BufReader::new(out);
    let mut line = Vec::new();
    while let Ok(part) = out.fill_buf().await
        && !part.is_empty()
    {
        let end = part.iter().position(|byte| *byte == b'\n');
        let (text, read) = match end {
            Some(at) => (part.get(..at).unwrap_or_default(), at + 1),
            None => (part, part.len()),
        };
        let room = LINE.saturating_sub(line.len());
        line.extend(text.iter().take(room));
        out.consume(read);
        if end.is_some() {
            keep(&log, &line);
            line.clear();
        }
    }
    if !line.is_empty() {
        keep(&log, &line);
    }
}

fn keep(log: &Log, line: &[u8]) {
    let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    if log.len() == LOG_LINES {
        log.pop_front();
    }
    log.push_back(line);
}

fn free_port(host: &str) -> io::Result<u16> {
    let bind = || {
        let listener = TcpListener::bind((host, 0))?;
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    };
    RECENT_PORTS.lock().unwrap_or_else(PoisonError::into_inner).next(bind)
}

/// Ports that were recently assigned to processes. The system considers such a port free until the
/// process listens on it.
struct RecentPorts(VecDeque<u16>);

static RECENT_PORTS: Mutex<RecentPorts> = Mutex::new(RecentPorts(VecDeque::new()));

impl RecentPorts {
    /// A free port that has not been assigned recently.
    fn next<T>(&mut self, mut bind: impl FnMut() -> io::Result<(T, u16)>) -> io::Result<u16> {
        // The system does not offer ports that are bound.
        let mut bound = Vec::new();
        loop {
            let (listener, port) = bind()?;
            if !self.0.contains(&port) {
                if self.0.len() == MAX_RECENT_PORTS {
                    self.0.pop_front();
                }
                self.0.push_back(port);
                return Ok(port);
            }
            bound.push(listener);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn log_of(text: &[u8]) -> Vec<String> {
        let log = Log::default();
        follow(text, log.clone()).await;
        let log = log.lock().unwrap();
        log.iter().cloned().collect()
    }

    #[tokio::test]
    async fn a_log_is_read_to_its_end_whatever_is_in_it() {
        let log = log_of(b"one\r\n\xff\xfe broken\n\nlast").await;
        assert_eq!(log, ["one", "\u{fffd}\u{fffd} broken", "", "last"]);
        assert!(log_of(b"").await.is_empty());
    }

    #[tokio::test]
    async fn of_long_lines_the_beginning_is_kept_and_of_many_lines_the_last() {
        let long = "x".repeat(1 << 20);
        assert_eq!(log_of(format!("{long}\nnext").as_bytes()).await, [&long[..LINE], "next"]);
        let many: Vec<_> = (0..100).map(|line| line.to_string()).collect();
        let last = &many[many.len() - LOG_LINES..];
        assert_eq!(log_of(many.join("\n").as_bytes()).await, last);
    }

    #[test]
    fn no_two_programs_are_told_the_same_port() {
        let mut recent = RecentPorts(VecDeque::new());
        let mut offered = [7, 7, 7, 8, 7, 9].into_iter();
        let mut next = || recent.next(|| Ok(((), offered.next().unwrap()))).unwrap();
        assert_eq!([next(), next(), next()], [7, 8, 9]);
        for port in 0..1000 {
            recent.next(|| Ok(((), 1000 + port))).unwrap();
        }
        assert_eq!(recent.0.len(), MAX_RECENT_PORTS);
        assert_eq!(recent.next(|| Ok(((), 7))).unwrap(), 7, "long ago");
    }

    #[tokio::test]
    async fn a_program_ends_when_nobody_needs_it_any_more() {
        let command = ["sh", "-c", "exec sleep 600"].map(str::to_owned);
        let running = start("f", &command, "127.0.0.1").unwrap();
        let ended = running.ended.clone().unwrap();
        drop(running);
        let end = supervised::end_of(ended).await;
        assert!(end.contains("signal: 9"), "{end}");
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_ends_with_it_and_not_later() {
        let script = "sleep 600 > /dev/null 2>&1 & echo $!; exit 3";
        let command = ["sh", "-c", script].map(str::to_owned);
        let running = start("f", &command, "127.0.0.1").unwrap();
        let end = supervised::end_of(running.ended.clone().unwrap()).await;
        let left = end.lines().last().unwrap();
        assert!(end.contains("exit status: 3") && left.parse::<u32>().is_ok(), "{end}");
        // The group has been signalled, although the child may take a moment to exit.
        assert!(running.program.as_ref().unwrap().has_ended());
        let stat = format!("/proc/{left}/stat");
        let is_there = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let start = std::time::Instant::now();
        while is_there() {
            assert!(start.elapsed().as_secs() < 60, "{left} is still there");
            tokio::task::yield_now().await;
        }
    }
}
