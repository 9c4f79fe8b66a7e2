//! Tests which engine the options select.

use super::*;

fn version() -> EngineOptions {
    EngineOptions { version: Some("v2.3.4".to_owned()), ..EngineOptions::default() }
}

fn chosen(options: &EngineOptions) -> Engine {
    Engine::choose(options, Subject::Composite)
}

fn image(options: &EngineOptions) -> Image {
    let Engine::Image(image) = chosen(options) else { panic!("{options:?}") };
    image
}

/// ENG-1, ENG-11, T-29
#[test]
fn images_are_those_that_options_name() {
    let text = |text: &str| Some(text.to_owned());
    let none = EngineOptions::default;
    let stable = "xpkg.crossplane.io/crossplane/crossplane:stable";
    for (options, want) in [
        (version(), "xpkg.crossplane.io/crossplane/crossplane:v2.3.4"),
        (EngineOptions { image: text("example.org/mine:v1"), ..none() }, "example.org/mine:v1"),
        (EngineOptions { network: text("n0"), ..none() }, stable),
        (EngineOptions { pull: Some(PullPolicy::Always), ..none() }, stable),
    ] {
        assert_eq!(image(&options).reference, want);
    }
    assert_eq!(chosen(&none()), Engine::BuiltIn);
    let shell = PathBuf::from("/bin/sh");
    let binary = EngineOptions { binary: Some(shell.clone()), ..none() };
    assert_eq!(chosen(&binary), Engine::Binary(shell));
}

/// RX-9, T-27
#[test]
fn the_engine_joins_the_network_of_the_first_function_that_has_one() {
    let functions = |networks: &[&str]| -> Vec<Function> {
        let function = |network: &&str| Function {
            name: "fn".into(),
            package: "fn:v1".into(),
            annotations: [(
                "render.crossplane.io/runtime-docker-network".to_owned(),
                (*network).to_owned(),
            )]
            .into(),
            build: None,
        };
        networks.iter().map(function).collect()
    };
    assert_eq!(image(&version()).network(&functions(&["", "n1", "n2"])), Some("n1"));
    let own = EngineOptions { network: Some("n0".to_owned()), ..version() };
    assert_eq!(image(&own).network(&functions(&["", "n1"])), Some("n0"));
    assert_eq!(image(&version()).network(&functions(&[""])), None);
}

#[test]
fn images_are_pulled_as_options_say() {
    assert_eq!(image(&version()).pull, PullPolicy::IfNotPresent);
    let never = EngineOptions { pull: Some(PullPolicy::Never), ..version() };
    assert_eq!(image(&never).pull, PullPolicy::Never);
}
