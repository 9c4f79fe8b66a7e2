//! Keeps functions running between renders, each until its source or configuration changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use biplane_console::Interrupts;
use biplane_model::Object;
use biplane_model::pipeline::function_names;
use biplane_runtime::{Function, Runners, docker, project};
use tokio::runtime::Runtime;

use crate::file_stamps::{Stamps, flat, source_files, stamps};
use crate::options::FunctionOptions;

/// Functions that keep running between renders.
pub(crate) struct WarmFunctions<'a> {
    /// The runtime of the renders.
    pub runtime: &'a Runtime,
    /// The names of the Compositions that call them, besides that of the composite resource.
    pub reached: BTreeSet<String>,
    interrupted: Interrupts,
    /// The running functions and the inputs that they were started from.
    started: Option<(StartedFrom, Runners)>,
}

impl<'a> WarmFunctions<'a> {
    pub(crate) fn new(runtime: &'a Runtime, interrupted: Interrupts) -> Self {
        Self { runtime, reached: BTreeSet::new(), interrupted, started: None }
    }

    /// Runs `work`, which may block forever, for example on a read. If the command is interrupted
    /// in the meantime, the functions are stopped and the process ends.
    pub(crate) fn run_interruptible<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (from, runners) = self.started.take().unzip();
        let runners = runners.unwrap_or_default();
        let (worked, runners) =
            self.interrupted.run_interruptible(self.runtime, runners, Runners::end, work);
        self.started = from.zip(Some(runners));
        worked
    }

    /// The functions that a pipeline calls. Functions are started if they are not running or if
    /// their inputs have changed.
    pub(crate) fn functions(
        &mut self,
        functions: &[Function],
        pipeline: &Object,
        files: (&FunctionOptions, Option<&Path>),
        start: impl FnOnce(&Runtime, Runners) -> Result<Runners>,
    ) -> Result<&Runners> {
        let now = StartedFrom::new(functions, pipeline, files);
        let (kept, mut up) = match self.started.take() {
            Some((before, runners)) => {
                let kept = now.kept(&before, &runners);
                if before == now && now.called().all(|function| kept.contains(&function.name)) {
                    return Ok(&self.started.insert((now, runners)).1);
                }
                // The old functions are stopped first, since the new ones may need their ports or
                // names.
                let up = self.runtime.block_on(runners.keep(&kept));
                (kept, up)
            }
            None => Default::default(),
        };
        up.interrupted = Some(self.interrupted.clone());
        match start(self.runtime, up.clone()) {
            Ok(runners) => Ok(&self.started.insert((now, runners)).1),
            Err(error) => {
                // If one function cannot be started, the other new ones are not needed.
                let up = self.runtime.block_on(up.keep(&kept));
                self.started = Some((now, up));
                Err(error)
            }
        }
    }
}

/// The inputs that functions are started from.
#[derive(Debug, PartialEq, Eq)]
struct StartedFrom {
    functions: Vec<Function>,
    /// The names of the functions that are called.
    used: Vec<String>,
    /// The functions file, or the project file.
    listing: Stamps,
    /// By function of the project, the files that belong to it.
    own: BTreeMap<String, Stamps>,
    /// The other files of the project, which any of its functions may use.
    shared: Stamps,
}

impl StartedFrom {
    fn new(
        functions: &[Function],
        pipeline: &Object,
        (options, function_file): (&FunctionOptions, Option<&Path>),
    ) -> Self {
        let mut files = Vec::new();
        if function_file.is_none() {
            for folder in project::sources(&options.runtime.project_file) {
                source_files(&folder, &mut files);
            }
        }
        let (mut own, mut shared) = (BTreeMap::<String, Stamps>::new(), Stamps::new());
        for (file, stamp) in stamps(files) {
            let is_part = |function: &&Function| function.is_made_of(&file);
            let mut owners = functions.iter().filter(is_part).peekable();
            if owners.peek().is_none() {
                shared.insert(file.clone(), stamp);
            }
            for owner in owners {
                own.entry(owner.name.clone()).or_default().insert(file.clone(), stamp);
            }
        }
        Self {
            functions: functions.to_vec(),
            used: function_names(pipeline),
            listing: stamps(flat(function_file.unwrap_or(&options.runtime.project_file))),
            own,
            shared,
        }
    }

    fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    fn called(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| self.used.contains(&function.name))
    }

    /// The names of the running functions that can keep running.
    fn kept(&self, before: &Self, runners: &Runners) -> BTreeSet<String> {
        let touched = self.listing != before.listing && self.functions == before.functions;
        // An engine in a container must be on the same network as all functions.
        let moved = {
            let networks = self.functions.iter().filter_map(docker::network);
            !networks.eq(before.functions.iter().filter_map(docker::network))
        };
        if touched || moved {
            return BTreeSet::new();
        }
        let stays = |function: &&Function| {
            before.function(&function.name) == Some(*function)
                && before.own.get(&function.name) == self.own.get(&function.name)
                && (!function.is_of_project() || before.shared == self.shared)
                && runners.is_up(&function.name)
        };
        let (stay, go): (Vec<_>, Vec<_>) = self.called().partition(stays);
        // A container that several functions share is removed for all of them.
        let gone = before.functions.iter().filter(|function| !stay.contains(function));
        let gone: BTreeSet<_> = gone.chain(go).filter_map(docker::name).collect();
        let alone =
            |function: &&&Function| docker::name(function).is_none_or(|n| !gone.contains(n));
        stay.iter().filter(alone).map(|function| function.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use biplane_function::Registry;
    use biplane_runner::InProcess;

    use super::*;
    use biplane_runtime::Running;

    /// The inputs of functions with the given annotations.
    fn from(functions: &[(&str, &[(&str, &str)])]) -> StartedFrom {
        let function = |(name, annotations): &(&str, &[(&str, &str)])| {
            let annotations = annotations
                .iter()
                .map(|(k, v)| (format!("render.crossplane.io/runtime-docker-{k}"), (*v).into()));
            Function::new((*name).to_owned(), String::new(), annotations.collect())
        };
        StartedFrom {
            functions: functions.iter().map(function).collect(),
            used: functions.iter().map(|(name, _)| (*name).to_owned()).collect(),
            listing: Stamps::new(),
            own: BTreeMap::new(),
            shared: Stamps::new(),
        }
    }

    fn kept(before: &[(&str, &[(&str, &str)])], now: &[(&str, &[(&str, &str)])]) -> Vec<String> {
        let mut runners = Runners::default();
        for (name, _) in before {
            let runner = Arc::new(InProcess::new(Registry::default()));
            runners.insert((*name).to_owned(), Running::in_process(runner));
        }
        from(now).kept(&from(before), &runners).into_iter().collect()
    }

    #[test]
    fn functions_that_share_a_container_lose_it_together() {
        let warm = ("name", "warm");
        let before: &[(&str, &[_])] = &[("a", &[warm]), ("b", &[warm]), ("c", &[("name", "own")])];
        assert_eq!(kept(before, before), ["a", "b", "c"]);
        let changed: &[(&str, &[_])] = &[("a", &[warm, ("env", "A=1")]), before[1], before[2]];
        assert_eq!(kept(before, changed), ["c"]);
        let moved: &[(&str, &[_])] = &[("a", &[("name", "other")]), before[1], before[2]];
        assert_eq!(kept(before, moved), ["c"]);
        assert_eq!(kept(before, &before[1..]), ["c"], "a function that is gone takes it along");
    }

    #[test]
    fn all_functions_move_when_a_network_does() {
        let before: &[(&str, &[_])] = &[("a", &[("network", "one")]), ("b", &[])];
        let after: &[(&str, &[_])] = &[("a", &[("network", "two")]), ("b", &[])];
        assert_eq!(kept(before, before), ["a", "b"]);
        assert!(kept(before, after).is_empty());
    }
}
