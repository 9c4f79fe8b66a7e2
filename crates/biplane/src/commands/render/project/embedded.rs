//! Functions whose source is in the project, run in place.
//!
//! A control plane runs them from images. For a look at what they do, a program on this machine is
//! enough, and it is there sooner: what has a Go module or a Python package is started from its
//! folder. What only exists inside the image of another function cannot be.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_model::gojson::quote;

use super::file::{Listed, Project};
use super::{dns_label, repository_path};
use crate::cli::values::reason;
use crate::commands::render::runtime::{Function, PROCESS_COMMAND, RUNTIME};

/// What a folder with the source of a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Kcl,
    Python,
    Go,
    Templates,
}

/// The functions of the project that are used, as programs to start.
pub(super) fn functions(project: &Project, root: &Path, used: &[String]) -> Result<Vec<Function>> {
    let folder = root.join(&project.functions_path);
    let mut functions = Vec::new();
    for listed in names(project, &folder)? {
        let (Listed::Directory(name) | Listed::Tarball(name)) = &listed;
        let repository = format!("{}_{name}", project.repository);
        let function = dns_label(repository_path(&repository));
        if !used.contains(&function) {
            continue;
        }
        let command = match listed {
            Listed::Directory(ref name) => command(&folder.join(name)),
            Listed::Tarball(_) => Err(elsewhere("it is an image in files")),
        };
        let command =
            command.with_context(|| format!("failed to build function {}", quote(name)))?;
        functions.push(Function {
            name: function,
            package: repository,
            annotations: [
                (RUNTIME.to_owned(), "Process".to_owned()),
                (PROCESS_COMMAND.to_owned(), serde_json::to_string(&command)?),
            ]
            .into(),
        });
    }
    Ok(functions)
}

/// The functions that the project lists, else those that are in its folder.
fn names(project: &Project, folder: &Path) -> Result<Vec<Listed>> {
    if let Some(listed) = &project.listed {
        let same = |listed: &Listed| match listed {
            Listed::Directory(name) => Listed::Directory(name.clone()),
            Listed::Tarball(name) => Listed::Tarball(name.clone()),
        };
        return Ok(listed.iter().map(same).collect());
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

/// How the function in a folder is started. The command is told where to listen.
fn command(folder: &Path) -> Result<Vec<String>> {
    let path = folder.to_str().ok_or_else(|| anyhow!("the path of its folder is not text"))?;
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    match identify(folder)? {
        Source::Go => Ok(words(&["go", "-C", path, "run", "."])),
        Source::Python => {
            let script = "cd \"$1\" && shift && exec \"$@\"";
            let own = folder.join(".venv/bin/python");
            let python = if own.exists() { own } else { PathBuf::from("python3") };
            let python = python.to_string_lossy();
            Ok(words(&["sh", "-c", script, "sh", path, &python, "-m", "function.main"]))
        }
        Source::Kcl => Err(elsewhere("KCL runs in the image of function-kcl")),
        Source::Templates => Err(elsewhere("templates run in the image of function-go-templating")),
    }
}

fn elsewhere(why: &str) -> anyhow::Error {
    anyhow!(
        "{why}, which is not built here; run it as a function of its own and pass a functions argument"
    )
}

/// What upstream's builders would take a folder for, in their order.
fn identify(folder: &Path) -> Result<Source> {
    let has = |name: &str| folder.join(name).exists();
    if !folder.is_dir() {
        bail!("there is no folder {}", quote(&folder.display().to_string()));
    }
    if has("kcl.mod") {
        Ok(Source::Kcl)
    } else if has("pyproject.toml") && folder.join("function").is_dir() {
        Ok(Source::Python)
    } else if has("go.mod") {
        Ok(Source::Go)
    } else if templates_only(folder).unwrap_or(false) {
        Ok(Source::Templates)
    } else {
        bail!("failed to find a builder: no suitable builder found")
    }
}

/// Whether there is at least one file below a folder, and nothing but templates.
fn templates_only(folder: &Path) -> std::io::Result<bool> {
    let mut any = false;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let template = || path.extension().is_some_and(|e| e == "gotmpl" || e == "tmpl");
        if path.is_dir() {
            let empty = std::fs::read_dir(&path)?.next().is_none();
            if !empty && !templates_only(&path)? {
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
            (&["kcl.mod", "go.mod"][..], Some(Source::Kcl)),
            (&["pyproject.toml", "function/main.py"], Some(Source::Python)),
            (&["pyproject.toml"], None),
            (&["go.mod", "main.go", "a.tmpl"], Some(Source::Go)),
            (&["a.yaml.gotmpl", "more/b.tmpl"], Some(Source::Templates)),
            (&["a.gotmpl", "README.md"], None),
            (&[], None),
        ] {
            let folder = folder(files);
            let found = identify(folder.path());
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
        let go = folder(&["go.mod"]);
        let path = go.path().to_str().unwrap();
        assert_eq!(command(go.path()).unwrap(), ["go", "-C", path, "run", "."]);
        let python = folder(&["pyproject.toml", "function/main.py"]);
        let path = python.path().to_str().unwrap();
        let line = command(python.path()).unwrap();
        assert_eq!(line[4..], [path, "python3", "-m", "function.main"]);
        let own = folder(&["pyproject.toml", "function/main.py", ".venv/bin/python"]);
        let line = command(own.path()).unwrap();
        assert_eq!(line[5], own.path().join(".venv/bin/python").to_str().unwrap());
        let kcl = folder(&["kcl.mod"]);
        let text = command(kcl.path()).unwrap_err().to_string();
        assert!(text.starts_with("KCL runs in the image of function-kcl"), "{text}");
    }
}
