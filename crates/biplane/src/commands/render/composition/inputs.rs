//! What a render of composite resources is made from, and how it is read from files.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use biplane_model::Object;

use super::super::context::ContextHelper;
use super::super::load::Loader;
use super::super::runtime::Function;
use super::super::{checks, defaults, functions};
use super::CompositionRender;
use crate::cli::values;
use crate::progress::Progress;

/// Everything that a render of a composite resource is made from.
#[derive(Clone, Debug)]
pub(in super::super) struct Inputs {
    pub composite: Object,
    pub composition: Object,
    pub functions: Vec<Function>,
    pub definition: Option<Object>,
    pub credentials: Vec<Object>,
    pub observed: Vec<Object>,
    pub required: Vec<Object>,
    pub schemas: Vec<Object>,
    pub context: Option<Arc<ContextHelper>>,
    pub progress: Progress,
}

impl Inputs {
    /// The same for another composite resource.
    pub(super) fn of(&self, composite: Object) -> Self {
        let context = self.context.as_ref().map(|helper| Arc::new(helper.afresh()));
        Self { composite, context, ..self.clone() }
    }
}

impl CompositionRender {
    /// The files of the Composition and of the functions. Without a composite resource among the
    /// arguments they stand one place earlier.
    fn files(&self) -> Result<(&Path, Option<&Path>)> {
        match (&self.xrs, &self.composition) {
            (None, Some(composition)) => Ok((composition, self.functions.as_deref())),
            (Some(_), functions) if self.functions.is_none() => {
                Ok((&self.composite_resource, functions.as_deref()))
            }
            _ => bail!("--xrs takes the place of the composite resource argument"),
        }
    }

    /// Reads every file. Returns the composite resources apart from what they share.
    pub(super) fn load(&self, loader: &mut Loader<'_, '_>) -> Result<(Inputs, Vec<Object>)> {
        let (composition, functions) = self.files()?;
        let mut composites = match &self.xrs {
            Some(path) => loader.resources(path, "composite resources")?,
            None => vec![loader.composite(&self.composite_resource)?],
        };
        let composition = loader.composition(composition)?;
        for composite in &composites {
            checks::check(composite, &composition, self.output.output_format)?;
        }
        let functions = functions::load(functions, &composition, &self.function, loader)?;
        let definition = match &self.xrd {
            Some(path) => {
                let definition = loader.definition(path)?;
                for composite in &mut composites {
                    defaults::apply(composite, &definition)?;
                }
                Some(definition)
            }
            None => None,
        };
        let credentials = match &self.function.function_credentials {
            Some(path) => loader.secrets(path, "secrets")?,
            None => Vec::new(),
        };
        let observed = match &self.observed_resources {
            Some(path) => loader.observed(path)?,
            None => Vec::new(),
        };
        let mut required = Vec::new();
        for path in values::paths(&self.function.required_resources) {
            required.extend(loader.resources(&path, "required resources")?);
        }
        for path in values::paths(&self.extra_resources) {
            required.extend(loader.resources(&path, "extra resources")?);
        }
        let schemas = match &self.required_schemas {
            Some(path) => Loader::schemas(path)?,
            None => Vec::new(),
        };
        let context = ContextHelper::from_flags(&self.function, &self.output, loader)?;
        let inputs = Inputs {
            composite: Object::new(),
            composition,
            functions,
            definition,
            credentials,
            observed,
            required,
            schemas,
            context,
            progress: loader.progress(),
        };
        Ok((inputs, composites))
    }
}
