//! Renders until stable: applies the result of a reconcile and reconciles again, until nothing
//! changes.
//!
//! In every round, the engine reconciles each composite resource that has a Composition, parents
//! first, on the state left by earlier rounds.

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_console::Deadline;
use biplane_manifest::{Line, fit};
use biplane_model::condition::conditions;
use biplane_model::{Object, ObjectId, Value};
use biplane_runtime::Runners;

use super::changes::{self, Changes};
use super::reachable::Unreached;
use super::reconcile::RenderedXr;
use super::simulated_cluster::{Objects, SimulatedCluster};
use super::{CompositionRender, Inputs, Say, UntilStable};
use crate::{context, print, summary};

/// The results of the last round, for each composite resource.
type RenderedXrs = Vec<(ObjectId, RenderedXr)>;

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
        let mut cluster =
            SimulatedCluster::new(&inputs.composite, &inputs.observed, &inputs.nested);
        let mut states = vec![cluster.objects().clone()];
        let mut results = Vec::new();
        for round in 1..=until_stable.max_rounds {
            let timed = &mut |id: &ObjectId, line: &str| {
                say(&format!("{prefix}round {round}, {id}: {line}"));
            };
            let answers = self.round(&inputs, runners, deadline, &mut cluster, timed).await?;
            for (id, answer) in &answers {
                for line in &answer.timing {
                    timed(id, line);
                }
            }
            if self.output.results {
                results.extend(answers.iter().flat_map(|answer| said(round, answer)));
            }
            let before = states.last().cloned().unwrap_or_default();
            let changes = Changes::between(&before, cluster.objects());
            let ready = readiness(&cluster)?;
            say(&format!("{prefix}round {round}: {changes}; {ready}"));
            if changes.is_empty() {
                if self.output.summary {
                    let first = states.first().unwrap_or(&before);
                    for line in summarise(first, &cluster, &root)? {
                        say(&format!("{summary_prefix}{line}"));
                    }
                }
                return self.stable_documents(&cluster, answers, results);
            }
            if let Some(earlier) = states.iter().position(|state| state == cluster.objects()) {
                bail!(
                    "does not settle: round {round} leads back to the state after round {earlier}; what still changes: {changes}"
                );
            }
            states.push(cluster.objects().clone());
            if round == until_stable.max_rounds {
                bail!(
                    "did not settle within {round} rounds (--max-rounds); what still changes: {changes}"
                );
            }
        }
        bail!("there is no round to render in")
    }

    /// Reconciles every composite resource that exists at the start of the round.
    async fn round(
        &self,
        inputs: &Inputs,
        runners: &Runners,
        deadline: Deadline,
        cluster: &mut SimulatedCluster<'_>,
        say: &mut dyn FnMut(&ObjectId, &str),
    ) -> Result<RenderedXrs> {
        let mut answers = Vec::new();
        let composites = cluster.composites()?;
        check_reached(inputs, cluster, &composites)?;
        for id in composites {
            // A parent may have deleted it.
            let Some(composite) = cluster.get(&id).cloned() else { continue };
            let nested = id != inputs.composite.id();
            let attempted = || format!("cannot render nested {id}");
            let mut inputs = inputs.of(composite);
            if nested {
                let composition = inputs.nested.composition(&inputs.composite)?.cloned();
                inputs.composition = composition.unwrap_or_default();
                inputs.origin = None;
                let fits = fit::check(&inputs.composite, &inputs.composition, Line::V2);
                fits.with_context(attempted)?;
                inputs.definition = inputs.nested.definition(&id.gvk).cloned();
            }
            inputs.observed = cluster.composed(&id);
            // Functions may require any existing object, in its current state.
            inputs.required.extend(cluster.others(&id).cloned());
            let composition = inputs.composition.name().to_owned();
            if deadline.check().is_err() {
                bail!("did not settle within {:?} (--timeout)", deadline.allowed());
            }
            let say = &mut |line: &str| say(&id, line);
            let answer = self.reconcile(inputs, runners, deadline, say).await;
            let answer = if nested { answer.with_context(attempted) } else { answer }?;
            cluster.take_in(&id, &composition, &answer.output)?;
            answers.push((id, answer));
        }
        Ok(answers)
    }

    /// The documents of the final state.
    fn stable_documents(
        &self,
        cluster: &SimulatedCluster<'_>,
        mut answers: RenderedXrs,
        results: Vec<Value>,
    ) -> Result<Vec<Value>> {
        let root = answers.first_mut().and_then(|(id, answer)| {
            let context = answer.context.take();
            cluster.get(id).map(|composite| (composite, context))
        });
        let (composite, context) = root.ok_or_else(|| anyhow!("nothing was rendered"))?;
        let composite =
            if self.include_full_xr { composite.clone() } else { cluster.changed(composite) };
        let mut objects = vec![composite];
        objects.extend(answers.iter().flat_map(|(id, _)| cluster.composed(id)));
        objects.iter_mut().for_each(print::fix_conditions);
        let mut documents: Vec<_> = objects.into_iter().map(Object::into_value).collect();
        documents.extend(results);
        if self.output.context {
            documents.extend(context.map(|fields| context::document(fields.into_value())));
        }
        Ok(documents)
    }
}

