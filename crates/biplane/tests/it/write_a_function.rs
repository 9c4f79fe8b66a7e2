//! Tests the guide to writing a function: its code is that of the example, and the example renders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use biplane::environment::Environment;
use biplane_function::Registry;
use biplane_function::serve::{self, Config};

use crate::support::{Folder, run, run_in};

#[allow(dead_code)] // its main is not used
#[path = "../../../biplane-function/examples/greeting.rs"]
mod greeting;

const CODE: &str = include_str!("../../../biplane-function/examples/greeting.rs");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The code blocks of the guide in a language.
fn blocks(guide: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    let blocks = guide.split(&opening).skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(str::to_owned).collect()
}

fn guide() -> String {
    std::fs::read_to_string(root().join("docs/write-a-function.md")).unwrap()
}

#[test]
fn code_in_the_guide_is_the_code_of_the_example() {
    let blocks = blocks(&guide(), "rust");
    assert_eq!(blocks.len(), 6);
    let (program, parts) = blocks.split_last().unwrap();
    for block in parts {
        assert!(CODE.contains(block), "not in greeting.rs:\n{block}");
    }
    assert!(THIS.contains(program.trim_start_matches("fn main")), "not here:\n{program}");
}

/// The dependencies with which the example compiles.
#[test]
fn dependencies_in_the_guide_are_those_of_the_example() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let (workspace, example) = (read("Cargo.toml"), read("crates/biplane-function/Cargo.toml"));
    let manifest = blocks(&guide(), "toml").remove(0);
    let (_, dependencies) = manifest.split_once("[dependencies]").unwrap();
    let dependencies: Vec<(&str, &str)> =
        dependencies.lines().filter_map(|line| line.split_once(" = ")).collect();
    assert_eq!(dependencies.len(), 5);
    let ours =
        dependencies.iter().map(|(name, _)| *name).filter(|name| name.starts_with("biplane"));
    assert_eq!(ours.collect::<Vec<_>>(), ["biplane-function"], "an author needs one crate of ours");
    for (name, wanted) in dependencies {
        let own = name == "biplane-function";
        assert!(own || example.contains(&format!("\n{name}")), "{name} is not the example's");
        let ours = workspace.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
        // A folder of the checkout, or a version.
        let wanted = wanted.split('"').nth(1).unwrap();
        let wanted = wanted.trim_start_matches("../biplane/");
        assert!(ours.contains(&format!("\"{wanted}\"")), "{name}: {ours}");
    }
}

const THIS: &str = include_str!("write_a_function.rs");

/// The program at the end of the guide, to check that it compiles.
mod program {
    use std::process::ExitCode;

    use biplane_function::Registry;

    use super::greeting::Greeting;

    #[rustfmt::skip] // as in the guide
    #[allow(dead_code)]
pub(super) fn main() -> ExitCode {
    biplane::cli::main(Registry::default().with("function-greeting", Greeting))
}
}

#[test]
fn a_function_of_ones_own_renders_in_process() {
    let example = root().join("examples/write-a-function");
    let file = |name: &str| example.join(name).to_str().unwrap().to_owned();
    let own = Registry::default().with("function-greeting", greeting::Greeting);
    let environment = Environment { own, ..Environment::default() };
    let files = ["render", &file("xr.yaml"), &file("composition.yaml")];
    let ran = run_in(&files, "", &environment);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("text: Hello, Ada!"), "{}", ran.stdout);
    // The function is only in that program.
    assert_eq!(run(&files).exit, 1);
}

#[test]
fn rendering_with_the_example_prints_what_the_guide_shows() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = Config {
        address: "127.0.0.1:0".to_owned(),
        insecure: true,
        metrics_address: None,
        ..Config::default()
    };
    let function = Arc::new(greeting::Greeting);
    let running = runtime.block_on(serve::start(function, config, std::future::pending())).unwrap();

    let example = root().join("examples/write-a-function");
    let file = |name: &str| example.join(name).to_str().unwrap().to_owned();
    let functions = std::fs::read_to_string(file("functions.yaml")).unwrap();
    assert!(functions.contains("localhost:9443"));
    let folder = Folder::new();
    let functions =
        folder.write("functions.yaml", &functions.replace("localhost:9443", running.target()));

    let ran = run(&[
        "render",
        &file("xr.yaml"),
        &file("composition.yaml"),
        &functions,
        "--include-function-results",
    ]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("text: Hello, Ada!"), "{}", ran.stdout);
    let shown = blocks(&guide(), "console")
        .into_iter()
        .find(|block| block.contains("--include-function-results"))
        .unwrap();
    let shown: String =
        shown.split_inclusive('\n').filter(|line| !line.starts_with("$ ")).collect();
    assert_eq!(ran.stdout, shown);
}
