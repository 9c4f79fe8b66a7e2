//! Checks what a machine needs for tests. Installs missing programs if possible, or else says how
//! to get them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Result, bail};
use biplane_devenv::Places;

use crate::{env, output};

/// Optional programs, and their Debian packages. Without them some tests are skipped with a
/// message.
const WANTS: &[(&str, &str)] =
    &[("dockerd", "docker.io"), ("ip", "iproute2"), ("zsh", "zsh"), ("fish", "fish")];

/// Names of Python interpreters. The tests try the same names in the same order.
const PYTHONS: [&str; 4] = ["python3.11", "python3.12", "python3.13", "python3"];

/// From this version on, Go downloads later versions of itself.
const GO_THAT_UPDATES_ITSELF: Version = Version(1, 21);

/// Major and minor version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

impl Version {
    /// The first version in a string such as `go1.26.8` or `2:1.19~1`.
    fn find(text: &str) -> Option<Self> {
        text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
            let mut parts = word.split('.');
            Some(Self(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
        })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The result of looking for something.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// Found, with this version.
    Good(String),
    /// Found, but not usable.
    Unfit(String),
    Missing,
}

/// Something that tests require.
struct Need {
    what: String,
    found: Found,
    /// The Debian packages, if Debian's version is new enough.
    packages: &'static [&'static str],
    /// How to get it.
    how: &'static str,
}

/// Checks everything, installs missing programs if possible, and fails if a required one is still
/// missing.
pub(crate) fn prepare(root: &Path) -> Result<()> {
    let mut needs = look(root);
    let packages: Vec<&str> = needs
        .iter()
        .filter(|need| !matches!(need.found, Found::Good(_)))
        .flat_map(|need| need.packages.iter().copied())
        .collect();
    if !packages.is_empty() {
        match install(&packages) {
            Ok(()) => needs = look(root),
            Err(error) => println!("{error:#}"),
        }
    }
    let report = report(&needs);
    optional();
    println!("{}", report.lines.join("\n"));
    if report.missing.is_empty() {
        return Ok(());
    }
    bail!("this machine lacks what the tests need\n{}", report.missing.join("\n"))
}

/// Installs optional programs, or reports which tests will be skipped.
fn optional() {
    let wanted: Vec<&str> =
        WANTS.iter().filter(|(program, _)| !starts(program)).map(|(_, package)| *package).collect();
    if !wanted.is_empty()
        && let Err(error) = install(&wanted)
    {
        println!("tests that use {} will be skipped: {error:#}", wanted.join(" and "));
    }
}

fn look(root: &Path) -> Vec<Need> {
    vec![
        Need {
            what: "git".into(),
            found: said(Command::new("git").arg("--version"), Version(0, 0)),
            packages: &["git"],
            how: "install the package git of your distribution",
        },
        Need {
            what: "a C compiler (cc)".into(),
            found: said(Command::new("cc").arg("--version"), Version(0, 0)),
            packages: &["gcc", "libc6-dev"],
            how: "install gcc or clang, with the headers of the C library",
        },
        disk(root),
        go(root),
        Need {
            what: "Python 3.11 or later with venv".into(),
            found: python(&PYTHONS),
            packages: &["python3", "python3-venv"],
            how: "install python3 and python3-venv of your distribution, or Python from \
                  https://www.python.org/downloads",
        },
        Need {
            what: "PostgreSQL (initdb, postgres)".into(),
            found: postgresql(),
            packages: &["postgresql"],
            how: "install the package postgresql of your distribution",
        },
        Need {
            what: "Chromium".into(),
            found: first(&["chromium", "chromium-browser", "google-chrome"]),
            packages: &["chromium"],
            how: "install the package chromium of your distribution",
        },
        Need {
            what: "the driver of Chromium (chromedriver)".into(),
            found: first(&["chromedriver"]),
            packages: &["chromium-driver"],
            how: "install the package chromium-driver of your distribution, in the version of \
                  Chromium",
        },
    ]
}

/// How much free disk the tests need, in GiB: when everything is built, and otherwise.
const ROOM: (u64, u64) = (4, 20);

/// A full disk makes tests fail in ways that do not say so.
fn disk(root: &Path) -> Need {
    let built = root.join("target/debug/deps").is_dir();
    let least = if built { ROOM.0 } else { ROOM.1 };
    let free = output(Command::new("df").args(["-Pk"]).arg(root)).ok();
    Need {
        what: format!("{least} GiB of free disk"),
        found: match free.as_deref().and_then(free_kib) {
            Some(kib) if kib >> 20 < least => Found::Unfit(format!("{} GiB", kib >> 20)),
            Some(kib) => Found::Good(format!("{} GiB", kib >> 20)),
            None => Found::Good("unknown".into()),
        },
        packages: &[],
        how: "remove build folders of other checkouts (target), or what else is not needed",
    }
}

