//! Reads the API server's audit log, the only counter of requests that does not depend on who sends
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;

use crate::EnvError;

/// Every request is written down when it is answered, without its content. Watches are also written
/// down when they begin, because many end only with their client.
pub(crate) const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
- RequestReceived
rules:
- level: Metadata
";

/// The audit log of all API servers of one control plane.
///
/// An API server writes a request down before it ends its answer. So a request is here once its
/// answer was read to the end.
#[derive(Clone, Debug)]
pub struct AuditLog {
    /// One file for each API server.
    files: Arc<Mutex<Vec<PathBuf>>>,
}

/// A place in the log. Requests after it can be read alone.
#[derive(Clone, Debug)]
pub struct Mark(BTreeMap<PathBuf, u64>);

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedRequest {
    pub id: String,
    /// The user's name, such as `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name and the subresource, such as `pods/status`. Empty if the request is not about
    /// a resource.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    /// The status code.
    pub code: u16,
    pub uri: String,
    pub user_agent: String,
    /// When the server received it, in RFC 3339.
    pub received: String,
    /// A write that only asks what it would change.
    pub dry_run: bool,
    /// False for a watch that is still open.
    pub complete: bool,
}

impl AuditedRequest {
    /// Whether the request was meant to change something.
    pub fn is_write(&self) -> bool {
        const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
        !self.dry_run && WRITES.contains(&self.verb.as_str())
    }
}

/// Requests in the order in which they were answered, or began if they are watches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests(Vec<AuditedRequest>);

/// What requests are counted by: user, verb, resource and code.
pub type TallyKey = (String, String, String, u16);

impl Requests {
    pub fn iter(&self) -> impl Iterator<Item = &AuditedRequest> {
        self.0.iter()
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The requests for which `keep` is true.
    #[must_use]
    pub fn filter(mut self, keep: impl FnMut(&AuditedRequest) -> bool) -> Self {
        self.0.retain(keep);
        self
    }

    /// The requests of one user.
    #[must_use]
    pub fn of_user(self, user: &str) -> Self {
        self.filter(|request| request.user == user)
    }

    /// The requests with one of the given verbs.
    #[must_use]
    pub fn of_verbs(self, verbs: &[&str]) -> Self {
        self.filter(|request| verbs.contains(&request.verb.as_str()))
    }

    /// The requests about one resource, such as `configmaps` or `pods/status`.
    #[must_use]
    pub fn of_resource(self, resource: &str) -> Self {
        self.filter(|request| request.resource == resource)
    }

    /// The requests that were meant to change something. Dry runs do not count.
    #[must_use]
    pub fn writes(self) -> Self {
        self.filter(AuditedRequest::is_write)
    }

    /// The number of requests by user, verb, resource and code.
    pub fn tally(&self) -> BTreeMap<TallyKey, usize> {
        let mut tally = BTreeMap::new();
        for AuditedRequest { user, verb, resource, code, .. } in &self.0 {
            let key = (user.clone(), verb.clone(), resource.clone(), *code);
            *tally.entry(key).or_default() += 1;
        }
        tally
    }
}

/// Prints the tally, one line for each key, for the messages of assertions.
impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((user, verb, resource, code), count) in self.tally() {
            writeln!(f, "{count:6} {user} {verb} {resource} {code}")?;
        }
        Ok(())
    }
}

impl AuditLog {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { files: Arc::new(Mutex::new(vec![file])) }
    }

    /// Adds the file of another API server.
    pub(crate) fn add(&self, file: PathBuf) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The end of the log as it is now.
    pub fn mark(&self) -> Result<Mark, EnvError> {
        let mut mark = BTreeMap::new();
        for path in self.files() {
            let mut end = 0;
            each_line(&path, |_, after, _| {
                end = after;
                Ok(())
            })?;
            mark.insert(path, end);
        }
        Ok(Mark(mark))
    }

    /// All requests.
    pub fn requests(&self) -> Result<Requests, EnvError> {
        self.requests_since(&Mark(BTreeMap::new()))
    }

    /// The requests after `mark`. A watch counts when it begins.
    pub fn requests_since(&self, mark: &Mark) -> Result<Requests, EnvError> {
        let mut requests = Vec::new();
        for path in self.files() {
            let start = mark.0.get(&path).copied().unwrap_or_default();
            let mut places: BTreeMap<String, usize> = BTreeMap::new();
            let mut earlier = BTreeSet::new();
            each_line(&path, |number, after, line| {
                let event: Event = serde_json::from_slice(line).map_err(|source| {
                    EnvError::AuditLog { path: path.clone(), line: number, source }
                })?;
                if after <= start {
                    earlier.insert(event.audit_id);
                    return Ok(());
                }
                if earlier.contains(&event.audit_id) {
                    return Ok(());
                }
                let place = *places.entry(event.audit_id.clone()).or_insert(requests.len());
                let request = AuditedRequest::from(event);
                match requests.get_mut(place) {
                    Some(begun) => *begun = request,
                    None => requests.push(request),
                }
                Ok(())
            })?;
        }
        Ok(Requests(requests))
    }
}

/// Calls `each` with number, end and text of each complete line. The API server may be writing the
/// last one.
fn each_line(
    path: &Path,
    mut each: impl FnMut(usize, u64, &[u8]) -> Result<(), EnvError>,
) -> Result<(), EnvError> {
    let cannot = || EnvError::io(format!("read {}", path.display()));
    let mut reader = match File::open(path) {
        Ok(file) => BufReader::new(file),
        // The server makes the file with the first request.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(cannot()(error)),
    };
    let (mut line, mut end) = (Vec::new(), 0);
    for number in 1.. {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(cannot())?;
        if !line.ends_with(b"\n") {
            break;
        }
        end += read as u64;
        each(number, end, &line)?;
    }
    Ok(())
}

/// A line of the log: an event of `audit.k8s.io/v1`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: String,
    #[serde(rename = "requestURI")]
    uri: String,
    verb: String,
    user: EventUser,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    #[serde(default)]
    request_received_timestamp: String,
}

#[derive(Deserialize)]
struct EventUser {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    api_group: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

impl From<Event> for AuditedRequest {
    fn from(event: Event) -> Self {
        let object = event.object_ref;
        let resource = match object.subresource.as_str() {
            "" => object.resource,
            subresource => format!("{}/{subresource}", object.resource),
        };
        let query = event.uri.split_once('?').map_or("", |(_, query)| query);
        Self {
            id: event.audit_id,
            user: event.user.username,
            verb: event.verb,
            group: object.api_group,
            resource,
            namespace: object.namespace,
            name: object.name,
            code: event.response_status.code,
            user_agent: event.user_agent,
            received: event.request_received_timestamp,
            dry_run: query.split('&').any(|part| part.starts_with("dryRun=")),
            complete: event.stage != "ResponseStarted",
            uri: event.uri,
        }
    }
}

#[cfg(test)]
mod tests;
