//! Tests the command tree: its help, completions, manual pages and configuration.

use std::path::{Path, PathBuf};
use std::process::Command;

use biplane::environment::Environment;

use crate::support::{Folder, run, run_in};

/// Every visible command with its path, in the order of the tree.
fn commands() -> Vec<(Vec<String>, clap::Command)> {
    fn add(
        words: &[String],
        command: &clap::Command,
        found: &mut Vec<(Vec<String>, clap::Command)>,
    ) {
        found.push((words.to_owned(), command.clone()));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            add(&[words, &[below.get_name().to_owned()]].concat(), below, found);
        }
    }
    let mut tree = biplane::cli::command().term_width(100);
    tree.build();
    let mut found = Vec::new();
    add(&["biplane".to_owned()], &tree, &mut found);
    assert!(found.len() > 10);
    found
}

#[test]
fn help_reads_as_it_is_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(&folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut expected = Vec::new();
    for (words, mut command) in commands() {
        let name = words.join("-");
        let help = command.render_long_help().to_string();
        let lines: Vec<_> = help.lines().map(str::trim_end).collect();
        let help = lines.join("\n") + "\n";
        settings.bind(|| insta::assert_snapshot!(name.as_str(), help));
        assert!(help.contains("Examples:\n"), "{name} has no examples");
        expected.push(folder.join(format!("{name}.snap")));
    }
    let stray: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !expected.contains(path))
        .collect();
    assert!(stray.is_empty(), "{stray:?}");
}

