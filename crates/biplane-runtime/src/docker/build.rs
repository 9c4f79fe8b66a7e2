//! Builds the functions of a project, so that they can run in containers.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use biplane_go::fmt::quote;
use prost::bytes::Bytes;

use super::Session;
use super::client::explain;
use super::options::PullPolicy;
use crate::archive::{Archive, Packer};
use crate::build_spec::{BuildSource, BuildSpec, NotBuilt};
use crate::process_group::ProcessGroup;
use biplane_console::Notes;

/// What a container is created from.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub image: String,
    pub pull: PullPolicy,
    /// Replaces the entry point of the image.
    pub entry_point: Option<Vec<String>>,
    pub user: Option<String>,
    pub working_dir: Option<String>,
    /// Variables besides those of the image and the Function.
    pub variables: Vec<String>,
    /// Files that are copied into the container before it starts.
    pub files: Option<Bytes>,
}

impl Parts {
    /// An unmodified image.
    pub(super) fn of(image: &str, pull: PullPolicy) -> Self {
        Self { image: image.to_owned(), pull, ..Self::default() }
    }

    fn with(self, files: Archive) -> Self {
        Self { files: Some(files.0.into()), ..self }
    }

    /// All variables of the container. Those of the Function take precedence.
    pub(super) fn env(&self, of_function: &[String]) -> Vec<String> {
        let key = |variable: &str| variable.split('=').next().unwrap_or_default().to_owned();
        let set: Vec<_> = of_function.iter().map(|variable| key(variable)).collect();
        let others = self.variables.iter().filter(|variable| !set.contains(&key(variable)));
        others.chain(of_function).cloned().collect()
    }
}

impl Session {
    /// Builds a function, and reports the progress.
    pub(super) async fn build(
        &self,
        build: &BuildSpec,
        pull: PullPolicy,
        notes: &Notes,
    ) -> Result<Parts> {
        let said = format!("Building function {}", build.name);
        notes.say(format!("{said}..."));
        let parts = tokio::select! {
            parts = self.parts(build, pull, notes) => parts,
            reason = self.cancelled() => Err(reason),
        };
        let mark = if parts.is_ok() { '✓' } else { '✗' };
        notes.say(format!("{mark} {said}"));
        let attempted = || format!("failed to build function {}", quote(&build.name));
        parts.with_context(attempted).context(NotBuilt)
    }

    async fn parts(&self, build: &BuildSpec, pull: PullPolicy, notes: &Notes) -> Result<Parts> {
        let built = match &build.source {
            BuildSource::Tarball { root, prefix, repository } => {
                let architecture = self.architecture().await?;
                let image = self.load(root, prefix, repository, &architecture).await?;
                return Ok(Parts::of(&image, PullPolicy::Never));
            }
            BuildSource::Files { language, base, env, files, .. } => {
                let base = self.base(base, language, pull, notes).await;
                let variables = env.iter().map(|&variable| variable.to_owned()).collect();
                base.map(|base| Parts { variables, ..base }.with(files.clone()))
            }
            BuildSource::Go { root, folder, base } => {
                self.go(&build.name, (root, folder), base, pull, notes).await
            }
            BuildSource::Python(python) => self.python(python, pull, notes).await,
        };
        built.context("failed to build runtime images")
    }

    /// Provides a base image that is present in the engine.
    pub(super) async fn base(
        &self,
        image: &str,
        what: &str,
        pull: PullPolicy,
        notes: &Notes,
    ) -> Result<Parts> {
        let needed = match pull {
            PullPolicy::Always => true,
            PullPolicy::Never => false,
            PullPolicy::IfNotPresent => self.lacks(image).await,
        };
        if needed {
            let pulled = self.pull(image, notes).await;
            pulled
                .with_context(|| format!("failed to pull image {}", quote(image)))
                .with_context(|| format!("failed to fetch {what} base image"))?;
        }
        // An image that has just been pulled is not pulled again.
        let pull = if pull == PullPolicy::Always { PullPolicy::IfNotPresent } else { pull };
        Ok(Parts::of(image, pull))
    }

    /// The architecture of the engine's machine, by its name in Go.
    pub(super) async fn architecture(&self) -> Result<String> {
        let version = self.docker().version().await.map_err(|error| explain(&error));
        let version = version.context("cannot ask the Docker engine for its architecture")?;
        Ok(match version.arch.as_deref().unwrap_or_default() {
            "x86_64" => "amd64".to_owned(),
            "aarch64" => "arm64".to_owned(),
            other => other.to_owned(),
        })
    }

    /// Compiles a Go module for a minimal base image.
    async fn go(
        &self,
        name: &str,
        (root, folder): (&Path, &Path),
        base: &str,
        pull: PullPolicy,
        notes: &Notes,
    ) -> Result<Parts> {
        let base = self.base(base, "go", pull, notes).await?;
        let output = tempfile::tempdir().context("failed to create temporary build directory")?;
        let program = output.path().join("function");
        compile(folder, &program, &self.architecture().await?).await?;
        let at = format!("ko-app/{name}");
        let mut packer = Packer::below(root)?.program(&program, &at)?;
        let data = folder.join("kodata");
        if data.is_dir() {
            packer = packer.folder(&data, "var/run/ko", None)?;
        }
        let parts = Parts {
            entry_point: Some(vec![format!("/{at}")]),
            variables: vec!["KO_DATA_PATH=/var/run/ko".to_owned()],
            ..base
        };
        Ok(parts.with(packer.finish()?))
    }
}

async fn compile(folder: &Path, program: &Path, architecture: &str) -> Result<()> {
    let mut go = tokio::process::Command::new("go");
    go.arg("build").arg("-o").arg(program).arg(".").current_dir(folder);
    go.env("CGO_ENABLED", "0").env("GOOS", "linux").env("GOARCH", architecture);
    // The compiler starts other processes.
    let (child, _group) =
        ProcessGroup::lead(go.stdin(Stdio::null())).context("cannot run go, which compiles it")?;
    let output = child.wait_with_output().await.context("cannot run go, which compiles it")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("failed to build function: go build: {}:\n{}", output.status, said.trim_end());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_function_win() {
        let text = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let parts = Parts { variables: text(&["A=1", "B=2"]), ..Parts::default() };
        assert_eq!(parts.env(&[]), ["A=1", "B=2"]);
        assert_eq!(parts.env(&text(&["B=3=4", "C="])), ["A=1", "B=3=4", "C="]);
    }
}
