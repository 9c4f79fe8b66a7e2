//! Starts the functions of a pipeline, each where it runs.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use anyhow::{Context, Error, Result, anyhow};
use biplane_console::deadline::DeadlineExceeded;
use biplane_console::{
    Deadline, Interrupted, Interrupts, Note, Notes, Progress, Streams, interrupt,
};
use biplane_function::Registry;
use biplane_go::fmt::quote;
use biplane_model::Object;
use biplane_model::pipeline::function_names;
use biplane_runner::grpc::Security;
use biplane_runner::{Call, Direct, GrpcRunner, stack};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::build_spec::NotBuilt;
use crate::docker::{self, Cancelled, Session};
use crate::engine::{Engine, Image};
use crate::function::Function;
use crate::options::Options;
use crate::placement::Placement;
use crate::process;
use crate::runners::Runners;
use crate::running::Running;
use crate::start_limiter::StartLimiter;

const WITHOUT_DOCKER: &str = "\nFunctions also run without Docker: where you start them yourself (render.crossplane.io/runtime: Development), as a program (Process), or in this process if they are in the box (InProcess).";

const NEEDS_LEAVE: &str = "it is a program on this machine; pass --allow-process if you trust what the Functions file or the project runs";
const ELSE_DOCKER: &str = "\nOr have it built and run in Docker, which cannot be reached: ";

/// Starts the functions that the pipeline calls and that are not running yet. If several fail to
/// start, the first of them in the input is reported and the others are cleaned up.
pub async fn start(
    functions: &[Function],
    pipeline: &Object,
    options: &Options,
    engine: &Engine,
    deadline: Deadline,
    up: Runners,
    streams: &mut Streams<'_>,
) -> Result<Runners> {
    let mut planned = plan(functions, pipeline, options, engine)?;
    planned.retain(|(function, _)| !up.is_up(&function.name));
    let has = |wanted: fn(&Placement) -> bool| planned.iter().any(|(_, placed)| wanted(placed));
    let starts = has(|placed| matches!(placed, Placement::Docker(_) | Placement::Process(_)));
    let mut runners = up.without_functions();
    let leaves_something = starts || !matches!(engine, Engine::BuiltIn);
    let waits = leaves_something || has(|placed| matches!(placed, Placement::Development(_)));
    if waits && runners.interrupted.is_none() {
        runners.interrupted = Some(Interrupts::listen(&streams.progress, false)?);
    }
    if leaves_something {
        // This happens before there is anything to clean up.
        runners.interrupted.iter().for_each(Interrupts::leave_to_command);
    }
    let verbose = streams.verbose;
    open_session(functions, &planned, engine, options, deadline, &mut runners, verbose).await?;

    let (notes, mut left) = Notes::new();
    let mut starting = Starting {
        registry: options.registry.clone(),
        host: program_host(&planned, engine, &runners).await?,
        network: runners.network.clone(),
        limiter: StartLimiter::new(
            options.max_concurrency,
            planned.iter().map(|(_, placement)| placement),
        ),
        notes,
        tasks: JoinSet::new(),
        done: BTreeMap::new(),
    };
    let session = runners.session.clone();
    for (place, (function, placement)) in planned.iter().enumerate() {
        starting.begin(place, function, placement, session.as_ref());
    }
    if let (Engine::Image(image), Some(session)) = (engine, &session) {
        starting.provide(planned.len(), image, session.clone());
    }
    let done = starting.finish(&mut left, &runners, deadline, streams).await;
    for (place, started) in done {
        let Some((function, _)) = planned.get(place) else {
            started?; // the engine's image
            continue;
        };
        let started = match started {
            Err(error) if error.is::<Interrupted>() => return Err(Interrupted.into()),
            Err(error) if error.is::<NotBuilt>() => return Err(error),
            started => started.with_context(|| cannot_start(function)),
        };
        if let Some(running) = started? {
            runners.insert(function.name.clone(), running);
        }
    }
    show_progress(&mut runners, &streams.progress);
    runners.join(up);
    Ok(runners)
}

/// Shows on the progress line which function is being called.
fn show_progress(runners: &mut Runners, progress: &Progress) {
    if !progress.is_on() {
        return;
    }
    for running in runners.values_mut() {
        let progress = progress.clone();
        let report =
            move |call: &Call| progress.wait(|| format!("{} in step {}", call.function, call.step));
        running.runner = stack::reported(running.runner.clone(), report);
    }
}

