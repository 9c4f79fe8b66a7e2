//! Runs functions in containers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use biplane_go::fmt::quote;
use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, EndpointSettings, HostConfig,
    NetworkConnectRequest, NetworkingConfig, PortBinding,
};
use bollard::query_parameters::{
    InspectContainerOptions, LogsOptions, StartContainerOptions, UploadToContainerOptions,
    WaitContainerOptions,
};
use prost::bytes::Bytes;
use tokio::sync::watch;
use tokio_stream::StreamExt;

use super::build::Parts;
use super::client::{explain, status};
use super::create::NotCreated;
use super::options::{NETWORK, Options, PullPolicy};
use super::{Container, Session, unique_name};
use crate::running::{LOG_LINES, Running};
use biplane_console::Notes;
use biplane_runner::supervised::{self, Supervised};

/// The port on which functions listen in their containers.
const PORT: u16 = 9443;
/// How often to look for a container that is being created by another command, and how long to wait
/// in between.
const ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// A container to be created.
struct New<'a> {
    options: &'a Options,
    parts: Parts,
    network: Option<&'a str>,
    record: Container,
}

impl Session {
    /// Starts a function's container, or uses the existing one.
    pub(crate) async fn start(
        &self,
        function: &str,
        options: &Options,
        network: Option<&str>,
        notes: &Notes,
    ) -> Result<Running> {
        if options.ignored_env > 0 {
            notes.debug("Ignoring invalid environment variables", &[("function", function)]);
        }
        let network = options.network.as_deref().or(network);
        let record = Container {
            id: String::new(),
            function: function.to_owned(),
            target: String::new(),
            cleanup: options.cleanup,
            gently: true,
        };
        let id = if let Some(id) = self.find(options).await? {
            self.own(Container { id: id.clone(), ..record });
            id
        } else {
            let parts = match &options.build {
                Some(build) => self.build(build, options.pull, notes).await?,
                None => Parts::of(&options.image, options.pull),
            };
            self.create(&New { options, parts, network, record }, notes).await?
        };
        if let Some(network) = network.filter(|network| self.is_own(network)) {
            self.join(&id, network).await?;
        }
        let docker = self.docker();
        let started = docker.start_container(&id, None::<StartContainerOptions>).await;
        started.map_err(|e| explain(&e)).context("cannot start Docker container")?;
        let container = self.inspect(&id).await.map_err(|e| explain(&e));
        let container = container.context("cannot inspect Docker container")?;
        if let Some(code) = exit_code(&container) {
            let log = last_lines(docker, &id).await;
            bail!(exit_report("its container", code, &log));
        }
        let address = address(&container, options, network)?;
        self.set_target(&id, &address);
        notes.debug(
            "Function runs in a container",
            &[("address", &address), ("function", function), ("image", &options.image)],
        );
        let (end, ended) = watch::channel(None);
        let what = format!("the container of function {}", quote(function));
        tokio::spawn(watch_for_end(docker.clone(), id, what, end));
        let runner = Arc::new(Supervised::new(&address, ended.clone())?);
        Ok(Running::at(runner, address, Some(ended)))
    }

