//! Reads resources from files, folders and standard input.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_console::files;
use biplane_console::os::reason;
use biplane_console::{Deadline, Streams};
use biplane_go::json;
use biplane_model::typed::{self, tables};
use biplane_model::yaml::{self, Document, Place, Problem};
use biplane_model::{Number, Object, Value};

/// What stands for standard input.
pub const STDIN: &str = "-";

/// Where a resource was read.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file as the user named it.
    pub file: Arc<Path>,
    /// Its whole text.
    pub text: Arc<str>,
    /// Which document it is, without empty ones, counted from 0.
    pub document: usize,
    /// The keys that lead to the resource inside of the document.
    pub within: Vec<String>,
}

impl Origin {
    /// Where a field of the resource stands, or else what is around it.
    pub fn place(&self, field: &[String]) -> Option<Place> {
        let path: Vec<&str> = self.within.iter().chain(field).map(String::as_str).collect();
        Place::find(&self.text, self.document, &path)
    }
}

/// A resource and where it was read.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The resource.
    pub object: Object,
    /// Where it was read. Resources from a cluster or a package have no place that users know.
    pub origin: Option<Origin>,
}

/// Reads files. Standard input is read once, by whoever asks for it first.
#[derive(Debug)]
pub struct Sources<'a, 'b> {
    streams: &'a mut Streams<'b>,
    deadline: Deadline,
}

impl<'a, 'b> Sources<'a, 'b> {
    /// A reader that must finish by a deadline.
    pub fn new(streams: &'a mut Streams<'b>, deadline: Deadline) -> Self {
        Self { streams, deadline }
    }

    /// Reads what an argument names: a file, a folder, standard input, or several with commas
    /// between.
    pub fn read(&mut self, argument: &str) -> Result<Vec<Resource>> {
        let mut resources = Vec::new();
        if !argument.contains(',') {
            let source = Source::find(argument)?;
            self.read_source(&source, &mut resources)?;
            return Ok(resources);
        }
        let sources: Vec<Source> = argument
            .split(',')
            .map(|part| {
                Source::find(part).with_context(|| {
                    format!("cannot create loader for {}", biplane_go::fmt::quote(part))
                })
            })
            .collect::<Result<_>>()?;
        for (place, source) in sources.iter().enumerate() {
            self.read_source(source, &mut resources)
                .with_context(|| format!("cannot load source at position {place}"))?;
        }
        Ok(resources)
    }

    fn read_source(&mut self, source: &Source, resources: &mut Vec<Resource>) -> Result<()> {
        match source {
            Source::Stdin => {
                let stdin = std::mem::replace(&mut self.streams.stdin, Box::new(std::io::empty()));
                let bytes = files::read_stream(stdin, self.deadline)
                    .map_err(|error| anyhow!("cannot read stdin: {}", reason(&error)))?;
                parse(Path::new(STDIN), bytes, "stdin", resources)
            }
            Source::File(path) => self.read_file(path, "file", resources),
            Source::Folder(path) => {
                let mut files = Vec::new();
                walk(path, &mut files).context("cannot read folder")?;
                for file in files {
                    self.deadline.check()?;
                    self.read_file(&file, "file", resources)?;
                }
                Ok(())
            }
        }
    }

    fn read_file(&mut self, path: &Path, what: &str, resources: &mut Vec<Resource>) -> Result<()> {
        let bytes = files::read_named(path, self.deadline)
            .map_err(|error| anyhow!("open {}: {}", path.display(), reason(&error)))
            .with_context(|| format!("cannot read {what}"))?;
        parse(path, bytes, what, resources)
    }
}

enum Source {
    Stdin,
    File(PathBuf),
    Folder(PathBuf),
}

impl Source {
    fn find(argument: &str) -> Result<Self> {
        if argument == STDIN {
            return Ok(Self::Stdin);
        }
        let metadata = std::fs::metadata(argument).map_err(|error| {
            anyhow!("stat {argument}: {}", reason(&error)).context("cannot stat input source")
        })?;
        let path = PathBuf::from(argument);
        Ok(if metadata.is_dir() { Self::Folder(path) } else { Self::File(path) })
    }
}

/// The YAML files of a folder and of those in it, in the order of their names.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |error: std::io::Error| anyhow!("open {}: {}", folder.display(), reason(&error));
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // A link to a folder is not followed, since it may lead back.
        entries.push((entry.path(), entry.file_type().map_err(failed)?));
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (path, kind) in entries {
        // A file may be named by its extension alone.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_yaml = matches!(name.rsplit_once('.'), Some((_, "yaml" | "yml")));
        if kind.is_dir() {
            walk(&path, found)?;
        } else if is_yaml {
            found.push(path);
        }
    }
    Ok(())
}

