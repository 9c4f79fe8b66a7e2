//! The kinds of `pkg.crossplane.io`: packages, their revisions, and how they are run and verified.

use serde_json::json;

use super::runtime_config;
use super::shape::{
    Shape, choice, conditions, flag, int64, kind, list, local_reference, object, object_of_texts,
    text, texts,
};
use super::{Column, Definition, Version};

const GROUP: &str = "pkg.crossplane.io";
/// What the name of a package's image looks like.
const IMAGE: &str =
    r"self.matches('^[^\\.\\/]+(\\.[^\\.\\/]+)+(\\/[^\\/:@]+)+(:[^:@]+(@sha256.+)?|@sha256.+)$')";
const NOT_AN_IMAGE: &str = "must be a fully qualified image name, including the registry, repository, and tag or digest. For example, 'registry.example.com/repo/package:tag' or 'registry.example.com/repo/package[:tag]@sha256:1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef'.";

pub(super) fn kinds() -> Vec<Definition> {
    vec![
        package(Type::Function, "Function", "functions", "A package with a function."),
        package(Type::Provider, "Provider", "providers", "A package with a provider."),
        package(
            Type::Configuration,
            "Configuration",
            "configurations",
            "A package with definitions and Compositions.",
        ),
        revision(Type::Function, "FunctionRevision", "functionrevisions"),
        revision(Type::Provider, "ProviderRevision", "providerrevisions"),
        revision(Type::Configuration, "ConfigurationRevision", "configurationrevisions"),
        Definition {
            versions: vec![Version::new(
                "v1beta1",
                vec![Column::age()],
                false,
                runtime_config::schema(),
            )],
            ..cluster("DeploymentRuntimeConfig", "deploymentruntimeconfigs", &["crossplane"])
        },
        Definition {
            versions: vec![Version::new("v1beta1", vec![Column::age()], false, image_config())],
            ..cluster("ImageConfig", "imageconfigs", &["crossplane"])
        },
        Definition {
            versions: vec![Version::new("v1beta1", vec![Column::age()], true, lock())],
            ..cluster("Lock", "locks", &[])
        },
    ]
}

/// What is in a package.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Configuration,
    Function,
    Provider,
}

impl Type {
    /// Whether a process belongs to it.
    fn runs(self) -> bool {
        self != Self::Configuration
    }

    /// The versions of its kinds. The first one is stored.
    fn versions(self) -> &'static [&'static str] {
        if self == Self::Function { &["v1", "v1beta1"] } else { &["v1"] }
    }
}

fn cluster(
    kind: &'static str,
    plural: &'static str,
    categories: &'static [&'static str],
) -> Definition {
    Definition {
        group: GROUP,
        kind,
        plural,
        short_names: &[],
        categories,
        namespaced: false,
        versions: Vec::new(),
    }
}

/// A reference to how a package is run. `DeploymentRuntimeConfig` is the usual kind.
fn runtime_config_ref() -> Shape {
    object([
        ("apiVersion", text().default("pkg.crossplane.io/v1beta1")),
        ("kind", text().default("DeploymentRuntimeConfig")),
        ("name*", text()),
    ])
}

/// What packages and their revisions have.
fn common_spec(r#type: Type) -> Shape {
    let spec = object([
        ("commonAnnotations", texts()),
        ("commonLabels", texts()),
        ("ignoreCrossplaneConstraints", flag().default(false)),
        ("packagePullPolicy", text().default("IfNotPresent")),
        ("packagePullSecrets", list(local_reference())),
        ("skipDependencyResolution", flag().default(false)),
    ]);
    if r#type.runs() {
        let reference = runtime_config_ref().default(json!({"name": "default"}));
        return spec.and([("runtimeConfigRef", reference)]);
    }
    spec
}

fn common_status() -> Shape {
    object([
        ("appliedImageConfigRefs", list(object_of_texts(["name*", "reason*"]))),
        ("conditions", conditions()),
    ])
}

