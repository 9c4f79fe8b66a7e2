//! Tests of the places that schemas come from besides files: packages in a registry, and a cluster.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use biplane_devenv::ApiServer;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{CRD, THING};
use crate::support::{Folder, Ran, run};

/// What a request gets: a type and bytes.
type Answers = BTreeMap<String, (String, Vec<u8>)>;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A registry with packages, which remembers what was asked.
struct Packages {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

fn digest(bytes: &[u8]) -> String {
    let digits: Vec<String> =
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{}", digits.concat())
}

/// A layer with one file.
fn layer(path: &str, text: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_ustar();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, path, text.as_bytes()).unwrap();
    archive.into_inner().unwrap().finish().unwrap()
}

impl Packages {
    /// Serves packages: repository, tags, and the documents of `package.yaml`.
    fn start(packages: &[(&str, &[&str], &str)]) -> Self {
        let mut answers = Answers::new();
        let mut answer = |path: String, kind: &str, body: Vec<u8>| {
            answers.insert(path, (kind.to_owned(), body));
        };
        answer("/v2/".to_owned(), "application/json", b"{}".to_vec());
        for (repository, tags, text) in packages {
            let listed = json!({"name": repository, "tags": tags}).to_string();
            answer(format!("/v2/{repository}/tags/list"), "application/json", listed.into_bytes());
            let layer = layer("package.yaml", text);
            let label = format!("io.crossplane.xpkg:{}", digest(&layer));
            let labels = BTreeMap::from([(label, "base")]);
            let config = json!({
                "architecture": "amd64", "os": "linux", "config": {"Labels": labels},
                "rootfs": {"type": "layers", "diff_ids": []},
            });
            let config = config.to_string().into_bytes();
            let described = |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()});
            let manifest = json!({
                "schemaVersion": 2, "mediaType": MANIFEST,
                "config": described(CONFIG, &config), "layers": [described(LAYER, &layer)],
            });
            for tag in *tags {
                let path = format!("/v2/{repository}/manifests/{tag}");
                answer(path, MANIFEST, manifest.to_string().into_bytes());
            }
            for bytes in [config, layer] {
                let path = format!("/v2/{repository}/blobs/{}", digest(&bytes));
                answer(path, "application/octet-stream", bytes);
            }
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answers, seen) = (Arc::new(answers), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
                std::thread::spawn(move || reply(&stream.unwrap(), &answers, &seen));
            }
        });
        Self { address, asked }
    }

    /// What was asked since the last time, without the greeting.
    fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.retain(|path| path != "/v2/");
        asked
    }
}

