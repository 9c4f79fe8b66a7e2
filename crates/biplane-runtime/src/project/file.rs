//! Reads and validates the project file.

use std::path::{Component, Path};

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_go::fmt::quote;
use biplane_model::{Object, Value, yaml};

use super::rewrites::Rewrite;
use super::values::{list, text_at};
use biplane_console::files;
use biplane_console::os::reason;

const API_VERSION: &str = "dev.crossplane.io/v1alpha1";
const KIND: &str = "Project";

/// A project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Project {
    /// The repository of the project's own packages.
    pub repository: String,
    /// The folder of the functions whose source is in the project.
    pub functions_path: String,
    /// The folder of the types that are generated for them.
    pub schemas_path: String,
    /// The functions whose source is in the project, if the file lists them.
    pub listed: Option<Vec<Listed>>,
    /// Packages of functions that run.
    pub packages: Vec<Package>,
    /// Rules that replace the registries of images.
    pub rewrites: Vec<Rewrite>,
}

/// A package that a project depends on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub repository: String,
    pub version: String,
}

/// A function that a project lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// A folder with the source.
    Directory(String),
    /// Image files whose paths begin with the prefix.
    Tarball { name: String, prefix: String },
}

impl Listed {
    pub(super) fn name(&self) -> &str {
        let (Self::Directory(name) | Self::Tarball { name, .. }) = self;
        name
    }

    /// The prefix of its image files.
    pub(super) fn prefix(&self) -> Option<&str> {
        match self {
            Self::Directory(_) => None,
            Self::Tarball { prefix, .. } => Some(prefix),
        }
    }
}

impl Project {
    /// Reads and checks a project file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = files::read_regular(path, files::LARGEST)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
            .map_err(|error| anyhow!("open {}: {}", path.display(), reason(&error)))
            .with_context(|| format!("failed to read project file {}", quote(&name)))?;
        Self::parse(&path.display().to_string(), &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        const PARSE: &str = "failed to parse project file";
        let document =
            yaml::parse_one(name, text).map_err(|e| anyhow!(e.report())).context(PARSE)?;
        let object = Object::from_value(document.value)
            .ok_or_else(|| anyhow!("expected an object"))
            .context(PARSE)?;
        if object.api_version() != API_VERSION {
            bail!(
                "unsupported project apiVersion {}, expected {API_VERSION:?}",
                quote(object.api_version())
            );
        }
        if object.kind() != KIND {
            bail!("unsupported project kind {}, expected {KIND:?}", quote(object.kind()));
        }
        let problems = problems(&object);
        if let Some(problem) = joined(&problems) {
            bail!("invalid project file: {problem}");
        }
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let path = |of: &str| match text_at(spec, &format!("/paths/{of}")) {
            "" => of.to_owned(),
            path => path.to_owned(),
        };
        let listed = spec.get("functions").and_then(Value::as_array).map(|all| {
            all.iter()
                .map(|function| match text_at(function, "/source") {
                    "Tarball" => Listed::Tarball {
                        name: text_at(function, "/tarball/name").to_owned(),
                        prefix: text_at(function, "/tarball/pathPrefix").to_owned(),
                    },
                    _ => Listed::Directory(text_at(function, "/directory/name").to_owned()),
                })
                .collect::<Vec<_>>()
        });
        Ok(Self {
            repository: text_at(spec, "/repository").to_owned(),
            functions_path: path("functions"),
            schemas_path: path("schemas"),
            listed: listed.filter(|listed| !listed.is_empty()),
            packages: list(spec, "dependencies").iter().filter_map(package).collect(),
            rewrites: list(spec, "imageConfigs").iter().filter_map(Rewrite::of).collect(),
        })
    }
}

/// The package of a dependency, if it is a function.
fn package(dependency: &Value) -> Option<Package> {
    let api_only = dependency.pointer("/xpkg/apiOnly") == Some(&Value::Bool(true));
    let runs = text_at(dependency, "/type") == "xpkg"
        && text_at(dependency, "/xpkg/kind") == "Function"
        && !api_only;
    runs.then(|| Package {
        repository: text_at(dependency, "/xpkg/package").to_owned(),
        version: text_at(dependency, "/xpkg/version").to_owned(),
    })
}