fn package(
    r#type: Type,
    kind_name: &'static str,
    plural: &'static str,
    description: &str,
) -> Definition {
    let spec = common_spec(r#type).and([
        ("package*", text().rule(IMAGE, NOT_AN_IMAGE)),
        ("revisionActivationPolicy", text().default("Automatic")),
        ("revisionHistoryLimit", int64().default(1)),
    ]);
    let status = common_status().and([
        ("currentIdentifier", text()),
        ("currentRevision", text()),
        ("resolvedPackage", text()),
    ]);
    let schema = kind(description, [("spec", spec), ("status", status)]);
    let columns = vec![
        Column::condition("INSTALLED", "Installed"),
        Column::condition("HEALTHY", "Healthy"),
        Column::text("PACKAGE", ".spec.package"),
        Column::age(),
    ];
    let version = |name: &&'static str| Version::new(name, columns.clone(), true, schema.clone());
    Definition {
        versions: r#type.versions().iter().map(version).collect(),
        ..cluster(kind_name, plural, &["crossplane", "pkg"])
    }
}

fn revision(r#type: Type, kind_name: &'static str, plural: &'static str) -> Definition {
    let mut spec = common_spec(r#type).and([
        ("desiredState*", text()),
        ("image*", text()),
        ("revision*", int64()),
    ]);
    let reference = object_of_texts(["apiVersion*", "kind*", "name*", "uid"]);
    let mut status = common_status().and([
        ("capabilities", list(text())),
        ("foundDependencies", int64()),
        ("installedDependencies", int64()),
        ("invalidDependencies", int64()),
        ("objectRefs", list(reference)),
        ("resolvedImage", text()),
    ]);
    let mut columns = vec![Column::condition("HEALTHY", "RevisionHealthy")];
    if r#type.runs() {
        let secrets = || [("tlsClientSecretName", text()), ("tlsServerSecretName", text())];
        spec = spec.and(secrets());
        status = status.and(secrets());
        columns.push(Column::condition("RUNTIME-HEALTHY", "RuntimeHealthy"));
        columns.push(Column::condition("RUNTIME-ACTIVE", "RuntimeActive"));
    }
    if r#type == Type::Function {
        status = status.and([("endpoint", text())]);
    }
    columns.extend([
        Column::text("IMAGE", ".spec.image"),
        Column::text("STATE", ".spec.desiredState"),
        Column::age(),
        Column::text("REVISION", ".spec.revision").wide(),
        Column::text("DEP-FOUND", ".status.foundDependencies").wide(),
        Column::text("DEP-INSTALLED", ".status.installedDependencies").wide(),
    ]);
    let schema = kind("One version of a package.", [("spec", spec), ("status", status)]);
    let version = |name: &&'static str| Version::new(name, columns.clone(), true, schema.clone());
    Definition {
        versions: r#type.versions().iter().map(version).collect(),
        ..cluster(kind_name, plural, &["crossplane", "pkgrev"])
    }
}

fn image_config() -> Shape {
    let image = object([("prefix*", text()), ("type", choice(&["Prefix"]).default("Prefix"))]);
    let images =
        list(image).rule("size(self) > 0", "matchImages should have at least one element.");
    let secret = object([("pullSecretRef*", local_reference())]);
    let spec = object([
        ("matchImages*", images),
        ("registry", object([("authentication", secret)])),
        ("rewriteImage", object_of_texts(["prefix*"])),
        ("runtime", object([("configRef", runtime_config_ref())])),
        ("verification", verification()),
    ]);
    kind("How images of packages are pulled, verified and run.", [("spec", spec)])
}

fn verification() -> Shape {
    let key = object([
        ("hashAlgorithm*", text().default("sha256")),
        ("secretRef*", object_of_texts(["key*", "name*"])),
    ]);
    let identity = object_of_texts(["issuer", "issuerRegExp", "subject", "subjectRegExp"]);
    let keyless = object([("identities*", list(identity)), ("insecureIgnoreSCT", flag())]);
    let authority = object([
        ("name*", text()),
        ("attestations", list(object_of_texts(["name*", "predicateType*"]))),
        ("key", key),
        ("keyless", keyless),
    ]);
    let cosign = object([("authorities*", list(authority))]);
    object([("provider*", choice(&["Cosign"])), ("cosign", cosign)])
}

fn lock() -> Shape {
    let r#type = || choice(&["Configuration", "Provider", "Function"]);
    let dependency = object([
        ("apiVersion", text()),
        ("constraints*", text()),
        ("kind", text()),
        ("package*", text()),
        ("type", r#type()),
    ]);
    let package = object([
        ("apiVersion", text()),
        ("dependencies*", list(dependency)),
        ("kind", text()),
        ("name*", text()),
        ("source*", text()),
        ("type", r#type()),
        ("version*", text()),
    ]);
    let status = object([("conditions", conditions())]);
    kind(
        "The packages that are installed, and their dependencies.",
        [("packages", list(package)), ("status", status)],
    )
}
