//! What a render of composite resources is made from, and how it is read from files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, anyhow};
use biplane_model::{Gvk, Object};

use super::super::checks::Misfit;
use super::super::context::{self, ContextHelper};
use super::super::defaults::Defaults;
use super::super::flags::OutputFormat;
use super::super::load::{Loader, Origin, Read};
use super::super::runtime::Function;
use super::super::{checks, functions};
use super::nested::{self, Nested};
use super::shares::{self, Shares};
use super::{CompositionRender, claim};
use crate::cli::{Exit, USAGE_ERROR, values};
use crate::progress::Progress;

/// What many of those are given with takes the place of the one.
const IN_PLACE: &str = "--xrs takes the place of the composite resource argument";

/// Everything that a render of a composite resource is made from.
#[derive(Clone, Debug)]
pub(in super::super) struct Inputs {
    pub composite: Object,
    pub composition: Object,
    pub functions: Vec<Function>,
    /// How long it took to find out which functions there are.
    pub spent: Duration,
    pub definition: Option<Object>,
    /// For composite resources that are composed themselves.
    pub nested: Arc<Nested>,
    /// The Compositions of those that have turned up.
    pub(super) reached: Vec<Object>,
    pub credentials: Vec<Object>,
    /// Of this composite resource.
    pub observed: Vec<Object>,
    /// Of all composite resources.
    pub(super) shares: Arc<Shares>,
    pub required: Vec<Object>,
    pub schemas: Vec<Object>,
    pub context: Option<Arc<ContextHelper>>,
    /// For the v1 line, which reads these when it renders.
    pub context_texts: BTreeMap<String, String>,
    pub progress: Progress,
}

impl Inputs {
    /// The same for another composite resource.
    pub(super) fn of(&self, composite: Object) -> Self {
        let context = self.context.as_ref().map(|helper| Arc::new(helper.afresh()));
        let observed = self.shares.get(&composite.id()).cloned().unwrap_or_default();
        Self { composite, observed, context, ..self.clone() }
    }
}

impl CompositionRender {
    /// The files of the Composition and of the functions. Without a composite resource among the
    /// arguments they stand one place earlier.
    pub(super) fn files(&self) -> Result<(&Path, Option<&Path>), Exit> {
        match (&self.xrs, &self.composition) {
            (None, Some(composition)) => Ok((composition, self.functions.as_deref())),
            (Some(_), functions) if self.functions.is_none() => {
                Ok((&self.composite_resource, functions.as_deref()))
            }
            _ => Err(Exit { code: USAGE_ERROR, text: IN_PLACE.to_owned() }),
        }
    }

