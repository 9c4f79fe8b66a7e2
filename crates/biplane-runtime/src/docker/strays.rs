//! Removes what commands left in the engine that were killed before they could clean up.
//!
//! Everything that a command removes at its end carries a label that says which process it belongs
//! to. The next command removes what belongs to processes that are gone. Containers that a user
//! named or wants to keep carry no label.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bollard::Docker;
use bollard::models::{ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::{
    ListContainersOptions, ListNetworksOptions, RemoveContainerOptions,
};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::client::explain;
use super::done;

/// The label with the owner.
pub(super) const LABEL: &str = "biplane.owner";
/// What belongs to a process elsewhere, or before the machine was restarted, is removed if it has
/// ended and is older than this.
const OLD: Duration = Duration::from_hours(1);

/// A process that owns something in an engine: which start of which machine, which namespace of
/// process ids, the id, and when it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    boot: String,
    namespace: String,
    process: i32,
    started: String,
}

/// What is known about an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Alive,
    Gone,
    Unknown,
}

impl Owner {
    /// This process, if the system tells enough about it.
    pub(super) fn this() -> Option<Self> {
        let process = i32::try_from(std::process::id()).ok()?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
        Some(Self {
            boot: boot.trim().to_owned(),
            namespace: namespace.to_str()?.to_owned(),
            process,
            started: started(process)?,
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ').map(ToOwned::to_owned);
        let (boot, namespace) = (words.next()?, words.next()?);
        let process = words.next()?.parse().ok().filter(|process| *process > 0)?;
        Some(Self { boot, namespace, process, started: words.next()? })
    }

    fn fate(&self, this: &Self) -> Fate {
        if (&self.boot, &self.namespace) != (&this.boot, &this.namespace) {
            return Fate::Unknown;
        }
        // A process of another user exists although it cannot be signalled.
        let exists = !matches!(kill(Pid::from_raw(self.process), None), Err(Errno::ESRCH));
        // The id may have been given to another process since. If that is hidden, it may be the
        // owner.
        let is_same = started(self.process).is_none_or(|started| started == self.started);
        if exists && is_same { Fate::Alive } else { Fate::Gone }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { boot, namespace, process, started } = self;
        write!(f, "{boot} {namespace} {process} {started}")
    }
}

/// When a process was started, in ticks since the start of the machine.
fn started(process: i32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may contain anything, also parentheses.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19).map(ToOwned::to_owned)
}

/// Removes containers and networks whose owners are gone, and returns what failed.
pub(super) async fn remove(docker: Docker) -> Vec<String> {
    let Some(this) = Owner::this() else { return Vec::new() };
    #[allow(clippy::disallowed_methods)] // it does not affect the output
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let labelled = || Some([("label".to_owned(), vec![LABEL.to_owned()])].into());
    let mut failures = Vec::new();
    let all = ListContainersOptions {
        all: true,
        filters: labelled(),
        ..ListContainersOptions::default()
    };
    match docker.list_containers(Some(all)).await {
        Ok(containers) => {
            for container in containers.iter().filter(|c| is_stray(c, &this, now)) {
                let id = container.id.as_deref().unwrap_or_default();
                let force =
                    RemoveContainerOptions { force: true, ..RemoveContainerOptions::default() };
                let removed = done(docker.remove_container(id, Some(force))).await;
                failures.extend(removed.err().map(|error| format!("{error:#}")));
            }
        }
        Err(error) => failures.push(format!("{:#}", explain(&error))),
    }
    match docker.list_networks(Some(ListNetworksOptions { filters: labelled() })).await {
        Ok(networks) => {
            for network in networks {
                let owner = network.labels.and_then(|labels| Owner::parse(labels.get(LABEL)?));
                if owner.is_none_or(|owner| owner.fate(&this) != Fate::Gone) {
                    continue;
                }
                let name = network.name.unwrap_or_default();
                let removed = done(docker.remove_network(&name)).await;
                failures.extend(removed.err().map(|error| format!("{error:#}")));
            }
        }
        Err(error) => failures.push(format!("{:#}", explain(&error))),
    }
    failures
}

fn is_stray(container: &ContainerSummary, this: &Owner, now: Duration) -> bool {
    let label = container.labels.as_ref().and_then(|labels| labels.get(LABEL));
    let Some(owner) = label.and_then(|label| Owner::parse(label)) else { return false };
    match owner.fate(this) {
        Fate::Alive => false,
        Fate::Gone => true,
        Fate::Unknown => {
            let ended = matches!(
                container.state,
                Some(ContainerSummaryStateEnum::EXITED | ContainerSummaryStateEnum::DEAD)
            );
            let created = container.created.and_then(|created| u64::try_from(created).ok());
            let age = created.map(|created| now.saturating_sub(Duration::from_secs(created)));
            ended && age.is_some_and(|age| age > OLD)
        }
    }
}

#[cfg(test)]
mod tests {
    use ContainerSummaryStateEnum::{EXITED, RUNNING};

    use super::*;

    fn container(owner: &Owner, state: ContainerSummaryStateEnum) -> ContainerSummary {
        ContainerSummary {
            labels: Some([(LABEL.to_owned(), owner.to_string())].into()),
            state: Some(state),
            created: Some(1000),
            ..ContainerSummary::default()
        }
    }

    #[test]
    fn an_owner_is_read_back() {
        let this = Owner::this().unwrap();
        assert_eq!(Owner::parse(&this.to_string()), Some(this));
        for text in ["", "a b", "a b c d", "a b -1 d", "a b 0 d"] {
            assert_eq!(Owner::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_what_nobody_needs_is_a_stray() {
        let this = Owner::this().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let ended = Owner { process: i32::try_from(child.id()).unwrap(), ..this.clone() };
        let reused = Owner { started: "1".to_owned(), ..this.clone() };
        let elsewhere = Owner { boot: "other".to_owned(), ..this.clone() };
        let now = Duration::from_secs(1000);
        for (owner, state, age, want) in [
            (&this, RUNNING, OLD * 2, false),
            (&this, EXITED, OLD * 2, false),
            (&ended, RUNNING, Duration::ZERO, true),
            (&reused, RUNNING, Duration::ZERO, true),
            (&elsewhere, RUNNING, OLD * 2, false),
            (&elsewhere, EXITED, OLD / 2, false),
            (&elsewhere, EXITED, OLD * 2, true),
        ] {
            let found = is_stray(&container(owner, state), &this, now + age);
            assert_eq!(found, want, "{owner} {state:?} {age:?}");
        }
        assert!(!is_stray(&ContainerSummary::default(), &this, now), "it carries no label");
    }
}
