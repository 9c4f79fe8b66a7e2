//! Renders until stable: runs a control plane in memory and in virtual time, round by round, until
//! nothing is due any more.
//!
//! The controllers, their queues and their watches are those of a live control plane
//! (`biplane-controlplane`). A round is a part of what its dispatcher does:
//!
//! - A round begins when every controller but those of composite resources has done what is due:
//!   definitions are established, Compositions have revisions, claims are synced.
//! - The round is the composite resources that are due then. The dispatcher reconciles each of them
//!   once, parents first, and after each of them whatever else is due.
//! - A composite resource that becomes due meanwhile is part of the next round: because it was created,
//!   because one of its dependencies has changed, or because its last reconcile wrote something.
//! - If nothing is due, time jumps to what is due next, such as the end of a back-off.
//!
//! What is reported is what changes in the objects that are shown ([`super::shown`]). A round that
//! changes only other things, such as field managers, is not counted. Once nothing is due, one more
//! round in which nothing changed is reported.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use biplane_console::Deadline;
use biplane_model::condition::conditions;
use biplane_model::{Object, ObjectId, Value};
use biplane_runtime::Runners;

use super::changes::{self, Changes};
use super::cluster::{Objects, RenderCluster, State};
use super::perform::Performed;
use super::reachable::Unreached;
use super::setup::Simulation;
use super::{CompositionRender, Inputs, Say, UntilStable};
use crate::{context, print, summary};

/// How far time may jump in one round. It is longer than every back-off.
const PATIENCE: Duration = Duration::from_mins(10);
/// How many rounds in a row may change only what is not shown.
const MOST_UNSEEN: usize = 50;

impl CompositionRender {
    /// The documents of a composite resource once it is stable.
    pub(super) async fn render_until_stable(
        &self,
        until_stable: &UntilStable,
        inputs: Inputs,
        runners: &Runners,
        deadline: Deadline,
        say: Say<'_>,
    ) -> Result<Vec<Value>> {
        let root = inputs.composite.id();
        let summary_prefix = self.prefix(&inputs.composite);
        let prefix = if self.is_many() { format!("{root}, ") } else { String::new() };
        // The future is large, and only these renders need it.
        let mut simulation = Box::pin(self.set_up(&inputs, runners, deadline)).await?;
        let mut states = vec![simulation.cluster.given().clone()];
        let (mut results, mut context) = (Vec::new(), None);
        let (mut round, mut unseen) = (1, 0);
        loop {
            let timed = &mut |id: &ObjectId, line: &str| {
                say(&format!("{prefix}round {round}, {id}: {line}"));
            };
            let any = simulation.round(&inputs, runners, deadline).await;
            let performed = simulation.performer.take();
            for one in &performed {
                one.timing.iter().for_each(|line| timed(&one.id, line));
            }
            let is_stable = !any?;
            if self.output.results {
                results.extend(performed.iter().flat_map(|performed| said(round, performed)));
            }
            let last = performed.into_iter().rfind(|performed| performed.id == root);
            context = last.and_then(|performed| performed.context).or(context);

            let cluster = &simulation.cluster;
            let state = cluster.state();
            let before = states.last().cloned().unwrap_or_default();
            let changes = Changes::between(&before, &state.objects);
            if changes.is_empty() && !is_stable {
                unseen += 1;
                if unseen == MOST_UNSEEN {
                    bail!("did not settle: fields that are not shown keep changing");
                }
                continue;
            }
            unseen = 0;
            let ready = readiness(cluster, &state)?;
            say(&format!("{prefix}round {round}: {changes}; {ready}"));
            if changes.is_empty() {
                if self.output.summary {
                    let first = states.first().unwrap_or(&before);
                    for line in summarise(first, cluster, &state)? {
                        say(&format!("{summary_prefix}{line}"));
                    }
                }
                return self.stable_documents(cluster, &state, results, context);
            }
            if let Some(earlier) = states.iter().position(|earlier| *earlier == state.objects) {
                bail!(
                    "does not settle: round {round} leads back to the state after round {earlier}; what still changes: {changes}"
                );
            }
            if round == until_stable.max_rounds {
                bail!(
                    "did not settle within {round} rounds (--max-rounds); what still changes: {changes}"
                );
            }
            states.push(state.objects);
            round += 1;
        }
    }

