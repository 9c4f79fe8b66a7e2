//! The kinds of `apiextensions.crossplane.io`: definitions, Compositions, environments, and what
//! older versions of Crossplane left there.

use super::pipeline;
use super::shape::{
    Shape, any_object, anything, choice, conditions, empty_object, flag, int32, int64, kind,
    label_selector, list, map, named, object, object_of_texts, text, texts, type_ref,
};
use super::{Column, Definition, Features, Version, protection};

const GROUP: &str = "apiextensions.crossplane.io";

pub(super) fn kinds(features: Features) -> Vec<Definition> {
    vec![
        definition(),
        composition(features),
        revision(features),
        environment_config(),
        managed_definition(),
        activation_policy(),
        protection::legacy_usage(),
    ]
}

fn cluster(
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
) -> Definition {
    Definition {
        group: GROUP,
        kind,
        plural,
        short_names,
        categories: &["crossplane"],
        namespaced: false,
        versions: Vec::new(),
    }
}

/// The names of a kind.
fn names() -> Shape {
    object([
        ("kind*", text()),
        ("plural*", text()),
        ("singular", text()),
        ("listKind", text()),
        ("shortNames", list(text()).atomic()),
        ("categories", list(text()).atomic()),
    ])
}

/// Names that stay, in lower case where an API server wants it.
fn checked_names() -> Shape {
    names()
        .immutable()
        .rule("self.plural == self.plural.lowerAscii()", "Plural name must be lowercase")
        .rule(
            "!has(self.singular) || self.singular == self.singular.lowerAscii()",
            "Singular name must be lowercase",
        )
}

/// The conversion of a CRD.
fn conversion() -> Shape {
    let service =
        object([("name*", text()), ("namespace*", text()), ("path", text()), ("port", int32())]);
    let client = object([
        ("caBundle", text().with("format", "byte")),
        ("service", service),
        ("url", text()),
    ]);
    let versions = list(text()).atomic();
    let webhook = object([("clientConfig", client), ("conversionReviewVersions*", versions)]);
    object([("strategy*", text()), ("webhook", webhook)])
}

fn printer_columns() -> Shape {
    list(object([
        ("name*", text()),
        ("type*", text()),
        ("jsonPath*", text()),
        ("format", text()),
        ("description", text()),
        ("priority", int32()),
    ]))
}

fn scale() -> Shape {
    object_of_texts(["specReplicasPath*", "statusReplicasPath*", "labelSelectorPath"])
}

fn users_schema() -> Shape {
    object([("openAPIV3Schema", any_object())])
}

fn definition() -> Definition {
    let columns = vec![
        Column::condition("ESTABLISHED", "Established"),
        Column::condition("OFFERED", "Offered"),
        Column::age(),
    ];
    let first = definition_spec()
        .and([
            ("claimNames", checked_names()),
            (
                "scope",
                choice(&["LegacyCluster", "Namespaced", "Cluster"])
                    .default("LegacyCluster")
                    .immutable(),
            ),
            ("defaultCompositeDeletePolicy", delete_policy().default("Background")),
            (
                "conversion",
                conversion().rule(
                    "self.strategy == 'Webhook' && has(self.webhook)",
                    "Webhook configuration is required when conversion strategy is Webhook",
                ),
            ),
        ])
        .rule(
            "self.scope == 'LegacyCluster' || !has(self.claimNames)",
            "Only LegacyCluster composite resources can offer claims",
        )
        .rule(
            "self.scope == 'LegacyCluster' || !has(self.connectionSecretKeys)",
            "Only LegacyCluster composite resources support connection secrets",
        );
    let second = definition_spec()
        .and([
            ("claimNames", names()),
            ("scope", choice(&["Namespaced", "Cluster"]).default("Namespaced").immutable()),
            ("defaultCompositeDeletePolicy", delete_policy()),
            ("conversion", conversion()),
        ])
        .rule("!has(self.claimNames)", "Claims aren't supported in apiextensions.crossplane.io/v2")
        .rule(
            "!has(self.connectionSecretKeys)",
            "XR connection secrets aren't supported in apiextensions.crossplane.io/v2",
        );
    let version = |name, spec| {
        let description = "Defines a kind of composite resources.";
        let schema = kind(description, [("spec", spec), ("status", definition_status())]);
        Version::new(name, columns.clone(), true, schema)
    };
    let warning = "CompositeResourceDefinition v1 is deprecated and will be removed in a future release; consider migrating to v2";
    Definition {
        versions: vec![
            Version { deprecated: Some(warning), ..version("v1", first) },
            version("v2", second),
        ],
        ..cluster("CompositeResourceDefinition", "compositeresourcedefinitions", &["xrd", "xrds"])
    }
}

fn delete_policy() -> Shape {
    choice(&["Background", "Foreground"])
}

/// What both versions of a definition have.
fn definition_spec() -> Shape {
    let version = object([
        ("name*", text()),
        ("referenceable*", flag()),
        ("served*", flag()),
        ("deprecated", flag()),
        ("deprecationWarning", text().with("maxLength", 256)),
        ("schema", users_schema()),
        ("additionalPrinterColumns", printer_columns()),
        ("subresources", object([("scale", scale())])),
    ]);
    object([
        ("group*", text().immutable()),
        ("names*", checked_names()),
        ("connectionSecretKeys", list(text())),
        ("defaultCompositionRef", named()),
        ("defaultCompositionRevisionSelector", label_selector()),
        ("defaultCompositionUpdatePolicy", choice(&["Automatic", "Manual"]).default("Automatic")),
        ("enforcedCompositionRef", named().immutable()),
        ("metadata", object([("labels", texts()), ("annotations", texts())])),
        ("versions*", list(version)),
    ])
}

