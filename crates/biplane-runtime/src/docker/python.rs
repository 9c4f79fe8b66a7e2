//! Installs Python packages in a build container, for another container to run.

use anyhow::{Context, Result, bail};
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{DownloadFromContainerOptions, StartContainerOptions};
use prost::bytes::{Bytes, BytesMut};
use tokio_stream::StreamExt;

use super::Session;
use super::build::Parts;
use super::client::explain;
use super::container::last_lines;
use super::options::PullPolicy;
use crate::archive::Packer;
use crate::build_spec::Python;
use biplane_console::Notes;

/// The version of Python in both images.
const VERSION: &str = "3.13";
/// The largest archive of installed packages, in bytes.
const LARGEST: usize = 1024 * 1024 * 1024;
/// Installs the package in the current folder below `$INTO`. Only wheels for the target platform
/// are used: a package that is compiled during the installation would not run in a cluster either.
const INSTALL: &str = r#"set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends python3 python3-venv
python3 -m venv /build
/build/bin/pip install --quiet hatch
/build/bin/hatch build -t wheel /whl
python3 -m venv "$INTO"
platforms=
for abi in manylinux2014 manylinux_2_28 manylinux_2_34 manylinux_2_39 manylinux_1_2; do
  platforms="$platforms --platform=${abi}_$ARCH"
done
"$INTO/bin/pip" install $platforms --only-binary=:all: --target="$PACKAGES" /whl/*.whl
"#;

impl Session {
    /// Installs a Python package for an image that only has Python.
    pub(super) async fn python(
        &self,
        python: &Python,
        pull: PullPolicy,
        notes: &Notes,
    ) -> Result<Parts> {
        let architecture = match self.architecture().await?.as_str() {
            "amd64" => "x86_64",
            "arm64" => "aarch64",
            other => {
                bail!("unable to determine python architecture for architecture {other}")
            }
        };
        let into = format!("/fn_{architecture}");
        let packages = format!("{into}/lib/python{VERSION}/site-packages");
        let builder = self.base(&python.builder, "python build", pull, notes).await?;
        let body = ContainerCreateBody {
            image: Some(builder.image.clone()),
            cmd: Some(["sh", "-c", INSTALL].map(ToOwned::to_owned).to_vec()),
            working_dir: Some(format!("/{}", python.folder)),
            env: Some(vec![
                format!("ARCH={architecture}"),
                format!("INTO={into}"),
                format!("PACKAGES={packages}"),
            ]),
            ..ContainerCreateBody::default()
        };
        let created = self.create_to_run(&builder.image, body).await;
        let id = created.context("failed to start python build container")?;
        let installed = self.install(&id, python, &into).await?;
        self.remove(&id).await;
        let base = self.base(&python.base, "python runtime", pull, notes).await?;
        Ok(Parts {
            entry_point: Some(vec![format!("{packages}/bin/function")]),
            user: Some("nonroot:nonroot".to_owned()),
            working_dir: Some("/".to_owned()),
            files: Some(installed),
            ..base
        })
    }

    /// Installs the package in a build container, and returns the installed files.
    async fn install(&self, id: &str, python: &Python, into: &str) -> Result<Bytes> {
        let Python { root, folder, schemas, .. } = python;
        // A local virtual environment cannot be used elsewhere.
        let packer = Packer::below(root)?;
        let packed = packer.folder(&root.join(folder), folder, Some(".venv"));
        let mut packer = packed.context("failed to tar function source")?;
        let types = root.join(schemas);
        if types.is_dir() {
            let packed = packer.folder(&types, schemas, None);
            packer = packed.context("failed to tar python schemas")?;
        }
        let files = packer.finish()?.0.into();
        let docker = self.docker();
        let started = async {
            self.copy_into(id, files).await?;
            let started = docker.start_container(id, None::<StartContainerOptions>).await;
            started.map_err(|e| explain(&e)).context("failed to start container")
        };
        started.await.context("failed to start python build container")?;
        let ended = self.exit_code_of(id).await.context("container unknown failure");
        let code = ended.context("python build container failed")?;
        if code != 0 {
            let log = last_lines(docker, id).await;
            bail!(
                "python build container failed: container exited with non-zero status: {code}, logs: {log}"
            );
        }
        let path = DownloadFromContainerOptions { path: into.to_owned() };
        let mut archive = BytesMut::new();
        let mut download = std::pin::pin!(docker.download_from_container(id, Some(path)));
        while let Some(part) = download.next().await {
            let part = part.map_err(|e| explain(&e));
            archive.extend_from_slice(&part.context("failed to copy files from container")?);
            if archive.len() > LARGEST {
                bail!("the installed packages are larger than {} MiB", LARGEST / (1024 * 1024));
            }
        }
        Ok(archive.freeze())
    }
}
