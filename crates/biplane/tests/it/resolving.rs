//! Tests how the packages of a project are resolved: what is cached, and how many requests and
//! starts are concurrent.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use crate::project::render;
use crate::registry::Registry;
use crate::support::{Folder, Ran};

const TAGS: &[&str] = &["latest", "v1.2.0", "v1.10.0", "v2.0.0"];
const NAME: &str = "acme-function-auto-ready";
const KNOWN: &str = "\tDEBUG\tVersions are known from before\t";

/// A project that depends on functions at a registry.
fn project(registry: &str, packages: &[(&str, &str)]) -> String {
    let dependency = |(package, version): &(&str, &str)| {
        format!(
            "  - type: xpkg\n    xpkg:\n      apiVersion: pkg.crossplane.io/v1\n      kind: Function\n      package: {registry}/{package}\n      version: '{version}'\n"
        )
    };
    let dependencies: String = packages.iter().map(dependency).collect();
    format!(
        "apiVersion: dev.crossplane.io/v1alpha1\nkind: Project\nmetadata:\n  name: apps\nspec:\n  repository: example.org/acme/apps\n  dependencies:\n{dependencies}"
    )
}

fn resolve(folder: &Folder, registry: &str, range: &str) -> Ran {
    let project = project(registry, &[("acme/function-auto-ready", range)]);
    render(folder, &project, &[NAME], &["--verbose", "-a=render.crossplane.io/runtime=InProcess"])
}

#[track_caller]
fn found(ran: &Ran, version: &str) {
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("/acme/function-auto-ready:{version}\"")), "{ran:?}");
}

fn kept(folder: &Folder) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.at("cache/biplane-tags")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn a_registry_is_not_asked_twice_in_a_row() {
    let registry = Registry::start(&[("acme/function-auto-ready", TAGS)]);
    let folder = Folder::new();
    let first = resolve(&folder, registry.address(), "^1");
    found(&first, "v1.10.0");
    assert!(!first.stderr.contains(KNOWN));
    assert_eq!(registry.asked().0, 1);
    // Another range of the same repository needs no new request.
    for (range, version) in [("^1", "v1.10.0"), ("^2", "v2.0.0")] {
        let again = resolve(&folder, registry.address(), range);
        found(&again, version);
        assert!(again.stderr.contains(KNOWN), "{}", again.stderr);
    }
    assert_eq!(registry.asked().0, 1);
    // A version that did not exist may exist now.
    assert_eq!(resolve(&folder, registry.address(), "^3").exit, 1);
    assert_eq!(registry.asked().0, 2);
    found(&resolve(&Folder::new(), registry.address(), "^1"), "v1.10.0");
    assert_eq!(registry.asked().0, 3, "another folder knows nothing");
}

/// RX-1: there is one time limit for everything.
#[test]
fn a_registry_that_keeps_silent_is_given_no_more_time_than_there_is() {
    // The system accepts connections to it, but nothing reads from them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let registry = silent.local_addr().unwrap().to_string();
    let packages = [("acme/function-auto-ready", "^1"), ("acme/function-two", "^1")];
    let names = [NAME, "acme-function-two"];
    let flags = ["--timeout=200ms", "--max-concurrency=1"];
    let ran = render(&Folder::new(), &project(&registry, &packages), &names, &flags);
    let error = format!(
        "biplane: error: cannot load project functions: cannot resolve function dependency {registry}/acme/function-auto-ready:^1: cannot list versions for {registry}/acme/function-auto-ready: context deadline exceeded"
    );
    assert_eq!((ran.exit, ran.stderr.lines().last()), (1, Some(error.as_str())));
}

#[test]
fn an_answer_that_is_old_is_asked_for_anew() {
    let registry = Registry::start(&[("acme/function-auto-ready", TAGS)]);
    let folder = Folder::new();
    found(&resolve(&folder, registry.address(), "^1"), "v1.10.0");
    let [file] = kept(&folder).try_into().unwrap();
    age(&file, registry.address(), "v1.11.0");
    found(&resolve(&folder, registry.address(), "^1"), "v1.10.0");
    assert_eq!(registry.asked().0, 2);
}

