//! Keeps the schemas of packages in a folder, and downloads those that are not there.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_console::os::reason;
use biplane_package::Range;
pub use biplane_package::contents::Contents;
use biplane_package::versions;

use crate::extensions::{Dependency, Extensions, dependencies};
use crate::sources::{self, Resource};

/// Gives what is not in the cache.
pub trait Registry {
    /// Says that a package is being downloaded.
    fn announce(&mut self, line: &str);

    /// Downloads a package.
    fn download(&mut self, image: &str) -> Result<Contents>;

    /// The tags of a repository.
    fn tags(&mut self, repository: &str) -> Result<Vec<String>>;
}

/// A folder with the schemas of packages.
#[derive(Debug)]
pub struct Cache {
    /// The folder.
    pub folder: PathBuf,
    /// Whether packages are downloaded even if they are there.
    pub update: bool,
}

const FILE: &str = "package.yaml";

impl Cache {
    /// The schemas of all packages, of which those that are missing are downloaded.
    pub(crate) fn load(
        &self,
        extensions: &mut Extensions,
        clean: bool,
        registry: &mut dyn Registry,
    ) -> Result<Vec<Resource>> {
        if clean {
            self.flush().context("cannot flush cache directory")?;
        }
        self.init().context("cannot initialize cache directory")?;
        follow(extensions, registry).context("cannot add package dependencies")?;
        let mut images = Vec::new();
        for image in &extensions.images {
            let image =
                self.ensure(image, registry).context("cannot cache package dependencies")?;
            images.push(image);
        }
        let mut found = Vec::new();
        for image in images {
            self.read(&image, &mut found).context("cannot load cache")?;
        }
        Ok(found)
    }

    fn flush(&self) -> Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                fs::remove_file(&self.folder).map_err(|error| self.failed("remove", &error))
            }
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed("remove", &error)),
            _ => Ok(()),
        }
    }

    fn failed(&self, what: &str, error: &std::io::Error) -> anyhow::Error {
        anyhow!("{what} {}: {}", self.folder.display(), reason(error))
    }

    fn init(&self) -> Result<()> {
        let folder = self.folder.display();
        match fs::metadata(&self.folder) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => fs::create_dir_all(&self.folder)
                .map_err(|error| self.failed("mkdir", &error))
                .with_context(|| format!("cannot create cache directory {folder}")),
            Err(error) => Err(self.failed("stat", &error))
                .with_context(|| format!("cannot stat cache directory {folder}")),
        }
    }

    fn path(&self, image: &str) -> PathBuf {
        self.folder.join(image.replace(':', "@"))
    }

    /// Makes sure that a package is there, and returns the image that it is stored under.
    fn ensure(&self, image: &str, registry: &mut dyn Registry) -> Result<String> {
        let known = self
            .known(image)
            .with_context(|| format!("cannot check if cache exists for {image}"))?;
        match &known {
            Some(stored) if !self.update => return Ok(stored.clone()),
            Some(_) => registry.announce(&format!("updating cached schemas:  {image}")),
            None => registry.announce(&format!("schemas does not exist, downloading:  {image}")),
        }
        let resolved = resolve(image, registry)?;
        let contents = registry
            .download(&resolved)
            .with_context(|| format!("cannot download package {resolved}"))?;
        self.store(&resolved, &contents.schemas).context("cannot store base layer")?;
        Ok(resolved)
    }

    /// The image under which a package is stored, if it is.
    fn known(&self, image: &str) -> Result<Option<String>> {
        if let Some((repository, range)) = ranged(image) {
            return self.newest(repository, &range).context("failed to scan cache for constraint");
        }
        let path = self.path(image);
        match fs::metadata(&path) {
            Ok(_) => Ok(Some(image.to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let shown = path.display();
                Err(anyhow!("stat {shown}: {}", reason(&error)))
                    .with_context(|| format!("cannot stat file {shown}"))
            }
        }
    }

    /// The newest stored version of a package in a range.
    fn newest(&self, repository: &str, range: &Range) -> Result<Option<String>> {
        let path = self.path(repository);
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => bail!("open {}: {}", folder.display(), reason(&error)),
        };
        let prefix = format!("{}@", name.to_string_lossy());
        let mut tags = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| anyhow!("{}", reason(&error)))?;
            let entry = entry.file_name().to_string_lossy().into_owned();
            tags.extend(entry.strip_prefix(&prefix).map(str::to_owned));
        }
        Ok(versions::newest(&tags, range).map(|tag| format!("{repository}:{tag}")))
    }

    fn store(&self, image: &str, schemas: &[String]) -> Result<()> {
        let folder = self.path(image);
        fs::create_dir_all(&folder).map_err(|error| {
            anyhow!("cannot create directory {}: {}", folder.display(), reason(&error))
        })?;
        let mut text = String::new();
        for schema in schemas {
            text.push_str("---\n");
            text.push_str(schema.trim_end());
            text.push('\n');
        }
        // Whoever reads it never sees a part of it.
        let (file, draft) = (folder.join(FILE), folder.join(".package.yaml.new"));
        fs::write(&draft, text)
            .and_then(|()| fs::rename(&draft, &file))
            .map_err(|error| anyhow!("cannot write {}: {}", file.display(), reason(&error)))
    }

    fn read(&self, image: &str, found: &mut Vec<Resource>) -> Result<()> {
        let path = self.path(image);
        let mut files = Vec::new();
        yaml_files(&path, &mut files)
            .map_err(|error| anyhow!("open {}: {}", path.display(), reason(&error)))?;
        for file in files {
            let bytes = fs::read(&file)
                .map_err(|error| anyhow!("open {}: {}", file.display(), reason(&error)))?;
            sources::parse(&file, bytes, "file", found)?;
        }
        Ok(())
    }
}

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        entries.push(entry?.path());
    }
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            yaml_files(&entry, found)?;
        } else if entry.extension().is_some_and(|kind| kind == "yaml" || kind == "yml") {
            found.push(entry);
        }
    }
    Ok(())
}

