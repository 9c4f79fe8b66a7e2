//! The kinds that protect objects from deletion.

use super::shape::{Shape, conditions, flag, kind, named, object, object_of_texts, text, texts};
use super::{Column, Definition, Version};

const GROUP: &str = "protection.crossplane.io";

pub(super) fn kinds() -> Vec<Definition> {
    vec![
        Definition {
            versions: vec![version("v1beta1", false)],
            ..usage(GROUP, "ClusterUsage", "clusterusages")
        },
        Definition {
            namespaced: true,
            versions: vec![version("v1beta1", true)],
            ..usage(GROUP, "Usage", "usages")
        },
    ]
}

/// The kind from which the others come.
pub(super) fn legacy_usage() -> Definition {
    let warning = "apiextensions.crossplane.io Usage is deprecated; migrate to protection.crossplane.io Usage or ClusterUsage";
    let version = |name| Version { deprecated: Some(warning), ..version(name, false) };
    Definition {
        versions: vec![version("v1alpha1"), version("v1beta1")],
        ..usage("apiextensions.crossplane.io", "Usage", "usages")
    }
}

fn usage(group: &'static str, kind: &'static str, plural: &'static str) -> Definition {
    Definition {
        group,
        kind,
        plural,
        short_names: &[],
        categories: &["crossplane"],
        namespaced: false,
        versions: Vec::new(),
    }
}

/// One end of a usage: an object, or those with some labels.
fn end(reference: Shape, selector: Shape) -> Shape {
    object_of_texts(["apiVersion", "kind"])
        .and([("resourceRef", reference), ("resourceSelector", selector)])
        .rule(
            "has(self.resourceRef) || has(self.resourceSelector)",
            "either a resource reference or a resource selector should be set.",
        )
}

fn selector() -> Shape {
    object([("matchLabels", texts()), ("matchControllerRef", flag())])
}

fn version(name: &'static str, namespaced: bool) -> Version {
    let by = end(named(), selector());
    let of = if namespaced {
        let elsewhere = || [("namespace", text())];
        end(named().and(elsewhere()), selector().and(elsewhere()))
    } else {
        by.clone()
    };
    let mut spec =
        object([("of*", of), ("by", by), ("reason", text()), ("replayDeletion", flag())]).rule(
            "has(self.by) || has(self.reason)",
            "either \"spec.by\" or \"spec.reason\" must be specified.",
        );
    if namespaced {
        spec = spec.rule(
            "has(self.by) || (!has(self.of.resourceRef) || !has(self.of.resourceRef.__namespace__)) && (!has(self.of.resourceSelector) || !has(self.of.resourceSelector.__namespace__))",
            "cross-namespace \"spec.of\" is not allowed without \"spec.by\" resource.",
        );
    }
    let columns = vec![
        Column::text("DETAILS", r".metadata.annotations.crossplane\.io/usage-details"),
        Column::condition("READY", "Ready"),
        Column::age(),
    ];
    let status = object([("conditions", conditions())]);
    let fields = [("spec*", spec), ("status", status)];
    let schema = kind("Keeps an object from being deleted while it is in use.", fields);
    Version::new(name, columns, true, schema)
}
