//! Sets up the control plane of a render until stable: an API server in memory with everything that
//! was given, and the controllers of definitions, Compositions, claims and composite resources on it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_cluster::memory::Entry;
use biplane_cluster::{Apply, Cluster as _, EventType, Optional as _, Part, Source};
use biplane_console::Deadline;
use biplane_controlplane::composite::Settings;
use biplane_controlplane::{BreakerLimits, CompositeSpec, ControlPlane, Options, definitions};
use biplane_engine::composite::{Behaviour, COMPOSITE_MANAGER, Selection};
use biplane_engine::controllers::composite_name;
use biplane_engine::render::{check_observed, composite_uid, layout};
use biplane_engine::sources::CountingIds;
use biplane_go::fmt::quote;
use biplane_model::layout::{Layout, Reference};
use biplane_model::owner::controller_of;
use biplane_model::{Gvk, Object, ObjectId, claim};
use biplane_runtime::{Engine, Runners, Running, Subject};
use biplane_schema::openapi;
use tokio::time::Instant;

use super::cluster::RenderCluster;
use super::lenient::Lenient;
use super::perform::Performer;
use super::{CompositionRender, Inputs, definitions as given_definitions};

/// The control plane of a render.
pub(super) struct Simulation {
    pub(super) plane: ControlPlane,
    pub(super) cluster: Arc<RenderCluster>,
    pub(super) performer: Arc<Performer>,
}

/// A deadline that nothing in memory reaches.
fn soon() -> Instant {
    Instant::now() + Duration::from_hours(1)
}

impl CompositionRender {
    /// A control plane that has everything that was given and has reconciled no composite resource.
    pub(super) async fn set_up(
        &self,
        inputs: &Inputs,
        runners: &Runners,
        deadline: Deadline,
    ) -> Result<Simulation> {
        let cluster =
            RenderCluster::new(&inputs.composite, &inputs.observed, Arc::clone(&inputs.nested));
        let cluster = Arc::new(cluster);
        let attempted = Subject::Composite.attempted();
        let release = self.manner(&inputs.composition).release;
        layout(&inputs.composite.gvk(), inputs.definition.as_ref(), release).map_err(|error| {
            anyhow!("{attempted}: cannot select composite resource schema: {error}")
        })?;

        let helper = inputs.context.as_ref().filter(|_| matches!(self.engine, Engine::BuiltIn));
        let helper = helper.map(|helper| Arc::new(helper.afresh()));
        let mut runners = runners.clone();
        let mut compositions = inputs.nested.compositions.clone();
        if let Some(helper) = &helper {
            let function = biplane_runner::context::FUNCTION.to_owned();
            runners.insert(function, Running::in_process(helper.clone()));
            for one in &mut compositions {
                helper.wrap(one, self.output.context);
            }
        }
        let definitions = defined(inputs);
        cluster.server.seed(compositions);
        cluster.server.seed(definitions.clone());
        cluster.server.seed(inputs.required.iter().filter(|o| !o.has_id(&cluster.root)).cloned());
        cluster.server.seed(inputs.credentials.iter().cloned().map(secret));
        for document in &inputs.schemas {
            for (group, version) in openapi::served_by(document) {
                cluster.server.serve_openapi(&group, &version, document);
            }
        }
        let performer = Arc::new(Performer {
            render: self.clone(),
            inputs: inputs.clone(),
            runners: runners.clone(),
            deadline,
            cluster: Arc::clone(&cluster),
            context: helper,
            performed: Mutex::default(),
        });
        let mut plane = plane(&cluster, &performer, &runners)?;
        // The kinds must be known before there are objects of them.
        plane.due(Duration::ZERO).await.context("cannot start the control plane")?;
        for definition in &definitions {
            check_established(&cluster, &plane, definition)?;
        }
        self.seed_given(inputs, &cluster).await?;
        start_undefined(inputs, &plane, &definitions).await?;
        plane.due(Duration::ZERO).await.context("cannot start the control plane")?;
        check_claimed(inputs, &cluster).await?;
        cluster.hide_the_rest();
        Ok(Simulation { plane, cluster, performer })
    }

