//! How the recorder and its store are.

use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::archive::Archive as _;
use biplane_recorder::query::ask::Question;
use biplane_recorder::query::sentence::lists::StoreState;
use biplane_recorder::query::time;
use biplane_recorder::store::Engine;
use biplane_recorder::store::rows::SourceRow;
use jiff::Timestamp;

use super::{Context, Reply, Result};
use crate::page::failure::Failure;
use crate::page::status::{self, Source, Status};

/// The page. Chains are checked if it is asked: that reads every entry.
pub(super) fn page(context: &Context<'_>, verify: bool) -> Result<Reply> {
    let store = context.stored.store();
    let losses = context.stored.losses(time::back("24h", context.now), None)?;
    let verify = match verify.then(|| context.ask(&Question::Verify)).transpose()? {
        Some(Answer::Verify(verify)) => Some(verify),
        Some(_) => return Err(Failure::NoPage),
        None => None,
    };
    let source = |row: &SourceRow| Source {
        kind: row.kind.clone(),
        name: match row.cluster.as_str() {
            "" => row.name.clone(),
            cluster => format!("{cluster}/{}", row.name),
        },
        entries: row.seq,
        last: row.last_seen,
    };
    let oldest = store.oldest_run()?.and_then(|at| Timestamp::from_microsecond(at).ok());
    let status = Status {
        state: StoreState {
            bytes: store.size()?,
            oldest,
            lost: losses.iter().map(|loss| loss.emissions).sum(),
            trouble: context.trouble.clone(),
        },
        engine: match store.engine() {
            Engine::Sqlite => "a file (SQLite)",
            Engine::Postgres => "PostgreSQL",
        },
        sources: store.sources()?.iter().map(source).collect(),
        losses,
        verify,
    };
    Ok(status::page(&status).into())
}
