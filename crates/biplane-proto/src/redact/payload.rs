//! Encodes redacted messages as the payloads of the Pipeline Inspector.
//!
//! All steps of a run observe the same state, which is most of a request. It is redacted and encoded
//! once for a run.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::path::{At, Found};
use super::{Redacted, Redactor, message};
use crate::function::v1::{Resource, RunFunctionRequest, RunFunctionResponse, State};
use crate::json::{self, Error};

/// The encoded `observed` of the last request. Clones share it, so that the requests of a run can.
#[derive(Clone, Default)]
pub struct EncodedObserved(Arc<Mutex<Option<Last>>>);

/// A state and its JSON.
struct Last {
    state: State,
    encoded: Arc<Redacted<String>>,
}

impl EncodedObserved {
    pub(super) fn get(
        &self,
        state: &State,
        redactor: &Redactor,
    ) -> Result<Arc<Redacted<String>>, Error> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| is_same(&last.state, state)) {
            return Ok(Arc::clone(&last.encoded));
        }
        let mut redacted = state.clone();
        let mut found = Found::default();
        if redactor.mode != super::Mode::None {
            message::state(Some(&mut redacted), redactor.mode, &At::root("observed"), &mut found);
        }
        let encoded = Arc::new(found.of(json::to_string(&redacted)?));
        *last = Some(Last { state: state.clone(), encoded: Arc::clone(&encoded) });
        Ok(encoded)
    }
}

impl fmt::Debug for EncodedObserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncodedObserved")
    }
}

/// Whether two states consist of the same objects. They are not compared: objects that are equal but
/// not shared count as different.
fn is_same(a: &State, b: &State) -> bool {
    fn is_same(a: &Resource, b: &Resource) -> bool {
        let same_object = match (&a.resource, &b.resource) {
            (Some(a), Some(b)) => a.object().same(b.object()),
            (None, None) => true,
            _ => false,
        };
        same_object && a.ready == b.ready && a.connection_details == b.connection_details
    }
    let same_composite = match (&a.composite, &b.composite) {
        (Some(a), Some(b)) => is_same(a, b),
        (None, None) => true,
        _ => false,
    };
    same_composite
        && a.resources.len() == b.resources.len()
        && a.resources
            .iter()
            .zip(&b.resources)
            .all(|((key, a), (other, b))| key == other && is_same(a, b))
}

impl Redactor {
    /// Redacts and encodes a request. `observed` remembers the part that the next request of the run
    /// shares.
    pub fn request_payload(
        &self,
        request: &RunFunctionRequest,
        observed: &EncodedObserved,
    ) -> Result<Redacted<Vec<u8>>, Error> {
        let observed = match &request.observed {
            Some(state) => Some(observed.get(state, self)?),
            None => None,
        };
        let mut found = Found::default();
        found.extend(observed.as_ref().map_or(&[], |observed| observed.paths()));
        let mut rest = RunFunctionRequest { observed: None, ..request.clone() };
        message::without_observed(&mut rest, self.mode, &mut found);
        let meta = rest.meta.take().map(|mut meta| {
            if found.any() {
                self.key.replace(&mut meta.tag);
            }
            meta
        });

        let mut out = String::from("{");
        if let Some(meta) = meta {
            field(&mut out, "meta", &json::to_string(&meta)?);
        }
        if let Some(observed) = observed {
            field(&mut out, "observed", observed.get());
        }
        let rest = json::to_string(&rest)?;
        let rest = rest.trim_start_matches('{');
        if out.len() > 1 && rest != "}" {
            out.push(',');
        }
        out.push_str(rest);
        Ok(found.of(out.into_bytes()))
    }

    /// Redacts and encodes a response.
    pub fn response_payload(
        &self,
        response: &RunFunctionResponse,
        request_is_redacted: bool,
    ) -> Result<Redacted<Vec<u8>>, Error> {
        let redacted = self.response(response.clone(), request_is_redacted);
        let text = json::to_string(redacted.get())?;
        Ok(redacted.map(|_| text.into_bytes()))
    }

    /// A payload for a call that has no response.
    pub fn no_payload(&self) -> Redacted<Vec<u8>> {
        Found::default().of(Vec::new())
    }
}

fn field(out: &mut String, name: &str, json: &str) {
    if out.len() > 1 {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
    out.push_str(json);
}
