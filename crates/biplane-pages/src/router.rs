//! Leads a request to its page.

mod changes;
mod composites;
mod resources;
mod runs;
mod search;
mod status;
mod steps;
mod warnings;

use std::time::{Duration, Instant};

use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::archive::{Archive as _, Error, RunFilter, WarningFilter};
use biplane_recorder::query::ask::{self, Named, Question};
use biplane_recorder::query::record::Outcome;
use biplane_recorder::query::stored::Stored;
use biplane_recorder::store;
use biplane_recorder::store::rows;
use jiff::Timestamp;

use crate::http::Request;
use crate::ids::Filter;
use crate::layout::Page;
use crate::links::StoreLinks;
use crate::page::failure::Failure;
use crate::page::help;

/// How long differences are compared before resources are compared as a whole.
const COMPARING: Duration = Duration::from_millis(200);

/// What a request leads to.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A page.
    Page(Box<Page>),
    /// Another address.
    Redirect(String),
}

impl From<Page> for Reply {
    fn from(page: Page) -> Self {
        Self::Page(Box::new(page))
    }
}

type Result<T, E = Failure> = std::result::Result<T, E>;

/// What is known when a request is answered.
pub struct Context<'a> {
    /// The records.
    pub stored: &'a Stored,
    /// The time.
    pub now: Timestamp,
    /// Why nothing is stored, if that is so.
    pub trouble: Option<String>,
    links: StoreLinks<'a>,
    late: Instant,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'a> Context<'a> {
    /// What is known from now on.
    pub fn new(stored: &'a Stored, now: Timestamp, trouble: Option<String>) -> Self {
        let late = Instant::now() + COMPARING;
        Self { stored, now, trouble, links: StoreLinks::new(stored), late }
    }

    fn is_late(&self) -> bool {
        Instant::now() >= self.late
    }

    fn ask(&self, question: &Question) -> Result<Answer> {
        Ok(ask::answer(self.stored, question, self.now)?)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(text) => Self::NotFound(text),
            Error::Usage(text) => Self::Usage(text),
            Error::TooMuch(text) => Self::TooMuch(text),
            Error::NotReady(text) => Self::Version(text),
            Error::Failed(text) => Self::Broken(text),
        }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        Error::from(error).into()
    }
}

/// Answers a request.
pub fn route(context: &Context<'_>, request: &Request) -> Result<Reply> {
    let path = request.path().trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("POST", ["runs"]) => runs::filtered(context, request),
        ("POST", ["changes"]) => changes::filtered(context, request),
        ("POST", ["compare"]) => runs::chosen(context, request),
        ("POST", ["search"]) => search::search(context, &request.field("q")),
        ("POST", ["x", key, "at"]) => composites::at(context, key, &request.field("at")),
        ("POST", _) => Err(Failure::NoPage),
        (_, []) => Ok(Reply::Redirect("/runs".to_owned())),
        (_, ["runs"]) => runs::list(context, request),
        (_, ["runs", run]) => runs::one(context, run),
        (_, ["runs", run, "diff"]) => runs::diff(context, run, from(request)),
        (_, ["runs", run, "blame"]) => runs::blame(context, run),
        (_, ["runs", run, "resources"]) => runs::resources(context, run, from(request)),
        (_, ["runs", run, "r", slot]) => resources::in_run(context, run, slot, from(request)),
        (_, ["runs", run, step]) => steps::page(context, request, run, step, ""),
        (_, ["runs", run, step, tab]) => steps::page(context, request, run, step, tab),
        (_, ["x"]) => composites::list(context, request),
        (_, ["x", key]) => composites::one(context, key, from(request)),
        (_, ["x", key, "at", at]) => warnings::at(context, request, key, at),
        (_, ["r", slot]) => resources::one(context, slot),
        (_, ["r", slot, "why", verb]) => warnings::why(context, slot, verb),
        (_, ["warnings"]) => warnings::list(context, request),
        (_, ["warnings", id]) => warnings::one(context, id),
        (_, ["compare", before, after]) => runs::compare(context, before, after),
        (_, ["changes"]) => changes::list(context, request),
        (_, ["changes", id]) => changes::one(context, request, id),
        (_, ["search"]) => search::search(context, ""),
        (_, ["status"]) => status::page(context, false),
        (_, ["status", "verify"]) => status::page(context, true),
        (_, ["help"]) => Ok(help::page().into()),
        _ => Err(Failure::NoPage),
    }
}

/// The filter of a list with names, from its text in an address.
pub fn run_filter(context: &Context<'_>, text: &str) -> Result<RunFilter> {
    runs::named(context, &Filter::of_text(text)).map(|(filter, _)| filter)
}

/// How many warnings are open, as far as the head of a page says it.
pub fn open_warnings(context: &Context<'_>) -> Option<usize> {
    const MOST: usize = 99;
    let filter = WarningFilter { open: true, ..WarningFilter::default() };
    context.stored.warnings(&filter, MOST, None).ok().map(|found| found.len())
}

/// Where a list or a difference goes on.
fn from(request: &Request) -> usize {
    request.query("o").and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// A run by its id. Names of owners do not belong in addresses.
fn by_id(run: &str) -> Result<Named> {
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if run.is_empty() || !run.bytes().all(is_id) {
        return Err(Failure::NoPage);
    }
    Ok(Named { address: run.to_owned(), namespace: None })
}

/// A part of a run.
fn part_of(run: &str, part: &str) -> Result<Named> {
    let Named { address, namespace } = by_id(run)?;
    Ok(Named { address: format!("{address}{part}"), namespace })
}

/// The row of a run by its id.
fn run_row(context: &Context<'_>, run: &str) -> Result<rows::RunRow> {
    by_id(run)?;
    match context.stored.store().run(run)? {
        rows::Found::One(row) => Ok(row),
        rows::Found::None => Err(Failure::NotFound(format!("no run begins with {run}"))),
        rows::Found::Many(_) => Err(Failure::Usage(format!("several runs begin with {run}"))),
    }
}

fn outcome(outcome: rows::Outcome) -> Outcome {
    match outcome {
        rows::Outcome::Ok => Outcome::Ok,
        rows::Outcome::Warning => Outcome::Warning,
        rows::Outcome::Fatal => Outcome::Fatal,
        rows::Outcome::Error => Outcome::Error,
        rows::Outcome::Incomplete => Outcome::Incomplete,
    }
}
