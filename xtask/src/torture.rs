//! `cargo xtask torture`: gives the built-in functions inputs that hurt, and prints what they cost.

use anyhow::Result;

use crate::{cargo, run};

/// Runs the inputs in a release build, each in its own process, and then damaged copies of them for
/// that many seconds. The table on stdout is the one of `docs/limits.md`.
pub(crate) fn torture(seconds: u64) -> Result<()> {
    run(cargo()
        .args(["test", "--release", "--locked", "--package", "biplane-functions", "--test", "it"])
        .args(["--", "torture::", "--nocapture", "--test-threads=1"])
        .env("BIPLANE_TORTURE_TABLE", "yes")
        .env("BIPLANE_MUTATE_SECONDS", seconds.to_string()))
}
