//! What a render of composite resources is made from, and how it is read from files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, anyhow};
use biplane_model::{Gvk, Object};

use super::super::context::{self, ContextHelper};
use super::super::flags::OutputFormat;
use super::super::load::Loader;
use super::super::runtime::Function;
use super::super::{checks, defaults, functions};
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
            Some(path) => loader.resources(path, "composite resources")?,
            None => vec![loader.composite(&self.composite_resource)?],
        };
        let format = self.output.output_format;
        let composition = loader.composition(composition, format)?;
        for composite in &mut composites {
            self.take_claim(composite, &composition, loader)?;
            checks::check(composite, &composition, format)
                .map_err(|error| self.with_hint(error, composite, &composition))?;
        }
        checks::distinct(&composites)?;
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
        let definitions = self.definitions(loader)?;
        inputs.definition = definition_of(&definitions, &inputs.composition).cloned();
        if self.until_stable {
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
        if let Some(definition) = &inputs.definition {
            for composite in &mut composites {
                defaults::apply(composite, definition)?;
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

    fn definitions(&self, loader: &mut Loader<'_, '_>) -> Result<Vec<Object>> {
        self.xrd.iter().map(|path| loader.definition(path)).collect()
    }

    /// Replaces a claim by the composite resource that it becomes.
    fn take_claim(
        &self,
        composite: &mut Object,
        composition: &Object,
        loader: &mut Loader<'_, '_>,
    ) -> Result<()> {
        if composite.kind() == composition.str_at(&["spec", "compositeTypeRef", "kind"]) {
            return Ok(());
        }
        let definitions = self.definitions(loader)?;
        let offers = definitions.iter().find(|definition| claim::is_claim(composite, definition));
        if let Some(definition) = offers {
            let claimed = claim::composite(composite, definition);
            *composite = claimed.with_context(|| claim::refused(composite))?;
        }
        Ok(())
    }

    /// Someone who renders a claim may not know what it takes.
    fn with_hint(&self, error: Error, composite: &Object, composition: &Object) -> Error {
        let wanted = |key: &str| composition.str_at(&["spec", "compositeTypeRef", key]);
        if composite.is_empty() {
            let file = self.composite_resource.display();
            return anyhow!("{error}\n--> {file}: there is no object in it");
        }
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

/// The definition of what a Composition composes. One that defines something else is for the
/// engine to refuse, unless there are others.
fn definition_of<'a>(definitions: &'a [Object], composition: &Object) -> Option<&'a Object> {
    let type_ref = |key: &str| composition.str_at(&["spec", "compositeTypeRef", key]);
    let gvk = Gvk::new(type_ref("apiVersion"), type_ref("kind"));
    definitions.iter().find(|definition| nested::defines(definition, &gvk)).or(definitions.first())
}
