//! Tests how command lines are parsed, and the messages of usage errors.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use biplane::environment::Environment;
use biplane_function::Registry;
use biplane_functions::dummy::Dummy;
use biplane_model::Value;

use crate::mistakes::{COMPOSITION, XR};
use crate::support::{Folder, Ran, run, run_in, run_words};

const RENDER: &str = "biplane render [OPTIONS] <COMPOSITE-RESOURCE> [COMPOSITION] [FUNCTIONS]";

/// Runs a line in which `XR` and `COMPOSITION` denote files.
fn line(words: &[&str]) -> Ran {
    let folder = Folder::new();
    let (xr, composition) =
        (folder.write("xr.yaml", XR), folder.write("composition.yaml", COMPOSITION));
    let project = format!("--project-file={}", folder.at("none.yaml").display());
    let words: Vec<_> = words
        .iter()
        .map(|&word| match word {
            "XR" => xr.as_str(),
            "COMPOSITION" => composition.as_str(),
            "NO-PROJECT" => project.as_str(),
            word => word,
        })
        .collect();
    run(&words)
}

/// CLI-10 to CLI-15
#[test]
fn mistakes_are_told_with_the_usage_of_their_command() {
    for (words, error, usage) in [
        (
            &["rendr"][..],
            "unexpected argument rendr, did you mean \"render\"?",
            "biplane [OPTIONS] <COMMAND>",
        ),
        (
            &[],
            "expected one of \"changelogs\", \"completions\", \"composition\", \"config\", \"convert\", \"core\", \"dev\", \"function\", \"inspector\", \"man\", \"recorder\", \"render\", \"resource\", \"validate\", \"version\", \"why\"",
            "biplane [OPTIONS] <COMMAND>",
        ),
        (
            &["composition"],
            "expected one of \"convert\", \"render\"",
            "biplane composition [OPTIONS] <COMMAND>",
        ),
        (&["config"], "expected one of \"set\", \"view\"", "biplane config [OPTIONS] <COMMAND>"),
        (
            &["config", "vew"],
            "unexpected argument vew, did you mean \"view\"?",
            "biplane config [OPTIONS] <COMMAND>",
        ),
        (
            &["alpha", "render", "x"],
            "unexpected argument x, did you mean \"xr\"?",
            "biplane alpha render [OPTIONS] <COMMAND>",
        ),
        (&["render"], "expected \"<composite-resource> <composition>\"", RENDER),
        (&["render", "XR"], "expected \"<composition>\"", RENDER),
        (
            &["render", "--xrs", "XR"],
            "expected \"<composition>\": --xrs takes the place of the composite resource argument alone",
            RENDER,
        ),
        (&["render", "XR", "COMPOSITION", "f", "more"], "unexpected argument more", RENDER),
        (
            &["render", "XR", "COMPOSITION", "--summry"],
            "unknown flag --summry, did you mean \"--summary\"?",
            RENDER,
        ),
        (
            &["render", "XR", "COMPOSITION", "--verbos"],
            "unknown flag --verbos, did you mean \"--verbose\"?",
            RENDER,
        ),
        (&["render", "XR", "COMPOSITION", "-cz"], "unknown flag -z", RENDER),
        (
            &["render", "XR", "COMPOSITION", "--no-summary"],
            "unknown flag --no-summary, did you mean \"--summary\"?",
            RENDER,
        ),
        (
            &["render", "XR", "COMPOSITION", "--crossplane-image=a", "--crossplane-version=b"],
            "--crossplane-image and --crossplane-version can't be used together",
            RENDER,
        ),
        (
            &[
                "render",
                "XR",
                "COMPOSITION",
                "--crossplane-binary",
                "XR",
                "--crossplane-docker-network=b",
            ],
            "--crossplane-binary and --crossplane-docker-network can't be used together",
            RENDER,
        ),
        (
            &["render", "XR", "COMPOSITION", "--engine", "XR", "--crossplane-pull-policy=Never"],
            "--crossplane-binary and --crossplane-pull-policy can't be used together",
            RENDER,
        ),
        (&["render", "XR", "COMPOSITION", "--max-rounds=3"], "expected \"--until-stable\"", RENDER),
        (
            &["render", "XR", "COMPOSITION", "--compositions=x"],
            "expected \"--until-stable\"",
            RENDER,
        ),
        (
            &["man", "render", "--output-dir=x"],
            "<command> and --output-dir can't be used together",
            "biplane man [OPTIONS] [COMMAND]...",
        ),
        (
            &["config", "set", "a"],
            "expected \"<value>\"",
            "biplane config set [OPTIONS] <KEY> <VALUE>",
        ),
    ] {
        let ran = line(words);
        assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""), "{words:?}");
        let mut lines = ran.stderr.lines();
        assert_eq!(lines.next().unwrap(), format!("biplane: error: {error}"), "{words:?}");
        assert_eq!(lines.collect::<Vec<_>>(), [format!("Usage: {usage}")], "{words:?}");
    }
}

