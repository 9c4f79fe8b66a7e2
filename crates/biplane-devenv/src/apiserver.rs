//! Starts a Kubernetes API server with its own etcd on the loopback address, for one test or
//! developer.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::audit::AuditLog;
use crate::client::Client;
use crate::common::{Common, url};
use crate::kube_apiserver::Place;
use crate::options::Options;
use crate::ports::with_port;
use crate::process::Server;
use crate::provision::{Places, Tool, provision};
use crate::proxy::Proxy;
use crate::users::{ADMIN, SELF};
use crate::{EnvError, controllers, etcd, kube_apiserver, say};

/// Time for etcd to end in order. It is killed then, which its data survives too.
const FAREWELL: Duration = Duration::from_secs(10);

/// A running API server with its etcd and, if asked for, its controller manager. Dropping it stops
/// all programs and removes their files, unless they are kept.
pub struct ApiServer {
    /// The URL of the server: `https://127.0.0.1:PORT`.
    pub url: String,
    /// The CA that signed the server's certificate.
    pub ca_pem: String,
    /// Bearer token of the user `admin`, a member of `system:masters`.
    pub token: String,
    /// A self-contained kubeconfig of the same user.
    pub kubeconfig: PathBuf,
    place: Place,
    // Fields are dropped in this order.
    programs: Mutex<Programs>,
    common: Arc<Common>,
}

// The token does not belong into a log.
impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A program of the control plane, which tests can stop, pause and start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Etcd,
    ApiServer,
    Controllers,
}

impl Part {
    const fn tool(self) -> Tool {
        match self {
            Self::Etcd => Tool::Etcd,
            Self::ApiServer => Tool::KubeApiserver,
            Self::Controllers => Tool::KubeControllerManager,
        }
    }

    fn not_running(self) -> EnvError {
        EnvError::NotRunning { program: self.tool().name() }
    }
}

/// The programs that run now, dropped in this order.
#[derive(Debug)]
struct Programs {
    controllers: Option<Server>,
    api_server: Option<Server>,
    etcd: Option<Server>,
    /// Further API servers that were started.
    replicas: usize,
    /// Whether the data is kept.
    kept: bool,
}

impl Drop for Programs {
    fn drop(&mut self) {
        if self.kept {
            // Nothing writes any more when etcd ends.
            self.controllers = None;
            self.api_server = None;
            if let Some(etcd) = self.etcd.take() {
                etcd.end(FAREWELL);
            }
        }
    }
}

impl Programs {
    fn new(kept: bool) -> Self {
        Self { controllers: None, api_server: None, etcd: None, replicas: 0, kept }
    }

    fn slot(&mut self, part: Part) -> &mut Option<Server> {
        match part {
            Part::Etcd => &mut self.etcd,
            Part::ApiServer => &mut self.api_server,
            Part::Controllers => &mut self.controllers,
        }
    }

    fn get(&mut self, part: Part) -> Result<&mut Server, EnvError> {
        self.slot(part).as_mut().ok_or(part.not_running())
    }
}

impl Options {
    /// Starts a control plane, and says on standard error what takes long.
    ///
    /// Blocks until everything is ready: some seconds, or minutes if programs have to be built.
    pub fn start(self) -> Result<ApiServer, EnvError> {
        self.start_reporting(&mut |line| {
            if !line.ends_with(STARTING) {
                say(line);
            }
        })
    }

    /// Starts a control plane. `report` hears about each step before it is taken.
    pub fn start_reporting(self, report: &mut dyn FnMut(&str)) -> Result<ApiServer, EnvError> {
        let mut tools = vec![Tool::Etcd, Tool::KubeApiserver];
        if self.controllers {
            tools.push(Tool::KubeControllerManager);
        }
        let binaries = provision(&Places::from_env()?, &tools, report)?;
        let (common, port) = Common::prepare(self, binaries)?;
        ApiServer::launch(common, port, report)
    }
}

impl ApiServer {
    /// Starts a new, empty API server. Missing programs are provided first.
    ///
    /// Blocks until the server is ready: some seconds, or minutes if programs have to be built.
    pub fn start() -> Result<Self, EnvError> {
        Options::default().start()
    }

    /// Options for more than [`ApiServer::start`] does.
    pub fn options() -> Options {
        Options::default()
    }

