//! Asks a recorder over HTTP.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::query::answer::Answer;
use crate::query::archive::Error;
use crate::query::ask::Question;

/// How long connecting, writing and reading may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Asks a server such as `http://127.0.0.1:7654`.
pub fn ask(server: &str, question: &Question) -> Result<Answer, Error> {
    let (status, body) = get(server, &question.to_uri())?;
    let value: Value = serde_json::from_slice(&body)
        .map_err(|_| Error::Failed(format!("{server} answered {status} and no JSON")))?;
    if status != 200 {
        let text = |field: &str| {
            let error = value.get("error").and_then(|error| error.get(field));
            error.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        return Err(match text("reason").as_str() {
            "notFound" => Error::NotFound(text("message")),
            "usage" => Error::Usage(text("message")),
            _ => Error::Failed(format!("{server} answered {status}: {}", text("message"))),
        });
    }
    match question {
        Question::Runs { .. } => read(value).map(Answer::Runs),
        Question::Run(_) => read(value).map(|run| Answer::Run(Box::new(run))),
        Question::Steps(_) => read(value).map(Answer::Steps),
        Question::Diff { .. } | Question::DiffAt { .. } => read(value).map(Answer::Diff),
        Question::Blame(_) => read(value).map(Answer::Blame),
        Question::Compare { .. } => read(value).map(|compare| Answer::Compare(Box::new(compare))),
        Question::Changes { .. } => read(value).map(Answer::Changes),
        Question::Change(_) => read(value).map(|change| Answer::Change(Box::new(change))),
        Question::Verify => read(value).map(Answer::Verify),
        Question::Why { .. } => read(value).map(|why| Answer::Why(Box::new(why))),
        Question::At { .. } => read(value).map(|at| Answer::At(Box::new(at))),
        Question::Warnings { .. } => read(value).map(Answer::Warnings),
        Question::Warning(_) => read(value).map(|warning| Answer::Warning(Box::new(warning))),
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    let wrong = |error| Error::Failed(format!("the server answers in another form: {error}"));
    serde_json::from_value(value).map_err(wrong)
}

/// Gets a page: the status and the body.
fn get(server: &str, target: &str) -> Result<(u16, Vec<u8>), Error> {
    let wrong = || {
        Error::Usage(format!("expected a server such as http://127.0.0.1:7654 but got {server:?}"))
    };
    let host = server.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
    if host.is_empty() || host.contains(['/', '\r', '\n', ' ']) {
        return Err(wrong());
    }
    let failed = |error: std::io::Error| Error::Failed(format!("cannot ask {server}: {error}"));
    let address = if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let address = address.to_socket_addrs().map_err(failed)?.next().ok_or_else(wrong)?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    stream.take(LARGEST).read_to_end(&mut answer).map_err(failed)?;
    let no_http = || Error::Failed(format!("{server} does not answer in HTTP"));
    let end = answer.windows(4).position(|end| end == b"\r\n\r\n").ok_or_else(no_http)?;
    let head = String::from_utf8_lossy(answer.get(..end).unwrap_or_default()).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_off(end + 4);
    // A body that ends early is no JSON, and is told as such.
    Ok((status.ok_or_else(no_http)?, body))
}
