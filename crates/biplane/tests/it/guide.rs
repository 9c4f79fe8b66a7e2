//! Runs every command in the README and the guide, and compares with the output on the page.
//!
//! Pages instruct this test with HTML comments, each on its own line:
//! - `<!-- folder: examples/storage -->`: the folder of the commands below, up to the next one
//! - `<!-- not run: REASON -->`: the next block is not run

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use biplane_model::yaml::parse_one;
use serde_json::Value;

use crate::support::Folder;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// A code block of a page.
struct Block {
    language: String,
    code: String,
    /// The folder in which its commands run.
    folder: Option<String>,
    /// The reason why they are not run.
    not_run: Option<String>,
}

impl Block {
    /// Whether this test runs the block: it has output, or is a script that calls the program.
    fn runs(&self) -> bool {
        let calls = |line: &str| line.starts_with("biplane ") || line.starts_with("cargo run -- ");
        let script = self.language == "sh" && self.code.lines().any(calls);
        (self.language == "console" || script) && self.not_run.is_none()
    }

    fn commands(&self) -> impl Iterator<Item = &str> {
        self.code.lines().filter_map(|line| line.strip_prefix("$ "))
    }
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let (mut folder, mut not_run) = (None, None);
    for line in text(page).lines() {
        match (open.take(), line.strip_prefix("```")) {
            (None, Some(language)) => {
                let (folder, not_run) = (folder.clone(), not_run.take());
                open = Some(Block {
                    language: language.to_owned(),
                    code: String::new(),
                    folder,
                    not_run,
                });
            }
            (None, None) => {
                let comment = |key| Some(line.strip_prefix(key)?.strip_suffix(" -->")?.to_owned());
                folder = comment("<!-- folder: ").or(folder);
                not_run = comment("<!-- not run: ");
            }
            (Some(block), Some(_)) => blocks.push(block),
            (Some(block), None) => open = Some(Block { code: block.code + line + "\n", ..block }),
        }
    }
    blocks
}

/// A copy of the files of an example.
fn example(name: &str) -> Folder {
    let folder = Folder::new();
    copy(&root().join("examples").join(name), &folder, "");
    folder
}

