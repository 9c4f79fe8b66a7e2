//! How the program is linked.

#![allow(clippy::disallowed_methods)] // what Cargo tells a build script stands in the environment

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let says = |key: &str, value: &str| {
        std::env::var(key).is_ok_and(|values| values.split(',').any(|v| v == value))
    };
    // At a fixed address, as Go's linker does it: otherwise tens of thousands of pointers in tables are
    // adjusted at each start, which takes longer than a small render and makes pages of the program's
    // file into memory of its own. Stack, heap and libraries stay where chance puts them.
    if says("CARGO_CFG_TARGET_OS", "linux")
        && says("CARGO_CFG_TARGET_ENV", "gnu")
        && !says("CARGO_CFG_TARGET_FEATURE", "crt-static")
    {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