    /// Reads every file. Returns the composite resources apart from what they share.
    pub(super) fn load(&self, loader: &mut Loader<'_, '_>) -> Result<(Inputs, Vec<Object>)> {
        let (composition, functions) = self.files()?;
        let mut composites = match &self.xrs {
            Some(path) => loader.composites(path)?,
            None => vec![loader.composite(&self.composite_resource)?],
        };
        let format = self.output.output_format;
        let composition = loader.composition(composition, format);
        let composition = composition.map_err(|error| self.misplaced(error))?;
        let mut definitions = Definitions { files: &self.xrd, read: None };
        for (composite, origin) in &mut composites {
            let wanted = composition.0.str_at(&["spec", "compositeTypeRef", "kind"]);
            if composite.kind() != wanted {
                take_claim(composite, definitions.get(loader)?)?;
            }
            checks::check(composite, &composition.0, format)
                .map_err(|misfit| self.explain(&misfit, (composite, origin), &composition))?;
        }
        checks::distinct(&composites)?;
        let (composition, _) = composition;
        let (mut composites, origins): (Vec<_>, Vec<_>) = composites.into_iter().unzip();
        let mut nested = Nested::default();
        nested.load(&self.compositions, loader)?;
        let mut inputs = Inputs {
            composite: Object::new(),
            composition,
            functions: Vec::new(),
            spent: Duration::ZERO,
            definition: None,
            nested: Arc::new(nested),
            reached: Vec::new(),
            credentials: Vec::new(),
            observed: Vec::new(),
            shares: Arc::default(),
            required: Vec::new(),
            schemas: Vec::new(),
            context: None,
            context_texts: BTreeMap::new(),
            progress: loader.progress(),
        };
        let (begun, limit) = (Instant::now(), self.engine.timeout);
        let pipelines = inputs.pipelines();
        inputs.functions = functions::load(functions, &pipelines, &self.function, limit, loader)?;
        inputs.spent = begun.elapsed();
        let definitions = definitions.get(loader)?;
        let definition = definition_of(definitions, &inputs.composition);
        inputs.definition = definition.map(|(definition, _)| definition.clone());
        if self.until_stable {
            let definitions = definitions.iter().map(|(definition, _)| definition.clone());
            let definitions: Vec<_> = definitions.collect();
            let nested = Arc::make_mut(&mut inputs.nested);
            nested.definitions = [definitions, std::mem::take(&mut nested.definitions)].concat();
            // A composite resource may be composed of others of its kind.
            let name = inputs.composition.name();
            nested.compositions.retain(|composition| composition.name() != name);
            nested.compositions.push(inputs.composition.clone());
        }
        if let Some(path) = &self.function.function_credentials {
            inputs.credentials = loader.secrets(path, "secrets")?;
        }
        if let Some(path) = &self.observed_resources {
            let observed = loader.observed(path)?;
            let shares = shares::share(&mut composites, observed)?;
            for warning in shares::rivals(&shares) {
                loader.warn(&warning);
            }
            inputs.shares = Arc::new(shares);
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
        for path in values::paths(&self.function.required_resources) {
            // The old name, where there was no other.
            let what = match format {
                OutputFormat::V1 => "extra resources",
                _ => "required resources",
            };
            inputs.required.extend(loader.resources(&path, what)?);
        }
        for path in values::paths(&self.extra_resources) {
            inputs.required.extend(loader.resources(&path, "extra resources")?);
        }
        self.warn_of_both(&inputs, loader);
        if let Some(path) = &self.required_schemas {
            inputs.schemas = Loader::schemas(path)?;
        }
        if format == OutputFormat::V1 {
            inputs.context_texts = context::texts(&self.function, loader)?;
        } else {
            inputs.context =
                ContextHelper::from_flags(&self.function, &self.output, &self.engine, loader)?;
        }
        Ok((inputs, composites))
    }

    /// Says which counts of what is given in two ways.
    fn warn_of_both(&self, inputs: &Inputs, loader: &mut Loader<'_, '_>) {
        let observed = inputs.shares.values().flatten().map(|object| (object.id(), object));
        let observed: BTreeMap<_, _> = observed.collect();
        let counts = if self.until_stable { "observed" } else { "required" };
        for required in &inputs.required {
            if observed.get(&required.id()).is_some_and(|other| *other != required) {
                loader.warn(&format!(
                    "{} is both observed and required, with different content; the {counts} one counts",
                    required.id()
                ));
            }
        }
    }

    /// Someone who adds a flag may leave the rest of the line as it was.
    fn misplaced(&self, error: Error) -> Error {
        let text = format!("{error:#}");
        if self.xrs.is_some() && text.contains(": not a composition: ") {
            return anyhow!("{text}\n{IN_PLACE}, so that the Composition comes first.");
        }
        error
    }

    /// Says where it is that a composite resource does not fit. Someone who renders a claim may not
    /// know what it takes.
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
        let error = match &self.xrs {
            Some(_) if misfit.composite.is_some() => {
                anyhow!("{} {:?}: {error}", composite.kind(), composite.name())
            }
            _ => error,
        };
        if self.xrd.is_empty()
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

/// The definitions that are named, which are read once and when they are needed.
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

/// Replaces a claim by the composite resource that it becomes.
fn take_claim(composite: &mut Object, definitions: &[Read]) -> Result<()> {
    let mut definitions = definitions.iter().map(|(definition, _)| definition);
    if let Some(definition) = definitions.find(|one| claim::is_claim(composite, one)) {
        let claimed = claim::composite(composite, definition);
        *composite = claimed.with_context(|| claim::refused(composite))?;
    }
    Ok(())
}

/// The definition of what a Composition composes. One that defines something else is for the
/// engine to refuse, unless there are others.
fn definition_of<'a>(definitions: &'a [Read], composition: &Object) -> Option<&'a Read> {
    let type_ref = |key: &str| composition.str_at(&["spec", "compositeTypeRef", key]);
    let gvk = Gvk::new(type_ref("apiVersion"), type_ref("kind"));
    let fitting = definitions.iter().find(|(definition, _)| nested::defines(definition, &gvk));
    fitting.or(definitions.first())
}
