//! Functions whose source is in the project.
//!
//! A control plane runs them from images. Here, they run in a Docker engine with the same content
//! as upstream's builders produce, but without building an image: the files are copied into a
//! container of the base image before it starts. This needs no image builder and leaves no images
//! behind. If local processes are allowed, Go modules and Python packages are started from their
//! folders instead, which is faster.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_go::fmt::quote;

use super::file::{Listed, Project};
use super::rewrites;
use crate::archive::{Packer, check_inside};
use crate::build_spec::{BuildSource, BuildSpec, Python};
use crate::function::{Function, PROCESS_COMMAND, RUNTIME};
use biplane_console::Deadline;
use biplane_console::os::reason;
use biplane_package::reference::{dns_label, repository_path};

/// The image that runs KCL, and its user.
const KCL_BASE: &str = "xpkg.crossplane.io/crossplane-contrib/function-kcl:v0.12.1";
const KCL_ENV: &[&str] = &["FUNCTION_KCL_DEFAULT_SOURCE=/src", "KCL_PKG_PATH=/src"];
const KCL_USER: u64 = 2000;
/// The image that runs templates.
const TEMPLATES_BASE: &str = "xpkg.crossplane.io/crossplane-contrib/function-go-templating:v0.12.0";
const TEMPLATES_ENV: &[&str] = &["FUNCTION_GO_TEMPLATING_DEFAULT_SOURCE=/src"];
/// The base image of compiled functions.
const GO_BASE: &str = "gcr.io/distroless/static-debian12@sha256:a9329520abc449e3b14d5bc3a6ffae065bdde0f02667fa10880c49b35c109fd1";
/// The image in which Python packages are installed, and the one in which they run. Both have the
/// same version of Python.
const PYTHON_BUILDER: &str = "docker.io/library/debian:13-slim";
const PYTHON_BASE: &str = "gcr.io/distroless/python3-debian13:nonroot";

/// The kind of a function's source folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kcl,
    Python,
    Go,
    Templates,
}

/// The functions of the project that are used.
pub(super) fn functions(
    project: &Project,
    root: &Path,
    called: &[String],
    allow_process: bool,
    deadline: Deadline,
) -> Result<Vec<Function>> {
    let folder = root.join(&project.functions_path);
    let mut functions = Vec::new();
    for listed in names(project, &folder)? {
        let name = listed.name().to_owned();
        let package = format!("{}_{name}", project.repository);
        let function = dns_label(repository_path(&package));
        if !called.contains(&function) {
            continue;
        }
        let attempted = || format!("failed to build function {}", quote(&name));
        let mut function = Function { name: function, package, ..Function::default() };
        let source = match listed {
            Listed::Tarball { prefix, .. } => {
                let (root, repository) = (root.to_owned(), function.package.clone());
                BuildSource::Tarball { root, prefix, repository }
            }
            Listed::Directory(ref name) => {
                let folder = folder.join(name);
                let kind = identify(root, &folder).with_context(attempted)?;
                let command = allow_process.then(|| command(&folder, kind)).transpose();
                if let Some(command) = command.with_context(attempted)?.flatten() {
                    function.annotations = [
                        (RUNTIME.to_owned(), "Process".to_owned()),
                        (PROCESS_COMMAND.to_owned(), serde_json::to_string(&command)?),
                    ]
                    .into();
                }
                let source = source(kind, project, (root, &folder), deadline);
                source.context("failed to build runtime images").with_context(attempted)?
            }
        };
        function.build = Some(Arc::new(BuildSpec { name, source }));
        functions.push(function);
    }
    Ok(functions)
}

/// The functions that the project lists, otherwise those found in its functions folder.
fn names(project: &Project, folder: &Path) -> Result<Vec<Listed>> {
    if let Some(listed) = &project.listed {
        return Ok(listed.clone());
    }
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let reason = anyhow!("open {}: {}", folder.display(), reason(&error));
            return Err(reason.context("failed to list functions directory"));
        }
    };
    let mut names: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .filter_map(|path| path.file_name()?.to_str().map(ToOwned::to_owned))
        .collect();
    names.sort();
    Ok(names.into_iter().map(Listed::Directory).collect())
}

