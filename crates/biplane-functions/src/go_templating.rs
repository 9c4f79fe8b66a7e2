//! function-go-templating: composes resources from Go templates.
//!
//! A template renders YAML or JSON documents from the request (`data`, `helpers`). The documents are
//! read back (`output`) and applied to the desired state (`documents`). The input is decoded, and its
//! template is parsed, once (`cache`).

mod cache;
mod condition;
mod context;
mod data;
mod documents;
mod explain;
mod files;
mod helpers;
mod host;
mod input;
mod json;
mod output;
mod source;
mod typed;
mod yaml;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Budget, Exceeded, Explanation, PureFunction, response};
use biplane_template::budget::Limits;
use biplane_template::func::Func;
use biplane_template::{Delimiters, Functions, MissingKey, ParseError, RunError, Template, sprig};
use tonic::Status;

pub use biplane_go::time::{DurationError, GoDuration};
pub use files::Files;
pub use host::{Fixed, World};

use input::Input;

/// The name of the template in error messages.
const TEMPLATE: &str = "manifests";

/// All functions that templates can call. Later ones win.
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let own = helpers::functions().into_iter().chain([Func::include()]);
    Functions::new(own.chain(sprig::functions()))
});

/// The function. [`Default`] is its configuration without flags: it reads no files, and the clock
/// and the random numbers are always the same.
#[derive(Debug)]
pub struct GoTemplating {
    ttl: GoDuration,
    default_source: String,
    default_options: String,
    files: Files,
    world: Arc<dyn World>,
    limits: Limits,
    templates: cache::Templates,
    explained: explain::Explained,
}

impl Default for GoTemplating {
    fn default() -> Self {
        Self {
            ttl: Duration::from_mins(1).into(),
            default_source: String::new(),
            default_options: String::new(),
            files: Files::default(),
            world: Arc::new(Fixed),
            limits: Limits::default(),
            templates: cache::Templates::default(),
            explained: explain::Explained::default(),
        }
    }
}

impl GoTemplating {
    /// Sets how long responses may be cached if neither the input nor the composite resource says
    /// so.
    #[must_use]
    pub fn with_ttl(mut self, ttl: GoDuration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the folder with templates for inputs without a source.
    #[must_use]
    pub fn with_default_source(mut self, folder: impl Into<String>) -> Self {
        self.default_source = folder.into();
        self
    }

    /// Sets the options for inputs without options, separated by commas.
    #[must_use]
    pub fn with_default_options(mut self, options: impl Into<String>) -> Self {
        self.default_options = options.into();
        self
    }

    /// Sets the folder below which templates may be read. Absolute paths begin there.
    #[must_use]
    pub fn with_template_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.files = Files::below(root.into());
        self
    }

    /// Sets where templates get the time and random numbers from.
    #[must_use]
    pub fn with_world(mut self, world: Arc<dyn World>) -> Self {
        self.world = world;
        self
    }

    /// Sets how much a template may do.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The text that the template renders.
    fn rendered(
        &self,
        request: &RunFunctionRequest,
        input: &Input,
        response: &mut RunFunctionResponse,
        budget: &Budget,
    ) -> Result<Vec<u8>, Failure> {
        if let Ok(ttl) = input.ttl.parse::<GoDuration>() {
            set_ttl(response, ttl);
        }
        let template = self.template(request, input)?;
        let missing = self.options(input)?;
        let data = data::of_request(request);
        let host = host::Host::new(self.world.as_ref(), budget);
        template.run(&data, missing, &host, self.limits).map_err(Failure::Run)
    }

    fn template(&self, request: &RunFunctionRequest, input: &Input) -> Result<Template, Failure> {
        let text = source::text(input, request, &self.files, &self.default_source)
            .map_err(|error| Failure::Message(format!("invalid function input: {error}")))?;
        self.templates.parsed(&text, &input.delimiters).map_err(Failure::Parse)
    }

    fn options(&self, input: &Input) -> Result<MissingKey, Failure> {
        let mut missing = MissingKey::default();
        let defaults = self.default_options.split(',').filter(|_| !self.default_options.is_empty());
        let options: Vec<&str> = match &input.options {
            Some(options) => options.iter().map(String::as_str).collect(),
            None => defaults.collect(),
        };
        for option in options {
            missing = MissingKey::option(option).map_err(|panic| {
                Failure::Message(format!(
                    "cannot apply template options: panic occurred while applying template \
                     options: {panic}"
                ))
            })?;
        }
        Ok(missing)
    }

    fn answer(
        &self,
        request: &RunFunctionRequest,
        response: &mut RunFunctionResponse,
        budget: &Budget,
    ) -> Result<(), String> {
        let input = self.templates.input(request.input.as_ref()).map_err(|error| {
            format!("cannot get Function input from *v1.RunFunctionRequest: {error}")
        })?;
        let text = self.rendered(request, &input, response, budget).map_err(|failure| {
            let message = failure.to_string();
            self.explained.keep(&message, &failure, &input);
            message
        })?;
        let documents = output::read(&text, budget)?;
        documents::apply(documents, request, response, budget)
    }
}

/// The limit for messages, which may quote what a template wrote. The message of a template that
/// includes itself has about 70 KiB.
const MAX_MESSAGE: usize = 256 << 10;

/// Cuts a message in the middle. What went wrong is often at its end.
fn cut(message: String) -> String {
    if message.len() <= MAX_MESSAGE {
        return message;
    }
    let (start, _) = message.split_at(message.floor_char_boundary(MAX_MESSAGE / 2));
    let (_, end) = message.split_at(message.ceil_char_boundary(message.len() - MAX_MESSAGE / 2));
    format!("{start}...{end}")
}

/// Why a template cannot be rendered.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Message(String),
    #[error("invalid function input: cannot parse the provided templates: {0}")]
    Parse(ParseError),
    #[error("cannot execute template: {0}")]
    Run(RunError),
}

fn parse(text: &str, delimiters: &Delimiters) -> Result<Template, ParseError> {
    Template::parse(TEMPLATE, text, &FUNCTIONS, delimiters)
}

fn set_ttl(response: &mut RunFunctionResponse, ttl: GoDuration) {
    let (seconds, nanos) = ttl.parts();
    let ttl = biplane_proto::Duration { seconds, nanos };
    response.meta.get_or_insert_default().ttl = Some(ttl);
}

impl PureFunction for GoTemplating {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        self.run_within(request, &Budget::default())
    }

    /// Of the budget, only the time counts: templates have limits of their own.
    fn run_within(
        &self,
        request: RunFunctionRequest,
        budget: &Budget,
    ) -> Result<RunFunctionResponse, Status> {
        let mut response = response::to(&request, response::DEFAULT_TTL);
        set_ttl(&mut response, self.ttl);
        let answered = self.answer(&request, &mut response, budget);
        if let Some(status) = budget.exceeded().and_then(Exceeded::status) {
            return Err(status);
        }
        if let Err(message) = answered {
            response::fatal(&mut response, cut(message));
        }
        Ok(response)
    }

    fn checks_budget(&self) -> bool {
        true
    }

    fn explain(&self, message: &str) -> Option<Explanation> {
        self.explained.find(message)
    }
}

#[cfg(test)]
mod tests;