/// Replaces the cached response by an old one.
fn age(file: &PathBuf, registry: &str, tag: &str) {
    let answer = serde_json::json!({
        "repository": format!("{registry}/acme/function-auto-ready"),
        "asked": "2024-01-01T00:00:00Z",
        "tags": [tag],
    });
    std::fs::write(file, answer.to_string()).unwrap();
}

#[test]
fn an_old_answer_is_used_when_nobody_answers() {
    let folder = Folder::new();
    // Nothing listens there any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = gone.to_string();
    assert_eq!(resolve(&folder, &gone, "^1").exit, 1);
    let name = format!(
        "cache/biplane-tags/{}%2Facme%2Ffunction-auto-ready.json",
        gone.replace(':', "%3A")
    );
    age(&PathBuf::from(folder.write(&name, "")), &gone, "v1.11.0");
    let ran = resolve(&folder, &gone, "^1");
    found(&ran, "v1.11.0");
    let warning =
        format!("biplane: warning: cannot list versions for {gone}/acme/function-auto-ready: ");
    let warning = ran.stderr.lines().find(|line| line.starts_with(&warning)).unwrap();
    assert!(warning.ends_with("; those of 2024-01-01T00:00:00Z are used"), "{warning}");

    // An error response is also a response.
    let registry = Registry::start(&[]);
    let folder = Folder::new();
    let name = name.replace(&gone.replace(':', "%3A"), &registry.address().replace(':', "%3A"));
    age(&PathBuf::from(folder.write(&name, "")), registry.address(), "v1.11.0");
    assert_eq!(resolve(&folder, registry.address(), "^1").exit, 1);
}

#[test]
fn broken_files_and_a_folder_that_is_none_do_no_harm() {
    let registry = Registry::start(&[("acme/function-auto-ready", TAGS)]);
    let folder = Folder::new();
    found(&resolve(&folder, registry.address(), "^1"), "v1.10.0");
    let [file] = kept(&folder).try_into().unwrap();
    for text in ["", "{\"repository\":", "[]"] {
        std::fs::write(&file, text).unwrap();
        found(&resolve(&folder, registry.address(), "^1"), "v1.10.0");
    }
    assert_eq!(registry.asked().0, 4);
    let folder = Folder::new();
    folder.write("cache", "a file");
    found(&resolve(&folder, registry.address(), "^1"), "v1.10.0");
    assert_eq!(registry.asked().0, 5);
}

#[test]
fn commands_that_run_at_the_same_time_share_a_folder() {
    let registry = Registry::start(&[("acme/function-auto-ready", TAGS)]);
    let folder = Folder::new();
    // Files of the render itself are written once, before anything reads them.
    found(&resolve(&folder, registry.address(), "^1"), "v1.10.0");
    let [file] = kept(&folder).try_into().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for turn in 0..50 {
                let text = if turn % 2 == 0 { "{" } else { "null" };
                std::fs::write(&file, text).unwrap();
            }
        });
        let run = || {
            let (xr, composition) = (folder.at("xr.yaml"), folder.at("composition.yaml"));
            let project = folder.at("crossplane-project.yaml");
            let cache = format!("--cache-dir={}", folder.at("cache").display());
            let words = [&xr, &composition].map(|path| path.to_str().unwrap());
            let flags = ["-f", project.to_str().unwrap(), &cache, "--verbose"];
            let own = "-a=render.crossplane.io/runtime=InProcess";
            for _ in 0..5 {
                let ran = crate::support::run(&[&["render"], &words[..], &flags, &[own]].concat());
                found(&ran, "v1.10.0");
            }
        };
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        writer.join().unwrap();
        for reader in readers {
            reader.join().unwrap();
        }
    });
    assert_eq!(kept(&folder), [file], "nothing unfinished is left");
}

