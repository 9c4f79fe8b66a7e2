//! Runs command lines in process and captures their output.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use biplane::environment::Environment;
use biplane_console::{Progress, Stderr, Streams};

/// The result of a command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) exit: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command line without its program name.
pub(crate) fn run(arguments: &[&str]) -> Ran {
    run_with(arguments, "")
}

/// Runs a command line with a text on stdin.
pub(crate) fn run_with(arguments: &[&str], stdin: &str) -> Ran {
    run_in(arguments, stdin, &Environment::default())
}

/// Runs a command line on its own files. `DIR` denotes their folder, in the command line and in its
/// output.
pub(crate) fn run_on(files: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let folder = Folder::new();
    for (name, text) in files {
        folder.write(name, text);
    }
    let path = folder.path().to_str().unwrap();
    let arguments: Vec<_> = arguments.iter().map(|word| word.replace("DIR", path)).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut ran = run(&arguments);
    ran.stderr = ran.stderr.replace(path, "DIR");
    ran
}

/// Renders files that include a Composition: one composite resource, unless the flags name several.
pub(crate) fn render_on(files: &[(&str, &str)], composite: &str, flags: &[&str]) -> Ran {
    let many = flags.iter().any(|flag| flag.starts_with("--xrs"));
    let composite: &[&str] = if many { &[] } else { &[composite] };
    run_on(files, &[&["render"], composite, &["DIR/composition.yaml"], flags].concat())
}

/// Runs a command line in its own environment.
pub(crate) fn run_in(arguments: &[&str], stdin: &str, environment: &Environment) -> Ran {
    run_with_bytes(arguments, stdin.as_bytes(), environment)
}

/// The same with standard input that need not be UTF-8.
pub(crate) fn run_with_bytes(arguments: &[&str], stdin: &[u8], environment: &Environment) -> Ran {
    let arguments = std::iter::once(&"biplane").chain(arguments).map(OsString::from).collect();
    run_words(arguments, stdin, environment)
}

/// The same with a program name, and with arguments that need not be UTF-8.
pub(crate) fn run_words(arguments: Vec<OsString>, stdin: &[u8], environment: &Environment) -> Ran {
    let (mut stdout, stderr) = (Vec::new(), Arc::new(Mutex::new(Vec::new())));
    let mut streams = Streams {
        stdin: Box::new(std::io::Cursor::new(stdin.to_owned())),
        stdout: &mut stdout,
        stderr: Stderr::to(stderr.clone()),
        verbose: false,
        progress: Progress::default(),
    };
    let exit = biplane::cli::run_in(arguments, environment, &mut streams);
    let stderr = stderr.lock().unwrap().clone();
    Ran {
        exit,
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// The path of a file of an example.
pub(crate) fn example(name: &str, file: &str) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    examples.join(name).join(file).to_str().unwrap().to_owned()
}

/// The output that a page of the documentation shows below a command.
pub(crate) fn shown(page: &str, command: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let page = std::fs::read_to_string(page).unwrap();
    let (_, after) = page.split_once(&format!("```console\n$ {command}")).unwrap();
    let (block, _) = after.split_once("```").unwrap();
    block.split_once('\n').unwrap().1.to_owned()
}

/// A folder of input files that is removed with its test.
#[derive(Debug)]
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Renders the usual three files in the folder.
    pub(crate) fn render(&self, flags: &[&str]) -> Ran {
        let files = ["xr.yaml", "composition.yaml", "functions.yaml"].map(|name| self.at(name));
        let mut arguments = vec!["render"];
        arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
        arguments.extend(flags);
        run(&arguments)
    }

    /// A path in the folder.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
