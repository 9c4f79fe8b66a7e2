//! Parses mutated YAML. Each must give a located error or a printable value, never a panic.

use biplane_model::yaml::{parse_documents, to_string, write_documents};
use biplane_testkit::mutate;

/// Documents in every layout, with all kinds of scalars.
const CORPUS: &[&str] = &[
    include_str!("../../src/yaml/tests/recorded/documents.yaml"),
    include_str!("../../src/yaml/tests/recorded/documents.printed.yaml"),
    include_str!("../../src/yaml/tests/recorded/scalars.yaml"),
    include_str!("../../src/yaml/tests/recorded/refused.json"),
    "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b, {<<: {d: *a}}]\nd: [*c, *c]\n",
    "? |2-\n   a\n  b\n: >+\n  c\n\n   d\n\n",
    "---\n# nothing\n--- # still\n'a\nb': \"c\nd \\\n  e\\u00e9\"\n",
    "!!binary aGk=: !!int '0x1F'\n? !!str 1\n: !local {a: [b, {c: d}], ? e : f}\n",
];

#[test]
fn yaml_survives_damage() {
    let whole = CORPUS.iter().map(|text| text.as_bytes());
    // Short texts find more errors per second than long ones.
    let parts = CORPUS.iter().flat_map(|text| text.split("---\n")).map(str::as_bytes);
    let corpus: Vec<_> = whole.chain(parts).collect();
    mutate("YAML", &corpus, 8_000, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        match parse_documents("damaged.yaml", &text) {
            Ok(documents) => {
                let values: Vec<_> = documents.into_iter().map(|d| d.value).collect();
                let printed = write_documents(&values);
                let again = parse_documents("printed", &printed).expect("what we print is YAML");
                let again: Vec<_> = again.iter().map(|d| to_string(&d.value)).collect();
                assert_eq!(values.iter().map(to_string).collect::<Vec<_>>(), again);
            }
            Err(error) => {
                assert!(
                    error.line >= 1 && error.line <= text.split(['\n', '\r']).count(),
                    "{error}"
                );
                assert!(error.caret() <= error.source_line.chars().count(), "{error}");
            }
        }
    });
}
