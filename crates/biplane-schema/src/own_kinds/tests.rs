//! Tests of the control plane's own kinds: that all are there, with their columns, and that their
//! schemas are sound.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::structural::Schema;

/// Plural and group, kind, short names, scope, versions with the stored one first, whether there is
/// a status, and columns, wide ones in brackets.
const CATALOGUE: &str = "
compositeresourcedefinitions.apiextensions.crossplane.io | CompositeResourceDefinition | xrd xrds | Cluster | v1 v2 | status | ESTABLISHED OFFERED AGE
compositions.apiextensions.crossplane.io | Composition | comp | Cluster | v1 |  | XR-KIND XR-APIVERSION AGE
compositionrevisions.apiextensions.crossplane.io | CompositionRevision | comprev | Cluster | v1 | status | REVISION XR-KIND XR-APIVERSION AGE
environmentconfigs.apiextensions.crossplane.io | EnvironmentConfig | envcfg | Cluster | v1beta1 v1alpha1 |  | AGE
managedresourcedefinitions.apiextensions.crossplane.io | ManagedResourceDefinition | mrd mrds | Cluster | v1alpha1 | status | STATE ESTABLISHED AGE
managedresourceactivationpolicies.apiextensions.crossplane.io | ManagedResourceActivationPolicy | mrap | Cluster | v1alpha1 | status | AGE
usages.apiextensions.crossplane.io | Usage |  | Cluster | v1alpha1 v1beta1 | status | DETAILS READY AGE
usages.protection.crossplane.io | Usage |  | Namespaced | v1beta1 | status | DETAILS READY AGE
clusterusages.protection.crossplane.io | ClusterUsage |  | Cluster | v1beta1 | status | DETAILS READY AGE
functions.pkg.crossplane.io | Function |  | Cluster | v1 v1beta1 | status | INSTALLED HEALTHY PACKAGE AGE
providers.pkg.crossplane.io | Provider |  | Cluster | v1 | status | INSTALLED HEALTHY PACKAGE AGE
configurations.pkg.crossplane.io | Configuration |  | Cluster | v1 | status | INSTALLED HEALTHY PACKAGE AGE
functionrevisions.pkg.crossplane.io | FunctionRevision |  | Cluster | v1 v1beta1 | status | HEALTHY RUNTIME-HEALTHY RUNTIME-ACTIVE IMAGE STATE AGE (REVISION) (DEP-FOUND) (DEP-INSTALLED)
providerrevisions.pkg.crossplane.io | ProviderRevision |  | Cluster | v1 | status | HEALTHY RUNTIME-HEALTHY RUNTIME-ACTIVE IMAGE STATE AGE (REVISION) (DEP-FOUND) (DEP-INSTALLED)
configurationrevisions.pkg.crossplane.io | ConfigurationRevision |  | Cluster | v1 | status | HEALTHY IMAGE STATE AGE (REVISION) (DEP-FOUND) (DEP-INSTALLED)
deploymentruntimeconfigs.pkg.crossplane.io | DeploymentRuntimeConfig |  | Cluster | v1beta1 |  | AGE
imageconfigs.pkg.crossplane.io | ImageConfig |  | Cluster | v1beta1 |  | AGE
locks.pkg.crossplane.io | Lock |  | Cluster | v1beta1 | status | AGE
operations.ops.crossplane.io | Operation | ops | Cluster | v1alpha1 | status | SYNCED SUCCEEDED AGE
cronoperations.ops.crossplane.io | CronOperation | cronops | Cluster | v1alpha1 | status | SCHEDULE SYNCED SCHEDULING LAST_SCHEDULE LAST_SUCCESS AGE
watchoperations.ops.crossplane.io | WatchOperation | watchops | Cluster | v1alpha1 | status | KIND COUNT SYNCED WATCHING LAST_SCHEDULE LAST_SUCCESS AGE
";

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
    let shown = definitions().into_iter().map(|crd| {
        let names = |field| crd.at(&["spec", "names", field]);
        let versions = versions(&crd);
        let mut columns = BTreeSet::new();
        for (index, version) in versions.iter().enumerate() {
            assert_eq!(version["storage"], index == 0, "{}", crd.name());
            let all = version["additionalPrinterColumns"].as_array().unwrap().iter();
            let all = all.map(|column| {
                let name = column["name"].as_str().unwrap().replace(' ', "_");
                if column.get("priority").is_some() { format!("({name})") } else { name }
            });
            let status = version["subresources"].get("status").map_or("", |_| "status");
            columns.insert(format!("{status} | {}", all.collect::<Vec<_>>().join(" ")));
        }
        assert_eq!(columns.len(), 1, "all versions of {} show the same", crd.name());
        let versions: Vec<_> = versions.iter().map(|v| v["name"].as_str().unwrap()).collect();
        format!(
            "{} | {} | {} | {} | {} | {}",
            crd.name(),
            names("kind").and_then(Value::as_str).unwrap(),
            words(names("shortNames")),
            crd.str_at(&["spec", "scope"]),
            versions.join(" "),
            columns.first().unwrap(),
        )
    });
    let shown: BTreeSet<_> = shown.collect();
    let want: BTreeSet<_> =
        CATALOGUE.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    assert_eq!(shown, want);
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
            kind if group == "pkg.crossplane.io" && kind.ends_with("Revision") => {
                "crossplane pkgrev"
            }
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
    assert_eq!(
        ports["items"]["properties"]["protocol"],
        json!({"type": "string", "default": "TCP"})
    );
    let limits = pod.pointer("/properties/containers/items/properties/resources/properties/limits");
    assert_eq!(limits.unwrap()["additionalProperties"]["x-kubernetes-int-or-string"], true);
    let tolerations = pod.pointer("/properties/tolerations").unwrap();
    assert_eq!(tolerations["x-kubernetes-list-type"], "atomic");
}
