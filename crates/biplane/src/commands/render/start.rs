//! Makes the functions of a pipeline callable, each where it runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use async_trait::async_trait;
use biplane_function::grpc::Security;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Call, FunctionRunner, GrpcRunner, InProcess, Registry, RunError};
use biplane_go::fmt::quote;
use biplane_model::Object;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::build::NotBuilt;
use super::docker::{Cancelled, Environment, Options, Session};
use super::engine::{Engine, Image};
use super::flags::FunctionFlags;
use super::functions::used;
use super::interrupt::{self, Interrupted, Interrupts};
use super::notes::{Note, Notes};
use super::process::Process;
use super::runners::{Runners, Running};
use super::runtime::{Function, Runtime};
use super::turns::Turns;
use super::waiting;
use crate::streams::Streams;

const WITHOUT_DOCKER: &str = "\nFunctions also run without Docker: where you start them yourself (render.crossplane.io/runtime: Development), as a program (Process), or in this process if they are in the box (InProcess).";

const NEEDS_LEAVE: &str = "it is a program on this machine; pass --allow-process if you trust what the Functions file or the project runs";
const ELSE_DOCKER: &str = "\nOr have it built and run in Docker, which cannot be reached: ";

/// Starts those functions that the pipeline calls and that are not up, as many at the same time as is
/// allowed. When several cannot be started, the first of them in the input is reported; the others are
/// cleaned up. Of the command's time some is spent already.
pub(super) async fn start(
    functions: &[Function],
    pipeline: &Object,
    flags: &FunctionFlags,
    engine: &Engine,
    (timeout, spent): (Duration, Duration),
    up: Runners,
    streams: &mut Streams<'_>,
) -> Result<Runners> {
    let (begun, timeout) = (Instant::now(), timeout.saturating_sub(spent));
    let mut planned = plan(functions, pipeline, flags, engine)?;
    planned.retain(|(function, _)| !up.is_up(&function.name));
    let has = |wanted: fn(&Runtime) -> bool| planned.iter().any(|(_, runtime)| wanted(runtime));
    let in_docker = has(|runtime| matches!(runtime, Runtime::Docker(_)));
    let mut runners = up.place();
    let is_program = |runtime: &Runtime| matches!(runtime, Runtime::Process(_));
    let leaves_something = in_docker || has(is_program) || !matches!(engine, Engine::BuiltIn);
    let waits = leaves_something || has(|runtime| matches!(runtime, Runtime::Development(_)));
    if waits && runners.interrupted.is_none() {
        runners.interrupted = Some(Interrupts::listen(&streams.progress, false)?);
    }
    if leaves_something {
        // Before there is anything to clean up.
        runners.interrupted.iter().for_each(Interrupts::leave_to_command);
    }
    open_session(&planned, engine, timeout, &mut runners, streams.verbose).await?;

    let (notes, mut left) = Notes::new();
    let mut starting = Starting {
        registry: flags.registry(),
        host: if engine.is_image() { "0.0.0.0" } else { "127.0.0.1" },
        network: runners.network.clone(),
        turns: Turns::new(flags.max_concurrency, planned.iter().map(|(_, runtime)| runtime)),
        notes,
        tasks: JoinSet::new(),
        done: BTreeMap::new(),
    };
    let session = runners.session.clone();
    for (place, (function, runtime)) in planned.iter().enumerate() {
        starting.begin(place, function, runtime, session.as_ref());
    }
    if let (Engine::Image(image), Some(session)) = (engine, &session) {
        starting.provide(planned.len(), image, session.clone());
    }
    let done = starting.finish(&mut left, &runners, timeout, streams).await;
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
    waiting::in_public(&mut runners, &streams.progress);
    runners.join(up);
    runners.spent = spent;
    if in_docker || engine.is_image() {
        runners.spent += begun.elapsed();
    }
    Ok(runners)
}

/// What runs where, of those functions that the pipeline calls.
fn plan<'a>(
    functions: &'a [Function],
    pipeline: &Object,
    flags: &FunctionFlags,
    engine: &Engine,
) -> Result<Vec<(&'a Function, Runtime)>> {
    let registry = flags.registry();
    let used = used(pipeline);
    // An engine on another machine cannot call back.
    let remote = engine.is_image() && Environment::of_process().is_remote();
    let mut planned = Vec::new();
    for function in functions {
        let in_box = |name: &str| registry.get(name).is_some();
        let runtime = function.runtime(in_box, !flags.no_builtin && !remote);
        let runtime = runtime.with_context(|| {
            format!(
                "cannot start function runtimes: cannot get runtime for Function {}",
                quote(&function.name)
            )
        })?;
        if !used.contains(&function.name) {
            continue;
        }
        let refused = match runtime {
            Runtime::Process(_) if !flags.allow_process => NEEDS_LEAVE,
            Runtime::Process(_) | Runtime::InProcess(_) if remote => {
                "it runs on this machine, where an engine in a remote Docker daemon cannot reach it"
            }
            _ => {
                planned.push((function, runtime));
                continue;
            }
        };
        return Err(anyhow!(refused).context(cannot_start(function)));
    }
    Ok(planned)
}

fn cannot_start(function: &Function) -> String {
    format!("cannot start function runtimes: cannot start Function {}", quote(&function.name))
}

/// Connects to Docker if anything needs it, and provides the network on which the engine and the
/// functions meet if the engine is there.
async fn open_session(
    planned: &[(&Function, Runtime)],
    engine: &Engine,
    timeout: Duration,
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
            session = Session::open(Environment::of_process(), verbose) => session,
            () = interrupt::requested(interrupted.as_ref()) => Err(Interrupted.into()),
            () = tokio::time::sleep(timeout) => Err(anyhow!("context deadline exceeded")),
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
        if image.network.is_some() {
            runners.network.clone_from(&image.network);
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
                () = tokio::time::sleep(timeout) => {
                    session.cancel(Cancelled::Deadline);
                    create.await
                }
            };
            runners.network = Some(created.map_err(cannot)?);
        }
        return Ok(());
    }
    let first = planned.iter().find(|(_, runtime)| matches!(runtime, Runtime::Docker(_)));
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