    /// Stores the observed resources and the composite resource or its claim.
    async fn seed_given(&self, inputs: &Inputs, cluster: &RenderCluster) -> Result<()> {
        let root = &inputs.composite;
        let observed: Vec<_> =
            inputs.observed.iter().filter(|object| object.id() != cluster.root).collect();
        let of = |composer: &ObjectId| {
            let is_its = |object: &&&Object| composer_of(object, &observed, root) == *composer;
            observed.iter().filter(is_its).map(|object| Object::clone(object)).collect::<Vec<_>>()
        };
        for object in &observed {
            if inputs.nested.composition(object)?.is_none() {
                cluster.server.seed([Object::clone(object)]);
                continue;
            }
            let id = object.id();
            let composed = of(&id);
            let checked = self.check(object, &composed, inputs);
            checked.with_context(|| format!("cannot render nested {id}"))?;
            seed_composite(cluster, object, &composed).await;
        }
        let composed = of(&cluster.root);
        self.check(root, &composed, inputs)?;
        let Some(claim) = inputs.claims.get(&cluster.root) else {
            seed_composite(cluster, root, &composed).await;
            return Ok(());
        };
        // If the claim has been there before, so has its composite resource.
        if !composed.is_empty() || root.get("status").is_some() || !root.uid().is_empty() {
            seed_composite(cluster, root, &composed).await;
        }
        let mut claim = claim.clone();
        claim.set_meta("namespace", &claim::reference(&claim).namespace);
        // A control plane would give its composite resource a random name.
        claim::bind(&mut claim, &root.gvk(), root.name());
        cluster.server.seed([claim]);
        Ok(())
    }

    /// Fails if a composite resource cannot have composed what is observed.
    fn check(&self, composite: &Object, composed: &[Object], inputs: &Inputs) -> Result<()> {
        let mut known = composite.clone();
        known.set_meta("uid", &composite_uid(composite));
        check_observed(&known, composed).map_err(|error| {
            let attempted = Subject::Composite.attempted();
            let error = anyhow!("{attempted}: invalid observed resources: {error}");
            let mut inputs = inputs.of(composite.clone());
            inputs.observed = composed.to_vec();
            self.explain_failure(error, &inputs)
        })
    }
}

/// The definitions that can be established, each kind once.
fn defined(inputs: &Inputs) -> Vec<Object> {
    let mut known = BTreeSet::new();
    // The Composition that was given comes first.
    let mut compositions = vec![inputs.composition.clone()];
    compositions.extend(inputs.nested.compositions.iter().cloned());
    let all = inputs.nested.definitions.iter();
    all.map(|one| given_definitions::completed(one, &compositions, &inputs.composite))
        .filter(|one| known.insert(one.name().to_owned()))
        .collect()
}

fn plane(
    cluster: &Arc<RenderCluster>,
    performer: &Arc<Performer>,
    runners: &Runners,
) -> Result<ControlPlane> {
    // All rounds happen at the same time, so that the breaker would take them for a storm.
    let breaker = BreakerLimits { burst: f64::MAX, ..BreakerLimits::default() };
    let options = Options {
        composites: Settings { breaker, ..Settings::default() },
        runner: Some(Arc::new(runners.named())),
        perform: Some(performer.clone()),
        ids: Arc::new(CountingIds::default()),
        ..Options::default()
    };
    let server = Arc::new(Lenient(Arc::clone(cluster)));
    let mut plane = ControlPlane::new(server, cluster.server.clone(), options)
        .context("cannot set up the control plane")?;
    plane.add_definitions(&definitions::Options::default());
    Ok(plane)
}

/// Runs the controllers of kinds that are composed but not defined.
async fn start_undefined(
    inputs: &Inputs,
    plane: &ControlPlane,
    definitions: &[Object],
) -> Result<()> {
    let kinds: BTreeSet<Gvk> = inputs
        .nested
        .compositions
        .iter()
        .map(|composition| {
            let at = |field| composition.str_at(&["spec", "compositeTypeRef", field]);
            Gvk::new(at("apiVersion"), at("kind"))
        })
        .filter(|gvk| !definitions.iter().any(|one| super::nested::defines(one, gvk)))
        .collect();
    for gvk in kinds {
        let name = gvk.to_string();
        let behaviour = Behaviour {
            selection: Selection::Live { xrd: String::new() },
            ..Behaviour::live(gvk, Layout::Modern, &name)
        };
        let spec = CompositeSpec { behaviour, specification: String::new() };
        plane.composites().ensure(&spec).await.context("cannot set up the control plane")?;
    }
    Ok(())
}