#[test]
fn no_more_registries_are_asked_at_the_same_time_than_allowed() {
    let names = ["auto-ready", "dummy", "patch-and-transform", "environment-configs"];
    let paths = names.map(|name| format!("acme/function-{name}"));
    let known: Vec<_> = paths.iter().map(|path| (path.as_str(), TAGS)).collect();
    let packages: Vec<_> = paths.iter().map(|path| (path.as_str(), "^1")).collect();
    let functions = names.map(|name| format!("acme-function-{name}"));
    let functions = functions.each_ref().map(String::as_str);
    for (flags, peak) in [(&["--max-concurrency=2"][..], 2), (&[], 4)] {
        let registry = Registry::together(peak, &known);
        let project = project(registry.address(), &packages);
        // The runtime does not matter here.
        let flags = [flags, &["-a=render.crossplane.io/runtime=Nowhere"]].concat();
        let ran = render(&Folder::new(), &project, &functions, &flags);
        assert!(ran.stderr.contains("✓ Resolving function dependencies"), "{}", ran.stderr);
        assert_eq!(registry.asked(), (4, peak));
    }
}

#[test]
fn no_more_programs_are_started_at_the_same_time_than_allowed() {
    let folder = Folder::new();
    // A fake interpreter that reports its start, and listens when the test tells it to.
    let interpreter = format!(
        "#!/bin/sh\necho \"$*\" > arguments\nbasename \"$PWD\" > ../../begun\nread -r _ < go\nshift 2\nexec '{}' function serve auto-ready --metrics-address= \"$@\"\n",
        env!("CARGO_BIN_EXE_biplane")
    );
    let names = ["one", "two", "three"];
    for name in names {
        folder.write(&format!("functions/{name}/pyproject.toml"), "");
        folder.write(&format!("functions/{name}/function/main.py"), "");
        let path = folder.write(&format!("functions/{name}/.venv/bin/python"), &interpreter);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    let begun = pipe(&folder, "begun");
    let goes = names.map(|name| (name, pipe(&folder, &format!("functions/{name}/go"))));
    let tell = |name: &str| {
        let (_, go) = goes.iter().find(|(one, _)| *one == name).expect("one of the three");
        (&*go).write_all(b"go\n").unwrap();
    };
    let mut lines = BufReader::new(&begun).lines().map(Result::unwrap);
    let functions = ["acme-appsone", "acme-appstwo", "acme-appsthree"];
    let flags = ["--allow-process", "--max-concurrency=2"];
    let own = project("example.org", &[("acme/unused", "v1.0.0")]);
    std::thread::scope(|scope| {
        let rendering = scope.spawn(|| {
            let ran = render(&folder, &own, &functions, &flags);
            (&begun).write_all(b"ended\n").unwrap();
            ran
        });
        let first = [lines.next().unwrap(), lines.next().unwrap()];
        // A third function that did not wait would have started before this one, and would have
        // reported first.
        let script = "echo later > \"$1\"";
        let later = Command::new("sh").args(["-c", script, "sh"]).arg(folder.at("begun")).status();
        assert!(later.unwrap().success());
        assert_eq!(lines.next().unwrap(), "later", "after {first:?}");
        tell(&first[0]);
        let third = lines.next().unwrap();
        let arguments = folder.at(&format!("functions/{}/arguments", first[0]));
        let arguments = std::fs::read_to_string(arguments).unwrap();
        let address = arguments.split_whitespace().find_map(|a| a.strip_prefix("--address="));
        assert!(TcpStream::connect(address.unwrap()).is_ok(), "it began before {first:?} listened");
        assert!(names.contains(&third.as_str()) && !first.contains(&third), "{first:?} {third}");
        tell(&first[1]);
        tell(&third);
        let ran = rendering.join().unwrap();
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
    });
    assert_eq!(lines.next().unwrap(), "ended");
}

/// A named pipe, open at both ends so that opening it does not block.
fn pipe(folder: &Folder, name: &str) -> File {
    let path = folder.at(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    File::options().read(true).write(true).open(path).unwrap()
}
