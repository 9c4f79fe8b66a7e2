//! Finds the programs in a folder given by the user or in the cache, or builds them with Go.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::EnvError;
use crate::process::Group;

/// A program that can be provided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    Etcd,
    KubeApiserver,
    Kubectl,
    KubeControllerManager,
}

impl Tool {
    pub const ALL: [Self; 4] =
        [Self::Etcd, Self::KubeApiserver, Self::Kubectl, Self::KubeControllerManager];

    /// The program's file name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::Kubectl => "kubectl",
            Self::KubeControllerManager => "kube-controller-manager",
        }
    }

    /// Minutes that a first build takes on two cores, for the progress message.
    const fn minutes(self) -> u32 {
        match self {
            Self::KubeApiserver => 7,
            _ => 2,
        }
    }

    const fn module(self) -> &'static Module {
        match self {
            Self::Etcd => &ETCD,
            _ => &KUBERNETES,
        }
    }

    fn package(self) -> String {
        match self {
            Self::Etcd => ".".into(),
            other => format!("k8s.io/kubernetes/cmd/{}", other.name()),
        }
    }
}

/// A Go module that pins a program and its dependencies. It is embedded in this crate, so that a
/// build needs no checkout.
struct Module {
    /// The requirement whose version is the version of the program.
    pins: &'static str,
    files: &'static [(&'static str, &'static str)],
}

static ETCD: Module = Module {
    pins: "go.etcd.io/etcd/server/v3",
    files: &[
        ("go.mod", include_str!("../../../tests/env/etcd/go.mod")),
        ("go.sum", include_str!("../../../tests/env/etcd/go.sum")),
        ("main.go", include_str!("../../../tests/env/etcd/main.go")),
    ],
};

static KUBERNETES: Module = Module {
    pins: "k8s.io/kubernetes",
    files: &[
        ("go.mod", include_str!("../../../tests/env/apiserver/go.mod")),
        ("go.sum", include_str!("../../../tests/env/apiserver/go.sum")),
        ("tools.go", include_str!("../../../tests/env/apiserver/tools.go")),
    ],
};

impl Module {
    /// The pinned version, without the leading `v`.
    fn version(&self) -> &'static str {
        self.files[0]
            .1
            .lines()
            .find_map(|line| {
                line.strip_prefix("require ")?.strip_prefix(self.pins)?.trim().strip_prefix('v')
            })
            .unwrap_or("unknown")
    }
}

/// The folders to look in.
#[derive(Clone, Debug)]
pub struct Places {
    /// Programs provided by the user. This folder is searched first.
    pub assets: Option<PathBuf>,
    /// The folder for built programs, outside any checkout.
    pub cache: PathBuf,
}

impl Places {
    /// Reads `KUBEBUILDER_ASSETS`. The cache is `$XDG_CACHE_HOME/biplane/env/<versions>/bin`, or
    /// the same below `~/.cache`.
    #[allow(clippy::disallowed_methods)] // the environment is read here only
    pub fn from_env() -> Result<Self, EnvError> {
        let folder = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let cache = folder("XDG_CACHE_HOME")
            .or_else(|| folder("HOME").map(|home| home.join(".cache")))
            .ok_or(EnvError::NoCache)?;
        Ok(Self {
            assets: folder("KUBEBUILDER_ASSETS"),
            cache: cache.join("biplane/env").join(versions()).join("bin"),
        })
    }
}

/// Names a set of programs by its versions, so that other versions get another folder.
fn versions() -> String {
    format!("kubernetes-{}-etcd-{}", KUBERNETES.version(), ETCD.version())
}

/// The paths of the requested programs.
#[derive(Clone, Debug, Default)]
pub struct Binaries(BTreeMap<Tool, PathBuf>);

impl Binaries {
    /// The path of a program. Fails if the program was not requested.
    pub fn path(&self, tool: Tool) -> Result<PathBuf, EnvError> {
        self.0.get(&tool).cloned().ok_or_else(|| {
            EnvError::io(format!("run {}: it was not provided", tool.name()))(
                std::io::ErrorKind::NotFound.into(),
            )
        })
    }
}

/// Provides `tools` and passes slow steps to `report`. Several processes may call it at once: one
/// builds, the others wait.
pub fn provision(
    places: &Places,
    tools: &[Tool],
    report: &mut dyn FnMut(&str),
) -> Result<Binaries, EnvError> {
    let mut found = BTreeMap::new();
    for &tool in tools {
        let path = match find(places, tool) {
            Some(path) => path,
            None => build_once(places, tool, report)?,
        };
        found.insert(tool, path);
    }
    Ok(Binaries(found))
}