/// Stores a composite resource that refers to what it has composed. Its status is what the control
/// plane has written.
async fn seed_composite(cluster: &RenderCluster, composite: &Object, composed: &[Object]) {
    let mut object = composite.clone();
    refer_to(cluster, &mut object, composed);
    let status = object.get("status").filter(|status| status.is_object()).cloned();
    let managed = object.at(&["metadata", "managedFields"]).is_some();
    if let (Some(status), false) = (status, managed) {
        let mut rest = object.clone();
        rest.make_mut().remove("status");
        cluster.server.seed([rest]);
        let mut intent = Object::new();
        for field in ["apiVersion", "kind"] {
            let value = object.get(field).cloned().unwrap_or_default();
            intent.set_at_or_ignore(&[field], value);
        }
        intent.set_meta("name", object.name());
        intent.set_meta("namespace", object.namespace());
        intent.set_at_or_ignore(&["status"], status);
        let how = Apply::forced(COMPOSITE_MANAGER);
        if cluster.server.apply(&intent, Part::Status, None, &how, soon()).await.is_ok() {
            return;
        }
    }
    cluster.server.seed([object]);
}

/// Adds references to the observed resources, so that the reconciler finds them.
fn refer_to(cluster: &RenderCluster, xr: &mut Object, observed: &[Object]) {
    if observed.is_empty() {
        return;
    }
    let namespaced = !xr.namespace().is_empty();
    let references: Vec<_> = observed
        .iter()
        .map(|object| Reference {
            api_version: object.api_version().into(),
            kind: object.kind().into(),
            name: object.name().into(),
            namespace: if namespaced { String::new() } else { object.namespace().into() },
            ..Reference::default()
        })
        .collect();
    // A spec that is not an object is rendered as it is.
    let _ = cluster.layout(&xr.gvk()).set_resources(xr, &references);
}

/// The composite resource that has composed an observed resource: another observed one that its owner
/// reference names, or else the rendered one, which refuses those of other owners.
fn composer_of(object: &Object, observed: &[&Object], root: &Object) -> ObjectId {
    let owner = controller_of(object).and_then(|owner| {
        let is_owner = |other: &&&Object| {
            other.kind() == owner.kind
                && other.name() == owner.name
                && other.api_version() == owner.api_version
                && ["", object.namespace()].contains(&other.namespace())
                && (other.uid().is_empty() || other.uid() == owner.uid)
        };
        observed.iter().find(is_owner).map(|owner| owner.id())
    });
    owner.unwrap_or_else(|| root.id())
}

/// A credential without a kind is a Secret.
fn secret(mut secret: Object) -> Object {
    if secret.kind().is_empty() {
        secret.set_at_or_ignore(&["apiVersion"], "v1");
        secret.set_at_or_ignore(&["kind"], "Secret");
    }
    secret
}

/// Fails if the composite resources of a definition are not reconciled.
fn check_established(
    cluster: &RenderCluster,
    plane: &ControlPlane,
    definition: &Object,
) -> Result<()> {
    let name = definition.name();
    if plane.registry().is_running(&composite_name(name)) {
        return Ok(());
    }
    let why = last_warning(cluster, &definition.id()).unwrap_or_default();
    bail!("cannot establish CompositeResourceDefinition {}: {why}", quote(name))
}

/// Fails if a claim has no composite resource.
async fn check_claimed(inputs: &Inputs, cluster: &RenderCluster) -> Result<()> {
    let Some(claim) = inputs.claims.get(&cluster.root) else { return Ok(()) };
    let found = cluster.server.get(&cluster.root, Source::Live, soon()).await.optional();
    if matches!(found, Ok(Some(_))) {
        return Ok(());
    }
    let mut id = claim.id();
    id.namespace = claim::reference(claim).namespace;
    let why = last_warning(cluster, &id).unwrap_or_default();
    bail!("{}: {why}", claim::attempted(claim))
}

/// The last warning about an object.
fn last_warning(cluster: &RenderCluster, id: &ObjectId) -> Option<String> {
    cluster.server.journal().into_iter().rev().find_map(|entry| match entry {
        Entry::Event(event)
            if event.r#type == EventType::Warning
                && event.regarding.id.gvk.kind == id.gvk.kind
                && event.regarding.id.name == id.name =>
        {
            Some(event.message)
        }
        _ => None,
    })
}
