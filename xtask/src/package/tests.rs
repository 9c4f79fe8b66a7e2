//! Tests of the content of packages, as other programs read it.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::*;

/// Unpacks an archive with the system's tar.
fn unpack(archive: &Path, into: &Path) {
    fs::create_dir_all(into).unwrap();
    let status = Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(into).status().unwrap();
    assert!(status.success(), "tar cannot read {}", archive.display());
}

fn json_file(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The smallest program that counts as static: only a header.
fn program() -> Vec<u8> {
    let mut program = b"\x7fELF\x02".to_vec();
    program.resize(64, 0);
    program
}

#[test]
fn a_package_is_an_image_for_docker_and_a_layout_with_a_marked_layer() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("biplane");
    fs::write(&binary, program()).unwrap();
    let out = folder.path().join("out");
    run(&crate::root(), Some(binary.clone()), &out).unwrap();

    let functions = [
        "function-auto-ready",
        "function-environment-configs",
        "function-go-templating",
        "function-patch-and-transform",
    ];
    let found: Vec<String> =
        sorted(&out).unwrap().iter().map(|p| p.display().to_string()).collect();
    assert_eq!(found, functions.map(|name| out.join(format!("{name}.xpkg")).display().to_string()));
    for function in functions {
        let image = folder.path().join(function);
        unpack(&out.join(format!("{function}.xpkg")), &image);

        // As Docker reads it.
        let docker = &json_file(image.join("manifest.json"))[0];
        assert_eq!(docker["RepoTags"], json!([format!("{function}:latest")]));
        let config = json_file(image.join(docker["Config"].as_str().unwrap()));
        let entry = json!(["/biplane", "function", "serve", function]);
        assert_eq!(config["config"]["Entrypoint"], entry);
        assert_eq!(config["config"]["User"], "2000:2000");
        let layers: Vec<&str> = docker["Layers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|layer| layer.as_str().unwrap())
            .collect();
        let root = folder.path().join(format!("{function}-files"));
        for layer in &layers {
            unpack(&image.join(layer), &root);
        }
        assert_eq!(fs::read(root.join("biplane")).unwrap(), program());

        // As a registry and its clients read it.
        assert_eq!(json_file(image.join("oci-layout")), json!({"imageLayoutVersion": "1.0.0"}));
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            let path = image.join("blobs").join(digest.replace(':', "/"));
            assert_eq!(fs::metadata(&path).unwrap().len(), descriptor["size"].as_u64().unwrap());
            let sum = Command::new("sha256sum").arg(&path).output().unwrap();
            let sum = String::from_utf8(sum.stdout).unwrap();
            assert_eq!(digest, format!("sha256:{}", sum.split(' ').next().unwrap()));
            path
        };
        let index = json_file(image.join("index.json"));
        let manifest = json_file(blob(&index["manifests"][0]));
        assert_eq!(json_file(blob(&manifest["config"])), config);
        let marked = &manifest["layers"][1];
        assert_eq!(marked["annotations"], json!({"io.crossplane.xpkg": "base"}));
        assert_eq!(blob(marked), image.join(layers[1]));
        let label = format!("io.crossplane.xpkg:{}", marked["digest"].as_str().unwrap());
        assert_eq!(config["config"]["Labels"], json!({label: "base"}));

        // The control plane reads the metadata first.
        let package = fs::read_to_string(root.join("package.yaml")).unwrap();
        let kinds: Vec<&str> = package.lines().filter(|line| line.starts_with("kind: ")).collect();
        assert_eq!(kinds, ["kind: Function", "kind: CustomResourceDefinition"]);
        assert_eq!(package.lines().filter(|line| *line == "---").count(), 2);
    }

    let first = fs::read(out.join("function-auto-ready.xpkg")).unwrap();
    run(&crate::root(), Some(binary), &out).unwrap();
    assert!(fs::read(out.join("function-auto-ready.xpkg")).unwrap() == first, "it varies");
}