/// CLI-35
#[test]
fn help_shows_what_the_configuration_lets_it_show() {
    let folder = Folder::new();
    let with = |features: &str| folder.write("config.yaml", &format!("version: 1\n{features}"));
    let config = with("");
    let ran = run(&["--config", &config, "--help"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert!(!ran.stdout.contains("operation"), "{}", ran.stdout);
    assert!(ran.stdout.contains("  convert      [BETA] Convert objects"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Beta commands are shown, alpha commands are not;"));

    with("features:\n  enableAlpha: true\n");
    let ran = run(&["--config", &config, "--help"]);
    assert!(ran.stdout.contains("operation    [ALPHA] Work with Operations"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Alpha and beta commands are shown;"));

    // A hidden command still exists.
    with("features:\n  disableBeta: true\n");
    let ran = run(&["--config", &config, "--help"]);
    assert!(!ran.stdout.contains("  convert"), "{}", ran.stdout);
    let ran = run(&["composition", "--config", &config, "--help"]);
    assert!(!ran.stdout.contains("  convert"), "{}", ran.stdout);
    let ran = run(&["operation", "render", "--help", "--config", &config]);
    assert_eq!(ran.exit, 0);
    assert!(ran.stdout.starts_with("[ALPHA] Show what"), "{}", ran.stdout);
}

/// CLI-31 to CLI-34, T-56, T-57
#[test]
fn the_configuration_is_shown_and_changed() {
    let folder = Folder::new();
    let file = folder.at("new/folder/config.yaml");
    let path = file.to_str().unwrap();
    let home = Environment { config: Some(file.clone()), ..Environment::default() };
    let view = || {
        let ran = run_in(&["config", "view"], "", &home);
        (ran.exit, ran.stdout, ran.stderr)
    };
    let ok = |text: &str| (0, text.to_owned(), String::new());
    assert_eq!(view(), ok("version: 1\n"));
    let ran = run(&["config", "set", "features.enableAlpha", "true", "--config", path]);
    assert_eq!((ran.exit, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
    assert_eq!(view(), ok("features:\n  enableAlpha: true\nversion: 1\n"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let ran = run_in(&["config", "set", "features.enableAlpha", "F"], "", &home);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "version: 1\n");

    for (arguments, error) in [
        (
            &["config", "set", "a", "b"][..],
            "biplane: error: unknown config key \"a\" (supported: features.disableBeta, features.enableAlpha, features.generateGoModelAccessors, features.generateGoRuntimeObjects)\n",
        ),
        (
            &["config", "set", "features.enableAlpha", "on"],
            "biplane: error: invalid bool value \"on\" for key features.enableAlpha: strconv.ParseBool: parsing \"on\": invalid syntax\n",
        ),
        (&["config", "view", "--config="], "biplane: flag --config requires a value\n"),
        (&["config", "view", "--config"], "biplane: flag --config requires a value\n"),
    ] {
        let ran = run_in(arguments, "", &home);
        assert_eq!((ran.exit, ran.stdout.as_str(), ran.stderr.as_str()), (1, "", error));
    }
    let ran = run(&["config", "set", "features.enableAlpha", "true"]);
    let error = "biplane: error: cannot determine config file path; pass --config or set CROSSPLANE_CONFIG\n";
    assert_eq!((ran.exit, ran.stderr.as_str()), (1, error));

    std::fs::write(&file, "version: 2\n").unwrap();
    let text = format!(
        "biplane: unsupported config version 2\n--> {}: version must be 1\n",
        file.display()
    );
    let version = (1, String::new(), text);
    assert_eq!(view(), version);
    // An invalid configuration fails every command except internal ones.
    let ran = run_in(&["render", "--help"], "", &home);
    assert_eq!((ran.exit, ran.stdout, ran.stderr), version);
    let ran = run_in(&["internal", "render", "--help"], "", &home);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
}

/// VER-1
#[test]
fn the_version_is_that_of_the_program() {
    let line = format!("Client Version: v{}\n", env!("CARGO_PKG_VERSION"));
    let compatible =
        "Compatible with: Crossplane v2.4, its command line v2.6, render of the v1 line v1.20\n";
    let ran = run(&["version", "--client"]);
    // Scripts use all of stdout as the version.
    assert_eq!(
        (ran.exit, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, line.as_str(), compatible)
    );
    let ran = run(&["version"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, line.as_str()));
    let error = ran.stderr.strip_prefix(compatible).unwrap();
    assert!(error.starts_with("biplane: error: unable to get crossplane version: "), "{error}");
}

#[test]
fn the_versions_of_upstream_are_those_that_were_recorded() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/README.md");
    let recorded = std::fs::read_to_string(recorded).unwrap();
    let words: Vec<_> = recorded.split(|c: char| !c.is_alphanumeric() && c != '.').collect();
    for (what, version) in biplane::commands::version::COMPATIBLE_WITH {
        assert!(words.contains(&version), "{what} {version} is not in the page about recordings");
    }
}

fn script(shell: &str) -> String {
    let ran = run(&["completions", shell]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    ran.stdout
}

/// What bash offers for the last word of a line, in a folder with some files.
fn bash_offers(script: &str, line: &[&str]) -> Vec<String> {
    let folder = Folder::new();
    for file in ["xr.yaml", "composition.yml", "notes.txt", "more/a.yaml"] {
        folder.write(file, "");
    }
    let program = r#"
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        function=$(complete -p biplane | sed 's/.*-F \([^ ]*\).*/\1/')
        "$function" biplane "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let script = folder.write("script.bash", script);
    let output = Command::new("bash")
        .args(["--norc", "-c", program, "bash", &script, "biplane"])
        .args(line)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{line:?}");
    let offered = String::from_utf8(output.stdout).unwrap();
    let mut offered: Vec<_> =
        offered.lines().filter(|line| !line.is_empty()).map(ToOwned::to_owned).collect();
    offered.sort();
    offered
}

/// CLI-50
#[test]
fn bash_completes_commands_flags_values_and_files() {
    let script = script("bash");
    let folder = Folder::new();
    let file = folder.write("script.bash", &script);
    assert!(Command::new("bash").args(["-n", &file]).status().unwrap().success());

    let offers =
        |line: &[&str], want: &[&str]| assert_eq!(bash_offers(&script, line), want, "{line:?}");
    offers(&["ren"], &["render"]);
    offers(&["comp"], &["completions", "composition"]);
    offers(&["composition", ""], &["convert", "render"]);
    offers(&["operation", "r"], &["render"]);
    offers(&["config", ""], &["set", "view"]);
    offers(&["completions", ""], &["bash", "fish", "zsh"]);
    offers(&["render", "--include-f"], &["--include-full-xr", "--include-function-results"]);
    offers(&["operation", "render", "--include-full"], &["--include-full-operation"]);
    offers(&["render", "x.yaml", "--output-format", ""], &["json", "v1", "v2"]);
    offers(&["render", ""], &["composition.yml", "more", "xr.yaml"]);
    offers(&["render", "xr.yaml", ""], &["composition.yml", "more", "xr.yaml"]);
    offers(&["render", "xr.yaml", "comp"], &["composition.yml"]);
    offers(&["render", "--include-context", "x"], &["xr.yaml"]);
    offers(&["render", "--crossplane-binary", "no"], &["notes.txt"]);
    // Old paths and internal commands work, but are not offered.
    for hidden in ["alp", "bet", "int"] {
        offers(&[hidden], &[]);
    }
}

/// CLI-50
#[test]
fn zsh_and_fish_know_the_same_tree() {
    let (zsh, fish) = (script("zsh"), script("fish"));
    assert!(zsh.starts_with("#compdef biplane\n"));
    for line in [
        "'render:Show what the control plane would do about a composite resource' \\",
        "'operation:\\[ALPHA\\] Work with Operations' \\",
        "'--output-format=[How to print documents\\: v2 as YAML, v1 as the v1 line printed them, json one per line]:FORMAT:((v2\\:",
        "'--include-full-xr[Print the whole XR\\: what it would become over what it is]' \\",
        "'1:composite_resource -- The composite resource (XR), a YAML file; or a claim, with --xrd:_files -g \"*.(yaml|yml)\"' \\",
    ] {
        assert!(zsh.contains(line), "{line}\n{zsh}");
    }
    for line in [
        "complete -c biplane -n \"__fish_biplane_needs_command\" -f -a \"render\" -d 'Show what the control plane would do about a composite resource'",
        "-l include-full-xr -d 'Print the whole XR: what it would become over what it is'",
        "-l crossplane-binary -l engine -d 'Render with this binary, which must know `internal render`, instead of the engine built in' -r -F",
    ] {
        assert!(fish.contains(line), "{line}\n{fish}");
    }
    for script in [zsh, fish] {
        assert!(!script.contains("internal serve") && !script.contains("alpha"), "{script}");
    }
}

/// CLI-50
#[test]
fn the_login_shell_is_the_one_to_complete_in() {
    let with = |shell: Option<&str>, arguments: &[&str]| {
        let environment = Environment { shell: shell.map(PathBuf::from), ..Environment::default() };
        let ran = run_in(arguments, "", &environment);
        (ran.exit, ran.stdout, ran.stderr)
    };
    for shell in ["bash", "zsh", "fish"] {
        let login = with(Some(&format!("/usr/bin/{shell}")), &["completions"]);
        assert_eq!(login, (0, script(shell), String::new()));
    }
    let (exit, _, error) = with(Some("/bin/tcsh"), &["completions"]);
    assert_eq!(exit, 1);
    assert_eq!(
        error,
        "biplane: error: there are no completions for tcsh, the login shell; say bash, zsh or fish\n"
    );
    let (exit, _, error) = with(None, &["completions"]);
    assert_eq!(exit, 1);
    assert_eq!(
        error,
        "biplane: error: cannot tell the shell, for SHELL is not set; say bash, zsh or fish\n"
    );
    for (shell, want) in [
        ("bash", "complete -r biplane\n"),
        ("zsh", "compdef -d biplane\n"),
        ("fish", "complete -c biplane -e\n"),
    ] {
        let gone = with(None, &["completions", shell, "--uninstall"]);
        assert_eq!(gone, (0, want.to_owned(), String::new()));
    }
}

#[test]
fn every_command_has_a_manual_page_with_its_flags() {
    let folder = Folder::new();
    let pages = folder.at("man1");
    let ran = run(&["man", "--output-dir", pages.to_str().unwrap()]);
    assert_eq!((ran.exit, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
    let commands = commands();
    assert_eq!(std::fs::read_dir(&pages).unwrap().count(), commands.len());
    for (words, command) in &commands {
        let name = words.join("-");
        let page = std::fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
        let plain = page.replace('\\', "");
        assert!(plain.contains(&format!(".TH {name} 1")), "{page}");
        for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
            let Some(long) = flag.get_long() else { continue };
            assert!(plain.contains(&format!("--{long}")), "{name} --{long}\n{page}");
        }
        let words: Vec<_> = words.iter().skip(1).map(String::as_str).collect();
        let ran = run(&[&["man"], words.as_slice()].concat());
        assert_eq!((ran.exit, ran.stdout), (0, page));
    }
    let ran = run(&["man", "composition", "rendr"]);
    assert_eq!(ran.exit, 1);
    assert_eq!(
        ran.stderr,
        "biplane: error: there is no manual page for \"composition rendr\": no such command\n"
    );
}

#[test]
fn every_command_of_the_page_about_the_command_line_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_biplane")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", binary.display());
    let folder = Folder::new();
    let commands: Vec<_> =
        page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(commands.len() >= 3);
    for command in commands {
        let output = Command::new("bash")
            .args(["-ec", command])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("SHELL", "/bin/bash")
            .env("HOME", folder.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("CROSSPLANE_CONFIG")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{command}{stderr}");
    }
    let config = std::fs::read_to_string(folder.at("config.yaml")).unwrap();
    assert_eq!(config, "features:\n  enableAlpha: true\nversion: 1\n");
    assert!(folder.at("man1/biplane-render.1").exists());
}
