//! Tests of the control plane's own kinds: that all are there, with their columns, and that their
//! schemas are sound.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::structural::Schema;

/// Group, kind, plural, short names, scope, versions with the stored one first, whether there is a
/// status, and columns, wide ones in brackets.
const CATALOGUE: &[(&str, &str, &str, &str, &str, &str, bool, &str)] = &[
    ("apiextensions.crossplane.io", "CompositeResourceDefinition", "compositeresourcedefinitions", "xrd xrds", "Cluster", "v1 v2", true, "ESTABLISHED OFFERED AGE"),
    ("apiextensions.crossplane.io", "Composition", "compositions", "comp", "Cluster", "v1", false, "XR-KIND XR-APIVERSION AGE"),
    ("apiextensions.crossplane.io", "CompositionRevision", "compositionrevisions", "comprev", "Cluster", "v1", true, "REVISION XR-KIND XR-APIVERSION AGE"),
    ("apiextensions.crossplane.io", "EnvironmentConfig", "environmentconfigs", "envcfg", "Cluster", "v1beta1 v1alpha1", false, "AGE"),
    ("apiextensions.crossplane.io", "ManagedResourceDefinition", "managedresourcedefinitions", "mrd mrds", "Cluster", "v1alpha1", true, "STATE ESTABLISHED AGE"),
    ("apiextensions.crossplane.io", "ManagedResourceActivationPolicy", "managedresourceactivationpolicies", "mrap", "Cluster", "v1alpha1", true, "AGE"),
    ("apiextensions.crossplane.io", "Usage", "usages", "", "Cluster", "v1alpha1 v1beta1", true, "DETAILS READY AGE"),
    ("protection.crossplane.io", "Usage", "usages", "", "Namespaced", "v1beta1", true, "DETAILS READY AGE"),
    ("protection.crossplane.io", "ClusterUsage", "clusterusages", "", "Cluster", "v1beta1", true, "DETAILS READY AGE"),
    ("pkg.crossplane.io", "Function", "functions", "", "Cluster", "v1 v1beta1", true, "INSTALLED HEALTHY PACKAGE AGE"),
    ("pkg.crossplane.io", "Provider", "providers", "", "Cluster", "v1", true, "INSTALLED HEALTHY PACKAGE AGE"),
    ("pkg.crossplane.io", "Configuration", "configurations", "", "Cluster", "v1", true, "INSTALLED HEALTHY PACKAGE AGE"),
    ("pkg.crossplane.io", "FunctionRevision", "functionrevisions", "", "Cluster", "v1 v1beta1", true, "HEALTHY RUNTIME-HEALTHY RUNTIME-ACTIVE IMAGE STATE AGE (REVISION) (DEP-FOUND) (DEP-INSTALLED)"),
    ("pkg.crossplane.io", "ProviderRevision", "providerrevisions", "", "Cluster", "v1", true, "HEALTHY RUNTIME-HEALTHY RUNTIME-ACTIVE IMAGE STATE AGE (REVISION) (DEP-FOUND) (DEP-INSTALLED)"),
    ("pkg.crossplane.io", "ConfigurationRevision", "configurationrevisions", "", "Cluster", "v1", true, "HEALTHY IMAGE STATE AGE (REVISION) (DEP-FOUND) (DEP-INSTALLED)"),
    ("pkg.crossplane.io", "DeploymentRuntimeConfig", "deploymentruntimeconfigs", "", "Cluster", "v1beta1", false, "AGE"),
    ("pkg.crossplane.io", "ImageConfig", "imageconfigs", "", "Cluster", "v1beta1", false, "AGE"),
    ("pkg.crossplane.io", "Lock", "locks", "", "Cluster", "v1beta1", true, "AGE"),
    ("ops.crossplane.io", "Operation", "operations", "ops", "Cluster", "v1alpha1", true, "SYNCED SUCCEEDED AGE"),
    ("ops.crossplane.io", "CronOperation", "cronoperations", "cronops", "Cluster", "v1alpha1", true, "SCHEDULE SYNCED SCHEDULING LAST_SCHEDULE LAST_SUCCESS AGE"),
    ("ops.crossplane.io", "WatchOperation", "watchoperations", "watchops", "Cluster", "v1alpha1", true, "KIND COUNT SYNCED WATCHING LAST_SCHEDULE LAST_SUCCESS AGE"),
];

fn versions(crd: &Object) -> &[Value] {
    crd.at(&["spec", "versions"]).and_then(Value::as_array).map(Vec::as_slice).unwrap()
}

