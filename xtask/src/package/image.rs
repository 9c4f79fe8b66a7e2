//! Builds an image of two layers: the program, and the package that a control plane reads.

use std::fmt::Write as _;

use anyhow::Result;
use flate2::Compression;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::tar::{File, archive, gzip};

/// The annotation of the layer that holds the package.
const MARK: &str = "io.crossplane.xpkg";

pub(super) struct Image {
    name: String,
    layers: Vec<Layer>,
    config: Vec<u8>,
}

struct Layer {
    /// Digest of the archive before it was compressed.
    plain: String,
    compressed: Vec<u8>,
    annotations: Value,
}

impl Layer {
    fn new(file: File<'_>, annotations: Value) -> Result<Self> {
        // Without a date, so that the same files give the same image.
        let archive = archive(&[file], 0)?;
        let compressed = gzip(&archive, Compression::default())?;
        Ok(Self { plain: digest(&archive), compressed, annotations })
    }
}

impl Image {
    /// The image of a function.
    pub(super) fn new(function: &str, program: &[u8], package: &[u8]) -> Result<Self> {
        let program = File { name: "biplane", mode: 0o755, content: program };
        let package = File { name: "package.yaml", mode: 0o644, content: package };
        let layers =
            vec![Layer::new(program, json!({}))?, Layer::new(package, json!({MARK: "base"}))?];
        // Image archives cannot annotate layers. Programs that push the archive look for labels.
        let label = format!("{MARK}:{}", digest(&layers[1].compressed));
        let config = json!({
            "architecture": match std::env::consts::ARCH {
                "x86_64" => "amd64",
                "aarch64" => "arm64",
                other => other,
            },
            "os": "linux",
            "config": {
                "User": "2000:2000",
                "ExposedPorts": {"9443/tcp": {}},
                "Entrypoint": ["/biplane", "function", "serve", function],
                "Labels": {label: "base"},
            },
            "rootfs": {
                "type": "layers",
                "diff_ids": layers.iter().map(|layer| &layer.plain).collect::<Vec<_>>(),
            },
            "history": [{"created_by": "biplane"}, {"created_by": "package.yaml"}],
        });
        Ok(Self { name: function.to_owned(), layers, config: config.to_string().into_bytes() })
    }

    /// The image as a file that is both an OCI layout and a Docker archive.
    pub(super) fn archive(&self) -> Result<Vec<u8>> {
        const OCI: &str = "application/vnd.oci.image";
        let descriptor = |kind: &str, content: &[u8], annotations: &Value| {
            json!({
                "mediaType": format!("{OCI}.{kind}"), "digest": digest(content), "size": content.len(),
                "annotations": annotations,
            })
        };
        let layers: Vec<Value> = self
            .layers
            .iter()
            .map(|layer| descriptor("layer.v1.tar+gzip", &layer.compressed, &layer.annotations))
            .collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": format!("{OCI}.manifest.v1+json"),
            "config": descriptor("config.v1+json", &self.config, &json!({})),
            "layers": layers,
        });
        let manifest = manifest.to_string().into_bytes();
        let tag = json!({"org.opencontainers.image.ref.name": "latest"});
        let index = json!({
            "schemaVersion": 2,
            "manifests": [descriptor("manifest.v1+json", &manifest, &tag)],
        });
        let layout = json!({"imageLayoutVersion": "1.0.0"}).to_string();
        let blobs = self.layers.iter().map(|layer| layer.compressed.as_slice());
        let blobs: Vec<(String, &[u8])> = blobs
            .chain([self.config.as_slice(), manifest.as_slice()])
            .map(|blob| (path(blob), blob))
            .collect();
        let docker = json!([{
            "Config": path(&self.config),
            "RepoTags": [format!("{}:latest", self.name)],
            "Layers": self.layers.iter().map(|layer| path(&layer.compressed)).collect::<Vec<_>>(),
        }]);
        let (index, docker) = (index.to_string(), docker.to_string());
        let mut files = vec![
            ("oci-layout", layout.as_bytes()),
            ("index.json", index.as_bytes()),
            ("manifest.json", docker.as_bytes()),
        ];
        files.extend(blobs.iter().map(|(path, blob)| (path.as_str(), *blob)));
        let files: Vec<File<'_>> =
            files.iter().map(|&(name, content)| File { name, mode: 0o644, content }).collect();
        archive(&files, 0)
    }
}

fn path(blob: &[u8]) -> String {
    format!("blobs/sha256/{}", digest(blob).trim_start_matches("sha256:"))
}

fn digest(blob: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(blob) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
