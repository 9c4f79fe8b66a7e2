//! Names of hosts. The caller resolves them.

use super::args::text;
use super::random;
use crate::func::Func;
use crate::types::Type;
use crate::value::Value;

/// A lookup can wait for the network, so that few of them end a run that takes too long.
const LOOKUP: u64 = 10_000;

pub(super) fn functions() -> Vec<Func> {
    vec![Func::new("getHostByName", &[Type::String], Type::String, |call, args| {
        let name = String::from_utf8_lossy(text(args, 0)).into_owned();
        call.spend(LOOKUP)?;
        // An unknown name has no addresses, and Go fails to choose one of them.
        let addresses = call.host().resolve(&name).unwrap_or_default();
        let chosen = random::intn(call.host(), addresses.len().cast_signed() as i64)?;
        let chosen = usize::try_from(chosen).ok().and_then(|at| addresses.get(at).cloned());
        Ok(Value::text(chosen.unwrap_or_default()))
    })]
}