    fn launch(
        common: Common,
        wanted: Option<u16>,
        report: &mut dyn FnMut(&str),
    ) -> Result<Self, EnvError> {
        let mut programs = Programs::new(common.folder.is_kept());
        report(&starting(Part::Etcd));
        let (etcd_port, etcd) = with_port(None, |port| {
            etcd::start(&common, port, report).map(|server| (port, server))
        })?;
        let etcd = programs.etcd.insert(etcd);

        report(&starting(Part::ApiServer));
        let (place, api_server) = with_port(wanted, |port| {
            let place = Place { number: 1, port, etcd_port };
            kube_apiserver::start(&common, place, report).map(|server| (place, server))
        })?;
        programs.api_server = Some(api_server);
        // If our etcd lost its port to another etcd, the API server is now using the other one.
        etcd.still_runs()?;
        common.remember(place.port)?;
        bind_cluster_admins(&common, place.port)?;

        if common.controllers {
            report(&starting(Part::Controllers));
            programs.controllers = Some(controllers::start(&common, place.port, report)?);
        }
        Ok(Self {
            url: url(place.port),
            ca_pem: common.identity.ca.clone(),
            token: common.token_of(ADMIN)?.to_owned(),
            kubeconfig: common.kubeconfig("", place.port, ADMIN)?,
            place,
            programs: Mutex::new(programs),
            common: Arc::new(common),
        })
    }

    /// The folder with the logs of all programs.
    pub fn folder(&self) -> &Path {
        self.common.folder.path()
    }

    /// The bearer token of a user.
    pub fn token_of(&self, user: &str) -> Result<String, EnvError> {
        self.common.token_of(user).map(str::to_owned)
    }

    /// Writes a kubeconfig of a user, which only the owner of the process can read.
    pub fn kubeconfig_of(&self, user: &str) -> Result<PathBuf, EnvError> {
        self.common.kubeconfig("", self.place.port, user)
    }

    /// A client that sends exactly one request for each call.
    pub fn client(&self, user: &str) -> Result<Client, EnvError> {
        self.common.client(self.place.port, user)
    }

    /// A `kubectl` command for this server. The program is provided first if it is missing.
    pub fn kubectl(&self) -> Result<Command, EnvError> {
        self.kubectl_as(ADMIN)
    }

    /// A `kubectl` command for this server and a user.
    pub fn kubectl_as(&self, user: &str) -> Result<Command, EnvError> {
        let binaries = provision(&Places::from_env()?, &[Tool::Kubectl], &mut say)?;
        let mut command = Command::new(binaries.path(Tool::Kubectl)?);
        command.arg("--kubeconfig").arg(self.kubeconfig_of(user)?);
        Ok(command)
    }

    /// The audit log, if it was asked for.
    pub fn audit_log(&self) -> Result<AuditLog, EnvError> {
        self.common.audit_log.clone().ok_or(EnvError::NoAuditLog)
    }

    /// The id of a program's process, for measuring.
    pub fn process_id(&self, part: Part) -> Result<u32, EnvError> {
        self.programs().get(part).map(|server| server.id())
    }

    /// Stops a program where it is, as if its machine hung. Its connections stay open.
    pub fn pause(&self, part: Part) -> Result<(), EnvError> {
        self.programs().get(part)?.pause()
    }

    /// Lets a paused program go on.
    pub fn resume(&self, part: Part) -> Result<(), EnvError> {
        self.programs().get(part)?.resume()
    }

    /// Ends a program at once, as a crash does.
    pub fn stop(&self, part: Part) -> Result<(), EnvError> {
        self.programs().slot(part).take().map(drop).ok_or(part.not_running())
    }

    /// Starts a program that was stopped, on the same data and port, and waits until it is ready.
    pub fn start_again(&self, part: Part) -> Result<(), EnvError> {
        let mut programs = self.programs();
        let slot = programs.slot(part);
        if slot.is_none() {
            let Place { port, etcd_port, .. } = self.place;
            *slot = Some(match part {
                Part::Etcd => etcd::start(&self.common, etcd_port, &mut say)?,
                Part::ApiServer => kube_apiserver::start(&self.common, self.place, &mut say)?,
                Part::Controllers => controllers::start(&self.common, port, &mut say)?,
            });
        }
        Ok(())
    }