/// Decides where the functions run that the pipeline calls.
fn plan<'a>(
    functions: &'a [Function],
    pipeline: &Object,
    options: &Options,
    engine: &Engine,
) -> Result<Vec<(&'a Function, Placement)>> {
    let called = function_names(pipeline);
    // An engine on another machine cannot call back.
    let remote = engine.is_image() && options.docker.is_remote();
    let mut planned = Vec::new();
    for function in functions {
        let in_box = |name: &str| options.in_box(name);
        let placement = function.placement(in_box, options.builtin && !remote);
        let placement = placement.with_context(|| {
            format!(
                "cannot start function runtimes: cannot get runtime for Function {}",
                quote(&function.name)
            )
        })?;
        if !called.contains(&function.name) {
            continue;
        }
        let refused = match &placement {
            Placement::Process(_) if !options.allow_process => NEEDS_LEAVE,
            Placement::Process(command) if engine.is_image() && process::has_socket(command) => {
                "its command has {socket}, which an engine in a container cannot reach: give it {address} instead"
            }
            Placement::Process(_) | Placement::InProcess(_) if remote => {
                "it runs on this machine, where an engine in a remote Docker daemon cannot reach it"
            }
            _ => {
                planned.push((function, placement));
                continue;
            }
        };
        return Err(anyhow!(refused).context(cannot_start(function)));
    }
    Ok(planned)
}

/// The address of this machine on which programs listen: where an engine in a container reaches
/// them, or else where only this machine does.
async fn program_host(
    planned: &[(&Function, Placement)],
    engine: &Engine,
    runners: &Runners,
) -> Result<IpAddr> {
    let first = planned.iter().find(|(_, placed)| matches!(placed, Placement::Process(_)));
    match (first, &runners.session, &runners.network) {
        (Some((function, _)), Some(session), Some(network)) if engine.is_image() => {
            session.own_address(network).await.with_context(|| cannot_start(function))
        }
        _ => Ok(Ipv4Addr::LOCALHOST.into()),
    }
}

fn cannot_start(function: &Function) -> String {
    format!("cannot start function runtimes: cannot start Function {}", quote(&function.name))
}

/// Connects to Docker if needed. If the engine is a container, also provides the network that it
/// shares with the functions.
async fn open_session(
    functions: &[Function],
    planned: &[(&Function, Placement)],
    engine: &Engine,
    options: &Options,
    deadline: Deadline,
    runners: &mut Runners,
    verbose: bool,
) -> Result<()> {
    let interrupted = runners.interrupted.clone();
    let known = runners.session.clone();
    let open = async || {
        if let Some(session) = known {
            return Ok(session);
        }
        tokio::select! {
            session = Session::open(options.docker.clone(), verbose) => session,
            () = interrupt::requested(interrupted.as_ref()) => Err(Interrupted.into()),
            () = deadline.passed() => Err(DeadlineExceeded.into()),
        }
    };
    if let Engine::Image(image) = engine {
        let cannot = |error: Error| {
            if error.is::<Interrupted>() {
                return error;
            }
            error.context("cannot create Docker network for rendering")
        };
        let session = open().await.map_err(cannot)?;
        runners.session = Some(session.clone());
        if let Some(network) = image.network(functions) {
            runners.network = Some(network.to_owned());
        }
        if runners.network.is_none() {
            let create = session.create_network();
            tokio::pin!(create);
            let created = tokio::select! {
                created = &mut create => created,
                () = interrupt::requested(interrupted.as_ref()) => {
                    session.cancel(Cancelled::Interrupted);
                    create.await
                }
                () = deadline.passed() => {
                    session.cancel(Cancelled::Deadline);
                    create.await
                }
            };
            runners.network = Some(created.map_err(cannot)?);
        }
        return Ok(());
    }
    let first = planned.iter().find(|(_, placed)| matches!(placed, Placement::Docker(_)));
    if let Some((function, _)) = first {
        let session = open().await.map_err(|error| {
            if error.is::<Interrupted>() {
                return error;
            }
            match &function.build {
                Some(build) if build.is_program() => {
                    let error = anyhow!("{NEEDS_LEAVE}{ELSE_DOCKER}{error:#}");
                    error.context(cannot_start(function))
                }
                Some(build) => {
                    let attempted = format!("failed to build function {}", quote(&build.name));
                    error.context(attempted).context(NotBuilt)
                }
                None => anyhow!("{error:#}{WITHOUT_DOCKER}").context(cannot_start(function)),
            }
        });
        runners.session = Some(session?);
    }
    Ok(())
}

/// Functions that are being started. Each has an index, which its task returns with the result.
struct Starting {
    registry: Registry,
    /// The address on which processes listen.
    host: IpAddr,
    /// The network for containers that do not ask for one.
    network: Option<String>,
    limiter: StartLimiter,
    notes: Notes,
    tasks: JoinSet<(usize, Started)>,
    done: BTreeMap<usize, Started>,
}

/// The result of a start. An image that was provided is not a function, so it is `None`.
type Started = Result<Option<Running>>;

impl Starting {
    fn begin(
        &mut self,
        place: usize,
        function: &Function,
        placement: &Placement,
        session: Option<&Arc<Session>>,
    ) {
        let started = match placement {
            Placement::Docker(options) => match session {
                Some(session) => return self.contain(place, function, options, session.clone()),
                None => Err(anyhow!("there is no Docker engine")),
            },
            Placement::InProcess(name) => self.in_process(function, name),
            Placement::Development(target) => development(target),
            Placement::Process(command) if self.limiter.is_scarce() => {
                return self.process_with_permit(place, function, command);
            }
            Placement::Process(command) => program(&function.name, command, self.host, &self.notes),
        };
        self.done.insert(place, started.map(Some));
    }

