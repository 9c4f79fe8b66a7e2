//! How the program is linked.

#![allow(clippy::disallowed_methods)] // what Cargo tells a build script stands in the environment

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let says = |key: &str, value: &str| {
        std::env::var(key).is_ok_and(|values| values.split(',').any(|v| v == value))
    };
    if says("CARGO_CFG_TARGET_OS", "linux")
        && says("CARGO_CFG_TARGET_ENV", "gnu")
        && !says("CARGO_CFG_TARGET_FEATURE", "crt-static")
    {
        // At a fixed address, as Go's linker does it: otherwise tens of thousands of pointers in tables are
        // adjusted at each start, which takes longer than a small render and makes pages of the program's
        // file into memory of its own. Stack, heap and libraries stay where chance puts them.
        println!("cargo:rustc-link-arg-bins=-no-pie");
        if std::env::var("HOST").ok() == std::env::var("TARGET").ok() {
            include_the_unwinder();
        }
    }
}

/// Takes GCC's unwinder into the program where the compiler has it as an archive: one library less to
/// find, map and initialise at each start. The standard library asks for the shared one by name, so
/// that name has to lead to the archive.
fn include_the_unwinder() {
    let compiler = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let asked = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output();
    let archive = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let archive = archive.map(|path| PathBuf::from(path.trim_end()));
    // A compiler that does not have it answers with the bare name.
    let Some(archive) = archive.filter(|path| path.is_absolute() && path.is_file()) else { return };
    let Some(folder) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let script = format!("INPUT(\"{}\")\n", archive.display());
    if std::fs::write(folder.join("libgcc_s.so"), script).is_ok() {
        println!("cargo:rustc-link-arg-bins=-L{}", folder.display());
    }
}
