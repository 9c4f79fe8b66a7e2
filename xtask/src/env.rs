//! Provides the programs that tests start.

use std::time::Instant;

use anyhow::Result;
use biplane_devenv::{Places, Tool, provision};

/// What every test run needs.
const FOR_TESTS: [Tool; 3] = [Tool::Etcd, Tool::KubeApiserver, Tool::Kubectl];

pub(crate) fn run(all: bool) -> Result<()> {
    let tools = if all { Tool::ALL.as_slice() } else { FOR_TESTS.as_slice() };
    let start = Instant::now();
    let found = provision(&Places::from_env()?, tools, &mut |line| println!("{line}"))?;
    for &tool in tools {
        println!("{}: {}", tool.name(), found.path(tool)?.display());
    }
    println!("environment ready in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
