//! Starts a Docker engine, from the distribution's package, for the tests only.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bollard::models::{ContainerSummary, NetworkCreateRequest};
use bollard::query_parameters::{
    ListContainersOptions, ListImagesOptions, ListNetworksOptions, RemoveContainerOptions,
    RemoveImageOptions,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::runtime::Runtime;

use crate::{images, remote};

/// A running engine with the images that tests use.
#[derive(Debug)]
pub(crate) struct Daemon {
    runtime: Runtime,
    docker: Docker,
    child: Child,
    /// Its log, line by line, until it exits.
    log: Mutex<Receiver<String>>,
    folder: tempfile::TempDir,
}

impl Daemon {
    pub(crate) fn is_installed() -> bool {
        Command::new("dockerd").arg("--version").output().is_ok()
    }

    pub(crate) fn start() -> Result<Self, String> {
        let text = |e: std::io::Error| e.to_string();
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().map_err(text)?;
        if !up.success() {
            return Err("the loopback device cannot be set up".into());
        }
        let folder = tempfile::tempdir().map_err(text)?;
        // In memory, and only visible in these namespaces, so that nothing is left behind.
        let tmpfs = ["-t", "tmpfs", "biplane-tests"];
        let mounted = Command::new("mount").args(tmpfs).arg(folder.path()).status();
        if !mounted.map_err(text)?.success() {
            return Err("a file system in memory cannot be mounted".into());
        }
        remote::certify(folder.path());
        let at = |name: &str| folder.path().join(name).display().to_string();
        let mut child = Command::new("dockerd")
            .args(["--data-root", &at("data"), "--exec-root", &at("exec"), "--pidfile", &at("pid")])
            .args(["--host", &format!("unix://{}", at("docker.sock"))])
            .args(["--host", remote::HOST, "--tlsverify"])
            .args(["--tlscacert", &at("ca.pem"), "--tlscert", &at("server.pem")])
            .args(["--tlskey", &at("server-key.pem")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(text)?;
        let (say, log) = channel();
        if let Some(stderr) = child.stderr.take() {
            std::thread::spawn(move || {
                let lines = BufReader::new(stderr).lines().map_while(Result::ok);
                lines.for_each(|line| drop(say.send(line)));
            });
        }
        let deadline = Instant::now() + Duration::from_mins(2);
        let mut last = String::new();
        loop {
            match log.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains("API listen on") && line.contains("docker.sock") => break,
                Ok(line) => last = line,
                Err(_) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("dockerd does not start here: {last}"));
                }
            }
        }
        let runtime = Runtime::new().map_err(text)?;
        let docker = Docker::connect_with_unix(&at("docker.sock"), 120, API_DEFAULT_VERSION);
        let docker = docker.map_err(|e| e.to_string())?;
        runtime.block_on(docker.ping()).map_err(|e| e.to_string())?;
        let daemon = Self { runtime, docker, child, log: Mutex::new(log), folder };
        images::provide(&daemon);
        Ok(daemon)
    }

    pub(crate) fn docker(&self) -> &Docker {
        &self.docker
    }

    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// For `DOCKER_HOST`.
    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    /// The folder with the certificates of the engine and of its clients.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Every container, running or not.
    pub(crate) fn containers(&self) -> Vec<ContainerSummary> {
        let all = ListContainersOptions { all: true, ..ListContainersOptions::default() };
        self.wait(self.docker.list_containers(Some(all))).unwrap()
    }

    /// The state of the only container: `running`, `exited` and so on.
    pub(crate) fn only_state(&self) -> String {
        let containers = self.containers();
        assert_eq!(containers.len(), 1, "{containers:?}");
        containers[0].state.unwrap().to_string()
    }

    pub(crate) fn remove_all(&self) {
        for container in self.containers() {
            let force = RemoveContainerOptions { force: true, ..RemoveContainerOptions::default() };
            let id = container.id.unwrap();
            self.wait(self.docker.remove_container(&id, Some(force))).unwrap();
        }
    }

    /// Removes what a failed test left behind, so that the next one does not fail for it.
    pub(crate) fn clear(&self) {
        self.remove_all();
        for network in self.networks() {
            self.remove_network(&network);
        }
        let images = self.wait(self.docker.list_images(None::<ListImagesOptions>)).unwrap();
        for tag in images.into_iter().flat_map(|image| image.repo_tags) {
            if !images::is_provided(&tag) {
                let options = None::<RemoveImageOptions>;
                self.wait(self.docker.remove_image(&tag, options, None)).unwrap();
            }
        }
    }

    pub(crate) fn create_network(&self, name: &str) {
        let request = NetworkCreateRequest { name: name.into(), ..NetworkCreateRequest::default() };
        self.wait(self.docker.create_network(request)).unwrap();
    }

    pub(crate) fn remove_network(&self, name: &str) {
        self.wait(self.docker.remove_network(name)).unwrap();
    }

    /// The networks that the tests or the program created.
    pub(crate) fn networks(&self) -> Vec<String> {
        let networks = self.wait(self.docker.list_networks(None::<ListNetworksOptions>)).unwrap();
        let names = networks.into_iter().filter_map(|network| network.name);
        names.filter(|name| !matches!(name.as_str(), "bridge" | "host" | "none")).collect()
    }

    /// Asserts that nothing is left behind.
    pub(crate) fn assert_empty(&self) {
        let containers = self.containers();
        let networks = self.networks();
        if !containers.is_empty() {
            self.remove_all();
        }
        assert!(containers.is_empty(), "left behind: {containers:?}");
        assert!(networks.is_empty(), "left behind: {networks:?}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A graceful stop, so that it also stops what it started.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        // Its log ends when it exits.
        let deadline = Instant::now() + Duration::from_secs(15);
        let left = || deadline.saturating_duration_since(Instant::now());
        let log = self.log.get_mut().unwrap_or_else(PoisonError::into_inner);
        while log.recv_timeout(left()).is_ok() {}
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = Command::new("umount").arg("--lazy").arg(self.folder.path()).status();
    }
}