fn find(places: &Places, tool: Tool) -> Option<PathBuf> {
    let folders = places.assets.iter().chain([&places.cache]);
    folders.map(|folder| folder.join(tool.name())).find(|path| path.is_file())
}

fn build_once(
    places: &Places,
    tool: Tool,
    report: &mut dyn FnMut(&str),
) -> Result<PathBuf, EnvError> {
    std::fs::create_dir_all(&places.cache)
        .map_err(EnvError::io(format!("make {}", places.cache.display())))?;
    let _lock = lock(&places.cache, report)?;
    // Another process may have built it while this one waited for the lock.
    if let Some(path) = find(places, tool) {
        return Ok(path);
    }
    let (name, version) = (tool.name(), tool.module().version());
    if let Some(assets) = &places.assets {
        report(&format!("{name}: not in {}", assets.display()));
    }
    report(&format!(
        "{name}: building {version} with Go into {} (about {} min the first time on two cores)",
        places.cache.display(),
        tool.minutes()
    ));
    let start = Instant::now();
    let path = build(places, tool, report)?;
    report(&format!("{name}: built in {} s", start.elapsed().as_secs()));
    Ok(path)
}

/// Locks the cache while building. The kernel releases the lock when the process ends.
fn lock(cache: &Path, report: &mut dyn FnMut(&str)) -> Result<File, EnvError> {
    let path = cache.join(".lock");
    let file = File::create(&path).map_err(EnvError::io(format!("open {}", path.display())))?;
    if file.try_lock().is_err() {
        report("waiting for another process that builds the test environment");
        file.lock().map_err(EnvError::io(format!("lock {}", path.display())))?;
    }
    Ok(file)
}

fn build(places: &Places, tool: Tool, report: &mut dyn FnMut(&str)) -> Result<PathBuf, EnvError> {
    let dir = tempfile::Builder::new()
        .prefix("biplane-env-build-")
        .tempdir()
        .map_err(EnvError::io("make a folder to build in"))?;
    let module = tool.module();
    for (name, text) in module.files {
        std::fs::write(dir.path().join(name), text)
            .map_err(EnvError::io(format!("write {name} of {}", tool.name())))?;
    }
    // The file is renamed when it is complete, so that an interrupted build leaves no program
    // behind.
    let partial = places.cache.join(format!(".{}.partial", tool.name()));
    // The compilers end with this process too.
    let group = Group::start(Some(dir.path()))?;
    let mut go = Command::new("go")
        .args(["build", "-v", "-trimpath", "-buildvcs=false", "-mod=readonly"])
        .arg(format!("-ldflags={}", link_flags(tool)))
        .arg("-o")
        .arg(&partial)
        .arg(tool.package())
        .current_dir(dir.path())
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(group.id()?.as_raw())
        .spawn()
        .map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => {
                EnvError::NoGo { tool: tool.name(), cache: places.cache.clone() }
            }
            _ => EnvError::io("start go")(source),
        })?;
    let output = go.stderr.take().map(|output| follow(output, tool, report)).unwrap_or_default();
    let status = go.wait().map_err(EnvError::io("wait for go"))?;
    if !status.success() {
        return Err(EnvError::Build { tool: tool.name(), output });
    }
    let path = places.cache.join(tool.name());
    std::fs::rename(&partial, &path)
        .map_err(EnvError::io(format!("move {} into place", tool.name())))?;
    Ok(path)
}

/// Reports how many packages Go has compiled, and returns the last lines that are not about that.
fn follow(output: impl Read, tool: Tool, report: &mut dyn FnMut(&str)) -> String {
    /// Go compiles some 1,500 packages for kube-apiserver.
    const STEP: usize = 250;
    const LAST_LINES: usize = 30;
    let mut compiled = 0;
    let mut last = VecDeque::new();
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        // With `-v`, a line that is nothing but a path is a package that is being compiled.
        if !line.is_empty() && !line.contains([' ', '\t']) {
            compiled += 1;
            if compiled % STEP == 0 {
                report(&format!("{}: {compiled} packages compiled", tool.name()));
            }
            continue;
        }
        last.push_back(line);
        if last.len() > LAST_LINES {
            last.pop_front();
        }
    }
    Vec::from(last).join("\n").trim().to_owned()
}

/// Linker flags that set the version which Kubernetes programs report.
fn link_flags(tool: Tool) -> String {
    let version = tool.module().version();
    match tool {
        Tool::Etcd => "-s".into(),
        _ => format!(
            "-s -X k8s.io/component-base/version.gitVersion=v{version} -X k8s.io/client-go/pkg/version.gitVersion=v{version}"
        ),
    }
}

#[cfg(test)]
mod tests;
