//! Leader election: of several processes, the one that holds a Lease runs the controllers.
//!
//! The Lease is the one that Crossplane uses, so a process of either kind waits for the other. How
//! long a Lease holds is measured from when it was last seen to change, by the own clock: nobody
//! compares the clocks of two machines.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::{
    Change, Cluster, Optional as _, Part, Precondition, Query, ReadError, Source, Subscribe,
    Subscription, Write, WriteError,
};
use biplane_engine::{Clock, Ids};
use biplane_model::{Gvk, Object, ObjectId, Value};
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

/// The Lease of the control plane.
pub const LEASE: &str = "crossplane-leader-election-core";

const MANAGER: &str = "crossplane";

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long the Lease holds after it was last renewed.
    pub lease: Duration,
    /// A leader that could not renew the Lease for so long stops.
    pub give_up: Duration,
    /// How often the Lease is renewed.
    pub renew: Duration,
    /// The pause after a failure.
    pub retry: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            lease: Duration::from_mins(1),
            give_up: Duration::from_secs(50),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// The name of a candidate: that of the host, and a unique id.
pub fn identity(ids: &dyn Ids) -> String {
    let host = nix::unistd::gethostname().unwrap_or_default();
    format!("{}_{}", host.to_string_lossy(), ids.uuid())
}

/// A candidate.
#[derive(Clone)]
pub struct Candidate {
    /// The cluster with the Lease.
    pub cluster: Arc<dyn Cluster>,
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub lease: String,
    /// The name of this candidate. No other may have it.
    pub identity: String,
    /// How long things take.
    pub times: Times,
    /// The source of the times in the Lease.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Candidate").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// The Lease is lost: another process may lead by now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("leader election lost: {reason}")]
pub struct Lost {
    /// Why.
    pub reason: String,
}

/// A Lease as it was last seen to change.
struct Observed {
    lease: Object,
    since: Instant,
}

impl Candidate {
    /// Waits until this candidate leads. Failures are logged, and tried again.
    pub async fn lead(self) -> Leadership {
        let mut observed: Option<Observed> = None;
        let mut changes = None;
        let mut refusals = 0_u32;
        loop {
            let began = Instant::now();
            match self.attempt(&mut observed).await {
                Ok(Some(lease)) => {
                    tracing::info!(identity = self.identity, lease = %self.id(), "leading");
                    return Leadership { candidate: self, lease, renewed: began };
                }
                Ok(None) => {
                    if refusals == 0 {
                        let leader = observed.as_ref().map(|seen| holder(&seen.lease).to_owned());
                        tracing::info!(leader, lease = %self.id(), "waiting to lead");
                    }
                    refusals = refusals.saturating_add(1);
                    let until = match &observed {
                        Some(seen) => seen.since + duration(&seen.lease),
                        None => Instant::now() + self.times.retry,
                    };
                    // Another candidate may be about to write.
                    let until = until.max(Instant::now() + self.times.retry / 20);
                    self.wait(&mut changes, observed.as_ref(), until).await;
                }
                Err(error) => {
                    tracing::warn!(error, lease = %self.id(), "cannot acquire the lease");
                    tokio::time::sleep(self.times.retry).await;
                }
            }
        }
    }

    fn id(&self) -> ObjectId {
        ObjectId::new(Gvk::new("coordination.k8s.io/v1", "Lease"), &self.namespace, &self.lease)
    }

    fn soon(&self) -> Instant {
        Instant::now() + self.times.renew
    }

    async fn read(&self) -> Result<Option<Object>, ReadError> {
        self.cluster.get(&self.id(), Source::Live, self.soon()).await.optional()
    }

