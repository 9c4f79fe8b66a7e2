//! Runs containers until they exit, with bytes on stdin and stdout.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use biplane_go::fmt::quote;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, EndpointSettings, HostConfig, NetworkingConfig, SystemVersion,
};
use bollard::query_parameters::{
    AttachContainerOptions, RemoveContainerOptions, StartContainerOptions, WaitContainerOptions,
};
use tokio::io::AsyncWriteExt;
use tokio_stream::StreamExt;

use super::client::explain;
use super::options::{Cleanup, PullPolicy};
use super::{Container, Session, unique_name};
use biplane_console::Notes;
use biplane_package::Reference;

/// The name of this machine in Docker containers.
const HOST: &str = "host.docker.internal";
/// The name of this machine in Podman containers. Many versions of Podman treat Docker's
/// `host-gateway` as an address instead of resolving it.
const PODMAN_HOST: &str = "host.containers.internal";

/// The result of a container.
#[derive(Debug)]
pub struct Ran {
    pub code: i64,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Session {
    /// Ensures that an image is present.
    pub(crate) async fn provide(
        &self,
        image: &str,
        policy: PullPolicy,
        notes: &Notes,
    ) -> Result<()> {
        let needed = match policy {
            PullPolicy::Always => true,
            PullPolicy::Never => false,
            PullPolicy::IfNotPresent => self.lacks(image).await,
        };
        if !needed {
            return Ok(());
        }
        Reference::parse_complete(image)
            .with_context(|| format!("cannot parse image reference {}", quote(image)))
            .with_context(|| format!("cannot resolve registry for image {}", quote(image)))?;
        let pulled = self.pull(image, notes).await;
        pulled.with_context(|| format!("failed to pull image {}", quote(image)))
    }

    /// Runs a container on a network from which the host can be reached, and removes the container.
    pub async fn run(
        &self,
        image: &str,
        arguments: &[&str],
        stdin: &[u8],
        network: &str,
        limit: Duration,
    ) -> Result<Ran> {
        let attached = EndpointSettings::default();
        let gateway = (self.host().await == HOST).then(|| vec![format!("{HOST}:host-gateway")]);
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            cmd: Some(arguments.iter().map(|&argument| argument.to_owned()).collect()),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            open_stdin: Some(true),
            stdin_once: Some(true),
            host_config: Some(HostConfig { extra_hosts: gateway, ..HostConfig::default() }),
            networking_config: Some(NetworkingConfig {
                endpoints_config: Some([(network.to_owned(), attached)].into()),
            }),
            ..ContainerCreateBody::default()
        };
        let run = async {
            let id = self.create_to_run(image, body).await?;
            let ran = tokio::select! {
                ran = self.run_created(&id, stdin) => ran?,
                reason = self.cancelled() => return Err(reason),
            };
            Ok((id, ran))
        };
        let late = || anyhow!("context deadline exceeded");
        let (id, ran) = tokio::time::timeout(limit, run).await.map_err(|_| late())??;
        self.remove(&id).await;
        Ok(ran)
    }

    /// The name of this machine inside containers.
    pub async fn host(&self) -> &'static str {
        let ask = async || host_of(self.docker().version().await.unwrap_or_default());
        self.host.get_or_init(ask).await
    }

    /// Whether the engine is Podman.
    pub(super) async fn is_podman(&self) -> bool {
        self.host().await == PODMAN_HOST
    }

    /// Creates a container that is removed without a graceful stop.
    pub(super) async fn create_to_run(
        &self,
        image: &str,
        body: ContainerCreateBody,
    ) -> Result<String> {
        let record = Container {
            id: String::new(),
            function: image.to_owned(),
            target: String::new(),
            cleanup: Cleanup::Remove,
            gently: false,
        };
        let created = self.create_container(&unique_name(), body, record).await;
        created.map_err(|error| error.or(|e| explain(e).context("failed to create container")))
    }

    /// Removes a container now instead of at the end of the command.
    pub(super) async fn remove(&self, id: &str) {
        let force = RemoveContainerOptions { force: true, ..RemoveContainerOptions::default() };
        if self.docker().remove_container(id, Some(force)).await.is_ok() {
            self.disown(id);
        }
    }

    async fn run_created(&self, id: &str, stdin: &[u8]) -> Result<Ran> {
        let docker = self.docker();
        let everything = AttachContainerOptions {
            stream: true,
            stdin: true,
            stdout: true,
            stderr: true,
            ..AttachContainerOptions::default()
        };
        // Attached before the start, so that no output is missed.
        let attached = docker.attach_container(id, Some(everything)).await;
        let attached =
            attached.map_err(|e| explain(&e)).context("failed to attach to container")?;
        let AttachContainerResults { mut output, mut input } = attached;
        let started = docker.start_container(id, None::<StartContainerOptions>).await;
        started.map_err(|e| explain(&e)).context("failed to start container")?;

        let write = async {
            // A container that does not read its input reports the reason.
            let _ = input.write_all(stdin).await;
            let _ = input.shutdown().await;
        };
        let read = async {
            let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
            while let Some(output) = output.next().await {
                match output {
                    Ok(LogOutput::StdErr { message }) => stderr.extend(message),
                    Ok(output) => stdout.extend(output.into_bytes()),
                    Err(error) => {
                        return Err(explain(&error).context("failed to read container output"));
                    }
                }
            }
            Ok((stdout, stderr))
        };
        let ((), read) = tokio::join!(write, read);
        let (stdout, stderr) = read?;

        let code = self.exit_code_of(id).await.context("error waiting for container")?;
        Ok(Ran { code, stdout, stderr })
    }

    /// Waits for a container to exit.
    pub(super) async fn exit_code_of(&self, id: &str) -> Result<i64> {
        let wait = self.docker().wait_container(id, None::<WaitContainerOptions>);
        match std::pin::pin!(wait).next().await {
            Some(Ok(ended)) => Ok(ended.status_code),
            Some(Err(Error::DockerContainerWaitError { code, .. })) => Ok(code),
            Some(Err(error)) => Err(explain(&error)),
            None => bail!("there was no answer"),
        }
    }
}

/// The name of this machine in containers of an engine.
fn host_of(engine: SystemVersion) -> &'static str {
    let parts = engine.components.unwrap_or_default();
    let is_podman = parts.iter().any(|part| part.name == "Podman Engine");
    if is_podman { PODMAN_HOST } else { HOST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_call_this_machine_what_their_engine_does() {
        for (components, want) in [
            (r#"[{"Name":"Engine","Version":"27.1.1"}]"#, "host.docker.internal"),
            (
                r#"[{"Name":"Podman Engine","Version":"4.3.1"},{"Name":"Conmon","Version":"2"}]"#,
                "host.containers.internal",
            ),
            ("null", "host.docker.internal"),
        ] {
            let version = format!(r#"{{"Components":{components}}}"#);
            assert_eq!(host_of(serde_json::from_str(&version).unwrap()), want, "{components}");
        }
    }
}