/// The repository and the range, if the tag of an image is a range of versions.
fn ranged(image: &str) -> Option<(&str, Range)> {
    let last = image.rfind('/').map_or(0, |slash| slash + 1);
    let colon = last + image.get(last..)?.find(':')?;
    let (repository, tag) = (image.get(..colon)?, image.get(colon + 1..)?);
    if image.contains('@') || versions::is_version(tag) {
        return None;
    }
    Some((repository, Range::parse(tag)?))
}

/// The image of the newest version in the registry, if the image names a range.
fn resolve(image: &str, registry: &mut dyn Registry) -> Result<String> {
    let Some((repository, range)) = ranged(image) else { return Ok(image.to_owned()) };
    let tags = registry
        .tags(repository)
        .with_context(|| format!("cannot fetch tags for the image {repository}"))?;
    if let Some(tag) = versions::newest(&tags, &range) {
        Ok(format!("{repository}:{tag}"))
    } else {
        let constraint = image.strip_prefix(repository).unwrap_or_default();
        let constraint = constraint.strip_prefix(':').unwrap_or_default();
        bail!("cannot find any tag complient with the constraint {constraint}")
    }
}

/// Adds what Configurations depend on, and what these depend on.
fn follow(extensions: &mut Extensions, registry: &mut dyn Registry) -> Result<()> {
    let mut waiting: Vec<(String, Option<Vec<Dependency>>)> =
        std::mem::take(&mut extensions.configurations).into_iter().collect();
    let mut seen: BTreeSet<String> = waiting.iter().map(|(image, _)| image.clone()).collect();
    while let Some((image, known)) = waiting.pop() {
        let listed = if let Some(listed) = known {
            listed
        } else {
            let resolved = resolve(&image, registry)?;
            let contents = registry
                .download(&resolved)
                .with_context(|| format!("cannot download package {resolved}"))?;
            extensions.images.insert(image);
            let mut meta = Vec::new();
            sources::parse(Path::new(FILE), contents.meta.into_bytes(), "file", &mut meta)?;
            match meta.first() {
                Some(resource) => dependencies(&resource.object)?,
                None => Vec::new(),
            }
        };
        for Dependency { image, followed } in listed {
            if followed && seen.insert(image.clone()) {
                waiting.push((image, None));
            } else if !followed {
                extensions.images.insert(image);
            }
        }
    }
    Ok(())
}
