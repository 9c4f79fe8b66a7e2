//! Properties that hold for any document.

use std::fmt::Write as _;

use biplane_convert::{Functions, pipeline_composition};
use biplane_model::yaml::read_document;
use biplane_model::{Value, fieldpath};
use biplane_testkit::{Recording, mutate};
use proptest::prelude::*;

/// The recorded Compositions and ControllerConfigs.
fn inputs() -> Vec<String> {
    let recordings = Recording::load_area("convert");
    let texts = recordings.iter().flat_map(|recording| recording.folder("input"));
    // The reference folds U+0085, which stays where text is copied.
    let plain = texts.filter(|(_, text)| !text.contains(r"\x85"));
    plain.map(|(_, text)| text.to_owned()).collect()
}

/// A document as data: 1 and 1.0 are the same.
fn data(text: &str) -> Value {
    let mut value = read_document(text.as_bytes()).unwrap();
    fieldpath::normalize(&mut value);
    value
}

fn convert(text: &[u8]) -> Option<String> {
    pipeline_composition(text, Functions::default()).ok().flatten()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Comments change nothing about the result but its layout.
    #[test]
    fn comments_do_not_change_the_result(choice in any::<prop::sample::Index>(), places in prop::collection::vec(any::<bool>(), 64)) {
        let inputs = inputs();
        let text = choice.get(&inputs);
        let mut commented = String::new();
        for (number, line) in text.lines().enumerate() {
            let indent: String = line.chars().take_while(|c| *c == ' ').collect();
            if places.get(number % places.len()).copied().unwrap_or_default() {
                writeln!(commented, "{indent}# comment {number}").unwrap();
            }
            writeln!(commented, "{line}").unwrap();
        }
        // A line that looks like a comment may be one of a text.
        if read_document(commented.as_bytes()).ok() == read_document(text.as_bytes()).ok() {
            let plain = convert(text.as_bytes()).map(|text| data(&text));
            let kept = convert(commented.as_bytes()).map(|text| data(&text));
            prop_assert_eq!(plain, kept, "{}", commented);
        }
    }
}

/// PTC-3: what was converted has a pipeline.
#[test]
fn a_converted_composition_needs_no_changes() {
    for text in inputs() {
        if let Some(converted) = convert(text.as_bytes()) {
            let again = pipeline_composition(converted.as_bytes(), Functions::default());
            assert!(matches!(again, Ok(None)), "{converted}");
        }
    }
}

#[test]
fn damaged_input_is_converted_or_refused() {
    let inputs = inputs();
    let corpus: Vec<&[u8]> = inputs.iter().map(String::as_bytes).collect();
    mutate("convert", &corpus, 2_000, |text| {
        let converted = [
            convert(text),
            biplane_convert::composition_environment(text, "").ok().flatten(),
            biplane_convert::deployment_runtime(text, "2024-05-06T07:08:09Z").ok(),
        ];
        for converted in converted.into_iter().flatten() {
            assert!(read_document(converted.as_bytes()).is_ok(), "{converted}");
        }
    });
}
