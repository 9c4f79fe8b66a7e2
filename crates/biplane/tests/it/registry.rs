//! A local registry that serves tags in pages of two, and counts requests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How long a response may be delayed until other requests arrive.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait before assuming that no other request arrives.
const SILENCE: Duration = Duration::from_millis(300);

type Repositories = Vec<(String, Vec<String>)>;

#[derive(Debug)]
pub(crate) struct Registry {
    address: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    /// Delays responses until this many requests are concurrent.
    together: usize,
    now: usize,
    peak: usize,
    asked: usize,
}

impl Registry {
    pub(crate) fn start(repositories: &[(&str, &[&str])]) -> Self {
        Self::together(1, repositories)
    }

    /// A registry that does not respond before this many requests have arrived.
    pub(crate) fn together(together: usize, repositories: &[(&str, &[&str])]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new((Mutex::new(State { together, ..State::default() }), Condvar::new()));
        let owned = |tags: &[&str]| tags.iter().map(|&tag| tag.to_owned()).collect();
        let repositories: Repositories =
            repositories.iter().map(|(path, tags)| ((*path).to_owned(), owned(tags))).collect();
        let (repositories, shared) = (Arc::new(repositories), state.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (repositories, shared) = (repositories.clone(), shared.clone());
                std::thread::spawn(move || answer(&stream.unwrap(), &repositories, &shared));
            }
        });
        Self { address, state }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The number of requests for tags so far, and the maximum number of concurrent ones.
    pub(crate) fn asked(&self) -> (usize, usize) {
        let state = self.state.0.lock().unwrap();
        (state.asked, state.peak)
    }
}

fn answer(stream: &TcpStream, repositories: &Repositories, state: &(Mutex<State>, Condvar)) {
    let mut lines = BufReader::new(stream).lines();
    let Some(Ok(request)) = lines.next() else { return };
    while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
    let known =
        repositories.iter().find(|(path, _)| request.contains(&format!(" /v2/{path}/tags/list?")));
    let (status, body) = match known {
        _ if request.starts_with("GET /v2/ ") => ("200 OK", serde_json::json!({})),
        Some((path, tags)) => {
            let last = request.split("last=").nth(1).and_then(|s| s.split([' ', '&']).next());
            if last.is_none() {
                meet(state);
            }
            let start = tags.iter().position(|tag| Some(tag.as_str()) == last).map_or(0, |i| i + 1);
            let page = tags.get(start..tags.len().min(start + 2)).unwrap_or_default();
            ("200 OK", serde_json::json!({"name": path, "tags": page}))
        }
        None => ("404 Not Found", serde_json::json!({})),
    };
    let body = body.to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let mut stream = stream;
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

/// Waits for the expected concurrent requests, and for additional ones.
fn meet((state, changed): &(Mutex<State>, Condvar)) {
    let mut state = state.lock().unwrap();
    state.asked += 1;
    state.now += 1;
    state.peak = state.peak.max(state.now);
    changed.notify_all();
    let together = state.together;
    if together > 1 {
        let alone = |state: &mut State| state.peak < together;
        state = changed.wait_timeout_while(state, PATIENCE, alone).unwrap().0;
        let enough = |state: &mut State| state.peak == together;
        state = changed.wait_timeout_while(state, SILENCE, enough).unwrap().0;
    }
    state.now -= 1;
}