fn definition_status() -> Shape {
    object([
        ("conditions", conditions()),
        (
            "controllers",
            object([
                ("compositeResourceType", type_ref()),
                ("compositeResourceClaimType", type_ref()),
            ]),
        ),
    ])
}

fn composition_columns() -> Vec<Column> {
    vec![
        Column::text("XR-KIND", ".spec.compositeTypeRef.kind"),
        Column::text("XR-APIVERSION", ".spec.compositeTypeRef.apiVersion"),
        Column::age(),
    ]
}

fn composition_spec(steps: Shape, features: Features) -> Shape {
    let mode = if features.resources_mode {
        // Without a mode, what a Composition has decides.
        choice(&["Resources", "Pipeline"])
    } else {
        pipeline::mode()
    };
    let mut spec = object([
        ("compositeTypeRef*", type_ref().immutable()),
        ("mode", mode),
        ("pipeline", steps),
        ("writeConnectionSecretsToNamespace", text()),
    ]);
    // The integrity rules check what is in these, when a Composition is used.
    if features.resources_mode {
        spec = spec.and([("patchSets", list(any_object())), ("resources", list(any_object()))]);
    }
    if features.environments {
        spec = spec.and([("environment", any_object())]);
    }
    spec
}

fn composition(features: Features) -> Definition {
    const NEEDS_STEPS: &str = "an array of pipeline steps is required in Pipeline mode";
    let spec = composition_spec(pipeline::some_steps(true), features);
    let spec = if features.resources_mode {
        spec.rule("!has(self.mode) || self.mode != 'Pipeline' || has(self.pipeline)", NEEDS_STEPS)
            .rule(
                "has(self.resources) || (has(self.mode) ? self.mode != 'Resources' : has(self.pipeline))",
                "an array of resources is required in Resources mode (the default if no mode is specified)",
            )
    } else {
        spec.rule("self.mode == 'Pipeline' && has(self.pipeline)", NEEDS_STEPS)
    };
    let schema = kind("Says what a kind of composite resources is composed of.", [("spec", spec)]);
    Definition {
        versions: vec![Version::new("v1", composition_columns(), false, schema)],
        ..cluster("Composition", "compositions", &["comp"])
    }
}

fn revision(features: Features) -> Definition {
    let spec = composition_spec(pipeline::steps(true), features).and([("revision*", int64())]);
    let status = object([("conditions", conditions())]);
    let schema = kind("One state of a Composition.", [("spec", spec), ("status", status)]);
    let mut columns = composition_columns();
    columns.insert(0, Column::text("REVISION", ".spec.revision"));
    Definition {
        versions: vec![Version::new("v1", columns, true, schema)],
        ..cluster("CompositionRevision", "compositionrevisions", &["comprev"])
    }
}

fn environment_config() -> Definition {
    let version = |name| {
        let schema = kind("Data that pipelines can use.", [("data", map(anything()))]);
        Version::new(name, vec![Column::age()], false, schema)
    };
    Definition {
        // Manifests of the first version are still around.
        versions: vec![version("v1beta1"), version("v1alpha1")],
        ..cluster("EnvironmentConfig", "environmentconfigs", &["envcfg"])
    }
}

fn managed_definition() -> Definition {
    let version = object([
        ("name*", text()),
        ("served*", flag()),
        ("storage*", flag()),
        ("deprecated", flag()),
        ("deprecationWarning", text()),
        ("schema", users_schema()),
        ("additionalPrinterColumns", printer_columns().atomic()),
        ("selectableFields", list(object_of_texts(["jsonPath*"])).atomic()),
        ("subresources", object([("scale", scale()), ("status", empty_object())])),
    ]);
    let state = choice(&["Active", "Inactive"]).default("Inactive").rule(
        "self == oldSelf || oldSelf != 'Active'",
        "state cannot be changed once it becomes Active",
    );
    let spec = object([
        ("connectionDetails", list(object_of_texts(["name*", "description*"]))),
        ("conversion", conversion()),
        ("group*", text().immutable()),
        ("names*", checked_names()),
        ("preserveUnknownFields", flag()),
        ("scope*", choice(&["Namespaced", "Cluster"]).default("Namespaced").immutable()),
        ("state", state),
        ("versions*", list(version).atomic()),
    ]);
    let status = object([("conditions", conditions())]);
    let schema = kind("Defines a kind of managed resources.", [("spec", spec), ("status", status)]);
    let columns = vec![
        Column::text("STATE", ".spec.state"),
        Column::condition("ESTABLISHED", "Established"),
        Column::age(),
    ];
    Definition {
        versions: vec![Version::new("v1alpha1", columns, true, schema)],
        ..cluster("ManagedResourceDefinition", "managedresourcedefinitions", &["mrd", "mrds"])
    }
}

fn activation_policy() -> Definition {
    let activate = list(text()).with("minItems", 1);
    let status = object([("activated", list(text())), ("conditions", conditions())]);
    let schema = kind(
        "Says which kinds of managed resources are served.",
        [("spec", object([("activate*", activate)])), ("status", status)],
    );
    Definition {
        versions: vec![Version::new("v1alpha1", vec![Column::age()], true, schema)],
        ..cluster("ManagedResourceActivationPolicy", "managedresourceactivationpolicies", &["mrap"])
    }
}
