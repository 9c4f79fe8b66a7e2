//! Loads images from tar files, as written by `docker save` and many builders.
//!
//! Such files contain names, which the engine would assign to the loaded image. An image of a
//! project gets the name that the project gives it instead, so that an existing image with the
//! original name keeps it.

mod members;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use biplane_go::fmt::quote;
use bollard::query_parameters::ImportImageOptions;
use flate2::read::MultiGzDecoder;
use prost::bytes::Bytes;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::Session;
use super::client::explain;
use crate::archive::check_inside;
use biplane_console::files;
use biplane_console::os::reason;
use members::Members;

/// The file that lists the images.
const MANIFEST: &str = "manifest.json";
/// Other files that list the images, including their names.
const OTHERS: [&str; 3] = ["repositories", "index.json", "oci-layout"];
/// The largest file that describes an image, in bytes. Registries have the same limit.
const LARGEST_DOCUMENT: u64 = 4 * 1024 * 1024;
/// The chunk size for sending, and the size of the buffer.
const PART: usize = 1 << 18;
const PARTS: usize = 4;

impl Session {
    /// Loads the image of a project for an architecture, and returns its name.
    pub(super) async fn load(
        &self,
        root: &Path,
        prefix: &str,
        repository: &str,
        architecture: &str,
    ) -> Result<String> {
        let name = format!("{repository}:{architecture}");
        let file = ImageFile::find(root, prefix, architecture)?;
        // Ends the reading when nobody waits for it any more.
        let given_up = GivenUp(Arc::clone(&file.given_up));
        let (send, parts) = channel(PARTS);
        let (wanted, new_name) = (architecture.to_owned(), name.clone());
        let reading = tokio::task::spawn_blocking(move || {
            file.check(&wanted)?;
            let attempted = || file.attempted(&wanted);
            let mut out = BufWriter::with_capacity(PART, Pipe(send.clone()));
            let read = file.rename(&new_name, &mut out).and_then(|()| Ok(out.flush()?));
            if read.is_err() {
                // The engine must not treat the truncated data as complete.
                let _ = send.blocking_send(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            read.with_context(attempted)
        });
        let quiet = ImportImageOptions { quiet: true, ..ImportImageOptions::default() };
        let parts = ReceiverStream::new(parts);
        let mut loading = std::pin::pin!(self.docker().import_image_stream(quiet, parts, None));
        let mut loaded = Ok(());
        while let Some(step) = loading.next().await {
            let refused = step.map(|step| step.error_detail.and_then(|detail| detail.message));
            match refused {
                Ok(None) => {}
                Ok(Some(reason)) => loaded = Err(anyhow!(reason)),
                Err(error) => loaded = Err(explain(&error)),
            }
        }
        // An error in the file is more informative than the engine's error about truncated data.
        reading.await.context("reading the runtime image ended early")??;
        drop(given_up);
        loaded.with_context(|| format!("cannot push image {name} to daemon"))?;
        Ok(name)
    }
}

/// Tells a reader to stop when this is dropped.
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An image in a file.
struct ImageFile {
    file: std::path::PathBuf,
    given_up: Arc<AtomicBool>,
    /// The path within the project.
    path: String,
    compressed: bool,
}

impl ImageFile {
    /// The file for an architecture. An uncompressed file takes precedence.
    fn find(root: &Path, prefix: &str, architecture: &str) -> Result<Self> {
        let path = |extension: &str| format!("{prefix}-{architecture}{extension}");
        let all = [(path(".tar"), false), (path(".tar.gz"), true)];
        for (path, compressed) in &all {
            let file = root.join(path);
            if file.exists() {
                check_inside(root, &file)?;
                let (path, given_up) = (path.clone(), Arc::default());
                return Ok(Self { file, given_up, path, compressed: *compressed });
            }
        }
        let tried = all.map(|(path, _)| path).join(" ");
        bail!(
            "no runtime image found for architecture {}: looked for [{tried}]",
            quote(architecture)
        )
    }

    fn attempted(&self, architecture: &str) -> String {
        let (architecture, path) = (quote(architecture), quote(&self.path));
        format!("failed to load runtime image for architecture {architecture} from {path}")
    }

    fn open(&self) -> Result<Members> {
        let open = || {
            files::check_regular(&std::fs::metadata(&self.file)?)?;
            File::open(&self.file)
        };
        let file = open().map_err(|e| anyhow!("open {}: {}", self.file.display(), reason(&e)))?;
        let file = BufReader::with_capacity(PART, file);
        let file: Box<dyn Read> =
            if self.compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
        Ok(Members::of(file, Arc::clone(&self.given_up)))
    }

    /// A JSON file in the archive.
    fn document(&self, name: &str) -> Result<Value> {
        let found = self.open()?.find(|entry| {
            if plain(&entry.path()?) != Path::new(name) {
                return Ok(ControlFlow::Continue(()));
            }
            let attempted = || format!("cannot read {name}");
            if entry.size() > LARGEST_DOCUMENT {
                let limit = LARGEST_DOCUMENT / (1024 * 1024);
                return Err(anyhow!("it is larger than {limit} MiB")).with_context(attempted);
            }
            Ok(ControlFlow::Break(serde_json::from_reader(entry).with_context(attempted)?))
        })?;
        found.ok_or_else(|| anyhow!("file {name} not found in tar"))
    }

    /// The only image in the file, as described by its manifest.
    fn image(&self) -> Result<Value> {
        match self.document(MANIFEST)? {
            Value::Array(images) if images.len() == 1 => Ok(images.into_iter().collect()),
            _ => bail!("tarball must contain only a single image"),
        }
    }

    /// Checks that the image is for the architecture in the file's name.
    fn check(&self, wanted: &str) -> Result<()> {
        let config = || {
            let image = self.image()?;
            let config = image.pointer("/0/Config").and_then(Value::as_str).unwrap_or_default();
            self.document(config)
        };
        let config = config().with_context(|| self.attempted(wanted))?;
        let found = config.get("architecture").and_then(Value::as_str).unwrap_or_default();
        if found != wanted {
            bail!(
                "runtime image {} reports architecture {} but was expected to be {}",
                quote(&self.path),
                quote(found),
                quote(wanted)
            );
        }
        Ok(())
    }

    /// Writes the image with another name.
    fn rename(&self, name: &str, to: impl Write) -> Result<()> {
        let mut to = Builder::new(to);
        let mut image = self.image()?;
        if let Some(image) = image.pointer_mut("/0").and_then(Value::as_object_mut) {
            image.insert("RepoTags".to_owned(), json!([name]));
        }
        let text = image.to_string();
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(text.len() as u64);
        to.append_data(&mut header, MANIFEST, text.as_bytes())?;
        self.open()?.find(|entry| {
            let path = entry.path()?.into_owned();
            let known = |name: &&str| plain(&path) == Path::new(name);
            if known(&MANIFEST) || OTHERS.iter().any(known) {
                return Ok(ControlFlow::<()>::Continue(()));
            }
            let mut header = entry.header().clone();
            match header.entry_type() {
                EntryType::Symlink | EntryType::Link => {
                    let target = entry.link_name()?.unwrap_or_default().into_owned();
                    to.append_link(&mut header, &path, target)?;
                }
                _ => to.append_data(&mut header, &path, entry)?,
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(to.finish()?)
    }
}

fn plain(path: &Path) -> &Path {
    path.strip_prefix("./").unwrap_or(path)
}

/// Passes written data on to the task that sends it.
struct Pipe(Sender<io::Result<Bytes>>);

impl Write for Pipe {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(part)));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::Archive;

    use super::*;

    /// An archive of files with the given texts.
    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let mut archive = Builder::new(Vec::new());
        for (path, text) in files {
            let mut header = Header::new_gnu();
            header.set_mode(0o600);
            header.set_size(text.len() as u64);
            archive.append_data(&mut header, path, text.as_bytes()).unwrap();
        }
        archive.into_inner().unwrap()
    }

    const IMAGE: &str =
        r#"[{"Config":"c.json","RepoTags":["someones:own"],"Layers":["l/layer.tar"]}]"#;

    fn image(manifest: &str) -> Vec<u8> {
        archive(&[
            ("repositories", "{}"),
            ("index.json", "{}"),
            ("l/layer.tar", "layer"),
            ("c.json", r#"{"architecture":"arm64"}"#),
            (MANIFEST, manifest),
        ])
    }

    /// PJ-2
    #[test]
    fn the_plain_file_of_the_architecture_is_taken_first() {
        let root = tempfile::tempdir().unwrap();
        let find = |architecture| ImageFile::find(root.path(), "out/b", architecture);
        let error = find("amd64").err().unwrap().to_string();
        assert_eq!(
            error,
            r#"no runtime image found for architecture "amd64": looked for [out/b-amd64.tar out/b-amd64.tar.gz]"#
        );
        std::fs::create_dir(root.path().join("out")).unwrap();
        for (extension, compressed) in [("tar.gz", true), ("tar", false)] {
            std::fs::write(root.path().join(format!("out/b-arm64.{extension}")), "").unwrap();
            let found = find("arm64").unwrap();
            assert_eq!(
                (found.path, found.compressed),
                (format!("out/b-arm64.{extension}"), compressed)
            );
        }
    }

    /// PJ-2
    #[test]
    fn an_image_is_renamed_whether_it_is_compressed_or_not() {
        let root = tempfile::tempdir().unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&image(IMAGE)).unwrap();
        for (extension, bytes) in [("tar.gz", gzip.finish().unwrap()), ("tar", image(IMAGE))] {
            std::fs::write(root.path().join(format!("b-arm64.{extension}")), bytes).unwrap();
            let file = ImageFile::find(root.path(), "b", "arm64").unwrap();
            file.check("arm64").unwrap();
            let error = file.check("amd64").unwrap_err().to_string();
            let want = format!(
                r#"runtime image "b-arm64.{extension}" reports architecture "arm64" but was expected to be "amd64""#
            );
            assert_eq!(error, want);
            let mut renamed = Vec::new();
            file.rename("example.org/acme/apps_b:arm64", &mut renamed).unwrap();
            let mut renamed = Archive::new(renamed.as_slice());
            let files = renamed.entries().unwrap().map(|entry| {
                let mut entry = entry.unwrap();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                (entry.path().unwrap().display().to_string(), text)
            });
            let files: Vec<_> = files.collect();
            let text = |path: &str, text: &str| (path.to_owned(), text.to_owned());
            let manifest = r#"[{"Config":"c.json","Layers":["l/layer.tar"],"RepoTags":["example.org/acme/apps_b:arm64"]}]"#;
            let want = [
                text(MANIFEST, manifest),
                text("l/layer.tar", "layer"),
                text("c.json", r#"{"architecture":"arm64"}"#),
            ];
            assert_eq!(files, want);
        }
    }

    /// A small file whose content would fill the memory.
    #[test]
    fn a_document_that_is_too_large_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        let gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let mut archive = Builder::new(gzip);
        let mut header = Header::new_gnu();
        let size = 16 << 20;
        header.set_mode(0o600);
        header.set_size(size);
        let zeros = io::repeat(b' ').take(size);
        archive.append_data(&mut header, MANIFEST, zeros).unwrap();
        let bytes = archive.into_inner().unwrap().finish().unwrap();
        assert!(bytes.len() < 1 << 20, "{}", bytes.len());
        std::fs::write(root.path().join("b-arm64.tar.gz"), bytes).unwrap();
        let file = ImageFile::find(root.path(), "b", "arm64").unwrap();
        let error = format!("{:#}", file.check("arm64").unwrap_err());
        assert!(error.ends_with(": cannot read manifest.json: it is larger than 4 MiB"), "{error}");
    }

    #[test]
    fn a_file_outside_of_the_project_is_not_loaded() {
        let root = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        std::fs::write(other.path().join("b-arm64.tar"), image(IMAGE)).unwrap();
        let link = root.path().join("b-arm64.tar");
        std::os::unix::fs::symlink(other.path().join("b-arm64.tar"), link).unwrap();
        let error = ImageFile::find(root.path(), "b", "arm64").err().unwrap().to_string();
        assert!(error.ends_with("which is outside of the project"), "{error}");
    }

    #[test]
    fn files_that_are_no_image_are_reported() {
        let root = tempfile::tempdir().unwrap();
        let two = IMAGE.replace("}]", "},{}]");
        for (bytes, want) in [
            (archive(&[("index.json", "{}")]), "file manifest.json not found in tar"),
            (image(&two), "tarball must contain only a single image"),
            (image("[{}]"), "file  not found in tar"),
            (b"no archive".repeat(99), ""),
        ] {
            std::fs::write(root.path().join("b-arm64.tar"), bytes).unwrap();
            let file = ImageFile::find(root.path(), "b", "arm64").unwrap();
            let error = format!("{:#}", file.check("arm64").unwrap_err());
            let attempted =
                r#"failed to load runtime image for architecture "arm64" from "b-arm64.tar": "#;
            assert!(error.starts_with(&format!("{attempted}{want}")), "{error}");
        }
    }
}
