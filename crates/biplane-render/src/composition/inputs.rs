//! The inputs of a render of composite resources, and how they are loaded from files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Error, Result, anyhow};
use biplane_console::Progress;
use biplane_manifest::defaults::Defaults;
use biplane_manifest::loader::WrongKind;
use biplane_manifest::{Line, Loader, Misfit, Origin, Read, fit};
use biplane_model::claim;
use biplane_model::composition::has_templates;
use biplane_model::{Gvk, Object, ObjectId};
use biplane_runner::ContextHelper;
use biplane_runtime::Function;

use super::nested::{self, Nested};
use super::ownership::{self, Ownership};
use super::{Composites, CompositionRender, v1_modes};
use crate::{context, functions};

/// How `--xrs` affects the arguments.
const XRS_HINT: &str = "--xrs takes the place of the composite resource argument, so that the Composition comes first.";

/// How to render a Composition of the older mode.
const V1_HINT: &str =
    "--output-format=v1 renders it as Crossplane v1 composed it. The mode is deprecated.";

/// All inputs of the render of a composite resource.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    pub composite: Object,
    pub composition: Object,
    /// Where the Composition was read from. Unknown for nested ones.
    pub(super) origin: Option<Origin>,
    pub functions: Vec<Function>,
    pub definition: Option<Object>,
    /// The claims by the composite resources that they become.
    pub(super) claims: Arc<BTreeMap<ObjectId, Object>>,
    /// The Compositions and definitions of nested composite resources.
    pub(super) nested: Arc<Nested>,
    /// The Compositions of nested composite resources that have been found. Their functions are
    /// also started.
    pub(super) reached: Vec<Object>,
    pub credentials: Vec<Object>,
    /// The observed resources of this composite resource.
    pub observed: Vec<Object>,
    /// The observed resources of all composite resources.
    pub(super) ownership: Arc<Ownership>,
    pub required: Vec<Object>,
    pub schemas: Vec<Object>,
    pub context: Option<Arc<ContextHelper>>,
    /// For v1, which parses these values during the render.
    pub context_texts: BTreeMap<String, String>,
    pub progress: Progress,
}

impl Inputs {
    /// The same inputs for another composite resource.
    pub(super) fn of(&self, composite: Object) -> Self {
        let context = self.context.as_ref().map(|helper| Arc::new(helper.afresh()));
        let observed = self.ownership.get(&composite.id()).cloned().unwrap_or_default();
        Self { composite, observed, context, ..self.clone() }
    }
}

impl CompositionRender {
    /// Reads every file. Returns the composite resources separately from their shared inputs.
    pub(super) fn load(&self, loader: &mut Loader<'_, '_>) -> Result<(Inputs, Vec<Object>)> {
        let mut composites = match &self.composites {
            Composites::Many(path) => loader.composites(path)?,
            Composites::One(path) => vec![loader.composite(path)?],
        };
        let line = self.output.line;
        let composition = loader.composition(&self.composition, line);
        let composition = composition.map_err(|error| self.misplaced(error))?;
        let mut definitions = Definitions { files: &self.definitions, read: None };
        let mut claims = BTreeMap::new();
        for (composite, origin) in &mut composites {
            let wanted = composition.0.str_at(&["spec", "compositeTypeRef", "kind"]);
            if composite.kind() != wanted {
                let given = composite.clone();
                if take_claim(composite, definitions.get(loader)?)? {
                    claims.insert(composite.id(), given);
                }
            }
            fit::check(composite, &composition.0, line)
                .map_err(|misfit| self.explain(&misfit, (composite, origin), &composition))?;
        }
        fit::distinct(&composites)?;
        let (composition, origin) = composition;
        let manner = self.manner(&composition);
        if manner.resources_mode {
            loader.warn(&v1_modes::deprecated(&composition));
        }
        let (mut composites, origins): (Vec<_>, Vec<_>) = composites.into_iter().unzip();
        let mut nested = Nested::default();
        if let Some(until_stable) = &self.until_stable {
            nested.load(&until_stable.compositions, loader)?;
        }
        let mut inputs = Inputs {
            composite: Object::new(),
            composition,
            origin: Some(origin),
            functions: Vec::new(),
            definition: None,
            claims: Arc::new(claims),
            nested: Arc::new(nested),
            reached: Vec::new(),
            credentials: Vec::new(),
            observed: Vec::new(),
            ownership: Arc::default(),
            required: Vec::new(),
            schemas: Vec::new(),
            context: None,
            context_texts: BTreeMap::new(),
            progress: loader.progress(),
        };
        let (listed, pipelines) = (self.functions.as_deref(), inputs.pipelines());
        // Templates call no functions.
        if listed.is_some() || !manner.resources_mode {
            inputs.functions = functions::load(listed, &pipelines, &self.function, loader)?;
        }
        let definitions = definitions.get(loader)?;
        let definition = definition_of(definitions, &inputs.composition);
        inputs.definition = definition.map(|(definition, _)| definition.clone());
        if self.until_stable.is_some() {
            let definitions = definitions.iter().map(|(definition, _)| definition.clone());
            let definitions: Vec<_> = definitions.collect();
            let nested = Arc::make_mut(&mut inputs.nested);
            nested.definitions = [definitions, std::mem::take(&mut nested.definitions)].concat();
            // A composite resource may be composed of others of the same kind.
            let name = inputs.composition.name();
            nested.compositions.retain(|composition| composition.name() != name);
            nested.compositions.push(inputs.composition.clone());
        }
        if let Some(path) = &self.function.credentials {
            inputs.credentials = loader.secrets(path, "secrets")?;
        }
        if let Some(path) = &self.observed_resources {
            let observed = loader.observed(path)?;
            let ownership = ownership::assign(&mut composites, observed)?;
            for warning in ownership::rivals(&ownership) {
                loader.warn(&warning);
            }
            inputs.ownership = Arc::new(ownership);
        }
        if let Some((definition, described)) = definition {
            let mut defaults = Defaults::of(definition);
            for (composite, origin) in composites.iter_mut().zip(&origins) {
                defaults.apply(composite).map_err(|misfit| {
                    if definition.is_empty() {
                        return described.complain_of_nothing(misfit);
                    }
                    misfit.shown(origin, described)
                })?;
            }
        }
        for path in &self.function.required_resources {
            // Crossplane v1 only has the old flag.
            let what = match line {
                Line::V1 => "extra resources",
                Line::V2 => "required resources",
            };
            inputs.required.extend(loader.resources(path, what)?);
        }
        for path in &self.extra_resources {
            inputs.required.extend(loader.resources(path, "extra resources")?);
        }
        self.warn_of_both(&inputs, loader);
        self.advise(&inputs, &composites, loader);
        if let Some(path) = &self.function.required_schemas {
            inputs.schemas = loader.schemas(path)?;
        }
        if manner.resources_mode {
            // No function is called, so that there is no context.
        } else if line == Line::V1 && !manner.release.is_v1() {
            inputs.context_texts = context::texts(&self.function, loader)?;
        } else {
            inputs.context = context::helper(&self.function, self.output, &self.engine, loader)?;
        }
        Ok((inputs, composites))
    }

