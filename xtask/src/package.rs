//! Builds packages of the built-in functions: files for `docker load` and `crossplane xpkg push`,
//! one for each folder below `packages/`.

mod image;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::program;
use image::Image;

/// Writes every package to a folder.
pub(crate) fn run(root: &Path, program: Option<PathBuf>, out: &Path) -> Result<()> {
    let program = match program {
        Some(program) => program::read(program)?,
        None => program::build(root)?,
    };
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    for folder in sorted(&root.join("packages"))?.into_iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let image = Image::new(&name, &program.bytes, &stream(&folder.join("package"))?)?;
        let path = out.join(format!("{name}.xpkg"));
        fs::write(&path, image.archive()?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// The metadata and the schemas of inputs, as one stream of YAML documents.
fn stream(package: &Path) -> Result<Vec<u8>> {
    let mut stream = read(&package.join("crossplane.yaml"))?;
    let inputs = package.join("input");
    if inputs.is_dir() {
        for input in sorted(&inputs)? {
            // Every file begins with a document separator.
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

#[cfg(test)]
mod tests;