fn copy(from: &Path, folder: &Folder, prefix: &str) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            copy(&path, folder, &format!("{name}/"));
        } else {
            folder.write(&name, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

fn sh(script: &str, folder: &Path, environment: &[(&str, &str)]) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_biplane")).parent().unwrap();
    Command::new("sh")
        .args(["-ec", script])
        .current_dir(folder)
        .env("PATH", format!("{}:/usr/bin:/bin", binary.display()))
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

/// Runs the commands of a page, in a copy of the examples, and compares their output with the page.
/// Returns the number of lines that were run.
fn check(page: &str) -> usize {
    let copied = Folder::new();
    copy(&root().join("examples"), &copied, "examples/");
    let mut count = 0;
    for block in blocks(page).iter().filter(|block| block.runs()) {
        let code = &block.code;
        let folder =
            block.folder.as_ref().unwrap_or_else(|| panic!("{page}: no folder for {code}"));
        let folder = if folder == "." { copied.path().to_owned() } else { copied.at(folder) };
        let installed = |line: &str| line.replace("cargo run -- ", "biplane ");
        if block.language == "sh" {
            let output = sh(&installed(code), &folder, &[]);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{page}: {code}{stderr}");
            assert!(!output.stdout.is_empty() || code.contains('>'), "{page}: {code}");
            count += code.lines().count();
            continue;
        }
        let mut printed = String::new();
        for command in block.commands() {
            let output = sh(&format!("({}) 2>&1", installed(command)), &folder, &[]);
            let here = format!("{}/", folder.display());
            let output = String::from_utf8(output.stdout).unwrap().replace(&here, "");
            printed.extend(["$ ", command, "\n", &output]);
            count += 1;
        }
        // Three dots replace the rest of the output.
        match code.strip_suffix("...\n") {
            Some(start) => assert!(printed.starts_with(start), "{page}: {printed}"),
            None => assert_eq!(&printed, code, "{page}"),
        }
    }
    count
}

/// The pages with commands that can be run, and the minimum number of lines.
const PAGES: [(&str, usize); 10] = [
    ("README.md", 3),
    ("docs/cli.md", 1),
    ("docs/environment.md", 2),
    ("docs/first-composition.md", 2),
    ("docs/go-templating.md", 4),
    ("docs/migrate.md", 5),
    ("docs/queries.md", 9),
    ("docs/render.md", 13),
    ("docs/test-a-composition.md", 11),
    ("docs/validate.md", 1),
];

#[test]
fn every_command_of_the_guide_prints_what_the_guide_shows() {
    for (page, at_least) in PAGES {
        let count = check(page);
        assert!(count >= at_least, "{page}: {count}");
    }
}

#[test]
fn no_page_with_commands_is_left_out() {
    let files = std::fs::read_dir(root().join("docs")).unwrap();
    let pages: Vec<_> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| format!("docs/{}", path.file_name().unwrap().to_str().unwrap()))
        .filter(|page| PAGES.iter().all(|(listed, _)| page != listed))
        .collect();
    assert!(pages.iter().any(|page| page == "docs/functions.md"));
    for page in pages {
        let run: Vec<_> = blocks(&page).into_iter().filter(Block::runs).collect();
        assert!(run.is_empty(), "add {page} to the list: {}", run[0].code);
    }
}

/// The steps on the page about functions form one pipeline.
#[test]
fn the_steps_that_the_guide_shows_render() {
    let steps: String = blocks("docs/functions.md")
        .into_iter()
        .filter(|block| block.language == "yaml" && block.code.starts_with("- step: "))
        .map(|block| block.code)
        .collect();
    assert_eq!(steps.matches("- step: ").count(), 4);
    let folder = Folder::new();
    folder.write("xr.yaml", XR);
    folder.write(
        "composition.yaml",
        &format!("{COMPOSITION}  {}", steps.trim_end().replace('\n', "\n  ")),
    );
    folder.write("required.yaml", REQUIRED);
    let command = "biplane render xr.yaml composition.yaml -e required.yaml -c";
    let output = sh(command, folder.path(), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let printed = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "    label: team-a/photos\n    region: eu\n",
        "    crossplane.io/composition-resource-name: logs\n",
        "      cidr: 10.0.0.0/8\n",
        "    size: large\n",
    ] {
        assert!(printed.contains(expected), "{expected}{printed}");
    }
}

const XR: &str = "\
apiVersion: example.org/v1
kind: Storage
metadata:
  name: photos
  namespace: team-a
spec:
  region: eu
";
const COMPOSITION: &str = "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: storage
spec:
  compositeTypeRef:
    apiVersion: example.org/v1
    kind: Storage
  mode: Pipeline
  pipeline:
";
const REQUIRED: &str = "\
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata:
  name: company
data:
  size: large
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata:
  name: network-eu
  labels:
    region: eu
data:
  priority: 1
  cidr: 10.0.0.0/8
";

/// The page quotes every file of the example unchanged.
#[test]
fn files_on_the_way_to_a_test_are_those_of_the_example() {
    let shown = blocks("docs/test-a-composition.md");
    let shown: Vec<_> = shown.iter().filter(|block| block.language == "yaml").collect();
    let files = [
        "xr.yaml",
        "composition.yaml",
        "functions.yaml",
        "observed.yaml",
        "ci/github-actions.yaml",
        "ci/gitlab-ci.yml",
    ];
    assert_eq!(shown.len(), files.len());
    for (file, block) in files.iter().zip(shown) {
        assert_eq!(block.code, text(&format!("examples/storage/{file}")), "{file}");
    }
}

/// The scripts of the CI jobs, in order.
fn jobs() -> [(&'static str, Vec<String>); 2] {
    let read =
        |file: &str| parse_one(file, &text(&format!("examples/storage/ci/{file}"))).unwrap().value;
    let strings = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let github = read("github-actions.yaml");
    let steps = github["jobs"]["render"]["steps"].as_array().unwrap();
    let github: Vec<_> =
        steps.iter().filter_map(|step| step["run"].as_str()).map(str::to_owned).collect();
    let gitlab = read("gitlab-ci.yml");
    let job = &gitlab["compositions"];
    let gitlab = [strings(&job["before_script"]), strings(&job["script"])].concat();
    [("GitHub", github), ("GitLab", gitlab)]
}

/// The release archive and its checksum, in the layout of `just dist`. The program in it runs the
/// program under test.
struct Archive {
    folder: Folder,
    name: String,
}

impl Archive {
    fn new(name: &str) -> Self {
        let folder = Folder::new();
        let inside = name.strip_suffix(".tar.gz").unwrap();
        let program = format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_biplane"));
        folder.write(&format!("{inside}/biplane"), &program);
        folder.write(&format!("{inside}/LICENSE"), "");
        folder.write(&format!("{inside}/completions/biplane.bash"), "");
        folder.write(&format!("{inside}/man/biplane.1"), "");
        let script = format!(
            "chmod +x {inside}/biplane; tar -czf {name} {inside}; sha256sum {name} > {name}.sha256; rm -r {inside}"
        );
        assert!(sh(&script, folder.path(), &[]).status.success());
        Self { folder, name: name.to_owned() }
    }

    fn url(&self) -> String {
        format!("file://{}", self.folder.at(&self.name).display())
    }
}

const ARCHIVE: &str = "biplane-0.1.0-x86_64-unknown-linux-gnu.tar.gz";

#[test]
fn the_archive_is_installed_as_the_readme_says() {
    let archive = Archive::new(ARCHIVE);
    let blocks = blocks("README.md");
    let install = blocks.iter().find(|block| block.code.contains("tar -xzf")).unwrap();
    assert!(install.code.contains(ARCHIVE), "{}", install.code);
    let (home, folder) = (Folder::new(), archive.folder.path());
    let output = sh(&install.code, folder, &[("HOME", home.path().to_str().unwrap())]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        Command::new(home.at(".local/bin/biplane"))
            .arg("--help")
            .output()
            .unwrap()
            .status
            .success()
    );
}

/// Runs a job up to its first failure, with the archive at this address.
fn passes(steps: &[String], folder: &Folder, url: &str) -> bool {
    let home = folder.path().to_str().unwrap();
    let path = folder.write("github-path", "");
    let environment = [("BIPLANE_URL", url), ("HOME", home), ("GITHUB_PATH", path.as_str())];
    steps.iter().all(|step| {
        // Folders that a step adds to this file are put first in the path of the next step.
        let added = std::fs::read_to_string(&path).unwrap().replace('\n', ":");
        sh(&format!("PATH=\"{added}$PATH\"\n{step}"), folder.path(), &environment).status.success()
    })
}

#[test]
fn the_jobs_pass_and_fail_when_a_composition_changes_what_it_should_not() {
    let archive = Archive::new(ARCHIVE);
    for (service, steps) in jobs() {
        assert!(steps.len() >= 3, "{service}");
        assert!(passes(&steps, &example("storage"), &archive.url()), "{service}");
        for (from, to) in [
            ("toFieldPath: spec.forProvider.region", "toFieldPath: spec.region"),
            // Only detected once the bucket exists.
            ("toFieldPath: status.arn", "toFieldPath: status.address"),
            ("mode: Pipeline", "mode: Resources"),
        ] {
            let folder = example("storage");
            let changed = text("examples/storage/composition.yaml").replace(from, to);
            folder.write("composition.yaml", &changed);
            assert!(!passes(&steps, &folder, &archive.url()), "{service}: {to}");
        }
    }
}

#[test]
fn the_jobs_fail_when_the_archive_does_not_have_the_checksum_beside_it() {
    let archive = Archive::new(ARCHIVE);
    let checksum = format!("{}  {ARCHIVE}\n", "0".repeat(64));
    archive.folder.write(&format!("{ARCHIVE}.sha256"), &checksum);
    for (service, steps) in jobs() {
        assert!(!passes(&steps, &example("storage"), &archive.url()), "{service}");
    }
}
