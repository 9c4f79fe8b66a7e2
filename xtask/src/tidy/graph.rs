//! Checks dependencies between crates: levels within the workspace, bans outside of it.

use serde_json::Value;

/// A crate may use crates on lower levels. `ARCHITECTURE.md` explains them.
const LEVELS: &[(&str, u8)] = &[
    ("biplane-go", 0),
    ("biplane-model", 0),
    ("biplane-proto", 0),
    ("biplane-schema", 0),
    ("biplane-template", 0),
    ("biplane-cluster", 1),
    ("biplane-kube", 1),
    ("biplane-function", 1),
    ("biplane-console", 1),
    ("biplane-package", 1),
    ("biplane-patch", 1),
    ("biplane-runner", 1),
    ("biplane-engine", 2),
    ("biplane-functions", 2),
    ("biplane-controlplane", 3),
    ("biplane-convert", 3),
    ("biplane-devenv", 3),
    ("biplane-manifest", 3),
    ("biplane-pages", 3),
    ("biplane-recorder", 3),
    ("biplane-render", 3),
    ("biplane-runtime", 3),
    ("biplane-validate", 3),
    ("biplane", 4),
    ("biplane-testkit", TOOLS),
    ("xtask", TOOLS),
];

/// Tools may use every crate and are not shipped.
const TOOLS: u8 = 9;

/// Allowed dependencies within a level.
const SAME_LEVEL: &[(&str, &str)] = &[
    ("biplane-model", "biplane-go"),
    ("biplane-proto", "biplane-go"),
    ("biplane-proto", "biplane-model"),
    ("biplane-schema", "biplane-go"),
    ("biplane-schema", "biplane-model"),
    ("biplane-template", "biplane-go"),
    ("biplane-template", "biplane-model"),
    // `render` and the reconcilers use the port and compile no Kubernetes client.
    ("biplane-kube", "biplane-cluster"),
    // One runner calls functions in this process. Function authors need no runner.
    ("biplane-runner", "biplane-function"),
    // Patches spend the budget of a call.
    ("biplane-patch", "biplane-function"),
    // Pages show what the recorder answers.
    ("biplane-pages", "biplane-recorder"),
    // `render --until-stable` runs the controllers in memory.
    ("biplane-render", "biplane-controlplane"),
    ("biplane-render", "biplane-manifest"),
    ("biplane-validate", "biplane-manifest"),
    ("biplane-render", "biplane-runtime"),
    ("biplane-render", "biplane-validate"),
    // Webhooks judge as `validate` does.
    ("biplane-controlplane", "biplane-validate"),
];

/// Crates that only the listed crates may use directly. `deny.toml` has the same rules for
/// cargo-deny.
const BANS: &[(&str, &[&str])] = &[
    ("kube", &["biplane-kube"]),
    ("bollard", &["biplane", "biplane-runtime"]),
    ("oci-client", &["biplane-package"]),
    // Libraries take values, not command-line flags.
    (
        "clap",
        &[
            "biplane",
            "xtask",
            "clap_complete",
            "clap_mangen",
            "criterion",
            "libtest-mimic",
            "biplane-function",
        ],
    ),
    // TLS is always rustls.
    ("openssl-sys", &[]),
    // It makes keys. Whatever else needs a key is ring's.
    ("rsa", &["biplane-controlplane"]),
    ("rusqlite", &["biplane-recorder"]),
    ("tokio-postgres", &["biplane-recorder"]),
    // Unmaintained, and does not read YAML like Go.
    ("serde_yaml", &[]),
];

/// Exceptions from a ban, for tests and examples only.
const IN_TESTS: &[(&str, &str)] = &[("biplane-function", "clap")];

/// The dependencies that ship. Development dependencies are exempt from levels.
fn shipped(package: &Value) -> impl Iterator<Item = &str> {
    dependencies(package).filter(|d| d["kind"] != "dev").filter_map(|d| d["name"].as_str())
}

fn dependencies(package: &Value) -> impl Iterator<Item = &Value> {
    package["dependencies"].as_array().into_iter().flatten()
}

/// Every forbidden dependency.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Packages of the workspace have no registry as their source.
    let (own, foreign): (Vec<&Value>, Vec<&Value>) =
        packages.iter().partition(|p| p["source"].is_null());
    let mut findings: Vec<String> = own.iter().flat_map(|p| levels(p)).collect();
    let names: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    findings.extend(own.iter().chain(&foreign).flat_map(|p| bans(p, &names)));
    findings
}

fn levels(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some(level) = level(name) else {
        return vec![format!("{name}: has no level in xtask/src/tidy/graph.rs")];
    };
    shipped(package)
        .filter_map(|used| Some((used, self::level(used)?)))
        .filter(|&(used, below)| below >= level && !SAME_LEVEL.contains(&(name, used)))
        .filter(|_| level != TOOLS)
        .map(|(used, other)| format!("{name} (level {level}) must not use {used} (level {other})"))
        .collect()
}

fn level(name: &str) -> Option<u8> {
    LEVELS.iter().find(|(listed, _)| *listed == name).map(|(_, level)| *level)
}