/// The free space that `df -Pk` tells of the one file system that it was asked about.
fn free_kib(told: &str) -> Option<u64> {
    told.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

/// The first of several programs that exists. The tests of the pages look for the same names in the
/// same order.
fn first(names: &[&str]) -> Found {
    let found = names.iter().map(|name| said(Command::new(name).arg("--version"), Version(0, 0)));
    found.into_iter().find(|found| *found != Found::Missing).unwrap_or(Found::Missing)
}

/// The server programs of PostgreSQL are in a folder of their own in most distributions. The tests
/// of the recorder look in the same places.
fn postgresql() -> Found {
    let mut folders = vec![PathBuf::new(), "/usr/local/pgsql/bin".into()];
    for parent in ["/usr/lib/postgresql", "/usr/pgsql"] {
        let versions = fs::read_dir(parent).into_iter().flatten().flatten();
        folders.extend(versions.map(|version| version.path().join("bin")));
    }
    folders.sort();
    let found = folders
        .into_iter()
        .rev()
        .map(|folder| said(Command::new(folder.join("initdb")).arg("--version"), Version(0, 0)));
    found.into_iter().find(|found| *found != Found::Missing).unwrap_or(Found::Missing)
}

/// Go builds functions with the Go SDK, and the API server if it does not exist yet.
fn go(root: &Path) -> Need {
    let module = match Places::from_env() {
        Ok(places) if env::is_provided(&places) => "tests/peers/function-go",
        _ => "tests/env/apiserver",
    };
    let folder = root.join(module);
    let wanted = fs::read_to_string(folder.join("go.mod")).ok().and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("go ")).and_then(Version::find)
    });
    let wanted = wanted.unwrap_or(Version(1, 26));
    // In the folder of a module, an older Go downloads the version that the module requires.
    let found = said(Command::new("go").args(["env", "GOVERSION"]).current_dir(folder), wanted);
    let candidate = output(Command::new("apt-cache").args(["policy", "golang-go"]));
    let offered = candidate.ok().as_deref().and_then(offered);
    Need {
        what: format!("Go {wanted} or later"),
        found,
        packages: match offered {
            Some(version) if version >= GO_THAT_UPDATES_ITSELF => &["golang-go"],
            _ => &[],
        },
        how: "get it from https://go.dev/dl and put its folder bin into PATH",
    }
}

/// The version that `apt-cache policy` would install.
fn offered(policy: &str) -> Option<Version> {
    let line = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate:"))?;
    // The part before the colon is the epoch.
    Version::find(line.rsplit(':').next()?)
}

fn python(names: &[&str]) -> Found {
    // A Python without ensurepip cannot create virtual environments, whatever else it can import.
    const SCRIPT: &str = "import sys; print('%d.%d.%d' % sys.version_info[:3], flush=True)
import ensurepip, venv";
    let mut unfit = Found::Missing;
    for name in names {
        let Ok(output) = Command::new(name).args(["-c", SCRIPT]).output() else { continue };
        match judge_python(&output) {
            Found::Good(version) => return Found::Good(format!("{version} ({name})")),
            other if unfit == Found::Missing => unfit = other,
            _ => {}
        }
    }
    unfit
}

fn judge_python(output: &Output) -> Found {
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match Version::find(&version) {
        None => Found::Missing,
        Some(found) if found < Version(3, 11) => Found::Unfit(format!("{version} is too old")),
        Some(_) if !output.status.success() => Found::Unfit(format!(
            "{version} cannot make environments: venv or ensurepip is missing"
        )),
        Some(_) => Found::Good(version),
    }
}

/// Compares the version that a program prints with the required one.
fn said(command: &mut Command, least: Version) -> Found {
    let Ok(output) = command.output() else { return Found::Missing };
    let first = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).trim().to_owned();
        text.lines().next().unwrap_or_default().to_owned()
    };
    let line = first(&output.stdout);
    if !output.status.success() {
        return Found::Unfit(first(&output.stderr));
    }
    match Version::find(&line) {
        Some(version) if version < least => Found::Unfit(format!("{line} is too old")),
        _ => Found::Good(line),
    }
}

struct Report {
    lines: Vec<String>,
    missing: Vec<String>,
}

fn report(needs: &[Need]) -> Report {
    let (mut lines, mut missing) = (Vec::new(), Vec::new());
    for Need { what, found, how, .. } in needs {
        let found = match found {
            Found::Good(version) => {
                lines.push(format!("  {what}: {version}"));
                continue;
            }
            Found::Unfit(why) => format!("not usable ({why})"),
            Found::Missing => "missing".to_owned(),
        };
        lines.push(format!("  {what}: {found}"));
        missing.push(format!("  {what} is {found}: {how}"));
    }
    Report { lines, missing }
}