/// CLI-10: most of these words resemble several commands.
#[test]
fn of_several_commands_the_nearest_is_guessed() {
    for (word, nearest) in [
        ("versio", "version"),
        ("verison", "version"),
        ("completion", "completions"),
        ("compositon", "composition"),
        ("compositio", "composition"),
        ("operatio", "operation"),
        ("functio", "function"),
        ("confg", "config"),
    ] {
        let ran = line(&[word]);
        let first = ran.stderr.lines().next().unwrap();
        let guess =
            format!("biplane: error: unexpected argument {word}, did you mean {nearest:?}?");
        assert_eq!((ran.exit, first), (80, guess.as_str()));
    }
}

/// AR-1, FN-D7: the flags of one function are not flags of all.
#[test]
fn a_flag_of_another_function_is_told_from_one_that_is_not_there() {
    for (words, error, usage) in [
        (
            &["patch-and-transform", "--feature-gates=x"][..],
            "unknown flag --feature-gates: it is a flag of `auto-ready` only",
            "biplane function serve patch-and-transform [OPTIONS]",
        ),
        (
            &["function-dummy", "--insecure", "--ttl", "10m"],
            "unknown flag --ttl: it is a flag of `auto-ready`, `go-templating` only",
            "biplane function serve dummy [OPTIONS]",
        ),
        (
            &["--ttl=10m", "auto-ready"],
            "unknown flag --ttl: it is a flag of `auto-ready`, `go-templating` only",
            "biplane function serve [OPTIONS] <FUNCTION>",
        ),
        (
            &["dummy", "--insecur"],
            "unknown flag --insecur, did you mean \"--insecure\"?",
            "biplane function serve dummy [OPTIONS]",
        ),
        (&["dummy", "more"], "unexpected argument more", "biplane function serve dummy [OPTIONS]"),
        (
            &["function-nope", "--insecure"],
            "there is no function `function-nope`: choose from auto-ready, dummy, environment-configs, go-templating, patch-and-transform",
            "biplane function serve [OPTIONS] <FUNCTION>",
        ),
        (
            &[],
            "expected one of \"auto-ready\", \"dummy\", \"environment-configs\", \"go-templating\", \"patch-and-transform\"",
            "biplane function serve [OPTIONS] <FUNCTION>",
        ),
    ] {
        let ran = line(&[&["function", "serve"], words].concat());
        let want = format!("biplane: error: {error}\nUsage: {usage}\n");
        assert_eq!((ran.exit, ran.stderr), (80, want), "{words:?}");
    }
    let ran = run(&["function", "serve", "auto-ready", "--ttl=soon"]);
    let error = "biplane: error: --ttl: expected duration but got \"soon\": write it as 1m30s\n";
    assert_eq!((ran.exit, ran.stderr.as_str()), (80, error));
    let ran = run(&["internal", "render", "--timeout=soon"]);
    assert_eq!((ran.exit, ran.stderr), (80, error.replace("--ttl", "--timeout")));
}

