//! Checks that the modules of a crate do not use each other in a cycle.
//!
//! Every source file is parsed. Every path in it that leads to another module is an edge of a
//! graph. The modules with the same parent are one graph, at each level of the tree: a folder
//! counts as one module among its siblings. A module and its parent may use each other. Tests may
//! use everything.

mod cycles;
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, Result};

use paths::{Path, Source};

/// The declarations and imports of a module.
#[derive(Debug, Default)]
struct Module {
    /// Items that are defined in the module.
    items: BTreeSet<String>,
    /// Imported names and their paths.
    imports: BTreeMap<String, Path>,
    /// Modules that are imported with a glob.
    globs: Vec<Path>,
}

/// One module uses another.
#[derive(Debug)]
struct Use {
    file: String,
    from: Path,
    to: Path,
}

#[derive(Debug, Default)]
struct Crate {
    modules: BTreeMap<Path, Module>,
    uses: Vec<Use>,
}

/// Every cycle in a crate. Files are given by their path below `src/` and their text.
pub(super) fn check(krate: &str, files: &[(String, String)]) -> Result<Vec<String>> {
    let tree = read(files).with_context(|| format!("cannot read the modules of {krate}"))?;
    let mut findings = Vec::new();
    for parent in tree.modules.keys() {
        // The files that cause an edge, by the names of the two siblings.
        let mut edges: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
        for edge in &tree.uses {
            let to = tree.resolve(&edge.to);
            let (Some(from), Some(to)) = (child(parent, &edge.from), child(parent, &to)) else {
                continue;
            };
            let is_module = |name: &str| {
                tree.modules.contains_key(&[parent.as_slice(), &[name.into()]].concat())
            };
            if from != to && is_module(from) && is_module(to) {
                let pair = (from.to_owned(), to.to_owned());
                edges.entry(pair).or_default().insert(&edge.file);
            }
        }
        let graph: BTreeSet<(&str, &str)> =
            edges.keys().map(|(from, to)| (from.as_str(), to.as_str())).collect();
        for cycle in cycles::find(&graph) {
            let place: String = [&[krate.to_owned()], parent.as_slice()].concat().join("::");
            findings.push(describe(&place, &cycle, &edges));
        }
    }
    Ok(findings)
}

fn describe(
    place: &str,
    cycle: &BTreeSet<&str>,
    edges: &BTreeMap<(String, String), BTreeSet<&str>>,
) -> String {
    let names: Vec<&str> = cycle.iter().copied().collect();
    let mut text = format!("{place}: modules use each other: {}", names.join(", "));
    for ((from, to), files) in edges {
        if cycle.contains(from.as_str()) && cycle.contains(to.as_str()) {
            let files: Vec<&str> = files.iter().copied().collect();
            // Writing to a string cannot fail.
            let _ = write!(text, "\n  {from} uses {to}: {}", files.join(", "));
        }
    }
    text
}

/// The name of the module directly below `parent` that a path goes through.
fn child<'a>(parent: &[String], path: &'a [String]) -> Option<&'a str> {
    path.strip_prefix(parent)?.first().map(String::as_str)
}

fn read(files: &[(String, String)]) -> Result<Crate> {
    let mut sources = Vec::new();
    for (name, text) in files.iter().filter(|(name, _)| !is_for_tests(name)) {
        let source = Source::parse(module_of(name), text).with_context(|| name.clone())?;
        sources.push((name, source));
    }
    // A module that is declared only for tests may have any name.
    let for_tests: BTreeSet<Path> =
        sources.iter().flat_map(|(_, source)| source.for_tests.clone()).collect();
    let is_test = |path: &[String]| {
        (1..=path.len()).any(|end| path.get(..end).is_some_and(|part| for_tests.contains(part)))
    };
    let mut tree = Crate::default();
    for (name, source) in sources {
        if is_test(&source.path) {
            continue;
        }
        for (path, module) in source.modules {
            let known = tree.modules.entry(path).or_default();
            known.items.extend(module.items);
            known.imports.extend(module.imports);
            known.globs.extend(module.globs);
        }
        let uses = source.uses.into_iter();
        tree.uses.extend(uses.map(|(from, to)| Use { file: name.clone(), from, to }));
    }
    Ok(tree)
}

impl Crate {
    /// Follows imports: a re-exported name belongs to the module that defines it.
    fn resolve(&self, path: &[String]) -> Path {
        let mut path = path.to_vec();
        // Long chains of imports do not occur, but cycles could.
        for _ in 0..16 {
            let Some(next) = self.step(&path) else { break };
            path = next;
        }
        path
    }

    fn step(&self, path: &[String]) -> Option<Path> {
        // The longest prefix of the path that is a module. The rest is looked up in it.
        let end = (0..path.len())
            .rev()
            .find(|&end| path.get(..end).is_some_and(|part| self.modules.contains_key(part)))?;
        let (module, rest) = path.split_at(end);
        let (name, rest) = rest.split_first()?;
        if self.modules.contains_key(path) {
            return None;
        }
        let known = self.modules.get(module)?;
        if known.items.contains(name) {
            return None;
        }
        if let Some(target) = known.imports.get(name) {
            return Some([target.as_slice(), rest].concat()).filter(|next| next != path);
        }
        let source = known.globs.iter().find(|glob| {
            self.modules.get(*glob).is_some_and(|module| {
                module.items.contains(name) || module.imports.contains_key(name)
            })
        })?;
        Some([source.as_slice(), std::slice::from_ref(name), rest].concat())
    }
}

fn is_for_tests(name: &str) -> bool {
    name.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "generated"))
}

/// The module of a file below `src/`.
fn module_of(name: &str) -> Path {
    let name = name.strip_suffix(".rs").unwrap_or(name);
    if matches!(name, "lib" | "main") {
        return Path::new();
    }
    name.split('/').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
