//! `completions`: prints a script with which a shell completes commands and flags.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, ValueEnum};
use clap_complete::aot::{Bash, Fish, Generator, Zsh};

use biplane_console::Streams;

const EXAMPLES: &str = "\
Examples:
  # In this shell, and in ~/.bashrc or ~/.zshrc for all of them
  source <(biplane completions)

  # For one shell
  biplane completions bash > ~/.local/share/bash-completion/completions/biplane
  biplane completions zsh > ~/.zfunc/_biplane
  biplane completions fish > ~/.config/fish/completions/biplane.fish

  # No more in this shell
  source <(biplane completions --uninstall)";

/// Print a script that makes a shell complete commands, flags and files
///
/// Without the name of a shell, the script is for the login shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// The shell; by default what SHELL says
    #[arg(value_enum)]
    shell: Option<Shell>,
    /// Print what takes the completions away again
    #[arg(long)]
    uninstall: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    /// Prints a script for the given command tree.
    pub fn run(
        &self,
        tree: &clap::Command,
        login_shell: Option<&Path>,
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        let shell = self.shell.map_or_else(|| Shell::of(login_shell), Ok)?;
        let script = if self.uninstall {
            shell.uninstall(tree.get_name())
        } else {
            shell.script(visible(tree))?
        };
        streams.stdout.write_all(script.as_bytes()).context("cannot write completions")
    }
}

impl Shell {
    fn of(program: Option<&Path>) -> Result<Self> {
        let name = program.and_then(Path::file_name).and_then(|name| name.to_str());
        let unknown = || match name {
            None => anyhow!("cannot tell the shell, for SHELL is not set; say bash, zsh or fish"),
            Some(name) => {
                anyhow!(
                    "there are no completions for {name}, the login shell; say bash, zsh or fish"
                )
            }
        };
        name.and_then(|name| Self::from_str(name, false).ok()).ok_or_else(unknown)
    }

    fn script(self, mut tree: clap::Command) -> Result<String> {
        let name = tree.get_name().to_owned();
        tree.set_bin_name(&name);
        tree.build();
        let mut script = Vec::new();
        let written = match self {
            Self::Bash => Bash.try_generate(&tree, &mut script),
            Self::Zsh => Zsh.try_generate(&tree, &mut script),
            Self::Fish => Fish.try_generate(&tree, &mut script),
        };
        written.context("cannot make completions")?;
        let mut script = String::from_utf8(script).context("cannot make completions")?;
        match self {
            Self::Bash => script.push_str(&BASH_FILES.replace("NAME", &name)),
            Self::Zsh => script = zsh_files(&script),
            // Fish offers all files, as for every program.
            Self::Fish => script.push_str(&fish_values(&tree)),
        }
        Ok(script)
    }

    fn uninstall(self, name: &str) -> String {
        match self {
            Self::Bash => format!("complete -r {name}\n"),
            Self::Zsh => format!("compdef -d {name}\n"),
            Self::Fish => format!("complete -c {name} -e\n"),
        }
    }
}

/// Makes bash offer files instead of flags where an argument is expected. Almost all arguments are
/// YAML files.
const BASH_FILES: &str = r#"
_NAME_or_files() {
    _NAME "$@"
    local cur="${COMP_WORDS[COMP_CWORD]}" word words=()
    [[ ${cur} == -* ]] && return 0
    for word in "${COMPREPLY[@]}"; do
        [[ ${word} == -* ]] || words+=("${word}")
    done
    if [[ ${#words[@]} -eq 0 ]]; then
        local IFS=$'\n'
        words=( $(compgen -f -X '!*.yaml' -- "${cur}"; compgen -f -X '!*.yml' -- "${cur}"; compgen -d -- "${cur}") )
        [[ "${BASH_VERSINFO[0]}" -ge 4 ]] && compopt -o filenames 2>/dev/null
    fi
    COMPREPLY=( "${words[@]}" )
}

complete -F _NAME_or_files -o bashdefault -o default NAME
"#;

/// The same for zsh, where each argument is on its own line that begins with a colon. Arguments are
/// numbered, because zsh would also offer what follows an optional argument.
fn zsh_files(script: &str) -> String {
    let mut number = 0;
    let line = |line: &str| {
        let Some(rest) = line.strip_prefix("':") else {
            number = 0;
            return line.to_owned();
        };
        number += 1;
        let rest = rest.replace(":_files'", ":_files -g \"*.(yaml|yml)\"'");
        format!("'{number}:{rest}")
    };
    script.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// Makes fish offer the possible values of an argument instead of files.
fn fish_values(tree: &clap::Command) -> String {
    let mut lines = String::new();
    for command in tree.get_subcommands() {
        for argument in command.get_positionals() {
            let values = argument.get_possible_values();
            let values: Vec<_> =
                values.iter().map(clap::builder::PossibleValue::get_name).collect();
            if !values.is_empty() {
                let (name, below, values) = (tree.get_name(), command.get_name(), values.join(" "));
                let _ = writeln!(
                    lines,
                    "complete -c {name} -n \"__fish_{name}_using_subcommand {below}\" -f -a \"{values}\""
                );
            }
        }
    }
    lines
}

/// The tree without hidden commands, which generators would offer.
fn visible(command: &clap::Command) -> clap::Command {
    let mut out = clap::Command::new(command.get_name().to_owned())
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().filter(|c| !c.is_hide_set()).map(visible))
        .disable_help_subcommand(true);
    if let Some(about) = command.get_about() {
        out = out.about(about.clone());
    }
    out
}
