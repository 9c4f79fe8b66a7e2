//! Downloads what a package holds: its description of itself, and its schemas.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use flate2::read::MultiGzDecoder;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::manifest::OciDescriptor;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use serde_json::Value;

use crate::credentials;
use crate::registry::{CONNECT_TIMEOUT, READ_TIMEOUT, auth, is_loopback};

/// What a package holds.
#[derive(Debug, Default)]
pub struct Contents {
    /// The first document: what the package says about itself.
    pub meta: String,
    /// The documents with schemas.
    pub schemas: Vec<String>,
}

/// The largest text of schemas that is taken from an image.
const LARGEST: u64 = 256 << 20;

/// The label of the layer with the package.
const LABEL: &str = "io.crossplane.xpkg:";

/// Downloads a package. The caller may be inside an asynchronous runtime.
pub fn download(image: &str, auth_file: Option<&Path>, limit: Duration) -> Result<Contents> {
    let download = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let found = runtime.block_on(async {
            match tokio::time::timeout(limit, fetch(image, auth_file)).await {
                Ok(found) => found,
                Err(_) => bail!("context deadline exceeded"),
            }
        });
        runtime.shutdown_background();
        found
    };
    std::thread::scope(|scope| scope.spawn(download).join())
        .map_err(|_| anyhow!("downloading the package ended early"))?
}

async fn fetch(image: &str, auth_file: Option<&Path>) -> Result<Contents> {
    let invalid =
        || anyhow!("invalid image reference: {image}: could not parse reference: {image}");
    let reference: Reference = image.parse().map_err(|_| invalid())?;
    let registry = reference.registry().to_owned();
    // Fails if a provider is installed already; every caller installs the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let protocol =
        if is_loopback(&registry) { ClientProtocol::Http } else { ClientProtocol::Https };
    let client = Client::try_from(ClientConfig {
        protocol,
        connect_timeout: Some(CONNECT_TIMEOUT),
        read_timeout: Some(READ_TIMEOUT),
        ..ClientConfig::default()
    })?;
    let login = match credentials::find(auth_file, &registry).await {
        Ok(Some(found)) => auth(found),
        _ => RegistryAuth::Anonymous,
    };
    let (manifest, _, config) =
        client.pull_manifest_and_config(&reference, &login).await.context("cannot get config")?;
    let labels = labels(&config)?;
    let base = labels.iter().find(|(_, value)| value.as_str() == "base");
    let digest = base.and_then(|(label, _)| label.strip_prefix(LABEL));
    if let Some(digest) = digest {
        let layer = manifest.layers.iter().find(|layer| layer.digest == digest);
        let layer = layer.ok_or_else(|| anyhow!("cannot find base layer {digest}"))?;
        let text = package(&client, &reference, layer).await?;
        return Ok(split(&text));
    }
    let mut schemas = Vec::new();
    for layer in &manifest.layers {
        let blob = blob(&client, &reference, layer).await?;
        each_file(&blob, &mut |path, text| {
            if path.contains("/crds/") {
                schemas.push(text);
            }
        })?;
    }
    Ok(Contents { meta: String::new(), schemas })
}

fn labels(config: &str) -> Result<BTreeMap<String, String>> {
    let config: Value = serde_json::from_str(config).context("cannot get config")?;
    let labels = config.get("config").and_then(|config| config.get("Labels"));
    let Some(labels) = labels.and_then(Value::as_object) else {
        bail!("cannot get image labels");
    };
    let text = |(name, value): (&String, &Value)| {
        (name.clone(), value.as_str().unwrap_or_default().to_owned())
    };
    Ok(labels.iter().map(text).collect())
}

async fn blob(client: &Client, image: &Reference, layer: &OciDescriptor) -> Result<Vec<u8>> {
    let mut blob = Vec::new();
    client.pull_blob(image, layer, &mut blob).await.context("cannot get layer")?;
    Ok(blob)
}

async fn package(client: &Client, image: &Reference, layer: &OciDescriptor) -> Result<String> {
    let blob = blob(client, image, layer).await?;
    let mut found = None;
    each_file(&blob, &mut |path, text| {
        if path.trim_start_matches("./").trim_start_matches('/') == "package.yaml" {
            found = Some(text);
        }
    })?;
    found.ok_or_else(|| anyhow!("cannot extract layer: there is no package.yaml in it"))
}

/// Calls `see` with every regular file of a layer, which may be compressed.
fn each_file(blob: &[u8], see: &mut dyn FnMut(&str, String)) -> Result<()> {
    let compressed = blob.starts_with(&[0x1f, 0x8b]);
    let reader: Box<dyn std::io::Read> =
        if compressed { Box::new(MultiGzDecoder::new(blob)) } else { Box::new(blob) };
    let mut archive = tar::Archive::new(reader.take(LARGEST));
    for entry in archive.entries().context("cannot extract layer")? {
        let mut entry = entry.context("cannot extract layer")?;
        let path = entry.path().context("cannot extract layer")?;
        let path = format!("/{}", path.to_string_lossy().trim_start_matches("./"));
        let is_yaml = matches!(path.rsplit_once('.'), Some((_, "yaml")));
        if !is_yaml || !entry.header().entry_type().is_file() {
            continue;
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).context("cannot extract layer")?;
        see(&path, String::from_utf8_lossy(&bytes).into_owned());
    }
    Ok(())
}

/// The first document describes the package, the others are its schemas.
fn split(text: &str) -> Contents {
    let mut documents: Vec<String> = vec![String::new()];
    for line in text.lines() {
        if line.starts_with("---") {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    let mut documents = documents.into_iter().filter(|document| !document.trim().is_empty());
    let meta = documents.next().unwrap_or_default();
    Contents { meta, schemas: documents.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_document_is_about_the_package() {
        let found = split("---\nkind: Provider\n---\nkind: A\n---\n\n---\nkind: B\n");
        assert_eq!(found.meta, "kind: Provider\n");
        assert_eq!(found.schemas, ["kind: A\n", "kind: B\n"]);
    }

    #[test]
    fn files_are_found_in_plain_and_compressed_layers() {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(8);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, "crds/a.yaml", &b"kind: A\n"[..]).unwrap();
        let plain = archive.into_inner().unwrap();
        let mut packed =
            flate2::read::GzEncoder::new(plain.as_slice(), flate2::Compression::fast());
        let mut compressed = Vec::new();
        packed.read_to_end(&mut compressed).unwrap();
        for layer in [plain.clone(), compressed] {
            let mut found = Vec::new();
            each_file(&layer, &mut |path, text| found.push((path.to_owned(), text))).unwrap();
            assert_eq!(found, [("/crds/a.yaml".to_owned(), "kind: A\n".to_owned())]);
        }
    }
}