    /// Takes the Lease if it is free. Returns it if it was.
    async fn attempt(&self, observed: &mut Option<Observed>) -> Result<Option<Object>, String> {
        let live = self.read().await.map_err(|error| error.to_string())?;
        let Some(live) = live else {
            *observed = None;
            let mut lease = Object::from_value(json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": self.lease, "namespace": self.namespace},
            }))
            .unwrap_or_default();
            self.take(&mut lease, 0);
            let how = Write::by(MANAGER);
            return won(self.cluster.create(lease, &how, self.soon()).await);
        };
        let changed =
            observed.as_ref().is_none_or(|seen| seen.lease.get("spec") != live.get("spec"));
        if changed {
            *observed = Some(Observed { lease: live.clone(), since: Instant::now() });
        }
        let since = observed.as_ref().map_or_else(Instant::now, |seen| seen.since);
        let held_by = holder(&live);
        let free = held_by.is_empty()
            || held_by == self.identity
            || Instant::now() >= since + duration(&live);
        if !free {
            return Ok(None);
        }
        let transitions = integer(&live, "leaseTransitions");
        let same = held_by == self.identity;
        let mut lease = live.clone();
        self.take(&mut lease, if same { transitions } else { transitions.saturating_add(1) });
        let how = Write::by(MANAGER).only_if(Precondition::unchanged(&live));
        won(self.cluster.update(&lease, Part::Main, &how, self.soon()).await)
    }

    /// Writes this candidate into a Lease.
    fn take(&self, lease: &mut Object, transitions: i64) {
        let now = time(self.clock.now());
        for (field, value) in [
            ("holderIdentity", Value::from(self.identity.as_str())),
            ("leaseDurationSeconds", self.times.lease.as_secs().into()),
            ("acquireTime", now.clone().into()),
            ("renewTime", now.into()),
            ("leaseTransitions", transitions.into()),
        ] {
            lease.set_at_or_ignore(&["spec", field], value);
        }
    }

    /// Waits until the Lease changes or ends. Where it cannot be watched, it is looked at regularly.
    async fn wait(
        &self,
        changes: &mut Option<Subscription>,
        observed: Option<&Observed>,
        until: Instant,
    ) {
        if changes.is_none() {
            let query = Query {
                namespace: self.namespace.clone(),
                name: self.lease.clone(),
                ..Query::default()
            };
            let (gvk, how) = (self.id().gvk, Subscribe::default());
            match self.cluster.subscribe(&gvk, &query, &how, self.soon()).await {
                Ok(subscription) => *changes = Some(subscription),
                Err(error) => tracing::debug!(%error, "cannot watch the lease"),
            }
        }
        let Some(subscription) = changes else {
            return tokio::time::sleep(self.times.retry).await;
        };
        let known = observed.and_then(|seen| seen.lease.get("spec"));
        loop {
            tokio::select! {
                change = subscription.next() => match change {
                    Some(Change::Changed { object, .. }) if object.get("spec") != known => return,
                    Some(Change::Gone { .. }) => return,
                    Some(_) => {}
                    None => break,
                },
                () = tokio::time::sleep_until(until) => return,
            }
        }
        // The watch has ended.
        *changes = None;
        tokio::time::sleep(self.times.retry).await;
    }
}

/// Somebody else was faster if the write is a conflict.
fn won(written: Result<Object, WriteError>) -> Result<Option<Object>, String> {
    match written {
        Ok(lease) => Ok(Some(lease)),
        Err(WriteError::Conflict(_) | WriteError::AlreadyExists(_) | WriteError::NotFound(_)) => {
            Ok(None)
        }
        Err(error) => Err(error.to_string()),
    }
}

fn holder(lease: &Object) -> &str {
    lease.str_at(&["spec", "holderIdentity"])
}

fn integer(lease: &Object, field: &str) -> i64 {
    lease.at(&["spec", field]).and_then(Value::as_i64).unwrap_or_default()
}