/// How a function is built for a container.
fn source(
    kind: Kind,
    project: &Project,
    (root, folder): (&Path, &Path),
    deadline: Deadline,
) -> Result<BuildSource> {
    let image = |image: &str, what: &str| {
        rewrites::rewrite(&project.rewrites, image)
            .with_context(|| format!("failed to rewrite {what} image"))
    };
    let pack = |packer: Packer| {
        let packed = packer.until(deadline).folder(folder, "src", None).and_then(Packer::finish);
        packed.context("failed to tar layer contents")
    };
    Ok(match kind {
        Kind::Kcl => BuildSource::Files {
            folder: folder.to_owned(),
            language: "KCL",
            base: image(KCL_BASE, "KCL base")?,
            env: KCL_ENV,
            files: pack(Packer::below(root)?.owned_by(KCL_USER))?,
        },
        Kind::Templates => BuildSource::Files {
            folder: folder.to_owned(),
            language: "go-templating",
            base: image(TEMPLATES_BASE, "base")?,
            env: TEMPLATES_ENV,
            files: pack(Packer::below(root)?)?,
        },
        Kind::Go => BuildSource::Go {
            root: root.to_owned(),
            folder: folder.to_owned(),
            base: image(GO_BASE, "base")?,
        },
        Kind::Python => {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            BuildSource::Python(Python {
                root: root.to_owned(),
                folder: format!("{}/{name}", project.functions_path),
                schemas: format!("{}/python", project.schemas_path),
                builder: image(PYTHON_BUILDER, "build")?,
                base: image(PYTHON_BASE, "runtime")?,
            })
        }
    })
}

/// The command that starts the function from its folder, if possible. The address is added to the
/// command.
fn command(folder: &Path, kind: Kind) -> Result<Option<Vec<String>>> {
    let path = folder.to_str().ok_or_else(|| anyhow!("the path of its folder is not text"))?;
    let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
    Ok(match kind {
        Kind::Go => words(&["go", "-C", path, "run", "."]),
        Kind::Python => {
            let script = "cd \"$1\" && shift && exec \"$@\"";
            let own = folder.join(".venv/bin/python");
            let python = if own.exists() { own } else { PathBuf::from("python3") };
            let python = python.to_string_lossy();
            words(&["sh", "-c", script, "sh", path, &python, "-m", "function.main"])
        }
        Kind::Kcl | Kind::Templates => None,
    })
}

/// The kind that upstream's builders would detect for a folder, in their order.
fn identify(root: &Path, folder: &Path) -> Result<Kind> {
    let has = |name: &str| folder.join(name).exists();
    if !folder.is_dir() {
        bail!("there is no folder {}", quote(&folder.display().to_string()));
    }
    check_inside(root, folder)?;
    if has("kcl.mod") {
        Ok(Kind::Kcl)
    } else if has("pyproject.toml") && folder.join("function").is_dir() {
        Ok(Kind::Python)
    } else if has("go.mod") {
        Ok(Kind::Go)
    } else if templates_only(folder, DEPTH).unwrap_or(false) {
        Ok(Kind::Templates)
    } else {
        bail!("failed to find a builder: no suitable builder found")
    }
}

/// How deeply folders of templates may nest. A link may lead back to a folder that it is in.
const DEPTH: usize = 32;

/// Whether a folder has at least one file, and only templates.
fn templates_only(folder: &Path, depth: usize) -> std::io::Result<bool> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(false) };
    let mut any = false;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let template = || path.extension().is_some_and(|e| e == "gotmpl" || e == "tmpl");
        if path.is_dir() {
            let empty = std::fs::read_dir(&path)?.next().is_none();
            if !empty && !templates_only(&path, depth)? {
                return Ok(false);
            }
            any |= !empty;
        } else if path.is_file() && template() {
            any = true;
        } else {
            return Ok(false);
        }
    }
    Ok(any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    /// PJ-3
    #[test]
    fn folders_are_told_by_their_files() {
        for (files, want) in [
            (&["kcl.mod", "go.mod"][..], Some(Kind::Kcl)),
            (&["pyproject.toml", "function/main.py"], Some(Kind::Python)),
            (&["pyproject.toml"], None),
            (&["go.mod", "main.go", "a.tmpl"], Some(Kind::Go)),
            (&["a.yaml.gotmpl", "more/b.tmpl"], Some(Kind::Templates)),
            (&["a.gotmpl", "README.md"], None),
            (&[], None),
        ] {
            let folder = folder(files);
            let found = identify(folder.path(), folder.path());
            if let Some(want) = want {
                assert_eq!(found.unwrap(), want, "{files:?}");
            } else {
                let text = found.unwrap_err().to_string();
                assert_eq!(text, "failed to find a builder: no suitable builder found");
            }
        }
    }

    /// PJ-3
    #[test]
    fn programs_start_in_their_folder() {
        let line = |folder: &Path| command(folder, identify(folder, folder).unwrap()).unwrap();
        let go = folder(&["go.mod"]);
        let path = go.path().to_str().unwrap();
        assert_eq!(line(go.path()).unwrap(), ["go", "-C", path, "run", "."]);
        let python = folder(&["pyproject.toml", "function/main.py"]);
        let path = python.path().to_str().unwrap();
        let words = line(python.path()).unwrap();
        assert_eq!(words[4..], [path, "python3", "-m", "function.main"]);
        let own = folder(&["pyproject.toml", "function/main.py", ".venv/bin/python"]);
        let words = line(own.path()).unwrap();
        assert_eq!(words[5], own.path().join(".venv/bin/python").to_str().unwrap());
        for files in [&["kcl.mod"], &["a.gotmpl"]] {
            assert_eq!(line(folder(files).path()), None, "{files:?} runs in an image only");
        }
    }
}