    /// Stops a program and starts it again.
    ///
    /// The garbage collector looks for new kinds when it starts, and then every 30 s. Restart
    /// [`Part::Controllers`] after creating a CRD if its garbage has to be collected at once.
    pub fn restart(&self, part: Part) -> Result<(), EnvError> {
        self.stop(part)?;
        self.start_again(part)
    }

    /// Starts another API server on the same etcd.
    pub fn replica(&self) -> Result<Replica, EnvError> {
        let mut programs = self.programs();
        let number = programs.replicas + 2;
        let (place, server) = with_port(None, |port| {
            let place = Place { number, port, ..self.place };
            kube_apiserver::start(&self.common, place, &mut say).map(|server| (place, server))
        })?;
        programs.replicas += 1;
        if let Some(log) = &self.common.audit_log {
            log.add(self.common.folder.join(&place.audit_log()));
        }
        Ok(Replica {
            url: url(place.port),
            kubeconfig: self.common.kubeconfig(&number.to_string(), place.port, ADMIN)?,
            place,
            server: Mutex::new(Some(server)),
            common: Arc::clone(&self.common),
        })
    }

    /// Starts a proxy in front of the API server.
    pub fn proxy(&self) -> Result<Proxy, EnvError> {
        Proxy::start(Arc::clone(&self.common), self.place.port)
    }

    fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Another API server on the etcd of an [`ApiServer`]. Dropping it stops it.
#[derive(Debug)]
pub struct Replica {
    pub url: String,
    /// A self-contained kubeconfig of the user `admin`.
    pub kubeconfig: PathBuf,
    place: Place,
    // Fields are dropped in this order.
    server: Mutex<Option<Server>>,
    common: Arc<Common>,
}

impl Replica {
    /// Writes a kubeconfig of a user.
    pub fn kubeconfig_of(&self, user: &str) -> Result<PathBuf, EnvError> {
        self.common.kubeconfig(&self.place.number.to_string(), self.place.port, user)
    }

    /// A client that sends exactly one request for each call.
    pub fn client(&self, user: &str) -> Result<Client, EnvError> {
        self.common.client(self.place.port, user)
    }

    /// Stops the server where it is, as if its machine hung. Its connections stay open.
    pub fn pause(&self) -> Result<(), EnvError> {
        self.server().as_mut().ok_or(Part::ApiServer.not_running())?.pause()
    }

    /// Lets the paused server go on.
    pub fn resume(&self) -> Result<(), EnvError> {
        self.server().as_mut().ok_or(Part::ApiServer.not_running())?.resume()
    }

    /// Ends the server at once, as a crash does.
    pub fn stop(&self) -> Result<(), EnvError> {
        self.server().take().map(drop).ok_or(Part::ApiServer.not_running())
    }

    /// Starts the stopped server on the same port, and waits until it is ready.
    pub fn start_again(&self) -> Result<(), EnvError> {
        let mut server = self.server();
        if server.is_none() {
            *server = Some(kube_apiserver::start(&self.common, self.place, &mut say)?);
        }
        Ok(())
    }

    /// Starts a proxy in front of this server.
    pub fn proxy(&self) -> Result<Proxy, EnvError> {
        Proxy::start(Arc::clone(&self.common), self.place.port)
    }

    /// From now on, this server answers the watches of a proxy in front of the other one, as may
    /// happen behind a load balancer. If it is paused, watches are behind what requests read and
    /// write.
    pub fn answer_watches_of(&self, proxy: &Proxy) {
        proxy.watch_at(self.place.port);
    }

    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of the lines that announce a start.
const STARTING: &str = ": starting";

fn starting(part: Part) -> String {
    format!("{}{STARTING}", part.tool().name())
}

/// Creates the bindings of users that are cluster admins. With kept data they may exist already.
fn bind_cluster_admins(common: &Common, port: u16) -> Result<(), EnvError> {
    const PATH: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let client = common.client(port, SELF)?;
    for user in &common.users {
        let Some(binding) = user.binding() else { continue };
        let answer = client.post(PATH, &binding)?;
        if !matches!(answer.code, 201 | 409) {
            return Err(EnvError::Refused {
                action: format!("make {} a cluster admin", user.name()),
                code: answer.code,
                body: answer.body,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
