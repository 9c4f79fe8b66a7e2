//! Where a function runs that is asked again.

use anyhow::Result;
use biplane_function::Registry;
use biplane_runtime::Function;
use biplane_runtime::function::RUNTIME;

use crate::commands::records::usage;
use crate::environment::Environment;

/// Where a function runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// In this process, under its name in the box.
    Box(String),
    /// At an address.
    Address(String),
    /// In a container of an image.
    Image(String),
}

impl Target {
    /// Reads a target: a name of the box, an address, or else an image.
    fn read(text: &str, registry: &Registry) -> Self {
        if let Some(name) = in_box(text, registry) {
            return Self::Box(name);
        }
        let is_path = text.starts_with('/') || text.contains("://") || text.starts_with("unix:");
        let has_port = !text.contains('/')
            && text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if is_path || has_port {
            return Self::Address(text.to_owned());
        }
        Self::Image(text.to_owned())
    }

    /// Where that is, for people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Box(name) => format!("{name} in the box"),
            Self::Address(target) | Self::Image(target) => target.clone(),
        }
    }

    /// The function as a file of functions would have it.
    pub(super) fn function(&self, name: &str) -> Function {
        let annotated = |package: &str, annotations: &[(&str, &str)]| {
            let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            let annotations = annotations.iter().map(pair).collect();
            Function::new(name.to_owned(), package.to_owned(), annotations)
        };
        match self {
            Self::Box(in_box) => annotated(in_box, &[(RUNTIME, "InProcess")]),
            Self::Address(address) => {
                let target = "render.crossplane.io/runtime-development-target";
                annotated(name, &[(RUNTIME, "Development"), (target, address)])
            }
            Self::Image(image) => annotated(image, &[(RUNTIME, "Docker")]),
        }
    }
}

/// The function of the box that a name means. Installed functions often have the name of their
/// organisation before their own.
pub(in super::super) fn in_box(wanted: &str, registry: &Registry) -> Option<String> {
    let is_meant = |name: &&str| {
        wanted == *name
            || wanted.strip_suffix(*name).is_some_and(|before| before.ends_with('-'))
            || name.strip_prefix("function-") == Some(wanted)
    };
    registry.names().find(is_meant).map(str::to_owned)
}

/// Where each function runs.
#[derive(Debug)]
pub(super) struct Targets {
    /// What was told, with the function that it is for if there are several.
    told: Vec<(Option<String>, Told)>,
    registry: Registry,
}

#[derive(Clone, Debug)]
enum Told {
    Any(String),
    Is(Target),
}

impl Targets {
    /// Takes what the flags say.
    pub(super) fn new(with: &[String], address: Option<&str>, image: Option<&str>) -> Self {
        let one = |text: &String| match text.split_once('=') {
            Some((function, target)) => (Some(function.to_owned()), Told::Any(target.to_owned())),
            None => (None, Told::Any(text.clone())),
        };
        let mut told: Vec<(Option<String>, Told)> = with.iter().map(one).collect();
        let is = |target| (None, Told::Is(target));
        told.extend(address.map(|address| is(Target::Address(address.to_owned()))));
        told.extend(image.map(|image| is(Target::Image(image.to_owned()))));
        Self { told, registry: Registry::default() }
    }

    /// Adds the functions of the box.
    pub(super) fn with_box(self, environment: &Environment) -> Self {
        Self { registry: biplane_functions::registry().and(&environment.own), ..self }
    }

    /// Whether a target was told for no function in particular.
    pub(super) fn has_general(&self) -> bool {
        self.told.iter().any(|(function, _)| function.is_none())
    }

    /// Where a function runs.
    pub(super) fn of(&self, function: &str) -> Result<Target> {
        let own = self.told.iter().find(|(of, _)| of.as_deref() == Some(function));
        let told = own.or_else(|| self.told.iter().find(|(of, _)| of.is_none()));
        match told {
            Some((_, Told::Is(target))) => Ok(target.clone()),
            Some((_, Told::Any(text))) => Ok(Target::read(text, &self.registry)),
            None => {
                let missing = || {
                    usage(&format!(
                        "{function:?} is not in the box: say with --with where it runs: the name of one in the box, an address or an image"
                    ))
                };
                Ok(Target::Box(in_box(function, &self.registry).ok_or_else(missing)?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_apart() {
        let registry = biplane_functions::registry();
        let in_box = |name: &str| Target::Box(name.to_owned());
        for (text, want) in [
            ("function-auto-ready", in_box("function-auto-ready")),
            ("auto-ready", in_box("function-auto-ready")),
            ("crossplane-contrib-function-auto-ready", in_box("function-auto-ready")),
            ("localhost:9443", Target::Address("localhost:9443".into())),
            ("unix:///tmp/f.sock", Target::Address("unix:///tmp/f.sock".into())),
            ("example.org/function:v2", Target::Image("example.org/function:v2".into())),
            ("localhost:5000/function", Target::Image("localhost:5000/function".into())),
            ("function:v2", Target::Image("function:v2".into())),
        ] {
            assert_eq!(Target::read(text, &registry), want, "{text}");
        }
    }

    #[test]
    fn a_function_of_several_has_a_target_of_its_own() {
        let with = ["function-a=localhost:1".to_owned(), "localhost:2".to_owned()];
        let targets = Targets::new(&with, None, None);
        assert_eq!(targets.of("function-a").unwrap(), Target::Address("localhost:1".into()));
        assert_eq!(targets.of("function-b").unwrap(), Target::Address("localhost:2".into()));
        let none = Targets::new(&[], None, None);
        assert!(none.of("function-b").unwrap_err().to_string().contains("is not in the box"));
        assert!(targets.has_general() && !none.has_general());
    }
}
