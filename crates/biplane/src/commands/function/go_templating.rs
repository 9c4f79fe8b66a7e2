//! The flags that only `function-go-templating` has, and what its templates see of the machine.

use std::net::ToSocketAddrs as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use biplane_function::Function;
use biplane_functions::go_templating::{GoDuration, GoTemplating, World};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches as _};

use super::described::Described;
use crate::values;

pub(super) const DESCRIBED: Described = Described {
    name: "function-go-templating",
    about: "Composes resources from Go templates",
    examples: "\n\n  # With templates that are mounted, for steps without a source\n  \
               biplane function serve go-templating --insecure --default-source=/templates\n\n  \
               # With templates from one folder only, and missing keys as errors\n  \
               biplane function serve go-templating --insecure --template-root=/templates --default-options=missingkey=error",
    declare,
    set_up: Some(set_up),
};

/// The flags, and the variable that only this function has for a flag of every function.
fn declare(command: Command) -> Command {
    Flags::augment_args(command).arg(
        Arg::new("max_recv_message_size")
            .long("max-recv-message-size")
            .help("Largest request to accept, in MiB")
            .value_name("MAX_RECV_MESSAGE_SIZE")
            .default_value("4")
            .env("FUNCTION_GO_TEMPLATING_MAX_RECV_MESSAGE_SIZE")
            .value_parser(values::count::<usize>),
    )
}

#[derive(Debug, Args)]
struct Flags {
    /// How long answers may be cached when neither the input nor the composite resource says, such
    /// as 10m
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true,
        value_parser = values::signed_duration)]
    ttl: Option<GoDuration>,
    /// Folder or file with templates for inputs without a source
    #[arg(
        long,
        value_name = "PATH",
        default_value = "",
        hide_default_value = true,
        env = "FUNCTION_GO_TEMPLATING_DEFAULT_SOURCE"
    )]
    default_source: String,
    /// Options of templates for inputs without options, such as missingkey=error
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        hide_default_value = true,
        env = "FUNCTION_GO_TEMPLATING_DEFAULT_OPTIONS"
    )]
    default_options: String,
    /// Folder below which templates are read; paths of inputs begin there
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    template_root: PathBuf,
}

fn set_up(matches: &ArgMatches) -> anyhow::Result<Arc<dyn Function>> {
    let flags = Flags::from_arg_matches(matches)?;
    let mut function = GoTemplating::default()
        .with_default_source(flags.default_source)
        .with_default_options(flags.default_options)
        .with_template_root(flags.template_root)
        .with_world(Arc::new(Live { started: Instant::now() }));
    if let Some(ttl) = flags.ttl {
        function = function.with_ttl(ttl);
    }
    Ok(Arc::new(function))
}

/// The clock, the random numbers and the resolver of this machine.
#[derive(Debug)]
struct Live {
    started: Instant,
}

#[allow(clippy::disallowed_methods)] // the clock and the random numbers come in here
impl World for Live {
    fn now(&self) -> (i64, u32) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
    }

    fn seed(&self) -> [u8; 32] {
        let [first, second] = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
        let mut seed = [0; 32];
        for (to, from) in seed.iter_mut().zip(first.as_bytes().iter().chain(second.as_bytes())) {
            *to = *from;
        }
        seed
    }

    fn resolve(&self, name: &str) -> Result<Vec<String>, String> {
        let found = (name, 0).to_socket_addrs();
        let found = found.map_err(|_| format!("lookup {name}: no such host"))?;
        Ok(found.map(|address| address.ip().to_string()).collect())
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}
