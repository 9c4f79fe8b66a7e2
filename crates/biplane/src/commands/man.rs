//! `man`: prints manual pages, generated from the same tree as help.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use biplane_go::fmt::quote;
use clap::Args;
use clap_mangen::Man as Page;

use crate::values;
use biplane_console::Streams;

const EXAMPLES: &str = "\
Examples:
  # Read the page of a command
  biplane man composition render | man -l -

  # Install all pages
  biplane man --output-dir ~/.local/share/man/man1";

/// Print a manual page, or write all of them to a folder
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Man {
    /// The command whose page to print; none for the program itself
    #[arg(value_name = "COMMAND", conflicts_with = "output_dir")]
    command: Vec<String>,
    /// Write the pages of all commands to this folder
    #[arg(short = 'o', long, value_name = "DIR", value_parser = values::path)]
    output_dir: Option<PathBuf>,
}

impl Man {
    /// Prints or writes the pages of the given command tree.
    pub fn run(&self, mut tree: clap::Command, streams: &mut Streams<'_>) -> Result<()> {
        tree = tree.disable_help_subcommand(true);
        tree.build();
        if let Some(folder) = &self.output_dir {
            std::fs::create_dir_all(folder).with_context(|| {
                format!("cannot create folder {}", quote(&folder.display().to_string()))
            })?;
            return write_all(&tree, folder);
        }
        let mut command = &tree;
        for name in &self.command {
            let below = command.get_subcommands().find(|below| below.get_name() == name);
            let Some(below) = below else {
                bail!(
                    "there is no manual page for {}: no such command",
                    quote(&self.command.join(" "))
                );
            };
            command = below;
        }
        streams.stdout.write_all(&page(command)?).context("cannot write manual page")
    }
}

fn write_all(command: &clap::Command, folder: &Path) -> Result<()> {
    let file = folder.join(Page::new(command.clone()).get_filename());
    std::fs::write(&file, page(command)?).with_context(|| {
        format!("cannot write manual page {}", quote(&file.display().to_string()))
    })?;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_all(below, folder)?;
    }
    Ok(())
}

fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Page::new(command.clone()).render(&mut page).context("cannot make manual page")?;
    let page = String::from_utf8(page).context("cannot make manual page")?;
    Ok(page.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n").into_bytes())
}
