//! The functions of Sprig, the library that Go templates usually come with.
//!
//! `env` and `expandenv` are missing on purpose. Clocks, randomness and names of hosts come from the
//! [`Host`](crate::func::Host) of the call.

mod address;
mod args;
mod case;
mod cast;
mod compare;
mod crypto;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod encoding;
pub mod json;
mod lists;
mod network;
mod numeric;
mod paths;
mod random;
mod regex;
pub mod semver;
mod strings;
mod text;
pub mod time;
mod url;

use crate::func::Func;

/// All functions.
pub fn functions() -> Vec<Func> {
    [
        crypto::functions(),
        dates::functions(),
        defaults::functions(),
        dicts::functions(),
        encoding::functions(),
        json::functions(),
        lists::functions(),
        network::functions(),
        numeric::functions(),
        paths::functions(),
        random::functions(),
        regex::functions(),
        semver::functions(),
        strings::functions(),
        url::functions(),
    ]
    .concat()
}