    async fn inspect(&self, id: &str) -> Result<ContainerInspectResponse, Error> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.docker().inspect_container(id, None::<InspectContainerOptions>).await {
                // Podman reports an unknown status for containers that have just exited.
                Err(Error::JsonDataError { .. }) if attempts < ATTEMPTS => {
                    tokio::time::sleep(PAUSE).await;
                }
                inspected => return inspected,
            }
        }
    }

    /// The container with the name that the function asks for, if it exists.
    async fn find(&self, options: &Options) -> Result<Option<String>> {
        let Some(name) = &options.name else { return Ok(None) };
        let attempted = || format!("cannot inspect Docker container {}", quote(name));
        if !is_container_name(name) {
            let reason = "only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed";
            return Err(anyhow!("Invalid container name ({name}), {reason}").context(attempted()));
        }
        match self.inspect(name).await {
            Ok(found) => Ok(found.id),
            Err(error) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(explain(&error).context(attempted())),
        }
    }

    async fn create(&self, new: &New<'_>, notes: &Notes) -> Result<String> {
        let New { options, parts, network, .. } = new;
        let image = &parts.image;
        let cannot_pull = || format!("cannot pull Docker image {}", quote(image));
        if parts.pull == PullPolicy::Always {
            self.pull(image, notes).await.with_context(cannot_pull)?;
        }
        // A named container may be reused by a command that has no network, or another one.
        let network = network.filter(|n| options.name.is_none() || !self.is_own(n));
        let cannot_create = |error: NotCreated| error.or(|e| cannot_create(image, network, e));
        let missing = match self.create_now(new, network).await {
            Err(NotCreated::Refused(error))
                if status(&error) == Some(404) && self.lacks(image).await =>
            {
                error
            }
            created => return created.map_err(cannot_create),
        };
        if parts.pull == PullPolicy::Never {
            return Err(explain(&missing).context(format!(
                "cannot create Docker container: image {} not found and pull policy is \"Never\"",
                quote(image)
            )));
        }
        self.pull(image, notes).await.with_context(cannot_pull)?;
        self.create_now(new, network).await.map_err(cannot_create)
    }

    async fn create_now(
        &self,
        New { options, parts, record, .. }: &New<'_>,
        network: Option<&str>,
    ) -> Result<String, NotCreated> {
        let port = format!("{PORT}/tcp");
        let binding = PortBinding {
            host_ip: Some(options.publish_address.clone()),
            host_port: Some("0".to_owned()), // any free port
        };
        let published = network.is_none().then(|| [(port.clone(), Some(vec![binding]))].into());
        let attached = network.map(|network| NetworkingConfig {
            endpoints_config: Some([(network.to_owned(), EndpointSettings::default())].into()),
        });
        let body = ContainerCreateBody {
            image: Some(parts.image.clone()),
            entrypoint: parts.entry_point.clone(),
            user: parts.user.clone(),
            working_dir: parts.working_dir.clone(),
            cmd: Some(vec!["--insecure".to_owned()]),
            exposed_ports: Some(vec![port]),
            env: Some(parts.env(&options.env)),
            host_config: Some(HostConfig { port_bindings: published, ..HostConfig::default() }),
            networking_config: attached,
            ..ContainerCreateBody::default()
        };
        let name = options.name.clone().unwrap_or_else(unique_name);
        let id = match self.create_container(&name, body, record.clone()).await {
            Err(NotCreated::Refused(error)) if options.name.is_some() && is_taken(&error) => {
                let id = self.made_by_another(&name).await.ok_or(NotCreated::Refused(error))?;
                self.own(Container { id: id.clone(), ..record.clone() });
                return Ok(id);
            }
            created => created?,
        };
        if let Some(files) = &parts.files {
            let copied = self.copy_into(&id, files.clone()).await;
            copied.map_err(NotCreated::GivenUp)?;
        }
        Ok(id)
    }

    /// Copies files into a container, relative to its root.
    pub(super) async fn copy_into(&self, id: &str, files: Bytes) -> Result<()> {
        let root = UploadToContainerOptions {
            path: "/".to_owned(),
            ..UploadToContainerOptions::default()
        };
        let copied = self.docker().upload_to_container(id, Some(root), bollard::body_full(files));
        copied.await.map_err(|e| explain(&e)).context("failed to copy files to container path /")
    }

    /// The container that took the name first, once the engine lists it.
    async fn made_by_another(&self, name: &str) -> Option<String> {
        for _ in 0..ATTEMPTS {
            match self.inspect(name).await {
                Ok(found) => return found.id,
                Err(error) if status(&error) == Some(404) => tokio::time::sleep(PAUSE).await,
                Err(_) => return None,
            }
        }
        None
    }

    /// Whether the engine does not have an image. A failed request does not tell, because something
    /// else may be missing.
    pub(super) async fn lacks(&self, image: &str) -> bool {
        let found = self.docker().inspect_image(image).await;
        found.is_err_and(|error| status(&error) == Some(404))
    }

    /// Connects a container to the network of this command, if it is not connected yet.
    async fn join(&self, id: &str, network: &str) -> Result<()> {
        let request =
            NetworkConnectRequest { container: id.to_owned(), ..NetworkConnectRequest::default() };
        let container = self.inspect(id).await.map_err(|e| explain(&e));
        let container = container.context("cannot inspect Docker container")?;
        if is_attached(&container, network) {
            return Ok(());
        }
        let joined = self.docker().connect_network(network, request).await;
        joined.map_err(|e| explain(&e)).with_context(|| {
            format!("cannot connect Docker container to network {}", quote(network))
        })
    }
}