/// The user's own functions are commands like the built-in ones.
#[test]
fn help_knows_functions_of_ones_own() {
    let own = Registry::default().with("function-mine", Dummy);
    let environment = Environment { own, ..Environment::default() };
    let ran = run_in(&["function", "serve", "--help"], "", &environment);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("\n  mine "), "{}", ran.stdout);
    let ran = run_in(&["function", "serve", "function-mine", "--help"], "", &environment);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let ran = run_in(&["man", "function", "serve", "mine"], "", &environment);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
}

/// CLI-1, CLI-2: every upstream command, in every spelling, exists or is listed as absent.
#[test]
fn commands_of_upstream_that_are_not_there_are_known() {
    let there = [
        "completions",
        "composition render",
        "config set",
        "config view",
        "operation render",
        "version",
        "render",
        "alpha render op",
        "alpha render xr",
        "beta render",
        "composition convert composition-environment",
        "beta convert composition-environment",
        "beta convert deployment-runtime",
        "beta convert pipeline-composition",
    ];
    for path in there {
        let words: Vec<_> = path.split(' ').chain(["--help"]).collect();
        assert_eq!(run(&words).exit, 0, "{path}");
    }
    let moved =
        |to: &str, from: &str| format!("`crossplane {to}`, or `crossplane {from}` before v2.3");
    let same = |path: &str| format!("`crossplane {path}`");
    let absent = [
        ("beta top", moved("cluster top", "beta top")),
        ("beta trace", moved("resource trace", "beta trace")),
        ("beta upgrade check", "`crossplane beta upgrade check` of v1.20".to_owned()),
        (
            "xpkg login",
            "`docker login` and `docker logout`, or `crossplane` before v2.3".to_owned(),
        ),
        (
            "xpkg logout",
            "`docker login` and `docker logout`, or `crossplane` before v2.3".to_owned(),
        ),
        ("configuration", "`crossplane xpkg`".to_owned()),
        ("diff", "`crossplane-diff`".to_owned()),
    ];
    let alike = "cluster top|composition generate|dependency add|dependency clean-cache|\
        dependency update-cache|function generate|project build|project init|project push|project run|\
        project stop|resource trace|xpkg batch|xpkg build|xpkg extract|xpkg get-crds|\
        xpkg init|xpkg install|xpkg push|xpkg update|xr generate|xr patch|xrd convert|xrd generate";
    let alike = alike.split('|').map(|path| (path, same(path)));
    for (path, instead) in absent.into_iter().chain(alike) {
        let want = format!("biplane: error: biplane has no `{path}` yet: use {instead}\n");
        for rest in [&[][..], &["a.yaml", "--flag"], &["--help"]] {
            let words: Vec<_> = path.split(' ').chain(rest.iter().copied()).collect();
            let ran = run(&words);
            assert_eq!((ran.exit, ran.stdout.as_str(), &ran.stderr), (80, "", &want), "{words:?}");
        }
    }
    let ran = run(&["--verbose", "beta", "--config=/nowhere", "trace"]);
    assert!(ran.stderr.starts_with("biplane: error: biplane has no `beta trace` yet: "));
    // A command that upstream does not have either is an ordinary error.
    let ran = run(&["xrds"]);
    assert!(ran.stderr.starts_with("biplane: error: unexpected argument xrds"), "{}", ran.stderr);
}

#[test]
fn an_argument_that_is_not_utf_8_is_named() {
    let odd = OsString::from_vec(b"xr-\xff.yaml".to_vec());
    for command in [&["render"][..], &["composition", "render"]] {
        let mut line: Vec<_> = command.iter().map(OsString::from).collect();
        line.insert(0, "biplane".into());
        line.extend([odd.clone(), "composition.yaml".into()]);
        let ran = run_words(line, b"", &Environment::default());
        assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""));
        let first = ran.stderr.lines().next();
        assert_eq!(first, Some("biplane: error: not UTF-8: \"xr-\\xff.yaml\""));
    }
}

