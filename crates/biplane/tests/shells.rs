//! Tests completions in real shells. Tests of a shell that is not installed are reported as
//! ignored.

#![allow(clippy::unwrap_used)] // clippy.toml covers test functions only, not their helpers

use std::path::PathBuf;
use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Trial};

/// The name of a test, the shell that it needs, and the test.
type Case = (&'static str, &'static str, fn());

const CASES: &[Case] = &[
    ("zsh", "zsh_offers_commands_flags_values_and_files", zsh_offers),
    ("zsh", "zsh_forgets_completions_again", zsh_forgets),
    ("fish", "fish_offers_commands_flags_values_and_files", fish_offers),
    ("fish", "fish_forgets_completions_again", fish_forgets),
    ("bash", "bash_forgets_completions_again", bash_forgets),
];

fn main() {
    let trial = |(shell, name, test): &Case| {
        let test = *test;
        let trial = |name: String| {
            Trial::test(name, move || {
                test();
                Ok(())
            })
        };
        if is_installed(shell) {
            trial((*name).to_owned())
        } else {
            trial(format!("{name} ({shell} is not installed)")).with_ignored_flag(true)
        }
    };
    let trials = CASES.iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn is_installed(shell: &str) -> bool {
    Command::new(shell).arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// A folder of files that is removed with its test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// The output of the program.
fn completions(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_biplane"))
        .arg("completions")
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// The completions at the end of a line, in every shell.
const LINES: &[(&str, &[&str])] = &[
    ("comp", &["completions", "composition"]),
    ("ren", &["render"]),
    ("composition ", &["convert", "render"]),
    ("operation r", &["render"]),
    ("config ", &["set", "view"]),
    ("completions ", &["bash", "fish", "zsh"]),
    ("render --include-f", &["--include-full-xr", "--include-function-results"]),
    ("operation render --include-full", &["--include-full-operation"]),
    ("render --cache", &["--cache-dir"]),
    ("render x.yaml --output-format ", &["json", "v1", "v2"]),
    ("render xr.yaml comp", &["composition.yml"]),
    ("render --include-context x", &["xr.yaml"]),
    ("render --crossplane-binary no", &["notes.txt"]),
    // Old paths and internal commands work, but are not offered.
    ("alp", &[]),
    ("bet", &[]),
    ("intern", &[]),
];
/// Where an argument is expected, YAML files come first in shells that support it.
const FILES: (&str, &[&str]) = ("render xr.yaml ", &["composition.yml", "more", "xr.yaml"]);

/// A folder with some files, and the script for a shell in a file of this name.
fn folder(shell: &str, name: &str) -> Folder {
    let folder = Folder(tempfile::tempdir().unwrap());
    for file in ["xr.yaml", "composition.yml", "notes.txt", "more/a.yaml"] {
        folder.write(&format!("work/{file}"), "");
    }
    folder.write(name, &completions(&[shell]));
    folder
}

/// The sorted, distinct lines that a command prints in the folder.
fn offered(command: &mut Command, folder: &Folder) -> Vec<String> {
    let home = folder.0.path();
    let output = command
        .current_dir(folder.at("work"))
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("XDG_DATA_HOME", home)
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.lines().map(|line| line.split('\t').next().unwrap().trim_end_matches('/'));
    let mut words: Vec<_> = words.filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect();
    words.sort();
    words.dedup();
    words
}

/// Types a line into an interactive zsh on a pseudo-terminal, presses tab, and prints the offered
/// completions.
const ZSH: &str = r#"
zmodload zsh/zpty
folder=$1 typed=$2
cat > $folder/setup <<'SETUP'
PROMPT=
fpath=($folder $fpath)
autoload -Uz compinit
compinit -u -D
bindkey '^I' complete-word
zstyle ':completion:*' insert-tab false
compprefuncs=(mark) comppostfuncs=(mark exit)
mark() { print -r -- $'\1' }
compadd() {
  if [[ " ${(j: :)@[1,(i)--]} " == *\ -(O|A|D)\ * ]]; then
    builtin compadd "$@"
    return
  fi
  local -a hits
  builtin compadd -A hits "$@"
  local hit
  for hit in $hits; do print -r -- "offer $hit"; done
  builtin compadd "$@"
}
print ready
SETUP
zpty shell "zsh -f -i"
zpty -w shell "folder=${(q)folder}; source ${(q)folder}/setup"
while zpty -r shell line; do [[ $line == ready* ]] && break; done
zpty -w -n shell "$typed"$'\t'
marks=0
while zpty -r shell line; do
  line=${line%%$'\r'*}
  if [[ $line == *$'\1'* ]]; then
    (( ++marks == 2 )) && break
  elif [[ $line == offer\ * ]]; then
    print -r -- ${line#offer }
  fi
done
"#;

/// CLI-50
fn zsh_offers() {
    let folder = folder("zsh", "_biplane");
    for (line, want) in LINES.iter().chain([&FILES]) {
        let path = folder.0.path().to_str().unwrap();
        let typed = format!("biplane {line}");
        let mut zsh = Command::new("zsh");
        let offered = offered(zsh.args(["-f", "-c", ZSH, "zsh", path, &typed]), &folder);
        assert_eq!(offered, *want, "{line:?}");
    }
}

/// CLI-50
fn fish_offers() {
    let folder = folder("fish", "biplane.fish");
    let all = ("render xr.yaml ", &["composition.yml", "more", "notes.txt", "xr.yaml"][..]);
    for (line, want) in LINES.iter().chain([&all]) {
        let program = "source $argv[1]; complete -C $argv[2]";
        let script = folder.at("biplane.fish");
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", program]).arg(&script).arg(format!("biplane {line}"));
        assert_eq!(offered(&mut fish, &folder), *want, "{line:?}");
    }
}

/// CLI-50: removed completions are no longer offered.
fn forgets(shell: &str, arguments: &[&str]) {
    let folder = folder(shell, "script");
    folder.write("gone", &completions(&[shell, "--uninstall"]));
    let mut command = Command::new(shell);
    command.args(arguments).arg(folder.at("script")).arg(folder.at("gone"));
    let ran = command.env("HOME", folder.0.path()).current_dir(folder.at("work")).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!((ran.status.code(), said.as_str()), (Some(0), ""));
}

fn bash_forgets() {
    let program = "source $1; complete -p biplane >/dev/null || exit 3; source $2; ! complete -p biplane 2>/dev/null";
    forgets("bash", &["--norc", "-c", program, "bash"]);
}

fn zsh_forgets() {
    let program = "autoload -Uz compinit; compinit -u -D; source $1; (( $+_comps[biplane] )) || exit 3; source $2; (( ! $+_comps[biplane] ))";
    forgets("zsh", &["-f", "-c", program, "zsh"]);
}

fn fish_forgets() {
    let program = "source $argv[1]; complete -C 'biplane ren' | grep -q render; or exit 3; source $argv[2]; not complete -C 'biplane ren' | grep -q render";
    forgets("fish", &["--no-config", "-c", program]);
}
