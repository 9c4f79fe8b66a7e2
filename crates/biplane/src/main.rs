//! Entry point of the `biplane` program.

use std::process::ExitCode;

use biplane_function::Registry;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    biplane::cli::main(Registry::default())
}
