//! The flags that only `function-auto-ready` has.

use std::sync::Arc;

use anyhow::Context as _;
use biplane_function::Function;
use biplane_functions::auto_ready::{AutoReady, GoDuration};
use clap::{ArgMatches, Args, FromArgMatches as _};

use super::described::Described;
use crate::values;

pub(super) const DESCRIBED: Described = Described {
    name: "function-auto-ready",
    about: "Derives the readiness of composed resources from what is observed of them",
    examples: "\n\n  # With rules of one's own about readiness, and answers that may be cached for longer\n  \
               biplane function serve auto-ready --insecure --ttl=10m --feature-gates=CELHealthcheckCustomizations=true",
    declare: Flags::augment_args,
    set_up: Some(set_up),
};

#[derive(Debug, Args)]
struct Flags {
    /// How long answers may be cached when the input does not say, such as 10m
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true,
        value_parser = values::signed_duration)]
    ttl: Option<GoDuration>,
    /// Features to turn on or off, as Name=true,Other=false
    #[arg(long, value_name = "GATES")]
    feature_gates: Option<String>,
}

fn set_up(matches: &ArgMatches) -> anyhow::Result<Arc<dyn Function>> {
    let flags = Flags::from_arg_matches(matches)?;
    let mut function = AutoReady::default();
    if let Some(ttl) = flags.ttl {
        function = function.with_ttl(ttl);
    }
    if let Some(gates) = &flags.feature_gates {
        function = function.with_feature_gates(gates).context("cannot set feature gates")?;
    }
    Ok(Arc::new(function))
}
