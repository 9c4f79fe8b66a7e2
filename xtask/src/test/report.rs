//! Reads failures from the output of `cargo test`.

use std::fmt;

/// Test binaries that failed, with the tests in them.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Failed tests of the binary that is running.
    running: Vec<String>,
    failed: Vec<(String, Vec<String>)>,
}

impl Report {
    /// Parses one line.
    pub(super) fn line(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(rest) = line.strip_prefix("test ")
            && let Some(name) = rest.strip_suffix("... FAILED")
        {
            self.running.push(name.trim_end().to_owned());
        } else if line.starts_with("error: ")
            && let Some((_, rest)) = line.split_once("to rerun pass `")
            && let Some(target) = rest.strip_suffix('`')
        {
            self.failed.push((target.to_owned(), std::mem::take(&mut self.running)));
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.failed.is_empty() {
            return write!(f, "cargo test failed before any test did: see above");
        }
        let tests: usize = self.failed.iter().map(|(_, tests)| tests.len().max(1)).sum();
        write!(f, "{tests} test{} failed", if tests == 1 { "" } else { "s" })?;
        for (target, tests) in &self.failed {
            write!(f, "\n  {target}")?;
            for test in tests {
                write!(f, "\n    {test}")?;
            }
            if tests.is_empty() {
                write!(f, "\n    (ended without saying which test failed: see above)")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let mut report = Report::default();
        text.lines().for_each(|line| report.line(line));
        report.to_string()
    }

    #[test]
    fn failed_tests_are_listed_by_binary() {
        let text = "\
     Running unittests src/lib.rs (target/debug/deps/a-1)
test one ... ok
test two ... FAILED
test three::four ... FAILED
failures:
    two
test result: FAILED. 1 passed; 2 failed
error: test failed, to rerun pass `-p a --lib`
     Running tests/it/main.rs (target/debug/deps/it-2)
test five ... ok
   Doc-tests b
test crates/b/src/lib.rs - six (line 3) ... FAILED
error: doctest failed, to rerun pass `-p b --doc`
error: 2 targets failed:
    `-p a --lib`
    `-p b --doc`
";
        assert_eq!(
            read(text),
            "3 tests failed\n  -p a --lib\n    two\n    three::four\n  -p b --doc\n    \
             crates/b/src/lib.rs - six (line 3)"
        );
    }

    #[test]
    fn a_binary_that_dies_is_listed_too() {
        let text = "\
test one ... ok
error: test failed, to rerun pass `-p a --test it`

Caused by:
  process didn't exit successfully: `it` (signal: 6, SIGABRT: process abort signal)
";
        assert_eq!(
            read(text),
            "1 test failed\n  -p a --test it\n    \
             (ended without saying which test failed: see above)"
        );
    }

    #[test]
    fn code_that_does_not_compile_is_no_failed_test() {
        assert_eq!(
            read("error[E0425]: cannot find value\nerror: could not compile `a`\n"),
            "cargo test failed before any test did: see above"
        );
    }
}
