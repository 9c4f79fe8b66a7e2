//! Which engine flags choose.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    flags: EngineFlags,
}

fn chosen(flags: &[&str], networks: &[&str]) -> Engine {
    let line = Line::parse_from(std::iter::once("test").chain(flags.iter().copied()));
    let key = "render.crossplane.io/runtime-docker-network";
    let functions = networks.iter().map(|network| Function {
        name: "fn".into(),
        package: "fn:v1".into(),
        annotations: [(key.to_owned(), (*network).to_owned())].into(),
        build: None,
    });
    let functions: Vec<_> = functions.collect();
    Engine::of(&line.flags, What::Composite, &functions)
}

fn image(flags: &[&str], networks: &[&str]) -> Image {
    let Engine::Image(image) = chosen(flags, networks) else { panic!("{flags:?}") };
    image
}

/// ENG-1, ENG-11, T-29
#[test]
fn images_are_those_that_flags_name() {
    for (flags, want) in [
        (&["--crossplane-version=v2.3.4"][..], "xpkg.crossplane.io/crossplane/crossplane:v2.3.4"),
        (&["--crossplane-image=example.org/mine:v1"], "example.org/mine:v1"),
        (&["--crossplane-docker-network=n0"], "xpkg.crossplane.io/crossplane/crossplane:stable"),
        (&["--crossplane-pull-policy=Always"], "xpkg.crossplane.io/crossplane/crossplane:stable"),
    ] {
        assert_eq!(image(flags, &[]).reference, want);
    }
    assert_eq!(chosen(&[], &["n1"]), Engine::BuiltIn);
    assert_eq!(
        chosen(&["--crossplane-binary=/bin/sh"], &[]),
        Engine::Binary(PathBuf::from("/bin/sh"))
    );
}

/// RX-9, T-27
#[test]
fn the_engine_joins_the_network_of_the_first_function_that_has_one() {
    let networks = ["", "n1", "n2"];
    let version = "--crossplane-version=v2.3.4";
    assert_eq!(image(&[version], &networks).network.as_deref(), Some("n1"));
    let flag = "--crossplane-docker-network=n0";
    assert_eq!(image(&[version, flag], &networks).network.as_deref(), Some("n0"));
    assert_eq!(image(&[version], &[""]).network, None);
}

#[test]
fn images_are_pulled_as_flags_say() {
    let version = "--crossplane-version=v2.3.4";
    assert_eq!(image(&[version], &[]).pull, PullPolicy::IfNotPresent);
    let never = "--crossplane-pull-policy=Never";
    assert_eq!(image(&[version, never], &[]).pull, PullPolicy::Never);
}