    /// The documents of the final state.
    fn stable_documents(
        &self,
        cluster: &RenderCluster,
        state: &State,
        results: Vec<Value>,
        context: Option<Object>,
    ) -> Result<Vec<Value>> {
        let composite = state.objects.get(&cluster.root);
        let composite =
            composite.ok_or_else(|| anyhow!("{} does not exist any more", cluster.root))?;
        let composite =
            if self.include_full_xr { composite.clone() } else { cluster.changed(composite) };
        let mut objects = vec![composite];
        objects.extend(cluster.composing(state)?.iter().flat_map(|id| state.composed(id)));
        objects.iter_mut().for_each(print::fix_conditions);
        let mut documents: Vec<_> = objects.into_iter().map(Object::into_value).collect();
        documents.extend(results);
        if self.output.context {
            documents.extend(context.map(|fields| context::document(fields.into_value())));
        }
        Ok(documents)
    }
}

impl Simulation {
    /// Reconciles the composite resources that are due, parents first. Returns whether there were any.
    async fn round(
        &mut self,
        inputs: &Inputs,
        runners: &Runners,
        deadline: Deadline,
    ) -> Result<bool> {
        let state = self.cluster.state();
        let composites = self.cluster.composites(&state)?;
        check_reached(inputs, &state, &composites)?;
        let mut due = self.plane.due(PATIENCE).await?;
        let place = |name: &str, namespace: &str, controller: &str| {
            let is_it = |id: &ObjectId| {
                id.name == name
                    && id.namespace == namespace
                    && self.cluster.controller(&id.gvk) == controller
            };
            composites.iter().position(is_it).unwrap_or(usize::MAX)
        };
        due.sort_by_cached_key(|(controller, key)| place(&key.name, &key.namespace, controller));
        for (controller, key) in &due {
            if deadline.check().is_err() {
                bail!("did not settle within {:?} (--timeout)", deadline.allowed());
            }
            let step = async { Ok(self.plane.step(controller, key).await) };
            runners.unless_interrupted(step).await?;
            if let Some(failure) = self.cluster.take_failure() {
                return Err(failure);
            }
        }
        Ok(!due.is_empty())
    }
}

/// Fails if the functions of an existing composite resource have not been started.
fn check_reached(inputs: &Inputs, state: &State, composites: &[ObjectId]) -> Result<()> {
    let mut unreached = Vec::new();
    for composite in composites.iter().skip(1).filter_map(|id| state.objects.get(id)) {
        if let Some(composition) = inputs.nested.composition(composite)?
            && !inputs.has_reached(composition)
            && !unreached.contains(composition)
        {
            unreached.push(composition.clone());
        }
    }
    if unreached.is_empty() { Ok(()) } else { Err(Unreached(unreached).into()) }
}

/// The events and results of a reconcile, with the round and the object that they are about.
fn said(round: u32, performed: &Performed) -> impl Iterator<Item = Value> {
    performed.events.iter().map(move |event| {
        let mut result = print::result(event);
        if let Value::Object(result) = &mut result {
            result.insert("round".to_owned(), round.into());
            result.insert("resource".to_owned(), performed.id.to_string().into());
        }
        result
    })
}

/// Which composite resources are not ready.
fn readiness(cluster: &RenderCluster, state: &State) -> Result<String> {
    let mut unready = Vec::new();
    for id in cluster.composites(state)? {
        let conditions = state.objects.get(&id).map(conditions).unwrap_or_default();
        if !conditions.iter().any(|c| c.r#type == "Ready" && c.status == "True") {
            unready.push(id.to_string());
        }
    }
    let names = changes::list(unready.into_iter());
    Ok(if names.is_empty() { "ready".to_owned() } else { format!("not ready: {names}") })
}

/// Summarises what changed since the first state, and what is not ready and why.
fn summarise(first: &Objects, cluster: &RenderCluster, state: &State) -> Result<Vec<String>> {
    let changes = Changes::between(first, &state.objects);
    let mut lines: Vec<_> = changes.created.iter().map(|id| format!("create {id}")).collect();
    let updated = changes.changed.iter().filter(|(id, _)| *id != cluster.root);
    lines.extend(updated.map(|(id, _)| format!("update {id}")));
    lines.extend(changes.deleted.iter().map(|id| format!("delete {id}")));
    for id in cluster.composites(state)? {
        let Some(composite) = state.objects.get(&id) else { continue };
        let prefix = if id == cluster.root { String::new() } else { format!("{id}: ") };
        lines.extend(summary::shortcomings(composite).iter().map(|line| format!("{prefix}{line}")));
    }
    Ok(lines)
}