/// Reads the documents of a text.
pub fn parse(path: &Path, bytes: Vec<u8>, what: &str, resources: &mut Vec<Resource>) -> Result<()> {
    let attempted = "cannot parse YAML manifest";
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => match yaml::decode_text(error.into_bytes()) {
            Ok(text) => text,
            Err(_) => {
                bail!(
                    "{attempted}: error converting YAML to JSON: yaml: invalid leading UTF-8 octet"
                )
            }
        },
    };
    let (file, text) = (Arc::<Path>::from(path), Arc::<str>::from(text));
    let documents = yaml::parse_documents(&path.display().to_string(), &text).map_err(|error| {
        match error.problem {
            Problem::Separator(_) => {
                anyhow!("cannot read {what}: cannot parse YAML stream: {}", error.reference())
            }
            _ => anyhow!("{attempted}: {}", error.report()),
        }
    })?;
    for document in documents {
        let origin = Origin {
            file: Arc::clone(&file),
            text: Arc::clone(&text),
            document: document.index,
            within: Vec::new(),
        };
        add(document, origin, resources).map_err(|error| match error.downcast_ref() {
            Some(NotManifest(text)) => anyhow!("{attempted}: {text}"),
            None => error,
        })?;
    }
    Ok(())
}

/// The reason why a document is not a resource.
#[derive(Debug)]
struct NotManifest(String);

impl std::fmt::Display for NotManifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotManifest {}

fn add(document: Document, origin: Origin, resources: &mut Vec<Resource>) -> Result<()> {
    if document.value.is_null() {
        return Ok(());
    }
    let decoding = "error unmarshaling JSON: while decoding JSON: ";
    let shown = json::to_string(&document.value);
    let object = match as_written(document.value) {
        Value::Object(map) => Object::from(map),
        other => {
            let kind = match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            let text = format!(
                "{decoding}json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            );
            return Err(NotManifest(text).into());
        }
    };
    // An API version with more than one slash is none. One that is no text is as good as absent.
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let readable = api_version.matches('/').count() <= 1;
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind.is_empty() || !readable {
        return Err(NotManifest(format!("{decoding}Object 'Kind' is missing in '{shown}'")).into());
    }
    if object.kind() == "Composition" && object.api_version() == "apiextensions.crossplane.io/v1" {
        add_inputs(&object, &origin, resources)?;
    }
    resources.push(Resource { object, origin: Some(origin) });
    Ok(())
}

/// Adds the inputs of the functions that a Composition calls.
fn add_inputs(composition: &Object, origin: &Origin, resources: &mut Vec<Resource>) -> Result<()> {
    typed::restored(composition, tables::COMPOSITION)
        .map_err(|text| anyhow!("failed to convert unstructured to Composition: {text}"))?;
    let steps = composition.at(&["spec", "pipeline"]).and_then(Value::as_array);
    for (place, step) in steps.into_iter().flatten().enumerate() {
        let Some(input) = step.get("input").filter(|input| !input.is_null()) else { continue };
        let Value::Object(input) = as_doubles(input.clone()) else {
            let kind = match input {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            bail!(
                "failed to unmarshal raw input: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            );
        };
        let within = ["spec", "pipeline", &place.to_string(), "input"].map(str::to_owned).to_vec();
        let origin = Origin { within, ..origin.clone() };
        resources.push(Resource { object: Object::from(input), origin: Some(origin) });
    }
    Ok(())
}

/// Numbers as Go writes them to JSON in between: a whole double has no point, and so becomes an
/// integer.
fn as_written(value: Value) -> Value {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < LIMIT);
            whole.map_or(Value::Number(number), |whole| Value::from(whole as i64))
        }
        Value::Array(items) => items.into_iter().map(as_written).collect(),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(name, value)| (name, as_written(value))).collect())
        }
        other => other,
    }
}

/// All numbers as doubles, which is how Go reads JSON into maps.
pub(crate) fn as_doubles(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let double = number.as_f64().and_then(Number::from_f64);
            Value::Number(double.unwrap_or(number))
        }
        Value::Array(items) => items.into_iter().map(as_doubles).collect(),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(name, value)| (name, as_doubles(value))).collect())
        }
        other => other,
    }
}
