//! Recorded behaviour of Crossplane: inputs and outputs of each case.
//!
//! `tests/conformance/README.md` describes the files of a case and how to compare them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One recorded case.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Recording {
    /// The case's name, unique within its area.
    #[serde(rename = "case")]
    pub name: String,
    /// The content of each file, by its path below the folder of the case.
    pub files: BTreeMap<String, String>,
}

impl Recording {
    /// Loads every case of an area, sorted by name.
    ///
    /// Panics if the area cannot be read, because a test without cases must not pass.
    pub fn load_area(area: &str) -> Vec<Self> {
        let path = folder().join(format!("{area}.jsonl.gz"));
        match read(&path) {
            Ok(cases) if !cases.is_empty() => cases,
            Ok(_) => panic!("{} holds no case", path.display()),
            Err(e) => panic!("cannot load recordings: {e:#}"),
        }
    }

    /// Writes every case of an area, for tests that record. The same cases give the same bytes.
    ///
    /// Panics if the area cannot be written.
    pub fn save_area(area: &str, cases: &[Self]) {
        let path = folder().join(format!("{area}.jsonl.gz"));
        if let Err(e) = write(&path, cases) {
            panic!("cannot save recordings: {e:#}");
        }
    }

    /// Loads one case of an area. Panics if there is none of that name.
    pub fn load(area: &str, case: &str) -> Self {
        Self::load_area(area)
            .into_iter()
            .find(|recording| recording.name == case)
            .unwrap_or_else(|| panic!("area {area} has no case {case}"))
    }

    /// The content of a file. `None` if the case does not have it, which is meaningful for outputs.
    pub fn text(&self, file: &str) -> Option<&str> {
        self.files.get(file).map(String::as_str)
    }

    /// A parsed JSON file. Panics if it is not JSON.
    pub fn json(&self, file: &str) -> Option<Value> {
        let text = self.text(file)?;
        match serde_json::from_str(text) {
            Ok(value) => Some(value),
            Err(e) => panic!("{file} of case {} is not JSON: {e}", self.name),
        }
    }

    /// The files below a folder of the case, such as `schemas`, by their path within it.
    pub fn folder<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files.iter().filter_map(move |(path, text)| {
            Some((path.strip_prefix(folder)?.strip_prefix('/')?, text.as_str()))
        })
    }
}

/// The folder of the recordings in the checkout.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance")
}

fn read(path: &Path) -> Result<Vec<Recording>> {
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    BufReader::new(flate2::read::GzDecoder::new(file))
        .lines()
        .map(|line| {
            serde_json::from_str(&line?).with_context(|| format!("a line of {}", path.display()))
        })
        .collect()
}

fn write(path: &Path, cases: &[Recording]) -> Result<()> {
    let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
    let mut archive = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    for case in cases {
        serde_json::to_writer(&mut archive, case)?;
        archive.write_all(b"\n")?;
    }
    archive.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests;
