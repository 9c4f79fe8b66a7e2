//! Loads objects from files. Errors name the file and the location in it.

mod lists;
mod observed;
mod secrecy;
mod shape;
mod source;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use biplane_console::files;
use biplane_console::os::reason;
use biplane_console::{Deadline, Progress, Streams};
use biplane_model::Object;
use biplane_model::typed::{self, Names, tables};
use biplane_model::yaml::{self, Document, NotText, Place, Problem, YamlError};

use self::observed::Observed;
use self::secrecy::holds_secret;
use self::source::Source;
use crate::line::Line;

pub use self::shape::{Type, WrongKind};
pub use self::source::{Origin, STDIN, name, without_text};

const COMPOSITION: Type = (tables::COMPOSITION, Names::COMPOSITION);
const COMPOSITION_V1: Type = (tables::v1::COMPOSITION, Names::COMPOSITION_V1);
const DEFINITION: Type = (tables::DEFINITION, Names::DEFINITION);
const FUNCTION: Type = (tables::FUNCTION, Names::FUNCTION);
const SECRET: Type = (tables::SECRET, Names::SECRET);
/// The API group of Compositions and definitions.
const API_GROUP: &str = "apiextensions.crossplane.io";

/// An object and its origin.
pub type Read = (Object, Origin);

/// Reads input files. Standard input (`-`) is read once, even if it is named several times.
#[derive(Debug)]
pub struct Loader<'a, 'b> {
    streams: &'a mut Streams<'b>,
    deadline: Deadline,
    stdin: Option<String>,
}

impl<'a, 'b> Loader<'a, 'b> {
    /// A loader that must finish by a deadline.
    pub fn new(streams: &'a mut Streams<'b>, deadline: Deadline) -> Self {
        Self { streams, deadline, stdin: None }
    }

    /// Shows what the command is waiting for.
    pub fn progress(&self) -> Progress {
        self.streams.progress.clone()
    }