/// How long a Lease says that it holds.
fn duration(lease: &Object) -> Duration {
    let seconds = integer(lease, "leaseDurationSeconds");
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// A time as Leases have it, with microseconds.
fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A Lease that is held. It must be renewed, and should be released at the end.
#[derive(Debug)]
pub struct Leadership {
    candidate: Candidate,
    /// As it was last written.
    lease: Object,
    renewed: Instant,
}

impl Leadership {
    /// Renews the Lease until it is lost. This can be dropped at any time, for example to release
    /// the Lease.
    pub async fn hold(&mut self) -> Lost {
        let Times { renew, give_up, retry, .. } = self.candidate.times;
        let mut next = self.renewed + renew;
        loop {
            tokio::time::sleep_until(next).await;
            let deadline = self.renewed + give_up;
            let late = |reason: &str| {
                let seconds = give_up.as_secs();
                Lost { reason: format!("the lease was not renewed for {seconds} s: {reason}") }
            };
            // The process was stopped for a while, or the machine was.
            if Instant::now() >= deadline {
                return late("this process did not run");
            }
            let began = Instant::now();
            match tokio::time::timeout_at(deadline, self.renew()).await {
                Ok(Ok(())) => {
                    self.renewed = began;
                    next = began + renew;
                }
                Ok(Err(Failure::Taken(leader))) => {
                    return Lost { reason: format!("{leader} holds the lease") };
                }
                Ok(Err(Failure::Passing(error))) => {
                    tracing::warn!(error, lease = %self.candidate.id(), "cannot renew the lease");
                    next = Instant::now() + retry;
                    if next >= deadline {
                        return late(&error);
                    }
                }
                Err(_) => return late("the API server does not answer"),
            }
        }
    }

    /// Renews the Lease once.
    async fn renew(&mut self) -> Result<(), Failure> {
        let candidate = &self.candidate;
        let renewal = |lease: &Object| {
            let mut lease = lease.clone();
            let now = time(candidate.clock.now());
            lease.set_at_or_ignore(&["spec", "renewTime"], now);
            lease
        };
        match self.write(&renewal(&self.lease)).await {
            Ok(lease) => {
                self.lease = lease;
                return Ok(());
            }
            Err(WriteError::Conflict(_) | WriteError::NotFound(_)) => {}
            Err(error) => return Err(Failure::Passing(error.to_string())),
        }
        // Somebody changed the Lease, or the last renewal was written but not answered.
        let live = candidate.read().await.map_err(|error| Failure::Passing(error.to_string()))?;
        let Some(live) = live else {
            return Err(Failure::Taken("nobody".into()));
        };
        match holder(&live) {
            holder if holder == candidate.identity => {}
            "" => return Err(Failure::Taken("nobody".into())),
            other => return Err(Failure::Taken(other.to_owned())),
        }
        let renewed = self.write(&renewal(&live)).await;
        self.lease = renewed.map_err(|error| Failure::Passing(error.to_string()))?;
        Ok(())
    }

    async fn write(&self, lease: &Object) -> Result<Object, WriteError> {
        let how = Write::by(MANAGER).only_if(Precondition::unchanged(lease));
        let Candidate { cluster, .. } = &self.candidate;
        cluster.update(lease, Part::Main, &how, self.candidate.soon()).await
    }

    /// Gives the Lease up, so that another candidate leads at once.
    pub async fn release(self) -> Result<(), WriteError> {
        let Self { candidate, .. } = &self;
        let live = match candidate.read().await {
            Ok(Some(live)) if holder(&live) == candidate.identity => live,
            Ok(_) => return Ok(()),
            // The write fails if the Lease has another version by now.
            Err(_) => self.lease.clone(),
        };
        let mut lease = live;
        let now = time(candidate.clock.now());
        for (field, value) in [
            ("holderIdentity", Value::from("")),
            ("leaseDurationSeconds", 1.into()),
            ("acquireTime", now.clone().into()),
            ("renewTime", now.into()),
        ] {
            lease.set_at_or_ignore(&["spec", field], value);
        }
        self.write(&lease).await.map(drop)
    }
}

/// Why a Lease was not renewed.
enum Failure {
    /// By whom.
    Taken(String),
    /// A retry may succeed.
    Passing(String),
}
