//! Asks a recorder over HTTP.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::http::{Credentials, HttpError, Server};
use crate::query::answer::Answer;
use crate::query::archive::Error;
use crate::query::ask::Question;

impl From<HttpError> for Error {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Url(_) => Self::Usage(error.to_string()),
            HttpError::Credentials(_) | HttpError::Failed { .. } => Self::Failed(error.to_string()),
        }
    }
}

/// Asks a server such as `http://127.0.0.1:7654`, which wants no credentials.
pub fn ask(server: &str, question: &Question) -> Result<Answer, Error> {
    ask_with(&Server::new(server, &Credentials::default())?, question)
}

/// Asks a server.
pub fn ask_with(server: &Server, question: &Question) -> Result<Answer, Error> {
    let answered = server.get(&question.to_uri())?;
    let (server, status) = (server.name(), answered.status);
    if status == 401 || status == 403 {
        let said = String::from_utf8_lossy(&answered.body);
        let said = said.lines().next().unwrap_or_default();
        let text = format!("{server} refuses to answer ({status}): {said}");
        return Err(Error::Failed(text.trim_end_matches([':', ' ']).to_owned()));
    }
    let value: Value = serde_json::from_slice(&answered.body)
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
