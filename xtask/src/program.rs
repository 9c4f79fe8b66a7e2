//! Builds and checks the release program: one static, position-independent file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cargo;

/// A program that was built for shipping.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

/// The target triple: this machine's processor, Linux and glibc.
pub(crate) fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Builds the program.
pub(crate) fn build(root: &Path) -> Result<Program> {
    let target = target();
    // With an explicit target, build scripts are not linked statically.
    crate::run(
        cargo()
            .args(["build", "--locked", "--profile", "dist", "--bin", "biplane"])
            .args(["--target", &target])
            .env("RUSTFLAGS", "-C target-feature=+crt-static"),
    )?;
    read(root.join("target").join(target).join("dist/biplane"))
}

/// Reads a program. Refuses one that needs other files to start.
pub(crate) fn read(path: PathBuf) -> Result<Program> {
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if !is_static(&bytes) {
        bail!("{} needs other files to start, and there will be none", path.display());
    }
    Ok(Program { path, bytes })
}

/// A little-endian number in an ELF file.
fn number(program: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = program.get(at..at + size)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Whether a 64-bit ELF program names no interpreter.
fn is_static(program: &[u8]) -> bool {
    const INTERPRETER: u64 = 3;
    let kinds = || -> Option<Vec<u64>> {
        let (start, size) = (number(program, 32, 8)?, number(program, 54, 2)?);
        let count = number(program, 56, 2)?;
        (0..count)
            .map(|index| number(program, usize::try_from(start + index * size).ok()?, 4))
            .collect()
    };
    program.starts_with(b"\x7fELF\x02")
        && kinds().is_some_and(|kinds| !kinds.contains(&INTERPRETER))
}

/// Whether a program can be loaded at any address. A program that holds credentials of a cluster
/// must not be at a predictable address.
pub(crate) fn is_position_independent(program: &[u8]) -> bool {
    const SHARED_OBJECT: u64 = 3;
    number(program, 16, 2) == Some(SHARED_OBJECT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_needs_a_loader_is_refused() {
        // Test programs are linked dynamically and can be loaded anywhere.
        let program = std::env::current_exe().unwrap();
        let bytes = fs::read(&program).unwrap();
        assert!(!is_static(&bytes));
        assert!(is_position_independent(&bytes));
        let error = read(program).err().unwrap();
        assert!(error.to_string().ends_with("needs other files to start, and there will be none"));
    }

    #[test]
    fn a_program_with_a_fixed_address_is_known() {
        const EXECUTABLE: u8 = 2;
        let mut program = b"\x7fELF\x02".to_vec();
        program.resize(64, 0);
        program[16] = EXECUTABLE;
        assert!(is_static(&program));
        assert!(!is_position_independent(&program));
        assert!(!is_position_independent(b""));
        assert!(!is_static(b"#!/bin/sh\n"));
    }
}
