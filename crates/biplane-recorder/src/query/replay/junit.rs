//! Replayed requests as a report in the form of JUnit, which CI systems show as tests.

use std::fmt::Write as _;
use std::time::Duration;

/// A request as a case of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The step.
    pub name: String,
    /// The owner of the run.
    pub owner: String,
    /// How long the call took.
    pub took: Duration,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was answered as before.
    Same,
    /// It was answered differently.
    Differs {
        /// What the comparison comes to.
        sentence: String,
        /// What differs.
        shape: Vec<String>,
    },
    /// It cannot be judged.
    Skipped(String),
}

/// The report.
pub fn report(function: &str, target: &str, cases: &[Case]) -> String {
    let count = |is: fn(&Verdict) -> bool| cases.iter().filter(|case| is(&case.verdict)).count();
    let failures = count(|verdict| matches!(verdict, Verdict::Differs { .. }));
    let skipped = count(|verdict| matches!(verdict, Verdict::Skipped(_)));
    let took: Duration = cases.iter().map(|case| case.took).sum();
    let name = escaped(&format!("{function} -> {target}"));
    let head = format!(
        "name=\"{name}\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{}\"",
        cases.len(),
        seconds(took)
    );
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<testsuites {head}>\n  <testsuite {head}>");
    for case in cases {
        let _ = write!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{}\"",
            escaped(function),
            escaped(&format!("{} of {}", case.name, case.owner)),
            seconds(case.took)
        );
        match &case.verdict {
            Verdict::Same => out.push_str("/>\n"),
            Verdict::Differs { sentence, shape } => {
                let (message, lines) = (escaped(sentence), escaped(&shape.join("\n")));
                let _ = writeln!(
                    out,
                    ">\n      <failure message=\"{message}\" type=\"difference\">{lines}</failure>\n    </testcase>"
                );
            }
            Verdict::Skipped(reason) => {
                let reason = escaped(reason);
                let _ = writeln!(out, ">\n      <skipped message=\"{reason}\"/>\n    </testcase>");
            }
        }
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn seconds(duration: Duration) -> String {
    format!("{:.6}", duration.as_secs_f64())
}

/// A text that means nothing in XML, without characters that XML cannot have.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            character if character.is_ascii_control() => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_a_case() {
        let case = |name: &str, verdict| Case {
            name: name.to_owned(),
            owner: "Store/north".to_owned(),
            took: Duration::from_micros(1_500),
            verdict,
        };
        let cases = [
            case("a/1", Verdict::Same),
            case(
                "b/1",
                Verdict::Differs {
                    sentence: "It says \"<no>\" & \u{1b}.".to_owned(),
                    shape: vec!["~ Bucket spec.region".to_owned(), "+ Role".to_owned()],
                },
            ),
            case("c/1", Verdict::Skipped("it was not recorded".to_owned())),
        ];
        assert_eq!(
            report("f", "here", &cases),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"f -&gt; here\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"0.004500\">\n  \
             <testsuite name=\"f -&gt; here\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"0.004500\">\n    \
             <testcase classname=\"f\" name=\"a/1 of Store/north\" time=\"0.001500\"/>\n    \
             <testcase classname=\"f\" name=\"b/1 of Store/north\" time=\"0.001500\">\n      \
             <failure message=\"It says &quot;&lt;no&gt;&quot; &amp; \u{fffd}.\" type=\"difference\">~ Bucket spec.region&#10;+ Role</failure>\n    \
             </testcase>\n    \
             <testcase classname=\"f\" name=\"c/1 of Store/north\" time=\"0.001500\">\n      \
             <skipped message=\"it was not recorded\"/>\n    \
             </testcase>\n  \
             </testsuite>\n\
             </testsuites>\n"
        );
    }
}