/// Fails if the functions of an existing composite resource have not been started.
fn check_reached(
    inputs: &Inputs,
    cluster: &SimulatedCluster<'_>,
    composites: &[ObjectId],
) -> Result<()> {
    let mut unreached = Vec::new();
    for composite in composites.iter().skip(1).filter_map(|id| cluster.get(id)) {
        if let Some(composition) = inputs.nested.composition(composite)?
            && !inputs.has_reached(composition)
            && !unreached.contains(composition)
        {
            unreached.push(composition.clone());
        }
    }
    if unreached.is_empty() { Ok(()) } else { Err(Unreached(unreached).into()) }
}

/// The events and results of a round, with the round and the object that they are about.
fn said(round: u32, (id, answer): &(ObjectId, RenderedXr)) -> impl Iterator<Item = Value> {
    answer.output.events.iter().map(move |event| {
        let mut result = print::result(event);
        if let Value::Object(result) = &mut result {
            result.insert("round".to_owned(), round.into());
            result.insert("resource".to_owned(), id.to_string().into());
        }
        result
    })
}

/// Which composite resources are not ready.
fn readiness(cluster: &SimulatedCluster<'_>) -> Result<String> {
    let mut unready = Vec::new();
    for id in cluster.composites()? {
        let conditions = cluster.get(&id).map(conditions).unwrap_or_default();
        if !conditions.iter().any(|c| c.r#type == "Ready" && c.status == "True") {
            unready.push(id.to_string());
        }
    }
    let names = changes::list(unready.into_iter());
    Ok(if names.is_empty() { "ready".to_owned() } else { format!("not ready: {names}") })
}

/// Summarises what changed since the first state, and what is not ready and why.
fn summarise(
    first: &Objects,
    cluster: &SimulatedCluster<'_>,
    root: &ObjectId,
) -> Result<Vec<String>> {
    let changes = Changes::between(first, cluster.objects());
    let mut lines: Vec<_> = changes.created.iter().map(|id| format!("create {id}")).collect();
    let updated = changes.changed.iter().filter(|(id, _)| id != root);
    lines.extend(updated.map(|(id, _)| format!("update {id}")));
    lines.extend(changes.deleted.iter().map(|id| format!("delete {id}")));
    for id in cluster.composites()? {
        let Some(composite) = cluster.get(&id) else { continue };
        let prefix = if id == *root { String::new() } else { format!("{id}: ") };
        lines.extend(summary::shortcomings(composite).iter().map(|line| format!("{prefix}{line}")));
    }
    Ok(lines)
}
