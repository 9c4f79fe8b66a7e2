//! Tests of leader election on an in-memory API server, in paused time.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::memory::{Answer, ApiServer, Entry, Fault, When};
use biplane_cluster::{Cluster, Part, Patch, Source, Write};
use biplane_controlplane::leader::{Candidate, LEASE, Leadership, Lost, Times};
use biplane_engine::Clock;
use biplane_model::{Gvk, Object, ObjectId};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::time::Instant;

/// A clock that goes with the paused time.
struct Paused {
    began: Instant,
}

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.began.elapsed()).unwrap();
        "2024-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + passed
    }
}

struct World {
    server: Arc<ApiServer>,
    began: Instant,
}

impl World {
    fn new() -> Self {
        Self { server: Arc::default(), began: Instant::now() }
    }

    fn candidate(&self, identity: &str) -> Candidate {
        Candidate {
            cluster: self.server.clone(),
            namespace: "crossplane-system".into(),
            lease: LEASE.into(),
            identity: identity.into(),
            times: Times::default(),
            clock: Arc::new(Paused { began: self.began }),
        }
    }

    /// Seconds since the start.
    fn seconds(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    fn id() -> ObjectId {
        let gvk = Gvk::new("coordination.k8s.io/v1", "Lease");
        ObjectId::new(gvk, "crossplane-system", LEASE)
    }

    async fn lease(&self) -> Object {
        let by = Instant::now() + Duration::from_secs(1);
        self.server.get(&Self::id(), Source::Live, by).await.unwrap()
    }

    async fn patch(&self, patch: serde_json::Value) {
        let by = Instant::now() + Duration::from_secs(1);
        let (how, patch) = (Write::by("kubectl"), Patch::Merge(patch));
        self.server.patch(&Self::id(), Part::Main, &patch, &how, by).await.unwrap();
    }

    fn writes(&self) -> usize {
        self.server.journal().iter().filter(|entry| matches!(entry, Entry::Write { .. })).count()
    }
}

/// Holds a Lease in the background, and returns how it was lost.
fn hold(mut leadership: Leadership) -> tokio::task::JoinHandle<Lost> {
    tokio::spawn(async move { leadership.hold().await })
}

/// LE-1
#[tokio::test(start_paused = true)]
async fn the_lease_has_the_fields_of_crossplane_and_is_renewed_every_ten_seconds() {
    let world = World::new();
    let holding = hold(world.candidate("a").lead().await);
    assert_eq!(
        world.lease().await.get("spec"),
        Some(&json!({
            "holderIdentity": "a", "leaseDurationSeconds": 60, "leaseTransitions": 0,
            "acquireTime": "2024-01-01T00:00:00.000000Z",
            "renewTime": "2024-01-01T00:00:00.000000Z",
        }))
    );
    tokio::time::sleep(Duration::from_millis(600_500)).await;
    assert!(!holding.is_finished());
    assert_eq!(world.writes(), 61);
    let lease = world.lease().await;
    assert_eq!(lease.str_at(&["spec", "renewTime"]), "2024-01-01T00:10:00.000000Z");
    assert_eq!(lease.str_at(&["spec", "acquireTime"]), "2024-01-01T00:00:00.000000Z");
}

#[tokio::test(start_paused = true)]
async fn a_second_candidate_waits_without_asking_until_the_lease_ends() {
    let world = World::new();
    let first = hold(world.candidate("a").lead().await);
    let second = tokio::spawn(world.candidate("b").lead());
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(!second.is_finished());
    let before = world.server.calls();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let asked = world.server.calls() - before;
    // The leader writes ten times, and the other looks at each change.
    assert!(asked <= 20, "{asked}");
    // The leader dies without a word after its renewal at 400 s.
    first.abort();
    let dead = world.seconds();
    let leadership = second.await.unwrap();
    let waited = world.seconds() - dead;
    assert!((50..=60).contains(&waited), "{waited}");
    let lease = world.lease().await;
    assert_eq!(lease.str_at(&["spec", "holderIdentity"]), "b");
    assert_eq!(lease.at(&["spec", "leaseTransitions"]), Some(&1.into()));
    drop(leadership);
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once() {
    let world = World::new();
    let first = world.candidate("a").lead().await;
    let second = tokio::spawn(world.candidate("b").lead());
    tokio::time::sleep(Duration::from_secs(5)).await;
    first.release().await.unwrap();
    let lease = world.lease().await;
    assert_eq!(lease.str_at(&["spec", "holderIdentity"]), "");
    let released = Instant::now();
    second.await.unwrap();
    assert!(released.elapsed() < Duration::from_millis(500), "{:?}", released.elapsed());
    assert_eq!(world.lease().await.str_at(&["spec", "holderIdentity"]), "b");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_did_not_run_for_long_does_not_lead_any_more() {
    let world = World::new();
    let mut first = world.candidate("a").lead().await;
    // Nothing renews the Lease: the process is stopped.
    world.candidate("b").lead().await;
    assert!((59..=61).contains(&world.seconds()), "{}", world.seconds());
    let writes = world.writes();
    let lost = first.hold().await;
    assert_eq!(
        lost.to_string(),
        "leader election lost: the lease was not renewed for 50 s: this process did not run"
    );
    assert_eq!(world.writes(), writes, "nothing was written over the new leader's lease");
    // What it does not hold, it does not release.
    first.release().await.unwrap();
    assert_eq!(world.lease().await.str_at(&["spec", "holderIdentity"]), "b");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_took_is_lost() {
    let world = World::new();
    let holding = hold(world.candidate("a").lead().await);
    world.patch(json!({"spec": {"holderIdentity": "b"}})).await;
    let lost = holding.await.unwrap();
    assert_eq!(lost.to_string(), "leader election lost: b holds the lease");
    assert_eq!(world.seconds(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_no_loss_while_the_holder_is_the_same() {
    let world = World::new();
    let holding = hold(world.candidate("a").lead().await);
    world.patch(json!({"metadata": {"annotations": {"note": "kept"}}})).await;
    tokio::time::sleep(Duration::from_secs(105)).await;
    assert!(!holding.is_finished());
    let lease = world.lease().await;
    assert_eq!(lease.annotation("note"), "kept");
    assert_eq!(lease.str_at(&["spec", "renewTime"]), "2024-01-01T00:01:40.000000Z");
}

/// A renewal that was written but not answered is no loss either.
#[tokio::test(start_paused = true)]
async fn renewing_goes_on_after_every_kind_of_failure() {
    for when in [When::Before, When::After] {
        for answer in [Answer::Unavailable, Answer::Throttled, Answer::Conflict] {
            let world = World::new();
            let leadership = world.candidate("a").lead().await;
            let fault = Fault { when, answer, ..Fault::before(world.server.calls()) };
            world.server.inject(fault);
            let holding = hold(leadership);
            tokio::time::sleep(Duration::from_secs(31)).await;
            assert!(!holding.is_finished(), "{when:?} {answer:?}");
            let lease = world.lease().await;
            let renewed = lease.str_at(&["spec", "renewTime"]);
            assert!(renewed > "2024-01-01T00:00:20", "{when:?} {answer:?}: {renewed}");
            holding.abort();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_away_ends_the_leadership_in_time() {
    let world = World::new();
    let leadership = world.candidate("a").lead().await;
    world.server.inject(Fault { crash: true, ..Fault::before(world.server.calls()) });
    let lost = hold(leadership).await.unwrap();
    assert!(lost.reason.starts_with("the lease was not renewed for 50 s: "), "{lost}");
    assert!((46..=50).contains(&world.seconds()), "{}", world.seconds());
}

#[tokio::test(start_paused = true)]
async fn of_many_candidates_one_leads() {
    let world = World::new();
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..8 {
        waiting.spawn(world.candidate(&format!("c{number}")).lead());
    }
    let first = waiting.join_next().await.unwrap().unwrap();
    let holding = hold(first);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert!(waiting.try_join_next().is_none(), "another one leads as well");
    assert!(!holding.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_candidate_waits_for_a_server_that_does_not_answer() {
    let world = World::new();
    world.server.inject(Fault { crash: true, ..Fault::before(0) });
    let candidate = tokio::spawn(world.candidate("a").lead());
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!candidate.is_finished());
    world.server.restart();
    candidate.await.unwrap();
    assert!((60..=62).contains(&world.seconds()), "{}", world.seconds());
}
