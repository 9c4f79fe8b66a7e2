//! Runs a function as a local process, which is started for one command and ends with it.
//!
//! A program that takes the path of a socket listens in a folder that only this user may enter. Other
//! programs listen on a TCP port. That port stays bound here for as long as the program runs, so that
//! the system gives it to nobody else who asks for any free port. A program can still bind it, because
//! servers allow their addresses to be reused and this process never listens on it.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use biplane_go::fmt::quote;
use biplane_runner::supervised::{self, Supervised};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::net::TcpSocket;
use tokio::sync::watch;

use crate::process_group::{ProcessGroup, Program};
use crate::running::{LOG_LINES, Running};

/// The placeholder for the address in a command. Without it, the address is appended as a flag.
const PLACEHOLDER: &str = "{address}";
/// The placeholder for the path of a socket. A command that has it listens there instead.
const SOCKET: &str = "{socket}";
/// The maximum length of a log line that is kept.
const LINE: usize = 8 * 1024;
type Log = Arc<Mutex<VecDeque<String>>>;

/// Whether a command listens on a socket in the file system.
pub(crate) fn has_socket(command: &[String]) -> bool {
    command.iter().any(|argument| argument.contains(SOCKET))
}

/// Starts a process that listens on a socket, or on a host's address. It is called once it listens.
pub(crate) fn start(name: &str, command: &[String], host: IpAddr) -> Result<Running> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| anyhow!("there is no program to start"))?;
    let has_socket = has_socket(command);
    let place = if has_socket { Place::socket()? } else { Place::port(host)? };
    let mut child = tokio::process::Command::new(program);
    child.args(arguments.iter().map(|argument| place.put_into(argument)));
    if !has_socket && !command.iter().any(|argument| argument.contains(PLACEHOLDER)) {
        child.args(["--insecure".to_owned(), format!("--address={}", place.address)]);
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
    let Place { target, folder, reserved, .. } = place;
    tokio::spawn(async move {
        let status = child.wait().await;
        drop(reserved);
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
    Ok(Running {
        runner: Arc::new(Supervised::new(&target, ended.clone())?),
        target: Some(target),
        ended: Some(ended),
        program: Some(Arc::new(Program::new(group, folder))),
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

/// Where a program listens.
struct Place {
    /// As the program is told.
    address: String,
    /// As it is called.
    target: String,
    /// The folder of the socket.
    folder: Option<tempfile::TempDir>,
    /// Keeps the port from being given to others.
    reserved: Option<TcpSocket>,
}

impl Place {
    /// A socket in a new folder that only this user may enter.
    fn socket() -> Result<Self> {
        let private = std::fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().permissions(private).tempdir();
        let folder = folder.context("cannot make a folder for its socket")?;
        let path = folder.path().join("function.sock");
        let address = path.to_str().ok_or_else(|| anyhow!("the path of its socket is not text"))?;
        let (address, target) = (address.to_owned(), format!("unix://{address}"));
        Ok(Self { address, target, folder: Some(folder), reserved: None })
    }

    /// A port that nobody uses.
    fn port(host: IpAddr) -> Result<Self> {
        let (reserved, port) = reserve(host).context("cannot find a free port")?;
        let address = std::net::SocketAddr::from((host, port)).to_string();
        // Elsewhere, a program cannot bind a port that is bound already.
        let reserved = cfg!(target_os = "linux").then_some(reserved);
        Ok(Self { target: address.clone(), address, folder: None, reserved })
    }

    fn put_into(&self, argument: &str) -> String {
        argument.replace(SOCKET, &self.address).replace(PLACEHOLDER, &self.address)
    }
}

fn reserve(host: IpAddr) -> io::Result<(TcpSocket, u16)> {
    let socket = if host.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind((host, 0).into())?;
    let port = socket.local_addr()?.port();
    Ok((socket, port))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;
    use std::str::FromStr as _;

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

    #[tokio::test]
    async fn a_port_is_kept_for_its_program_and_for_nobody_else() {
        let host = IpAddr::from([127, 0, 0, 1]);
        let place = Place::port(host).unwrap();
        let taken = std::net::SocketAddr::from_str(&place.address).unwrap();
        for _ in 0..100 {
            assert_ne!(reserve(host).unwrap().1, taken.port());
        }
        // A server listens there although the port is kept.
        let server = tokio::net::TcpListener::bind(taken).await.unwrap();
        let (client, _) = tokio::join!(tokio::net::TcpStream::connect(taken), server.accept());
        client.unwrap();
    }

    #[test]
    fn a_program_may_be_told_a_socket_that_only_this_user_reaches() {
        let place = Place::socket().unwrap();
        assert_eq!(place.put_into("--address={socket}"), format!("--address={}", place.address));
        assert_eq!(place.target, format!("unix://{}", place.address));
        let folder = std::path::Path::new(&place.address).parent().unwrap();
        assert_eq!(std::fs::metadata(folder).unwrap().mode() & 0o777, 0o700);
    }

    #[tokio::test]
    async fn a_program_ends_when_nobody_needs_it_any_more() {
        let command = ["sh", "-c", "exec sleep 600"].map(str::to_owned);
        let running = start("f", &command, [127, 0, 0, 1].into()).unwrap();
        let ended = running.ended.clone().unwrap();
        drop(running);
        let end = supervised::end_of(ended).await;
        assert!(end.contains("signal: 9"), "{end}");
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_ends_with_it_and_not_later() {
        let script = "sleep 600 > /dev/null 2>&1 & echo $!; exit 3";
        let command = ["sh", "-c", script].map(str::to_owned);
        let running = start("f", &command, [127, 0, 0, 1].into()).unwrap();
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
