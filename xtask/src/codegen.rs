//! Generates the Rust code of the wire contracts in `proto/`, without `protoc`.

mod json;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use prost::Message;

/// Every contract, by its import path.
const FILES: &[&str] = &[
    "apiextensions/fn/v1/run_function.proto",
    "apiextensions/fn/v1beta1/run_function.proto",
    "biplane/cache/v1alpha1/cached_response.proto",
    "biplane/render/v1alpha1/render_service.proto",
    "changelogs/v1alpha1/changelog.proto",
    "crossplane/pipeline/v1alpha1/inspector.proto",
    "crossplane/pipelineinspector/v1alpha1/inspector.proto",
    "crossplane/render/v1alpha1/render.proto",
];

/// Packages that get a protobuf JSON form.
const JSON_PACKAGES: &[&str] = &[
    ".apiextensions.fn.proto.v1",
    ".changelogs.proto.v1alpha1",
    ".crossplane.pipeline.v1alpha1",
    ".crossplane.pipelineinspector.v1alpha1",
    ".crossplane.render.v1alpha1",
];

/// Writes the generated files. With `check` it fails if they are out of date.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    beta_follows_v1(root)?;
    let out = tempfile::tempdir()?;
    generate(&root.join("proto"), out.path())?;
    let target = root.join("crates/biplane-proto/src/generated");
    let fresh = listing(out.path())?;
    if check {
        if listing(&target)? != fresh {
            bail!(
                "generated code in {} is not current: run `cargo xtask codegen`",
                target.display()
            );
        }
        return Ok(());
    }
    std::fs::create_dir_all(&target)?;
    for (name, _) in listing(&target)? {
        std::fs::remove_file(target.join(name))?;
    }
    for (name, text) in fresh {
        std::fs::write(target.join(name), text)?;
    }
    Ok(())
}

/// Checks that both versions of the function protocol have the same messages.
fn beta_follows_v1(root: &Path) -> Result<()> {
    let body = |version: &str| -> Result<String> {
        let path = root.join(format!("proto/apiextensions/fn/{version}/run_function.proto"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(text.lines().filter(|l| !l.starts_with("//") && !l.starts_with("package ")).collect())
    };
    if body("v1")? != body("v1beta1")? {
        bail!("proto/apiextensions/fn/v1beta1 differs from v1 in more than its package");
    }
    Ok(())
}

fn generate(protos: &Path, out: &Path) -> Result<()> {
    let descriptors = protox::compile(FILES, [protos]).context("cannot compile proto/")?;
    // Reflection needs the descriptors at run time.
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    let mut config = tonic_prost_build::Config::new();
    config.out_dir(out).btree_map(["."]).extern_path(".google.protobuf.Struct", "crate::Struct");
    for name in ["Timestamp", "Duration"] {
        config.extern_path(format!(".google.protobuf.{name}"), format!("crate::{name}"));
    }
    for name in descriptors
        .file
        .iter()
        .filter(|f| f.package() == "apiextensions.fn.proto.v1beta1")
        .flat_map(|f| {
            f.message_type
                .iter()
                .map(prost_types::DescriptorProto::name)
                .chain(f.enum_type.iter().map(prost_types::EnumDescriptorProto::name))
        })
    {
        config.extern_path(
            format!(".apiextensions.fn.proto.v1beta1.{name}"),
            format!("crate::function::v1::{name}"),
        );
    }
    config.extern_path(".apiextensions.fn.proto.v1", "crate::function::v1");
    config.extern_path(".crossplane.render.v1alpha1", "crate::render::v1alpha1");
    // Packages behind an extern path are generated in a second pass.
    tonic_prost_build::configure()
        .out_dir(out)
        .compile_fds_with_config(descriptors.clone(), config)?;
    let mut own = tonic_prost_build::Config::new();
    own.out_dir(out).btree_map(["."]).extern_path(".google.protobuf.Struct", "crate::Struct");
    for name in ["Timestamp", "Duration"] {
        own.extern_path(format!(".google.protobuf.{name}"), format!("crate::{name}"));
    }
    let mut bare = descriptors.clone();
    bare.file.retain(|f| {
        matches!(f.package(), "apiextensions.fn.proto.v1" | "crossplane.render.v1alpha1")
            || f.package().starts_with("google.protobuf")
    });
    tonic_prost_build::configure().out_dir(out).compile_fds_with_config(bare, own)?;
    pbjson_build::Builder::new()
        .register_descriptors(&descriptors.encode_to_vec())?
        .out_dir(out)
        .btree_map(["."])
        .ignore_unknown_fields()
        .extern_path(".google.protobuf.Struct", "crate::Struct")
        .build(JSON_PACKAGES)?;
    for (name, text) in listing(out)? {
        if name.to_string_lossy().ends_with(".serde.rs") {
            std::fs::write(out.join(name), json::refine(&String::from_utf8(text)?)?)?;
        }
    }
    Ok(())
}

fn listing(dir: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    if dir.is_dir() {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            files.push((PathBuf::from(entry.file_name()), std::fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}
