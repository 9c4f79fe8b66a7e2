//! Tests the pages of the recorder as the program serves them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::support::{Folder, example, run};

/// A program that serves pages. It is killed if a test fails.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_biplane"))
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening") {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "it has ended");
        }
        child.stderr = Some(log.into_inner());
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = find(&line, "address").unwrap();
        Self { child, address }
    }

    /// Asks for a page: the head and the body.
    fn ask(&self, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn get(&self, path: &str, headers: &str) -> (String, String) {
        let host = &self.address;
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A text field somewhere in a line of the log.
fn find(value: &serde_json::Value, name: &str) -> Option<String> {
    match value {
        serde_json::Value::Object(fields) => match fields.get(name) {
            Some(serde_json::Value::String(text)) => Some(text.clone()),
            _ => fields.values().find_map(|value| find(value, name)),
        },
        _ => None,
    }
}

/// A store with the example.
fn store(folder: &Folder) -> String {
    let store = format!("--store={}", folder.at("recorder.db").display());
    for (command, file) in [("inspector", "emissions.jsonl"), ("changelogs", "changes.jsonl")] {
        let imported = run(&[command, "import", &example("recorder", file), &store]);
        assert_eq!(imported.exit, 0, "{}", imported.stderr);
    }
    store
}

#[test]
fn a_page_server_shows_a_store_to_those_who_know_the_token() {
    let folder = Folder::new();
    let store = store(&folder);
    let token = format!("--token-file={}", folder.write("token", "open-sesame\n"));
    let serving = Serving::start(&["recorder", "pages", &store, "--listen=127.0.0.1:0", &token]);
    let (head, body) = serving.get("/runs/9822d93d", "");
    assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
    assert!(!body.contains("north") && body.contains("type=\"password\""), "{body}");
    let (head, body) = serving.get("/runs/9822d93d", "Authorization: Bearer open-sesame\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(body.contains("size 5 is not one of 1, 3"), "{body}");
    assert!(head.contains("Content-Security-Policy: default-src 'none'"), "{head}");
    let (head, body) = serving.get("/readyz", "");
    assert!(head.starts_with("HTTP/1.1 200 ") && body == "ok", "{head}");
    let (head, body) = serving.get("/api/v1/runs", "Authorization: Bearer open-sesame\r\n");
    assert!(head.contains("application/json") && body.contains("9822d93d"), "{head}");
}

#[test]
fn pages_for_other_machines_need_a_token_or_consent() {
    let folder = Folder::new();
    let store = store(&folder);
    for command in ["pages", "serve"] {
        let refused = run(&["recorder", command, &store, "--listen=:0"]);
        assert_eq!(refused.exit, 1, "{}", refused.stderr);
        assert!(refused.stderr.contains("--token-file"), "{}", refused.stderr);
    }
    let empty = format!("--token-file={}", folder.write("empty", "\n"));
    let refused = run(&["recorder", "pages", &store, "--listen=127.0.0.1:0", &empty]);
    assert!(refused.exit == 1 && refused.stderr.contains("has no token"), "{}", refused.stderr);
    let refused = run(&["recorder", "pages", &store, "--tls-cert=x"]);
    assert_ne!(refused.exit, 0, "{}", refused.stderr);
    let mut serving =
        Serving::start(&["recorder", "pages", &store, "--listen=0.0.0.0:0", "--allow-anyone"]);
    serving.address = serving.address.replace("0.0.0.0", "127.0.0.1");
    assert!(serving.get("/runs", "").0.starts_with("HTTP/1.1 200 "));
}
