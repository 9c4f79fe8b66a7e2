//! Tests where the configuration is found, how it is validated, and how it is changed.

use super::*;

fn parse(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, text).unwrap();
    Config::load(Some(&path))
        .map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))
}

fn arguments(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

/// CLI-31, T-57
#[test]
fn the_flag_is_found_before_flags_are_parsed() {
    for (line, want) in [
        ("biplane render", Ok(None)),
        ("biplane --config a render", Ok(Some("a"))),
        ("biplane render --config=a --config=b", Ok(Some("a"))),
        ("biplane render --configuration=a", Ok(None)),
        ("biplane render -- --config=a", Ok(None)),
        ("biplane render --config=", Err("flag --config requires a value")),
        ("biplane render --config", Err("flag --config requires a value")),
        ("biplane --config= --config=b", Err("flag --config requires a value")),
    ] {
        let found = flag(&arguments(line)).map_err(|error| error.to_string());
        assert_eq!(found, want.map(|p| p.map(PathBuf::from)).map_err(str::to_owned), "{line}");
    }
}

/// CLI-30
#[test]
fn the_nearest_place_wins() {
    let some = |text: &str| Some(PathBuf::from(text));
    let mut environment = Environment {
        config: some("/env.yaml"),
        config_home: some("/xdg"),
        home: some("/home/me"),
        ..Environment::default()
    };
    assert_eq!(path(some("/flag.yaml"), &environment), some("/flag.yaml"));
    assert_eq!(path(None, &environment), some("/env.yaml"));
    environment.config = None;
    assert_eq!(path(None, &environment), some("/xdg/crossplane/config.yaml"));
    environment.config_home = None;
    assert_eq!(path(None, &environment), some("/home/me/.config/crossplane/config.yaml"));
    environment.home = None;
    assert_eq!(path(None, &environment), None);
    assert_eq!(Config::load(None).unwrap(), Config::default());
}

/// CLI-32, T-56
#[test]
fn files_say_their_version_and_what_is_turned_on() {
    let alpha = Features { enable_alpha: true, ..Features::default() };
    for (text, want) in [
        ("version: 1", Ok(Features::default())),
        ("version: 1\nfeatures:\n  enableAlpha: true\n", Ok(alpha)),
        ("version: 1\nfeatures: {enableAlpha: true, other: 1}\nmore: {}\n", Ok(alpha)),
        ("version: 1\nfeatures:\n", Ok(Features::default())),
        ("version: 2", Err("unsupported config version 2\n--> FILE: version must be 1")),
        ("features: {}", Err("unsupported config version 0\n--> FILE: version must be 1")),
        ("", Err("unsupported config version 0\n--> FILE: version must be 1")),
        ("- a", Err("cannot parse config file FILE: the file must be an object")),
        ("version: one", Err("cannot parse config file FILE: version must be a whole number")),
        (
            "version: 1\nfeatures: {disableBeta: 3}",
            Err("cannot parse config file FILE: features.disableBeta must be true or false"),
        ),
    ] {
        let want = want.map(|features| Config { features }).map_err(str::to_owned);
        assert_eq!(parse(text), want, "{text}");
    }
    let error = parse("version: [").unwrap_err();
    assert!(error.starts_with("cannot parse config file FILE: "), "{error}");
    assert_eq!(Config::load(Some(Path::new("/nowhere/c.yaml"))).unwrap(), Config::default());
}

/// CLI-34
#[test]
fn keys_take_the_words_that_mean_true_or_false() {
    for (word, want) in ["1", "t", "T", "TRUE", "true", "True"]
        .map(|w| (w, true))
        .into_iter()
        .chain(["0", "f", "F", "FALSE", "false", "False"].map(|w| (w, false)))
    {
        let mut config = Config::default();
        config.features.disable_beta = !want;
        config.set("features.disableBeta", word).unwrap();
        assert_eq!(config.features.disable_beta, want, "{word}");
    }
    let mut config = Config::default();
    for (key, value, error) in [
        (
            "enableAlpha",
            "true",
            "unknown config key \"enableAlpha\" (supported: features.disableBeta, features.enableAlpha, features.generateGoModelAccessors, features.generateGoRuntimeObjects)",
        ),
        (
            "features.enableAlpha",
            "yes",
            "invalid bool value \"yes\" for key features.enableAlpha: strconv.ParseBool: parsing \"yes\": invalid syntax",
        ),
    ] {
        assert_eq!(config.set(key, value).unwrap_err().to_string(), error);
    }
    assert_eq!(config, Config::default());
}

/// CLI-33
#[test]
fn only_what_is_turned_on_is_written() {
    let mut config = Config::default();
    assert_eq!(config.to_yaml(), "version: 1\n");
    config.features.enable_alpha = true;
    config.features.generate_go_model_accessors = true;
    let text = "features:\n  enableAlpha: true\n  generateGoModelAccessors: true\nversion: 1\n";
    assert_eq!(config.to_yaml(), text);
    assert_eq!(parse(text).unwrap(), config);
}