    /// The deadline of the command.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The streams of the command.
    pub fn streams(&mut self) -> &mut Streams<'b> {
        self.streams
    }

    /// The composite resource: the first document of a file.
    pub fn composite(&mut self, path: &Path) -> Result<Read> {
        let load = |loader: &mut Self| -> Result<Read> {
            let attempted = "cannot unmarshal composite resource YAML";
            let text = loader.read(path).context("cannot read composite resource file")?;
            let (object, source) = loader.first(path, &text, Names::OBJECT).context(attempted)?;
            // An empty file gives an object without a kind, which is refused later.
            let Some(object) = object else { return Ok((Object::new(), source.keep())) };
            shape::composite(&object, &source).context(attempted)?;
            Ok((object, source.keep()))
        };
        load(self).with_context(|| format!("cannot load composite resource from {}", quoted(path)))
    }

    /// The Composition: the first document of a file.
    pub fn composition(&mut self, path: &Path, line: Line) -> Result<Read> {
        let kind = match line {
            Line::V1 => COMPOSITION_V1,
            Line::V2 => COMPOSITION,
        };
        let load = |loader: &mut Self| -> Result<Read> {
            let text = loader.read(path).context("cannot read composition file")?;
            let attempted = "cannot unmarshal composition resource YAML";
            let (object, source) =
                loader.first(path, &text, Names::COMPOSITION).context(attempted)?;
            let mut object = object.unwrap_or_default();
            shape::fit(&mut object, kind, &source).context(attempted)?;
            shape::is_one(&object, "Composition", &["apiextensions.crossplane.io/v1"], &source)?;
            Ok((object, source.keep()))
        };
        load(self).with_context(|| format!("cannot load Composition from {}", quoted(path)))
    }

    /// The Compositions and the definitions in all files below a path.
    pub fn compositions(&mut self, path: &Path) -> Result<(Vec<Object>, Vec<Object>)> {
        let load = |loader: &mut Self| -> Result<(Vec<Object>, Vec<Object>)> {
            let mut files = Vec::new();
            if path.is_dir() {
                walk(path, &["yaml", "yml"], &mut files).context("cannot walk directory")?;
            } else {
                files.push(path.to_owned());
            }
            let (mut compositions, mut definitions) = (Vec::new(), Vec::new());
            for file in files {
                let attempted = "cannot parse YAML manifest";
                let objects =
                    loader.stream(&file, attempted, Names::OBJECT, |object, source| {
                        if object.kind() == "Composition" && object.gvk().group == API_GROUP {
                            shape::fit(object, COMPOSITION, source).context(attempted)?;
                        }
                        Ok(())
                    })?;
                for object in objects {
                    let group = object.gvk().group;
                    match (group.as_str(), object.kind()) {
                        (API_GROUP, "Composition") => compositions.push(object),
                        (API_GROUP, "CompositeResourceDefinition") => definitions.push(object),
                        _ => {}
                    }
                }
            }
            if compositions.is_empty() {
                bail!("there is no Composition in it");
            }
            Ok((compositions, definitions))
        };
        load(self).with_context(|| format!("cannot load Compositions from {}", quoted(path)))
    }

    /// The definition of the composite resource.
    pub fn definition(&mut self, path: &Path) -> Result<Read> {
        let load = |loader: &mut Self| -> Result<Read> {
            let attempted = "cannot unmarshal XRD YAML";
            let text = loader.read(path).context("cannot read XRD file")?;
            let (object, source) =
                loader.first(path, &text, Names::DEFINITION).context(attempted)?;
            if object.is_none() {
                loader.warn(&format!("there is no object in {}", name(path)));
            }
            let mut object = object.unwrap_or_default();
            if !object.is_empty() && object.kind() != "CompositeResourceDefinition" {
                let (file, kind) = (name(path), object.kind());
                loader.warn(&format!(
                    "{file} is no CompositeResourceDefinition: its kind is {kind:?}"
                ));
            }
            shape::fit(&mut object, DEFINITION, &source).context(attempted)?;
            Ok((object, source.keep()))
        };
        load(self).with_context(|| format!("cannot load XRD from {}", quoted(path)))
    }

    /// Functions from a file or a directory.
    pub fn functions(&mut self, path: &Path) -> Result<Vec<Object>> {
        let load = |loader: &mut Self| -> Result<Vec<Object>> {
            let attempted = "cannot parse YAML Function manifest";
            loader.stream(path, attempted, Names::FUNCTION, |object, source| {
                shape::fit(object, FUNCTION, source).context(attempted)?;
                let known = ["pkg.crossplane.io/v1", "pkg.crossplane.io/v1beta1"];
                shape::is_one(object, "Function", &known, source)
            })
        };
        load(self).with_context(|| format!("cannot load functions from {}", quoted(path)))
    }

    /// Secrets. Their declared kind is not checked.
    pub fn secrets(&mut self, path: &Path, what: &str) -> Result<Vec<Object>> {
        let attempted = "cannot parse YAML secret manifest";
        let check = |object: &mut Object, source: &Source<'_>| {
            shape::fit(object, SECRET, source).context(attempted)
        };
        let secrets = self
            .documents(path, attempted, (Names::SECRET, true), check)
            .map(objects)
            .with_context(|| format!("cannot load {what} from {}", quoted(path)))?;
        for secret in secrets.iter().filter(|secret| secret.contains_key("stringData")) {
            self.warn(&format!(
                "stringData of Secret {:?} in {} is not used; write it as data, in base64",
                secret.name(),
                name(path)
            ));
        }
        Ok(secrets)
    }

    /// Composed resources that already exist.
    pub fn observed(&mut self, path: &Path) -> Result<Vec<Object>> {
        let mut observed = Observed::default();
        let attempted = "cannot parse YAML composed resource manifest";
        let objects = self.stream(path, attempted, Names::OBJECT, |object, source| {
            shape::object(object, source).context(attempted)?;
            observed.add(object, source)
        });
        let objects = objects.with_context(|| {
            format!("cannot load observed composed resources from {}", quoted(path))
        })?;
        Ok(objects)
    }

    /// Resources that functions may require.
    pub fn resources(&mut self, path: &Path, what: &str) -> Result<Vec<Object>> {
        self.any(path, what).map(objects)
    }

    /// Composite resources; at least one is required.
    pub fn composites(&mut self, path: &Path) -> Result<Vec<Read>> {
        let what = "composite resources";
        let found = self.any(path, what)?;
        if found.is_empty() {
            bail!("cannot load {what} from {}: there is none in it", quoted(path));
        }
        Ok(found)
    }

    fn any(&mut self, path: &Path, what: &str) -> Result<Vec<Read>> {
        let attempted = "cannot parse YAML resource manifest";
        let check = |object: &mut Object, source: &Source<'_>| {
            shape::object(object, source).context(attempted)
        };
        self.documents(path, attempted, (Names::OBJECT, false), check)
            .with_context(|| format!("cannot load {what} from {}", quoted(path)))
    }

    /// OpenAPI documents: every `*.json` below a directory.
    pub fn schemas(&self, directory: &Path) -> Result<Vec<Object>> {
        let load = || -> Result<Vec<Object>> {
            let mut files = Vec::new();
            walk(directory, &["json"], &mut files).context("cannot walk directory")?;
            if files.is_empty() {
                bail!("no JSON files found in {}", quoted(directory));
            }
            let parse = |file: &PathBuf| -> Result<Object> {
                self.deadline.check()?;
                let text = files::read_named(file, self.deadline)
                    .map_err(|e| anyhow!("open {}: {}", file.display(), reason(&e)))?;
                serde_json::from_slice(&text).map_err(|e| {
                    let text = String::from_utf8_lossy(&text);
                    let place = shown(&Place::at(&text, e.line(), e.column()), holds_secret(&text));
                    let (quoted, file) = (quoted(file), file.display());
                    anyhow!("cannot parse OpenAPI JSON from {quoted}: {e}\n--> {file}, {place}")
                })
            };
            files.iter().map(parse).collect()
        };
        load().with_context(|| format!("cannot load required schemas from {}", quoted(directory)))
    }

    /// The first document of an Operation's file, of any kind, with the file's text.
    pub fn operation(&mut self, path: &Path) -> Result<(Object, String)> {
        let text = self
            .read(path)
            .with_context(|| format!("cannot read operation file {}", quoted(path)))?;
        let attempted = || format!("cannot unmarshal type metadata from {}", quoted(path));
        let (object, source) = self.first(path, &text, Names::TYPE).with_context(attempted)?;
        let mut object = object.unwrap_or_default();
        shape::fit(&mut object, (tables::TYPE, Names::TYPE), &source).with_context(attempted)?;
        Ok((object, text))
    }

    /// The first document of a text, if it holds an object. Other documents are ignored with a
    /// warning.
    fn first<'t>(
        &mut self,
        path: &'t Path,
        text: &'t str,
        names: Names,
    ) -> Result<(Option<Object>, Source<'t>)> {
        let document = match yaml::parse_one(&name(path), text) {
            Ok(document) => document,
            Err(YamlError { problem: Problem::Empty, .. }) => {
                return Ok((None, Source::new(path, text, 0)));
            }
            Err(error) if holds_secret(text) => return Err(without_text(&error)),
            Err(error) => return Err(anyhow!(error.report())),
        };
        self.warn_of_more(&name(path), text);
        let source = Source::new(path, text, document.index);
        Ok((object(document, names, &source)?, source))
    }

    /// Warns if a text has further documents besides the first, which is the only one used.
    pub fn warn_of_more(&mut self, name: &str, text: &str) {
        // A document that cannot be parsed also counts.
        let more = |text: &str| match yaml::parse_documents(name, text) {
            Ok(all) => all.len() > 1,
            Err(error) => error.document > 1,
        };
        if text.contains("\n---") && more(text) {
            self.warn(&format!("{name} holds more than one document; only the first is used"));
        }
    }

    /// Prints a warning about input that is unusual but usable.
    pub fn warn(&mut self, warning: &str) {
        self.streams.say(&format!("biplane: warning: {warning}"));
    }

    /// The text of a file.
    pub fn read(&mut self, path: &Path) -> Result<String> {
        self.read_text(path, false)
    }

    /// The text of a file that errors must not quote.
    pub fn read_secret(&mut self, path: &Path) -> Result<String> {
        self.read_text(path, true)
    }

    fn read_text(&mut self, path: &Path, secret: bool) -> Result<String> {
        if path == Path::new(STDIN) {
            if self.stdin.is_none() {
                let stdin = std::mem::replace(&mut self.streams.stdin, Box::new(std::io::empty()));
                let bytes =
                    files::read_stream(stdin, self.deadline).context("read standard input")?;
                self.stdin = Some(decode(path, bytes, secret)?);
            }
            return Ok(self.stdin.clone().unwrap_or_default());
        }
        let bytes = files::read_named(path, self.deadline).map_err(|error| {
            let attempted = if path.is_dir() { "read" } else { "open" };
            anyhow!("{attempted} {}: {}", path.display(), reason(&error))
        })?;
        decode(path, bytes, secret)
    }

    /// Every document of a file, or of the YAML files of a directory.
    fn stream(
        &mut self,
        path: &Path,
        attempted: &str,
        names: Names,
        check: impl FnMut(&mut Object, &Source<'_>) -> Result<()>,
    ) -> Result<Vec<Object>> {
        self.documents(path, attempted, (names, false), check).map(objects)
    }

    /// The same with their origins. `secret` is set if the text holds secrets.
    fn documents(
        &mut self,
        path: &Path,
        attempted: &str,
        (names, secret): (Names, bool),
        mut check: impl FnMut(&mut Object, &Source<'_>) -> Result<()>,
    ) -> Result<Vec<Read>> {
        let mut objects = Vec::new();
        let files = yaml_files(path).context("cannot load YAML stream from file")?;
        for (already_read, file) in files.into_iter().enumerate() {
            // A folder may have any number of files.
            if already_read > 0 {
                self.deadline.check()?;
            }
            let text =
                self.read_text(&file, secret).context("cannot load YAML stream from file")?;
            let (file, text) = (Arc::<Path>::from(file), Arc::<str>::from(text));
            for document in yaml::parse_documents(&name(&file), &text)
                .map_err(|e| parse_failure(&e, attempted, secret || holds_secret(&text)))?
            {
                let place = document.index;
                let source = Source { secret, ..Source::new(&file, &text, place) };
                let object = object(document, names, &source);
                // A null document is skipped, like an empty one.
                let Some(object) = object.with_context(|| attempted.to_owned())? else {
                    continue;
                };
                let items = if names == Names::OBJECT {
                    lists::unpacked(object)
                } else {
                    vec![(object, Vec::new())]
                };
                for (mut object, within) in items {
                    let steps: Vec<_> = within.iter().map(String::as_str).collect();
                    check(&mut object, &Source { within: &steps, ..source })?;
                    let (file, text, within) = (file.clone(), text.clone(), within.into());
                    objects.push((object, Origin { file, text, document: place, within }));
                }
            }
        }
        Ok(objects)
    }
}

/// Decodes the text of a file.
fn decode(path: &Path, bytes: Vec<u8>, secret: bool) -> Result<String> {
    // Only a text that may be wrong is looked at: UTF-16 is not UTF-8.
    let is_secret = secret
        || std::str::from_utf8(&bytes).is_err()
            && holds_secret(&String::from_utf8_lossy(&bytes).replace('\0', ""));
    yaml::decode_text(bytes).map_err(|NotText { encoding, place }| {
        let file = name(path);
        let place = shown(&place, is_secret);
        anyhow!("{file} is not {encoding} text\n--> {file}, {place}")
    })
}

/// A location, with the line there unless the text is secret.
fn shown(place: &Place, is_secret: bool) -> String {
    if is_secret { source::numbers(place) } else { place.to_string() }
}

fn parse_failure(error: &YamlError, attempted: &str, secret: bool) -> anyhow::Error {
    let attempted = match error.problem {
        Problem::Separator(_) => "cannot parse YAML stream",
        _ => attempted,
    };
    let error = if secret { without_text(error) } else { anyhow!(error.report()) };
    error.context(attempted.to_owned())
}

/// The file itself, or the YAML files directly in the directory, sorted by name.
fn yaml_files(path: &Path) -> Result<Vec<PathBuf>> {
    if path == Path::new(STDIN) {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |e: std::io::Error| anyhow!("open {}: {}", path.display(), reason(&e));
    let metadata = std::fs::metadata(path).map_err(failed).context("cannot open file")?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed).context("cannot read directory")? {
        let file = entry.map_err(failed).context("cannot read directory")?.path();
        let is_yaml = file.extension().is_some_and(|e| e == "yaml" || e == "yml");
        if is_yaml && !file.is_dir() {
            check_regular(&file)?;
            found.push(file);
        }
    }
    if found.is_empty() {
        bail!("no YAML files found in {} (.yaml or .yml)", quoted(path));
    }
    found.sort();
    Ok(found)
}

fn walk(directory: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |e: std::io::Error| anyhow!("open {}: {}", directory.display(), reason(&e));
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // A link is not followed, since it may lead back to a parent.
        entries.push((entry.path(), entry.file_type().map_err(failed)?.is_dir()));
    }
    entries.sort();
    for (entry, is_directory) in entries {
        if is_directory {
            walk(&entry, extensions, found)?;
        } else if extensions.iter().any(|known| entry.extension().is_some_and(|e| e == *known)) {
            check_regular(&entry)?;
            found.push(entry);
        }
    }
    Ok(())
}