/// CLI-11
#[test]
fn a_tilde_is_the_home_folder_of_the_environment() {
    let folder = Folder::new();
    for (name, text) in [("xr.yaml", XR), ("composition.yaml", COMPOSITION)] {
        folder.write(name, text);
    }
    folder.write("context.json", "7");
    let line = [
        "render",
        "~/xr.yaml",
        "~/composition.yaml",
        "--project-file=~/none.yaml",
        "--context-files=a=~/context.json",
        "--output-format=json",
        "-c",
    ];
    let home = Some(folder.path().to_owned());
    let ran = run_in(&line, "", &Environment { home, ..Environment::default() });
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("\"a\":7"), "{}", ran.stdout);
    // Without a home folder in the environment, that of the process is not used.
    let ran = run_in(&line, "", &Environment::default());
    assert_eq!(ran.exit, 80, "{}", ran.stderr);
    assert!(ran.stderr.contains("/~/xr.yaml: no such file"), "{}", ran.stderr);
}

/// Errors that the parser of the command line cannot detect.
#[test]
fn flags_that_would_have_no_effect_are_refused() {
    let together = |flags: &str| format!("{flags} can't be used together");
    let no_engine = |flag: &str| {
        let text = together(&format!("{flag} and --output-format=v1"));
        format!("{text}: what the v1 line printed came of no engine")
    };
    for (flags, error) in [
        (&["--until-stable"][..], together("--until-stable and --output-format=v1")),
        (&["--engine", "XR"], no_engine("--crossplane-binary")),
        (&["--crossplane-version=v2.3.4"], no_engine("--crossplane-version")),
        (&["--crossplane-image=i"], no_engine("--crossplane-image")),
        (&["--crossplane-docker-network=n"], no_engine("--crossplane-docker-network")),
        (&["--crossplane-pull-policy=Never"], no_engine("--crossplane-pull-policy")),
    ] {
        let words = [&["render", "XR", "COMPOSITION", "--output-format=v1"], flags].concat();
        let ran = line(&words);
        assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""), "{flags:?}");
        assert_eq!(ran.stderr, format!("biplane: error: {error}\n"), "{flags:?}");
    }
}

/// CLI-11
#[test]
fn values_of_the_wrong_type_are_refused() {
    for (flag, error) in [
        (
            "--verbose=maybe",
            "--verbose: bool value must be true, 1, yes, false, 0 or no but got \"maybe\"",
        ),
        (
            "--include-context=2",
            "--include-context: bool value must be true, 1, yes, false, 0 or no but got \"2\"",
        ),
        ("--timeout", "--timeout: expected duration value but got \"EOL\" (<EOL>)"),
        ("--timeout=1", "--timeout: expected duration but got \"1\": write it as 1m30s"),
        ("--max-concurrency=x", "--max-concurrency: expected a whole number above 0 but got \"x\""),
        ("--max-rounds=x", "--max-rounds: expected a whole number above 0 but got \"x\""),
        ("--max-rounds=0", "--max-rounds: expected a whole number above 0 but got \"0\""),
        ("--max-rounds=-1", "--max-rounds: expected a whole number above 0 but got \"-1\""),
        ("--max-concurrency=0", "--max-concurrency: expected a whole number above 0 but got \"0\""),
        (
            "--output-format=yaml",
            "--output-format must be one of \"v2\",\"v1\",\"json\" but got \"yaml\"",
        ),
        ("--xrd=/", "--xrd: \"/\" exists but is a directory"),
        ("--context-files=a", "--context-files: expected \"<key>=<value>\" but got \"a\""),
        ("--context-values=a=1;b", "--context-values: expected \"<key>=<value>\" but got \"b\""),
    ] {
        let ran = line(&["render", "XR", "COMPOSITION", flag]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""), "{flag}");
        assert_eq!(ran.stderr.lines().next(), Some(format!("biplane: error: {error}").as_str()));
    }
    let ran = run(&["completions", "csh"]);
    assert_eq!(ran.exit, 80);
    assert_eq!(
        ran.stderr,
        "biplane: error: <shell> must be one of \"bash\",\"zsh\",\"fish\" but got \"csh\"\n"
    );
}

