//! Entry point.

use std::process::ExitCode;

use biplane::progress::Progress;
use biplane::streams::Streams;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut streams = Streams {
        stdin: &mut std::io::stdin(),
        stdout: &mut std::io::stdout(),
        stderr: &mut std::io::stderr(),
        verbose: false,
        progress: Progress::on_terminal(),
    };
    ExitCode::from(biplane::cli::run(std::env::args_os(), &mut streams))
}