    /// Warns when the same input is given in two ways, and says which one is used.
    fn warn_of_both(&self, inputs: &Inputs, loader: &mut Loader<'_, '_>) {
        let observed = inputs.ownership.values().flatten().map(|object| (object.id(), object));
        let observed: BTreeMap<_, _> = observed.collect();
        let counts = if self.until_stable.is_some() { "observed" } else { "required" };
        for required in &inputs.required {
            if observed.get(&required.id()).is_some_and(|other| *other != required) {
                loader.warn(&format!(
                    "{} is both observed and required, with different content; the {counts} one counts",
                    required.id()
                ));
            }
        }
    }

    /// Adds a hint for users who add `--xrs` but keep the other arguments unchanged.
    fn misplaced(&self, error: Error) -> Error {
        if self.is_many() && error.is::<WrongKind>() {
            return anyhow!("{error:#}\n{XRS_HINT}");
        }
        error
    }

    /// Reports where a composite resource does not fit. A hint tells users how to render a claim.
    fn explain(
        &self,
        misfit: &Misfit,
        (composite, origin): (&Object, &Origin),
        (composition, described): &Read,
    ) -> Error {
        let wanted = |key: &str| composition.str_at(&["spec", "compositeTypeRef", key]);
        if composite.is_empty() {
            return origin.complain_of_nothing(misfit);
        }
        let error = misfit.shown(origin, described);
        if self.output.line == Line::V2 && misfit.composite.is_none() && has_templates(composition)
        {
            return anyhow!("{error}\n{V1_HINT}");
        }
        let error = if self.is_many() && misfit.composite.is_some() {
            anyhow!("{} {:?}: {error}", composite.kind(), composite.name())
        } else {
            error
        };
        if self.definitions.is_empty()
            && composite.kind() != wanted("kind")
            && composite.api_version() == wanted("apiVersion")
        {
            return anyhow!(
                "{error}\nIf it is a claim, pass its CompositeResourceDefinition with --xrd."
            );
        }
        error
    }
}

/// The definitions named by flags. They are read once, when they are first needed.
struct Definitions<'a> {
    files: &'a [PathBuf],
    read: Option<Vec<Read>>,
}

impl Definitions<'_> {
    fn get(&mut self, loader: &mut Loader<'_, '_>) -> Result<&[Read]> {
        let read = match self.read.take() {
            Some(read) => read,
            None => self.files.iter().map(|path| loader.definition(path)).collect::<Result<_>>()?,
        };
        Ok(self.read.insert(read))
    }
}

/// Replaces a claim with its composite resource. Returns whether it was one.
fn take_claim(composite: &mut Object, definitions: &[Read]) -> Result<bool> {
    let mut definitions = definitions.iter().map(|(definition, _)| definition);
    let Some(definition) = definitions.find(|one| claim::is_claim(composite, one)) else {
        return Ok(false);
    };
    let claimed = claim::composite(composite, definition);
    *composite = claimed.with_context(|| claim::attempted(composite))?;
    Ok(true)
}

/// The definition of the kind that a Composition composes. If the only definition is for another
/// kind, the engine reports the error.
fn definition_of<'a>(definitions: &'a [Read], composition: &Object) -> Option<&'a Read> {
    let type_ref = |key: &str| composition.str_at(&["spec", "compositeTypeRef", key]);
    let gvk = Gvk::new(type_ref("apiVersion"), type_ref("kind"));
    let fitting = definitions.iter().find(|(definition, _)| nested::defines(definition, &gvk));
    fitting.or(definitions.first())
}