fn reply(mut stream: &TcpStream, answers: &Answers, asked: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream).lines();
    let Some(Ok(request)) = lines.next() else { return };
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let path = request.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    asked.lock().unwrap().push(path.to_owned());
    let missing = ("application/json".to_owned(), b"{}".to_vec());
    let (status, (kind, body)) = match answers.get(path) {
        Some(known) => ("200 OK", known),
        None => ("404 Not Found", &missing),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let body: &[u8] = if request.starts_with("HEAD ") { &[] } else { body };
    // The program may have lost interest.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

fn package(kind: &str, depends_on: &Value) -> String {
    let meta = json!({
        "apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind, "metadata": {"name": "p"},
        "spec": {"dependsOn": depends_on},
    });
    format!("{meta}\n")
}

fn validate(folder: &Folder, extensions: &str, flags: &[&str]) -> Ran {
    let extensions = folder.write("extensions.yaml", extensions);
    let thing = folder.write("thing.yaml", THING);
    let cache = format!("--cache-dir={}", folder.at("cache").display());
    let line = ["validate", &extensions, &thing, "--crossplane-image=", &cache];
    run(&[&line, flags].concat())
}

const REFUSED: &str = "spec.size in body must be of type integer";

#[test]
fn schemas_of_packages_are_downloaded_once() {
    let provider = format!("{}---\n{CRD}", package("Provider", &json!([])));
    let registry = Packages::start(&[("org/provider", &["v1.0.0", "v1.2.0", "v2.0.0"], &provider)]);
    let folder = Folder::new();
    let extensions = |tag: &str| {
        let address = &registry.address;
        format!(
            "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {{name: p}}\nspec: {{package: '{address}/org/provider:{tag}'}}\n"
        )
    };
    let ran = validate(&folder, &extensions("v1.0.0"), &[]);
    assert_eq!(ran.exit, 1, "{ran:?}");
    assert!(ran.stdout.contains(REFUSED), "{ran:?}");
    let address = &registry.address;
    let told = format!("schemas does not exist, downloading:  {address}/org/provider:v1.0.0\n");
    assert!(ran.stderr.starts_with(&told), "{ran:?}");
    let asked = registry.asked();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert_eq!(asked[0], "/v2/org/provider/manifests/v1.0.0");

    // It is in the cache now.
    let again = validate(&folder, &extensions("v1.0.0"), &[]);
    assert_eq!((again.exit, again.stdout.as_str()), (1, ran.stdout.as_str()));
    assert_eq!(registry.asked(), [""; 0]);

    let updated = validate(&folder, &extensions("v1.0.0"), &["--update-cache"]);
    assert!(updated.stderr.starts_with("updating cached schemas:  "), "{updated:?}");
    assert_eq!(registry.asked().len(), 3);

    // The newest version of a range that is in the cache is enough; without one, the registry has it.
    let ranged = validate(&folder, &extensions(">=v1.0.0, <v2.0.0"), &[]);
    assert!(ranged.stdout.contains(REFUSED), "{ranged:?}");
    assert_eq!(registry.asked(), [""; 0]);
    let clean = validate(&folder, &extensions(">=v1.0.0, <v2.0.0"), &["--clean-cache"]);
    assert!(clean.stdout.contains(REFUSED), "{clean:?}");
    let asked = registry.asked();
    assert_eq!(asked[0], "/v2/org/provider/tags/list", "{asked:?}");
    assert!(asked.contains(&"/v2/org/provider/manifests/v1.2.0".to_owned()), "{asked:?}");
}

#[test]
fn a_configuration_brings_the_schemas_of_what_it_depends_on() {
    let provider = format!("{}---\n{CRD}", package("Provider", &json!([])));
    let registry = Packages::start(&[("org/provider", &["v1.0.0"], &provider)]);
    let address = registry.address.clone();
    let depends = json!([{"provider": format!("{address}/org/provider"), "version": "v1.0.0"}]);
    let configuration = package("Configuration", &depends);
    let second = Packages::start(&[("org/configuration", &["v0.1.0"], &configuration)]);
    let extensions = format!(
        "apiVersion: pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {{name: c}}\nspec: {{package: '{}/org/configuration:v0.1.0'}}\n",
        second.address
    );
    let folder = Folder::new();
    let ran = validate(&folder, &extensions, &[]);
    assert!(ran.stdout.contains(REFUSED), "{ran:?}");
    assert!(!second.asked().is_empty() && !registry.asked().is_empty());
}

#[test]
fn a_package_that_is_not_there_is_named() {
    let registry = Packages::start(&[]);
    let image = format!("{}/org/missing:v1.0.0", registry.address);
    let extensions = format!(
        "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {{name: p}}\nspec: {{package: '{image}'}}\n"
    );
    let ran = validate(&Folder::new(), &extensions, &[]);
    assert_eq!(ran.exit, 1, "{ran:?}");
    assert!(ran.stderr.contains(&format!("cannot download package {image}")), "{ran:?}");
}

#[test]
fn schemas_of_a_cluster_are_used_after_those_of_files() {
    let server = ApiServer::start().unwrap();
    let folder = Folder::new();
    let crd = folder.write("crd.yaml", CRD);
    let kubectl = |arguments: &[&str]| server.kubectl().unwrap().args(arguments).output().unwrap();
    let applied = kubectl(&["apply", "-f", &crd]);
    assert!(applied.status.success(), "{applied:?}");
    let kubeconfig = format!("--kubeconfig={}", server.kubeconfig.display());
    let nothing = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unused}\n";

    let without = validate(&folder, nothing, &[]);
    assert!(without.stdout.contains("could not find CRD/XRD for: x.org/v1, Kind=Thing"));
    let with = validate(&folder, nothing, &["--cluster", &kubeconfig]);
    assert_eq!(with.exit, 1, "{with:?}");
    assert!(with.stdout.contains(REFUSED), "{with:?}");

    // A definition in a file stands for what the cluster will have.
    let changed = CRD.replace("{type: integer}", "{type: string}");
    let changed = validate(&folder, &changed, &["--cluster", &kubeconfig]);
    assert!(!changed.stdout.contains(REFUSED), "{changed:?}");
    assert!(changed.stdout.contains("unknown field: \"colour\""), "{changed:?}");

    let missing = validate(&folder, nothing, &["--cluster", "--kubeconfig=/missing/kubeconfig"]);
    assert_eq!(missing.exit, 1);
    assert!(missing.stderr.contains("cannot get the schemas of the cluster"), "{missing:?}");
}
