//! The value of `--package-runtime`.

use std::collections::BTreeMap;
use std::str::FromStr;

/// Where packages of each kind run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runtimes(BTreeMap<Kind, Runtime>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Configuration,
    Function,
    Provider,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runtime {
    Deployment,
    External,
    InProcess,
}

impl Runtimes {
    /// Whether functions run in this process where it has them.
    pub(super) fn functions_in_process(&self) -> bool {
        self.0.get(&Kind::Function) == Some(&Runtime::InProcess)
    }
}

impl FromStr for Runtime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "Deployment" => Ok(Self::Deployment),
            "External" => Ok(Self::External),
            "InProcess" => Ok(Self::InProcess),
            other => Err(format!(
                "unsupported package runtime {other:?}, supported runtimes are [\"Deployment\", \"External\", \"InProcess\"]"
            )),
        }
    }
}

impl FromStr for Runtimes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains('=') {
            let runtime: Runtime = text.parse()?;
            let kinds = [Kind::Configuration, Kind::Function, Kind::Provider];
            return Ok(Self(kinds.map(|kind| (kind, runtime)).into()));
        }
        let mut all = BTreeMap::new();
        for part in text.split(';') {
            let (kind, runtime) = part.split_once('=').ok_or_else(|| {
                format!("{part:?} is not a kind and a runtime, such as Function=InProcess")
            })?;
            let kind = match kind {
                "Configuration" => Kind::Configuration,
                "Function" => Kind::Function,
                "Provider" => Kind::Provider,
                other => {
                    return Err(format!(
                        "unsupported package kind {other:?}, supported kinds are [\"Configuration\", \"Provider\", \"Function\"]"
                    ));
                }
            };
            all.insert(kind, runtime.parse()?);
        }
        Ok(Self(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_for_all_kinds_or_for_some() {
        // RTM-1
        for (text, want) in [
            ("Deployment", false),
            ("External", false),
            ("InProcess", true),
            ("Function=InProcess", true),
            ("Provider=External;Function=InProcess", true),
            ("Provider=InProcess", false),
        ] {
            assert_eq!(text.parse::<Runtimes>().unwrap().functions_in_process(), want, "{text}");
        }
        for (text, want) in [
            ("deployment", "unsupported package runtime \"deployment\""),
            ("Function=Pod", "unsupported package runtime \"Pod\""),
            ("Widget=External", "unsupported package kind \"Widget\""),
            ("Function=External;", "\"\" is not a kind and a runtime"),
        ] {
            let error = text.parse::<Runtimes>().unwrap_err();
            assert!(error.starts_with(want), "{error}");
        }
    }
}
