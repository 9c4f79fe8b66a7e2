//! From files to objects, with errors that say which file and where in it.

mod observed;
mod shape;
mod source;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use biplane_model::typed::{self, tables};
use biplane_model::yaml::{self, Document, Place};
use biplane_model::{Object, gojson};

use self::observed::Observed;
use self::source::{Source, name};
use crate::cli::values::{STDIN, reason};
use crate::progress::Progress;
use crate::streams::Streams;

/// Reads input files. `-` is read once, however often it is named.
#[derive(Debug)]
pub(super) struct Loader<'a, 'b> {
    streams: &'a mut Streams<'b>,
    stdin: Option<String>,
}

impl<'a, 'b> Loader<'a, 'b> {
    pub(super) fn new(streams: &'a mut Streams<'b>) -> Self {
        Self { streams, stdin: None }
    }

    /// Where to say what is waited for.
    pub(super) fn progress(&self) -> Progress {
        self.streams.progress.clone()
    }

    /// Where to say what is being done.
    pub(super) fn streams(&mut self) -> &mut Streams<'b> {
        self.streams
    }

    /// The composite resource: the first document of a file.
    pub(super) fn composite(&mut self, path: &Path) -> Result<Object> {
        let load = |loader: &mut Self| -> Result<Object> {
            let text = loader.read(path).context("cannot read composite resource file")?;
            let (object, source) =
                loader.first(path, &text).context("cannot unmarshal composite resource YAML")?;
            shape::composite(&object, &source)
                .context("cannot unmarshal composite resource YAML")?;
            Ok(object)
        };
        load(self).with_context(|| format!("cannot load composite resource from {}", quoted(path)))
    }

    /// The Composition: the first document of a file.
    pub(super) fn composition(&mut self, path: &Path) -> Result<Object> {
        let load = |loader: &mut Self| -> Result<Object> {
            let text = loader.read(path).context("cannot read composition file")?;
            let attempted = "cannot unmarshal composition resource YAML";
            let (mut object, source) = loader.first(path, &text).context(attempted)?;
            typed::text_scalars(object.make_mut(), tables::COMPOSITION);
            shape::composition(&object, &source).context(attempted)?;
            shape::is_one(&object, "Composition", &["apiextensions.crossplane.io/v1"], &source)?;
            Ok(object)
        };
        load(self).with_context(|| format!("cannot load Composition from {}", quoted(path)))
    }

    /// The Compositions and the definitions among everything below a path.
    pub(super) fn compositions(&mut self, path: &Path) -> Result<(Vec<Object>, Vec<Object>)> {
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
                let objects = loader.stream(&file, attempted, |object, source| {
                    if object.kind() == "Composition" {
                        typed::text_scalars(object.make_mut(), tables::COMPOSITION);
                        shape::composition(object, source).context(attempted)?;
                    }
                    Ok(())
                })?;
                for object in objects {
                    let (group, _) = object.api_version().split_once('/').unwrap_or_default();
                    match (group, object.kind()) {
                        ("apiextensions.crossplane.io", "Composition") => compositions.push(object),
                        ("apiextensions.crossplane.io", "CompositeResourceDefinition") => {
                            definitions.push(object);
                        }
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
    pub(super) fn definition(&mut self, path: &Path) -> Result<Object> {
        let load = |loader: &mut Self| -> Result<Object> {
            let text = loader.read(path).context("cannot read XRD file")?;
            let (mut object, _) = loader.first(path, &text).context("cannot unmarshal XRD YAML")?;
            typed::text_scalars(object.make_mut(), tables::DEFINITION);
            Ok(object)
        };
        load(self).with_context(|| format!("cannot load XRD from {}", quoted(path)))
    }

    /// Functions from a file or a directory.
    pub(super) fn functions(&mut self, path: &Path) -> Result<Vec<Object>> {
        let load = |loader: &mut Self| -> Result<Vec<Object>> {
            let attempted = "cannot parse YAML Function manifest";
            loader.stream(path, attempted, |object, source| {
                typed::text_scalars(object.make_mut(), tables::FUNCTION);
                shape::function(object, source).context(attempted)?;
                let known = ["pkg.crossplane.io/v1", "pkg.crossplane.io/v1beta1"];
                shape::is_one(object, "Function", &known, source)
            })
        };
        load(self).with_context(|| format!("cannot load functions from {}", quoted(path)))
    }

    /// Secrets, whatever kind they say they are.
    pub(super) fn secrets(&mut self, path: &Path, what: &str) -> Result<Vec<Object>> {
        let attempted = "cannot parse YAML secret manifest";
        let check = |object: &mut Object, source: &Source<'_>| {
            typed::text_scalars(object.make_mut(), tables::SECRET);
            shape::secret(object, source).context(attempted)
        };
        let secrets = self
            .documents(path, attempted, true, check)
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

    /// Composed resources that exist.
    pub(super) fn observed(&mut self, path: &Path) -> Result<Vec<Object>> {
        let mut observed = Observed::default();
        let attempted = "cannot parse YAML composed resource manifest";
        let objects = self.stream(path, attempted, |object, source| {
            shape::object(object, source).context(attempted)?;
            observed.add(object, source)
        });
        let objects = objects.with_context(|| {
            format!("cannot load observed composed resources from {}", quoted(path))
        })?;
        observed.warnings.iter().for_each(|warning| self.warn(warning));
        Ok(objects)
    }

    /// Resources that functions may require.
    pub(super) fn resources(&mut self, path: &Path, what: &str) -> Result<Vec<Object>> {
        let attempted = "cannot parse YAML resource manifest";
        let check = |object: &mut Object, source: &Source<'_>| {
            shape::object(object, source).context(attempted)
        };
        self.stream(path, attempted, check)
            .with_context(|| format!("cannot load {what} from {}", quoted(path)))
    }

    /// OpenAPI documents: every `*.json` below a directory.
    pub(super) fn schemas(directory: &Path) -> Result<Vec<Object>> {
        let load = || -> Result<Vec<Object>> {
            let mut files = Vec::new();
            walk(directory, &["json"], &mut files).context("cannot walk directory")?;
            if files.is_empty() {
                bail!("no JSON files found in {}", quoted(directory));
            }
            let parse = |file: &PathBuf| -> Result<Object> {
                let text = std::fs::read(file)
                    .map_err(|e| anyhow!("open {}: {}", file.display(), reason(&e)))?;
                serde_json::from_slice(&text).map_err(|e| {
                    let text = String::from_utf8_lossy(&text);
                    let place = Place::at(&text, e.line(), e.column());
                    let (quoted, file) = (quoted(file), file.display());
                    anyhow!("cannot parse OpenAPI JSON from {quoted}: {e}\n--> {file}, {place}")
                })
            };
            files.iter().map(parse).collect()
        };
        load().with_context(|| format!("cannot load required schemas from {}", quoted(directory)))
    }

    /// The first document of an Operation's file, of whatever kind.
    pub(super) fn operation(&mut self, path: &Path) -> Result<Object> {
        let text = self
            .read(path)
            .with_context(|| format!("cannot read operation file {}", quoted(path)))?;
        let attempted = || format!("cannot unmarshal type metadata from {}", quoted(path));
        Ok(self.first(path, &text).with_context(attempted)?.0)
    }

    /// The first document of a text. Others are passed over, but not in silence.
    fn first<'t>(&mut self, path: &'t Path, text: &'t str) -> Result<(Object, Source<'t>)> {
        let document = yaml::parse_one(&name(path), text)?;
        let more = text.contains("\n---")
            && yaml::parse_documents(&name(path), text).is_ok_and(|all| all.len() > 1);
        if more {
            self.warn(&format!(
                "{} holds more than one document; only the first is used",
                name(path)
            ));
        }
        let source = Source { file: path, text, document: document.index, secret: false };
        Ok((object(document, &source)?, source))
    }

    fn warn(&mut self, warning: &str) {
        self.streams.say(&format!("biplane: warning: {warning}"));
    }

    /// Text of a file.
    pub(super) fn read(&mut self, path: &Path) -> Result<String> {
        if path == Path::new(STDIN) {
            if self.stdin.is_none() {
                let mut text = String::new();
                self.streams.stdin.read_to_string(&mut text).context("read standard input")?;
                self.stdin = Some(text);
            }
            return Ok(self.stdin.clone().unwrap_or_default());
        }
        let bytes = std::fs::read(path).map_err(|error| {
            let attempted = if path.is_dir() { "read" } else { "open" };
            anyhow!("{attempted} {}: {}", path.display(), reason(&error))
        })?;
        String::from_utf8(bytes).map_err(|_| anyhow!("{} is not UTF-8 text", path.display()))
    }

    /// Every document of a file, or of the YAML files of a directory.
    fn stream(
        &mut self,
        path: &Path,
        attempted: &str,
        check: impl FnMut(&mut Object, &Source<'_>) -> Result<()>,
    ) -> Result<Vec<Object>> {
        self.documents(path, attempted, false, check)
    }

    /// The same, with a word on whether the text holds secrets.
    fn documents(
        &mut self,
        path: &Path,
        attempted: &str,
        secret: bool,
        mut check: impl FnMut(&mut Object, &Source<'_>) -> Result<()>,
    ) -> Result<Vec<Object>> {
        let mut objects = Vec::new();
        for file in files(path).context("cannot load YAML stream from file")? {
            let text = self.read(&file).context("cannot load YAML stream from file")?;
            for document in yaml::parse_documents(&name(&file), &text)
                .map_err(|e| parse_failure(&e, attempted, secret))?
            {
                let source = Source { file: &file, text: &text, document: document.index, secret };
                let mut object = object(document, &source).with_context(|| attempted.to_owned())?;
                check(&mut object, &source)?;
                objects.push(object);
            }
        }
        Ok(objects)
    }
}

fn parse_failure(error: &yaml::YamlError, attempted: &str, secret: bool) -> anyhow::Error {
    let text = if secret { source::without_text(error) } else { error.to_string() };
    match error.problem {
        yaml::Problem::Separator(_) => anyhow!("cannot parse YAML stream: {text}"),
        _ => anyhow!("{attempted}: {text}"),
    }
}

/// The file itself, or the YAML files right in the directory, by name.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
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
        // A link may lead back up; it is not followed.
        entries.push((entry.path(), entry.file_type().map_err(failed)?.is_dir()));
    }
    entries.sort();
    for (entry, is_directory) in entries {
        if is_directory {
            walk(&entry, extensions, found)?;
        } else if extensions.iter().any(|known| entry.extension().is_some_and(|e| e == *known)) {
            found.push(entry);
        }
    }
    Ok(())
}

fn object(document: Document, source: &Source<'_>) -> Result<Object> {
    let kind = shape::kind(&document.value);
    Object::from_value(document.value)
        .ok_or_else(|| source.complain(&[], format!("expected an object but found {kind}")))
}

/// A path in quotes.
pub(super) fn quoted(path: &Path) -> String {
    gojson::quote(&path.display().to_string())
}