fn problems(project: &Object) -> Vec<String> {
    let mut found = Vec::new();
    if project.name().is_empty() {
        found.push("name must not be empty".to_owned());
    }
    let spec = project.get("spec").unwrap_or(&Value::Null);
    let mut wrong = Vec::new();
    if text_at(spec, "/repository").is_empty() {
        wrong.push("repository must not be empty".to_owned());
    }
    for folder in ["apis", "functions", "examples", "tests", "operations", "schemas"] {
        let path = text_at(spec, &format!("/paths/{folder}"));
        wrong.extend(leaving(path).map(|why| format!("{folder} path {why}")));
    }
    let empty =
        |pointer| spec.pointer(pointer).and_then(Value::as_array).is_some_and(Vec::is_empty);
    if empty("/architectures") {
        wrong.push("architectures must not be empty".to_owned());
    }
    if empty("/schemas/languages") {
        wrong.push("schemas.languages must not be empty when specified".to_owned());
    }
    let languages = ["go", "json", "kcl", "python"];
    let given = spec.pointer("/schemas/languages").and_then(Value::as_array);
    for (i, language) in given.into_iter().flatten().enumerate() {
        let language = language.as_str().unwrap_or_default();
        if !languages.contains(&language) {
            wrong.push(format!(
                "schemas.languages[{i}]: {} is not a supported schema language; set it to one of [{}]",
                quote(language),
                languages.join(" ")
            ));
        }
    }
    for (i, dependency) in list(spec, "dependencies").iter().enumerate() {
        if let Some(problem) = joined(&dependency_problems(dependency)) {
            wrong.push(format!("dependency {i}: {problem}"));
        }
    }
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for (i, function) in list(spec, "functions").iter().enumerate() {
        if let Some(problem) = joined(&function_problems(function)) {
            wrong.push(format!("function {i}: {problem}"));
            continue;
        }
        let source = text_at(function, "/source").to_lowercase();
        let name = text_at(function, &format!("/{source}/name"));
        match seen.iter().find(|(other, _)| *other == name) {
            Some((_, first)) => wrong.push(format!(
                "function {i}: name {} is already used by function {first}",
                quote(name)
            )),
            None => seen.push((name, i)),
        }
    }
    found.extend(joined(&wrong));
    found
}

fn dependency_problems(dependency: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    if text_at(dependency, "/type").is_empty() {
        wrong.push("type must not be empty".to_owned());
    }
    let sources: [(&str, &[&str]); 4] = [
        ("xpkg", &["apiVersion", "kind", "package", "version"]),
        ("git", &["repository"]),
        ("http", &["url"]),
        ("k8s", &["version"]),
    ];
    let mut given = 0;
    for (source, fields) in sources {
        let Some(value) = dependency.get(source).filter(|value| !value.is_null()) else { continue };
        given += 1;
        let missing: Vec<_> = fields
            .iter()
            .filter(|field| text_at(value, &format!("/{field}")).is_empty())
            .map(|field| format!("{field} must not be empty"))
            .collect();
        wrong.extend(joined(&missing).map(|missing| format!("{source}: {missing}")));
    }
    if given != 1 {
        wrong.push("exactly one source (xpkg, git, http, or k8s) must be specified".to_owned());
    }
    wrong
}

fn function_problems(function: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let given = |key: &str| function.get(key).filter(|value| !value.is_null());
    if given("directory").is_some() == given("tarball").is_some() {
        wrong.push("exactly one source (directory or tarball) must be specified".to_owned());
    }
    let source = text_at(function, "/source");
    let key = match source {
        "Directory" => "directory",
        "Tarball" => "tarball",
        "" => {
            wrong.push("source must not be empty".to_owned());
            return wrong;
        }
        other => {
            wrong.push(format!(
                "source {} is not supported, must be one of \"Directory\" or \"Tarball\"",
                quote(other)
            ));
            return wrong;
        }
    };
    let Some(value) = given(key) else {
        wrong.push(format!("{key}: source {source:?} requires the {key} field to be set"));
        return wrong;
    };
    let mut inner = Vec::new();
    let name = text_at(value, "/name");
    if name.is_empty() {
        inner.push("name must not be empty".to_owned());
    }
    if key == "directory" {
        inner.extend(leaving(name).map(|why| format!("name {why}")));
    }
    if key == "tarball" {
        let prefix = text_at(value, "/pathPrefix");
        if prefix.is_empty() {
            inner.push("pathPrefix must not be empty".to_owned());
        }
        inner.extend(leaving(prefix).map(|why| format!("pathPrefix {why}")));
    }
    wrong.extend(joined(&inner).map(|inner| format!("{key}: {inner}")));
    wrong
}

/// Why a path may lead out of the project, if it may.
fn leaving(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return Some("must be relative".to_owned());
    }
    let up = Path::new(path).components().any(|part| part == Component::ParentDir);
    up.then(|| format!("must not lead out of the project: {}", quote(path)))
}

/// A single problem as it is, several in brackets.
fn joined(problems: &[String]) -> Option<String> {
    match problems {
        [] => None,
        [problem] => Some(problem.clone()),
        problems => Some(format!("[{}]", problems.join(", "))),
    }
}

#[cfg(test)]
mod tests;
