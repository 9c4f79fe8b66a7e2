//! Every command of the guide to rendering, run, and what the guide shows of their output.

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
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in text(page).lines() {
        match (open.take(), line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block { language: language.to_owned(), code: String::new() });
            }
            (None, None) => {}
            (Some(block), Some(_)) => blocks.push(block),
            (Some(block), None) => open = Some(Block { code: block.code + line + "\n", ..block }),
        }
    }
    blocks
}

/// The files of an example, to be worked with.
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

fn sh(script: &str, folder: &Folder, environment: &[(&str, &str)]) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_biplane")).parent().unwrap();
    Command::new("sh")
        .args(["-ec", script])
        .current_dir(folder.path())
        .env("PATH", format!("{}:/usr/bin:/bin", binary.display()))
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

/// Runs the commands of a page. What it shows below a command is what the command prints.
fn check(page: &str, folder: &Folder) -> usize {
    let mut count = 0;
    for Block { language, code } in blocks(page) {
        match language.as_str() {
            "sh" => {
                let output = sh(&code, folder, &[]);
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{code}{stderr}");
                assert!(!output.stdout.is_empty() || code.contains('>'), "{code}");
                count += code.lines().count();
            }
            // What that page shows is about another example and has tests of its own.
            "console" if page != "docs/render.md" => {
                let mut printed = String::new();
                for command in code.lines().filter_map(|line| line.strip_prefix("$ ")) {
                    let output = sh(&format!("({command}) 2>&1"), folder, &[]);
                    let here = format!("{}/", folder.path().display());
                    let output = String::from_utf8(output.stdout).unwrap().replace(&here, "");
                    printed.extend(["$ ", command, "\n", &output]);
                    count += 1;
                }
                assert_eq!(printed, code, "{page}");
            }
            _ => {}
        }
    }
    count
}

#[test]
fn every_command_of_the_guide_to_rendering_works() {
    assert!(check("docs/render.md", &example("first-composition")) >= 7);
}

#[test]
fn every_command_of_the_first_composition_works() {
    assert!(check("docs/first-composition.md", &example("first-composition")) >= 2);
}

#[test]
fn the_way_to_a_test_shows_what_its_commands_print() {
    assert!(check("docs/test-a-composition.md", &example("storage")) >= 9);
}

/// Files that the page quotes are the files of the example, all of them.
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

/// What the jobs run, in order, each with the environment that the services provide.
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

/// Runs a job to its end or to its first failure.
fn passes(steps: &[String], folder: &Folder) -> bool {
    let home = folder.path().to_str().unwrap();
    let path = folder.write("github-path", "");
    let binary = format!("file://{}", env!("CARGO_BIN_EXE_biplane"));
    let environment =
        [("BIPLANE_URL", binary.as_str()), ("HOME", home), ("GITHUB_PATH", path.as_str())];
    steps.iter().all(|step| {
        // What a step adds to this file is on the path of the next one, ahead of all else.
        let added = std::fs::read_to_string(&path).unwrap().replace('\n', ":");
        sh(&format!("PATH=\"{added}$PATH\"\n{step}"), folder, &environment).status.success()
    })
}

#[test]
fn the_jobs_pass_and_fail_when_a_composition_changes_what_it_should_not() {
    for (service, steps) in jobs() {
        assert!(steps.len() >= 3, "{service}");
        assert!(passes(&steps, &example("storage")), "{service}");
        for (from, to) in [
            ("toFieldPath: spec.forProvider.region", "toFieldPath: spec.region"),
            // Only seen once the bucket exists.
            ("toFieldPath: status.arn", "toFieldPath: status.address"),
            ("mode: Pipeline", "mode: Resources"),
        ] {
            let folder = example("storage");
            let changed = text("examples/storage/composition.yaml").replace(from, to);
            folder.write("composition.yaml", &changed);
            assert!(!passes(&steps, &folder), "{service}: {to}");
        }
    }
}