/// The kinds of the documents that a render with these flags prints.
fn kinds(flags: &[&str]) -> String {
    let ran = line(
        &[&["render", "XR", "COMPOSITION", "NO-PROJECT", "--output-format=json"], flags].concat(),
    );
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{flags:?}");
    let kind = |line: &str| {
        let document: Value = serde_json::from_str(line).unwrap();
        document["kind"].as_str().unwrap().to_owned()
    };
    ran.stdout.lines().map(kind).collect::<Vec<_>>().join(" ")
}

/// CLI-10
#[test]
fn flags_that_are_on_or_off_take_a_value_after_an_equals_sign() {
    let context = "--context-values=a=1";
    for (flags, want) in [
        (&[][..], "XApp"),
        (&["-c"], "XApp Context"),
        (&["--include-context"], "XApp Context"),
        (&["--include-context=true"], "XApp Context"),
        (&["--include-context=YES"], "XApp Context"),
        (&["--include-context=false"], "XApp"),
        (&["--include-context", "--include-context=0"], "XApp"),
        (&["-c=false"], "XApp"),
        (&["-c", "--verbose=false"], "XApp Context"),
        (&["-cx"], "XApp Context"),
        (&["-xc", "--summary=no", "--timing=0", "--no-builtin=false"], "XApp Context"),
    ] {
        assert_eq!(kinds(&[flags, &[context]].concat()), want, "{flags:?}");
    }
    // Without an equals sign, the next argument is not a value.
    let ran = line(&["render", "-c", "XR", "COMPOSITION", "NO-PROJECT"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    // Subcommands keep the global flags before them.
    let ran = line(&["--verbose=true", "composition", "render", "XR", "COMPOSITION", "NO-PROJECT"]);
    assert!(ran.stderr.contains("\tDEBUG\t"), "{}", ran.stderr);
}

/// CLI-10, CLI-13, CLI-14
#[test]
fn values_may_be_written_in_every_usual_way() {
    let context = |flags: &[&str]| {
        let words =
            [&["render", "XR", "COMPOSITION", "NO-PROJECT", "--output-format=json", "-c"], flags];
        let ran = line(&words.concat());
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{flags:?}");
        let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
        last["fields"].to_string()
    };
    for (flags, want) in [
        (&["--context-values", "a=1"][..], r#"{"a":1}"#),
        (&["--context-values=a=1;b={\"c\":2}"], r#"{"a":1,"b":{"c":2}}"#),
        (&["--context-values=a=1", "--context-values=b=2"], r#"{"a":1,"b":2}"#),
        (&["--context-values=a=1", "--context-values=a=2"], r#"{"a":2}"#),
        (&["--context-values=a='x\\;y'"], r#"{"a":"x;y"}"#),
        (&["--context-values=a=b=c"], r#"{"a":"b=c"}"#),
    ] {
        assert_eq!(context(flags), want, "{flags:?}");
    }
    // Flags may be anywhere, and two dashes end them.
    let ran = line(&["render", "NO-PROJECT", "--timeout", "2m", "--", "XR", "COMPOSITION"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let ran = line(&["render", "-o/nowhere.yaml", "XR", "COMPOSITION", "NO-PROJECT"]);
    assert_eq!(ran.exit, 1);
    assert!(ran.stderr.contains("from \"/nowhere.yaml\""), "{}", ran.stderr);
}

/// CLI-2
#[test]
fn old_paths_lead_to_the_same_commands() {
    let documents = |path: &[&str]| {
        let ran = line(&[path, &["XR", "COMPOSITION", "NO-PROJECT"]].concat());
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{path:?}");
        ran.stdout
    };
    let today = documents(&["composition", "render"]);
    for path in [&["render"][..], &["beta", "render"], &["alpha", "render", "xr"]] {
        assert_eq!(documents(path), today, "{path:?}");
    }
    let ran = run(&["alpha", "render", "op", "/nowhere"]);
    assert!(ran.stderr.starts_with("biplane: error: <operation>: stat /nowhere"), "{}", ran.stderr);
}