/// Whether the program exists, whatever it answers to an unknown flag.
fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

fn install(packages: &[&str]) -> Result<()> {
    let root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !root || !starts("apt-get") {
        bail!(
            "packages that only root can install, with apt-get, are missing: {}",
            packages.join(" ")
        );
    }
    println!("installing {}", packages.join(" "));
    crate::run(Command::new("apt-get").args(["update", "-q"]))?;
    crate::run(
        Command::new("apt-get")
            .args(["install", "-qy", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that prints a string and exits with a code.
    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn versions_are_found_in_what_programs_say() {
        assert_eq!(Version::find("go1.26.8"), Some(Version(1, 26)));
        assert_eq!(Version::find("git version 2.39.5"), Some(Version(2, 39)));
        assert_eq!(Version::find("cc (Debian 12.2.0-14) 12.2.0"), Some(Version(12, 2)));
        assert_eq!(Version::find("none"), None);
    }

    #[test]
    fn a_program_is_missing_too_old_broken_or_good() {
        let least = Version(1, 26);
        assert_eq!(said(&mut Command::new("no-such-program"), least), Found::Missing);
        assert_eq!(
            said(&mut shell("echo go1.25.3"), least),
            Found::Unfit("go1.25.3 is too old".into())
        );
        assert_eq!(
            said(&mut shell("echo 'go.mod requires go >= 1.26.0' >&2; exit 1"), least),
            Found::Unfit("go.mod requires go >= 1.26.0".into())
        );
        assert_eq!(said(&mut shell("echo go1.26.0"), least), Found::Good("go1.26.0".into()));
        assert_eq!(said(&mut shell("echo go1.100.0"), least), Found::Good("go1.100.0".into()));
    }

    #[test]
    fn a_python_without_venv_will_not_do() {
        let judge = |script: &str| judge_python(&shell(script).output().unwrap());
        assert_eq!(judge("echo 3.12.1"), Found::Good("3.12.1".into()));
        assert_eq!(judge("echo 3.9.2"), Found::Unfit("3.9.2 is too old".into()));
        assert_eq!(
            judge("echo 3.11.2; exit 1"),
            Found::Unfit("3.11.2 cannot make environments: venv or ensurepip is missing".into())
        );
        assert_eq!(python(&["no-such-python"]), Found::Missing);
    }

    #[test]
    fn the_first_of_several_programs_is_found() {
        assert_eq!(first(&["no-such-program"]), Found::Missing);
        assert!(matches!(first(&["no-such-program", "git"]), Found::Good(_)));
    }

    #[test]
    fn the_free_disk_is_read() {
        let told = "Filesystem 1024-blocks     Used Available Capacity Mounted on\n\
                    /dev/vda     263174212 31457280 63963136      34% /\n";
        assert_eq!(free_kib(told), Some(63_963_136));
        assert_eq!(free_kib("df: no file systems processed\n"), None);
    }

    #[test]
    fn what_a_distribution_offers_is_read() {
        let policy = "golang-go:\n  Installed: (none)\n  Candidate: 2:1.19~1\n  Version table:\n";
        assert_eq!(offered(policy), Some(Version(1, 19)));
        assert_eq!(offered("golang-go:\n  Candidate: (none)\n"), None);
    }

    #[test]
    fn what_is_missing_is_named_with_the_way_to_get_it() {
        let need =
            |what: &str, found| Need { what: what.into(), found, packages: &[], how: "get it" };
        let report = report(&[
            need("one", Found::Good("1.2".into())),
            need("two", Found::Unfit("0.1 is too old".into())),
            need("three", Found::Missing),
        ]);
        assert_eq!(
            report.lines,
            ["  one: 1.2", "  two: not usable (0.1 is too old)", "  three: missing"]
        );
        assert_eq!(
            report.missing,
            ["  two is not usable (0.1 is too old): get it", "  three is missing: get it"]
        );
    }

    #[test]
    fn what_is_there_is_found() {
        let needs = look(&crate::root());
        println!("{}", report(&needs).lines.join("\n"));
        // The tests of this crate use git and were linked by the compiler, so both exist.
        for need in &needs[..2] {
            assert!(matches!(need.found, Found::Good(_)), "{}: {:?}", need.what, need.found);
        }
        assert_eq!(needs.len(), 8);
    }

    #[test]
    fn the_modules_say_which_go_they_need() {
        let need = go(&crate::root());
        assert!(
            need.what == "Go 1.26 or later" || need.what == "Go 1.25 or later",
            "{}",
            need.what
        );
    }
}