/// Fails if a file that was found in a directory is a pipe or a device, which might never end.
fn check_regular(file: &Path) -> Result<()> {
    // A broken link is reported when it is read.
    let Ok(metadata) = std::fs::metadata(file) else { return Ok(()) };
    files::check_regular(&metadata)
        .map_err(|error| anyhow!("open {}: {}", file.display(), reason(&error)))
}

/// The object of a document; `None` if the document is null.
fn object(document: Document, names: Names, source: &Source<'_>) -> Result<Option<Object>> {
    if document.value.is_null() {
        return Ok(None);
    }
    let text = typed::no_object(&document.value, names);
    let words = format!("expected an object but found {}", shape::kind(&document.value));
    match Object::from_value(document.value) {
        Some(object) => Ok(Some(object)),
        None => Err(source.complain_in_words(&[], shape::undecoded(&text), &words)),
    }
}

/// Converts an object from the first document of a text to a type, or reports where it does not
/// fit.
pub fn fit(path: &Path, text: &str, object: &mut Object, kind: Type) -> Result<()> {
    shape::fit(object, kind, &Source::new(path, text, 0))
}

/// An error about a part of the first document of a text.
pub fn complain(path: &Path, text: &str, part: &str, problem: String) -> anyhow::Error {
    Source::new(path, text, 0).complain(&[part], problem)
}

fn objects(read: Vec<Read>) -> Vec<Object> {
    read.into_iter().map(|(object, _)| object).collect()
}

/// A path in quotes.
pub fn quoted(path: &Path) -> String {
    biplane_go::fmt::quote(&path.display().to_string())
}