    fn contain(
        &mut self,
        place: usize,
        function: &Function,
        options: &docker::Options,
        session: Arc<Session>,
    ) {
        let (name, options) = (function.name.clone(), options.clone());
        let (network, notes) = (self.network.clone(), self.notes.clone());
        let limiter = self.limiter.clone();
        self.tasks.spawn(async move {
            let _permit = match limiter.acquire().await {
                Ok(permit) => permit,
                Err(cancelled) => return (place, Err(cancelled.error())),
            };
            let started = session.start(&name, &options, network.as_deref(), &notes).await;
            (place, started.map(Some))
        });
    }

    fn provide(&mut self, place: usize, image: &Image, session: Arc<Session>) {
        let (image, notes) = (image.clone(), self.notes.clone());
        let limiter = self.limiter.clone();
        self.tasks.spawn(async move {
            let _permit = match limiter.acquire().await {
                Ok(permit) => permit,
                Err(cancelled) => return (place, Err(image.failed(cancelled.error()))),
            };
            let provided = session.provide(&image.reference, image.pull, &notes).await;
            (place, provided.map(|()| None).map_err(|error| image.failed(error)))
        });
    }

    fn in_process(&self, function: &Function, name: &str) -> Result<Running> {
        let Some(function_in_box) = self.registry.get(name) else {
            return Err(anyhow!("there is no function {} in the box", quote(name)));
        };
        let fields = [("function", function.name.as_str()), ("runs", name)];
        self.notes.debug("Function runs in process", &fields);
        Ok(Running::in_process(Arc::new(Direct::new(function_in_box.clone()))))
    }

    /// Starts a process with a permit, which is held until the process listens, because a build may
    /// take most of the time.
    fn process_with_permit(&mut self, place: usize, function: &Function, command: &[String]) {
        let (name, command) = (function.name.clone(), command.to_vec());
        let (limiter, host, notes) = (self.limiter.clone(), self.host, self.notes.clone());
        self.tasks.spawn(async move {
            let permit = match limiter.acquire().await {
                Ok(permit) => permit,
                Err(cancelled) => return (place, Err(cancelled.error())),
            };
            let started = program(&name, &command, host, &notes);
            if let Ok(Running { target: Some(target), ended: Some(ended), .. }) = &started {
                permit.until_listening(target, ended.clone()).await;
            }
            (place, started.map(Some))
        });
    }

    /// Waits for all functions. Functions after the first failure are cancelled; on an interrupt or
    /// at the deadline, all are. Each cancelled start still runs until it is known what needs to be
    /// cleaned up.
    async fn finish(
        mut self,
        left: &mut mpsc::UnboundedReceiver<Note>,
        runners: &Runners,
        deadline: Deadline,
        streams: &mut Streams<'_>,
    ) -> BTreeMap<usize, Started> {
        let limiter = self.limiter.clone();
        let cancel = |reason| {
            limiter.cancel(reason);
            runners.session.iter().for_each(|session| session.cancel(reason));
        };
        let deadline = deadline.passed();
        tokio::pin!(deadline);
        let (mut late, mut interrupted) = (false, false);
        loop {
            if self.failed() {
                cancel(Cancelled::Pointless);
            }
            tokio::select! {
                biased;
                Some(note) = left.recv() => note.write(streams),
                next = self.tasks.join_next() => match next {
                    Some(Ok((place, started))) => { self.done.insert(place, started); }
                    Some(Err(_)) => {}
                    None => break,
                },
                () = &mut deadline, if !late => {
                    late = true;
                    cancel(Cancelled::Deadline);
                }
                () = interrupt::requested(runners.interrupted.as_ref()), if !interrupted => {
                    interrupted = true;
                    cancel(Cancelled::Interrupted);
                }
            }
        }
        while let Ok(note) = left.try_recv() {
            note.write(streams);
        }
        if interrupted {
            self.done.insert(0, Err(Error::new(Interrupted)));
        }
        self.done
    }

    /// Whether the failure to report is known: everything before it has succeeded.
    fn failed(&self) -> bool {
        let in_order = self.done.iter().enumerate().take_while(|(at, (place, _))| at == *place);
        in_order.into_iter().any(|(_, (_, started))| started.is_err())
    }
}

fn program(name: &str, command: &[String], host: IpAddr, notes: &Notes) -> Result<Running> {
    let running = process::start(name, command, host)?;
    let target = running.target.as_deref().unwrap_or_default();
    notes.debug("Function runs as a program", &[("address", target), ("function", name)]);
    Ok(running)
}

fn development(target: &str) -> Result<Running> {
    let runner = GrpcRunner::new(target, Security::Plaintext)?;
    Ok(Running::at(Arc::new(runner), target.to_owned(), None))
}