fn cannot_create(image: &str, network: Option<&str>, error: &Error) -> anyhow::Error {
    let attempted = format!("cannot create Docker container for image {}", quote(image));
    explain(error).context(match network {
        None => attempted,
        Some(network) => format!(
            "{attempted} on network {}; verify the network exists and is accessible by the Docker daemon",
            quote(network)
        ),
    })
}

/// Whether a container of that name already exists. Podman reports this only in the message.
fn is_taken(error: &Error) -> bool {
    status(error) == Some(409) || explain(error).to_string().contains("is already in use by ")
}

/// The address of a running container.
fn address(
    container: &ContainerInspectResponse,
    options: &Options,
    network: Option<&str>,
) -> Result<String> {
    let name = container.name.as_deref().unwrap_or_default().trim_start_matches('/');
    if let Some(network) = network {
        if !is_attached(container, network) {
            bail!(
                "container {} is not connected to Docker network {}; verify the {NETWORK:?} annotation value matches an existing network",
                quote(name),
                quote(network)
            );
        }
        return Ok(format!("{name}:{PORT}"));
    }
    let ports = container.network_settings.as_ref().and_then(|n| n.ports.as_ref());
    let bindings = ports.and_then(|ports| ports.get(&format!("{PORT}/tcp"))?.as_ref());
    let Some(binding) = bindings.and_then(|bindings| bindings.first()) else {
        bail!("container {} has no published binding for port {PORT}", quote(name));
    };
    let host = options.target.as_deref().or(binding.host_ip.as_deref()).unwrap_or_default();
    if host.is_empty() {
        bail!("container {} has port binding for {PORT} but no host address", quote(name));
    }
    let port = binding.host_port.as_deref().unwrap_or_default();
    Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

fn is_attached(container: &ContainerInspectResponse, network: &str) -> bool {
    let networks = container.network_settings.as_ref().and_then(|n| n.networks.as_ref());
    networks.is_some_and(|networks| networks.contains_key(network))
}

/// The exit code of a container that is not running.
fn exit_code(container: &ContainerInspectResponse) -> Option<i64> {
    let state = container.state.as_ref()?;
    (state.running == Some(false)).then(|| state.exit_code.unwrap_or_default())
}

fn is_container_name(name: &str) -> bool {
    let name = name.strip_prefix('/').unwrap_or(name);
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

fn exit_report(what: &str, code: i64, log: &str) -> String {
    let log: Vec<_> = log.lines().collect();
    supervised::exit_report(what, &format!("exit status: {code}"), &log)
}

async fn watch_for_end(
    docker: Docker,
    id: String,
    what: String,
    end: watch::Sender<Option<String>>,
) {
    let mut wait = std::pin::pin!(docker.wait_container(&id, None::<WaitContainerOptions>));
    let code = match wait.next().await {
        Some(Ok(ended)) => ended.status_code,
        Some(Err(Error::DockerContainerWaitError { code, .. })) => code,
        // The state is unknown, which is not a reason to fail.
        _ => return std::future::pending().await,
    };
    let log = last_lines(&docker, &id).await;
    end.send_replace(Some(exit_report(&what, code, &log)));
}

/// The last lines of a container's log.
pub(super) async fn last_lines(docker: &Docker, id: &str) -> String {
    let options = LogsOptions {
        stdout: true,
        stderr: true,
        tail: LOG_LINES.to_string(),
        ..LogsOptions::default()
    };
    let mut log = Vec::new();
    let mut lines = std::pin::pin!(docker.logs(id, Some(options)));
    while let Some(Ok(output)) = lines.next().await {
        log.extend(LogOutput::into_bytes(output));
    }
    String::from_utf8_lossy(&log).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
