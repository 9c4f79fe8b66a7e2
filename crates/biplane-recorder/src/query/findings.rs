//! What was found in runs: read from a store, or looked for in runs that no store has.

use std::time::{Duration, Instant};

use biplane_proto::redact::{Half, Mode, Redactor, TagKey};
use serde_json::Value;

use super::archive::{After, Error, WarningFilter, split_kind};
use super::export;
use super::record::{Run, Step};
use crate::emission::{Details, Dialect, Emission};
use crate::store::rows::{self, FindingFilter, FindingKind, FindingRow};
use crate::store::{HalfRecord, Ledger, LedgerOptions, Location, Store};

pub(super) fn list(
    store: &Store,
    filter: &WarningFilter,
    limit: usize,
    after: Option<After>,
) -> Result<Vec<FindingRow>, Error> {
    let (kind, group) = match filter.kind.as_deref().map(split_kind) {
        None => (None, None),
        Some((kind, group)) => (Some(kind.to_owned()), group.map(str::to_owned)),
    };
    let found = filter.found.as_deref().map(|name| {
        let wrong = || {
            let names = FindingKind::ALL.map(FindingKind::name).join(", ");
            Error::Usage(format!("expected one of {names} but got {name:?}"))
        };
        FindingKind::of_name(name).ok_or_else(wrong)
    });
    let filter = FindingFilter {
        found: found.transpose()?,
        kind,
        group,
        name: filter.name.clone(),
        namespace: filter.namespace.clone(),
        open: filter.open,
    };
    let after = after.map(|After { at, key }| rows::After { at, id: key });
    Ok(store.findings(&filter, limit, after)?)
}

/// Looks for findings in runs, the oldest first, as a recorder does when they end.
pub(super) fn of_runs(runs: &[Run]) -> Result<Ledger, Error> {
    let options =
        LedgerOptions { cluster: String::new(), source: "lines".to_owned(), failures_only: false };
    let clock = Instant::now();
    let mut ledger = Ledger::open(&Location::Memory, &[0; 16], options, (0, clock))?;
    for run in runs {
        ledger.record(&halves(run), clock)?;
        ledger.close_all()?;
    }
    Ok(ledger)
}

fn halves(run: &Run) -> Vec<HalfRecord> {
    // The runs are redacted. To do it again tells what is.
    let redactor = Redactor::new(Mode::Deep, TagKey::new([0; 32]));
    let mut found = Vec::new();
    for step in &run.steps {
        let mut was_redacted = false;
        let mut take = |half, payload: Option<&Value>, error: &str| {
            let text = payload.map(ToString::to_string).unwrap_or_default().into_bytes();
            let redacted = redactor.line_payload(half, &text, was_redacted);
            was_redacted |= redacted.is_redacted();
            let emission = Emission {
                dialect: Dialect::Shipped,
                half,
                meta: Some(export::meta(&run.head, step)),
                payload: text,
                error: error.to_owned(),
                details: details(step, half),
            };
            let received = step.started.as_microsecond();
            found.extend(HalfRecord::new(&emission, redacted, received, None));
        };
        if step.asked {
            take(Half::Request, step.request.as_ref(), "");
        }
        if step.answered {
            let error = step.error.as_deref().unwrap_or_default();
            take(Half::Response, step.response.as_ref(), error);
        }
    }
    found
}

fn details(step: &Step, half: Half) -> Details {
    if half == Half::Request {
        return Details::default();
    }
    let took = step.took.and_then(|took| u64::try_from(took).ok()).map(Duration::from_micros);
    Details { took, cached: step.cached, revision: step.revision.clone() }
}
