//! Tasks of this workspace: `cargo xtask help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod codegen;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Tasks of this workspace")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Write the Rust code of the wire contracts in proto/.
    Codegen {
        /// Fail where the committed code is not current, write nothing.
        #[arg(long)]
        check: bool,
    },
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn main() -> Result<()> {
    match Args::parse().task {
        Task::Codegen { check } => codegen::run(&root(), check),
    }
}