/// Functions that are being started. Each has a place, and a function that is waited for has its
/// place among the tasks.
struct Starting {
    registry: Registry,
    /// Where programs listen.
    host: &'static str,
    /// The network for containers that ask for none.
    network: Option<String>,
    turns: Turns,
    notes: Notes,
    tasks: JoinSet<(usize, Started)>,
    done: BTreeMap<usize, Started>,
}

/// What became of one; an image that was provided is nothing that can be called.
type Started = Result<Option<Running>>;

impl Starting {
    fn begin(
        &mut self,
        place: usize,
        function: &Function,
        runtime: &Runtime,
        session: Option<&Arc<Session>>,
    ) {
        let started = match runtime {
            Runtime::Docker(options) => match session {
                Some(session) => return self.contain(place, function, options, session.clone()),
                None => Err(anyhow!("there is no Docker engine")),
            },
            Runtime::InProcess(name) => Ok(self.in_process(function, name)),
            Runtime::Development(target) => development(target),
            Runtime::Process(command) if self.turns.are_scarce() => {
                return self.process_in_turn(place, function, command);
            }
            Runtime::Process(command) => process(&function.name, command, self.host, &self.notes),
        };
        self.done.insert(place, started.map(Some));
    }

    fn contain(
        &mut self,
        place: usize,
        function: &Function,
        options: &Options,
        session: Arc<Session>,
    ) {
        let (name, options) = (function.name.clone(), options.clone());
        let (network, notes) = (self.network.clone(), self.notes.clone());
        let turns = self.turns.clone();
        self.tasks.spawn(async move {
            let _turn = match turns.next().await {
                Ok(turn) => turn,
                Err(cancelled) => return (place, Err(cancelled.error())),
            };
            let started = session.start(&name, &options, network.as_deref(), &notes).await;
            (place, started.map(Some))
        });
    }

    fn provide(&mut self, place: usize, image: &Image, session: Arc<Session>) {
        let (image, notes) = (image.clone(), self.notes.clone());
        let turns = self.turns.clone();
        self.tasks.spawn(async move {
            let _turn = match turns.next().await {
                Ok(turn) => turn,
                Err(cancelled) => return (place, Err(image.failed(cancelled.error()))),
            };
            let provided = session.provide(&image.reference, image.pull, &notes).await;
            (place, provided.map(|()| None).map_err(|error| image.failed(error)))
        });
    }

    fn in_process(&self, function: &Function, name: &str) -> Running {
        let fields = [("function", function.name.as_str()), ("runs", name)];
        self.notes.debug("Function runs in process", &fields);
        let inner = InProcess::new(self.registry.clone());
        Running::in_process(Arc::new(Renamed { name: name.to_owned(), inner }))
    }

    /// Starts a program when it is its turn, which lasts until it listens: building it may be
    /// most of the work.
    fn process_in_turn(&mut self, place: usize, function: &Function, command: &[String]) {
        let (name, command) = (function.name.clone(), command.to_vec());
        let (turns, host, notes) = (self.turns.clone(), self.host, self.notes.clone());
        self.tasks.spawn(async move {
            let turn = match turns.next().await {
                Ok(turn) => turn,
                Err(cancelled) => return (place, Err(cancelled.error())),
            };
            let started = process(&name, &command, host, &notes);
            if let Ok(Running { target: Some(target), ended: Some(ended), .. }) = &started {
                turn.until_listening(target, ended.clone()).await;
            }
            (place, started.map(Some))
        });
    }

    /// Waits for all of them. Those after the first failure are given up, as all are when someone
    /// asks to stop or there is no time left; even so each gets to the point where it is known
    /// what it left behind.
    async fn finish(
        mut self,
        left: &mut mpsc::UnboundedReceiver<Note>,
        runners: &Runners,
        timeout: Duration,
        streams: &mut Streams<'_>,
    ) -> BTreeMap<usize, Started> {
        let turns = self.turns.clone();
        let cancel = |reason| {
            turns.cancel(reason);
            runners.session.iter().for_each(|session| session.cancel(reason));
        };
        let deadline = tokio::time::sleep(timeout);
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

    /// Whether the failure to report is known: one before which everything succeeded.
    fn failed(&self) -> bool {
        let in_order = self.done.iter().enumerate().take_while(|(at, (place, _))| at == *place);
        in_order.into_iter().any(|(_, (_, started))| started.is_err())
    }
}

fn process(name: &str, command: &[String], host: &str, notes: &Notes) -> Result<Running> {
    let (process, target) = Process::start(name, command, host)?;
    notes.debug("Function runs as a program", &[("address", &target), ("function", name)]);
    let ended = Some(process.ended());
    Ok(Running { runner: Arc::new(process), target: Some(target), ended })
}

fn development(target: &str) -> Result<Running> {
    let runner = GrpcRunner::new(target, Security::Plaintext).map_err(|e| anyhow!("{e}"))?;
    Ok(Running { runner: Arc::new(runner), target: Some(target.to_owned()), ended: None })
}

/// A function in the box under the name that the pipeline gives it.
#[derive(Debug)]
struct Renamed {
    name: String,
    inner: InProcess,
}

#[async_trait]
impl FunctionRunner for Renamed {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let call = Call { function: self.name.clone(), ..call.clone() };
        self.inner.run(&call, request).await
    }
}
