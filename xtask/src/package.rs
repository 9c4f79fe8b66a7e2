//! Makes packages of the functions in the box: files that `docker load` and `crossplane xpkg push`
//! take, one for each folder below `packages/`.

mod image;
mod tar;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cargo;
use image::Image;

/// Writes every package to a folder.
pub(crate) fn run(root: &Path, program: Option<PathBuf>, out: &Path) -> Result<()> {
    let program = match program {
        Some(program) => program,
        None => build(root)?,
    };
    let binary = read(&program)?;
    if !is_static(&binary) {
        bail!("{} needs other files to start, and the image has none", program.display());
    }
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    for folder in sorted(&root.join("packages"))?.into_iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let image = Image::new(&name, &binary, &stream(&folder.join("package"))?)?;
        let path = out.join(format!("{name}.xpkg"));
        fs::write(&path, image.archive())
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

fn build(root: &Path) -> Result<PathBuf> {
    // With a target, programs that run during the build are not linked statically.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    crate::run(
        cargo()
            .args(["build", "--profile", "dist", "--bin", "biplane", "--target", &target])
            .env("RUSTFLAGS", "-C target-feature=+crt-static"),
    )?;
    Ok(root.join("target").join(target).join("dist/biplane"))
}

/// The metadata and what describes inputs, as one stream of YAML documents.
fn stream(package: &Path) -> Result<Vec<u8>> {
    let mut stream = read(&package.join("crossplane.yaml"))?;
    let inputs = package.join("input");
    if inputs.is_dir() {
        for input in sorted(&inputs)? {
            // Every file opens with the line that separates documents.
            stream.extend(read(&input)?);
        }
    }
    Ok(stream)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Whether a 64-bit ELF program names no interpreter.
fn is_static(program: &[u8]) -> bool {
    const INTERPRETER: u64 = 3;
    let number = |at: usize, size: usize| -> Option<u64> {
        let bytes = program.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let kinds = || -> Option<Vec<u64>> {
        let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        (0..count).map(|index| number(usize::try_from(start + index * size).ok()?, 4)).collect()
    };
    program.starts_with(b"\x7fELF\x02")
        && kinds().is_some_and(|kinds| !kinds.contains(&INTERPRETER))
}

#[cfg(test)]
mod tests;