/// `resolved` are the packages of the lock file. Optional dependencies that are not enabled do not
/// count.
fn bans(package: &Value, resolved: &[&str]) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let foreign = !package["source"].is_null();
    dependencies(package)
        // Development and optional dependencies of other crates do not count.
        .filter(|d| !(foreign && (d["kind"] == "dev" || d["optional"] == true)))
        .filter_map(|d| Some((d["name"].as_str()?, d["kind"] == "dev")))
        .filter(|(used, _)| resolved.contains(used))
        .filter_map(|(used, dev)| {
            BANS.iter().find(|(banned, _)| *banned == used).map(|ban| (ban, dev))
        })
        .filter(|((banned, users), dev)| {
            !users.contains(&name) || (!dev && IN_TESTS.contains(&(name, banned)))
        })
        .map(|(ban, _)| ban)
        .map(|(banned, users)| {
            let users = users.iter().filter(|user| !IN_TESTS.contains(&(**user, *banned)));
            let users: Vec<&str> = users.copied().collect();
            match users.as_slice() {
                [] => format!("{name}: uses {banned}, which is banned"),
                users => format!("{name}: uses {banned}, which only {} may", users.join(" and ")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    /// The violations of a workspace in which one crate uses another in the given way.
    fn check(user: &str, used: &str, kind: Option<&str>) -> Vec<String> {
        super::check(&json!({"packages": [
            {"name": user, "source": null,
             "dependencies": [{"name": used, "kind": kind, "optional": false}]},
            {"name": used, "source": if used.starts_with("biplane") { None } else { Some("registry") },
             "dependencies": []},
        ]}))
    }

    #[test]
    fn levels_only_look_down() {
        assert_eq!(check("biplane-engine", "biplane-cluster", None), [""; 0]);
        assert_eq!(check("biplane-proto", "biplane-model", None), [""; 0]);
        assert_eq!(check("biplane-runner", "biplane-function", None), [""; 0]);
        assert_eq!(
            check("biplane-function", "biplane-runner", None),
            ["biplane-function (level 1) must not use biplane-runner (level 1)"]
        );
        assert_eq!(check("biplane-render", "biplane-runtime", None), [""; 0]);
        assert_eq!(
            check("biplane-manifest", "biplane-render", None),
            ["biplane-manifest (level 3) must not use biplane-render (level 3)"]
        );
        assert_eq!(
            check("biplane-model", "biplane-proto", None),
            ["biplane-model (level 0) must not use biplane-proto (level 0)"]
        );
        assert_eq!(
            check("biplane-cluster", "biplane-function", None),
            ["biplane-cluster (level 1) must not use biplane-function (level 1)"]
        );
        assert_eq!(
            check("biplane-engine", "biplane-testkit", None),
            ["biplane-engine (level 2) must not use biplane-testkit (level 9)"]
        );
        assert_eq!(check("biplane-engine", "biplane-devenv", Some("build")).len(), 1);
    }

    #[test]
    fn tests_may_use_anything_of_ours() {
        assert_eq!(check("biplane-engine", "biplane-testkit", Some("dev")), [""; 0]);
        assert_eq!(check("biplane-testkit", "xtask", None), [""; 0]);
    }

    #[test]
    fn a_crate_without_a_level_is_found() {
        assert_eq!(
            check("biplane-new", "serde", None),
            ["biplane-new: has no level in xtask/src/tidy/graph.rs"]
        );
    }

    #[test]
    fn bans_hold_for_all_but_the_named() {
        assert_eq!(check("biplane-kube", "kube", None), [""; 0]);
        assert_eq!(check("biplane-cluster", "kube", None).len(), 1);
        assert_eq!(
            check("biplane-engine", "kube", Some("dev")),
            ["biplane-engine: uses kube, which only biplane-kube may"]
        );
        assert_eq!(
            check("biplane-engine", "bollard", None),
            ["biplane-engine: uses bollard, which only biplane and biplane-runtime may"]
        );
        assert_eq!(check("biplane-package", "oci-client", None), [""; 0]);
        assert_eq!(check("biplane-runtime", "oci-client", None).len(), 1);
        assert_eq!(
            check("biplane-model", "serde_yaml", None),
            ["biplane-model: uses serde_yaml, which is banned"]
        );
    }

    #[test]
    fn flags_are_for_programs_and_examples() {
        assert_eq!(check("biplane", "clap", None), [""; 0]);
        assert_eq!(check("biplane-function", "clap", Some("dev")), [""; 0]);
        assert_eq!(
            check("biplane-function", "clap", None),
            ["biplane-function: uses clap, which only biplane and xtask and clap_complete and \
                 clap_mangen and criterion and libtest-mimic may"]
        );
        assert_eq!(check("biplane-render", "clap", None).len(), 1);
    }

    #[test]
    fn deny_toml_names_the_same_bans() {
        let text = std::fs::read_to_string(crate::root().join("deny.toml")).unwrap();
        let lines: Vec<&str> =
            text.lines().filter(|l| l.trim_start().starts_with("{ crate = ")).collect();
        assert_eq!(lines.len(), super::BANS.len());
        for ((name, users), line) in super::BANS.iter().zip(lines) {
            assert!(line.contains(&format!("{{ crate = \"{name}\"")), "{name}: {line}");
            let wrappers = format!("wrappers = {users:?}");
            assert_eq!(line.contains(&wrappers), !users.is_empty(), "{name}: {line}");
        }
    }
}