fn words(list: Option<&Value>) -> String {
    let list = list.and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

/// API-1, API-2, API-3
#[test]
fn all_kinds_are_there_with_their_columns() {
    let all = definitions();
    let names: BTreeSet<_> = all.iter().map(|crd| crd.name().to_owned()).collect();
    let want: BTreeSet<_> = CATALOGUE.iter().map(|kind| format!("{}.{}", kind.2, kind.0)).collect();
    assert_eq!(names, want);
    for (group, kind, plural, short, scope, named, status, columns) in CATALOGUE {
        let crd = all.iter().find(|c| c.name() == format!("{plural}.{group}")).unwrap();
        assert_eq!(crd.str_at(&["spec", "names", "kind"]), *kind);
        assert_eq!(words(crd.at(&["spec", "names", "shortNames"])), *short);
        assert_eq!(crd.str_at(&["spec", "scope"]), *scope);
        let versions = versions(crd);
        let got: Vec<_> = versions.iter().map(|v| v["name"].as_str().unwrap()).collect();
        assert_eq!(got.join(" "), *named);
        for (index, version) in versions.iter().enumerate() {
            assert_eq!(version["storage"], index == 0, "{kind}");
            assert_eq!(version["subresources"].get("status").is_some(), *status, "{kind}");
            let shown = version["additionalPrinterColumns"].as_array().unwrap().iter().map(|column| {
                let name = column["name"].as_str().unwrap().replace(' ', "_");
                if column.get("priority").is_some() { format!("({name})") } else { name }
            });
            assert_eq!(shown.collect::<Vec<_>>().join(" "), *columns, "{kind}");
        }
    }
}

#[test]
fn categories_find_packages_and_revisions() {
    for crd in definitions() {
        let (kind, group) =
            (crd.str_at(&["spec", "names", "kind"]), crd.str_at(&["spec", "group"]));
        let package = ["Function", "Provider", "Configuration"];
        let want = match kind {
            "Lock" => "",
            kind if package.contains(&kind) => "crossplane pkg",
            kind if group == "pkg.crossplane.io" && kind.ends_with("Revision") => "crossplane pkgrev",
            _ => "crossplane",
        };
        assert_eq!(words(crd.at(&["spec", "names", "categories"])), want, "{kind}");
    }
}

#[test]
fn every_schema_can_be_compiled() {
    for crd in definitions() {
        for version in versions(&crd) {
            let schema = Schema::parse(&version["schema"]["openAPIV3Schema"]);
            assert!(schema.is_ok(), "{}: {:?}", crd.name(), schema.err());
        }
    }
}

/// API-7: a definition of version 2 is stored as version 1, which has other defaults.
#[test]
fn both_versions_of_a_definition_have_their_own_defaults() {
    let all = definitions();
    let crd = all.iter().find(|c| c.name().starts_with("compositeresourcedefinitions")).unwrap();
    for (version, scope, policy) in
        [("v1", "LegacyCluster", Some("Background")), ("v2", "Namespaced", None)]
    {
        let found = versions(crd).iter().find(|v| v["name"] == version).unwrap();
        let schema = Schema::parse(&found["schema"]["openAPIV3Schema"]).unwrap();
        let mut definition = Object::from_value(json!({"spec": {}})).unwrap();
        schema.default(&mut definition);
        let field = |name| definition.at(&["spec", name]).and_then(Value::as_str);
        assert_eq!(field("scope"), Some(scope));
        assert_eq!(field("defaultCompositeDeletePolicy"), policy);
        assert_eq!(field("defaultCompositionUpdatePolicy"), Some("Automatic"));
    }
}

#[test]
fn a_runtime_config_has_the_fields_of_pods() {
    let all = definitions();
    let crd = all.iter().find(|c| c.name().starts_with("deploymentruntimeconfigs")).unwrap();
    let schema = &versions(crd)[0]["schema"]["openAPIV3Schema"];
    let pod = schema
        .pointer("/properties/spec/properties/deploymentTemplate/properties/spec/properties/template/properties/spec")
        .unwrap();
    assert_eq!(pod["required"], json!(["containers"]));
    let ports = pod.pointer("/properties/containers/items/properties/ports").unwrap();
    assert_eq!(ports["x-kubernetes-list-map-keys"], json!(["containerPort", "protocol"]));
    assert_eq!(ports["items"]["required"], json!(["containerPort"]));
    assert_eq!(ports["items"]["properties"]["protocol"], json!({"type": "string", "default": "TCP"}));
    let limits = pod.pointer("/properties/containers/items/properties/resources/properties/limits");
    assert_eq!(limits.unwrap()["additionalProperties"]["x-kubernetes-int-or-string"], true);
    let tolerations = pod.pointer("/properties/tolerations").unwrap();
    assert_eq!(tolerations["x-kubernetes-list-type"], "atomic");
}
