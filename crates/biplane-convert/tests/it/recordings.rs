//! Compares conversions with what the reference printed, byte for byte.

use biplane_convert::Functions;
use biplane_model::Value;
use biplane_model::yaml::{Written, parse_one, read_document};
use biplane_testkit::Recording;

/// The recordings have a word where the time was.
const NOW: &str = "2024-05-06T07:08:09Z";

/// A case whose keys have an order with a cycle, so that the reference prints them in a random one.
const RANDOM_ORDER: &str = "pipeline-yaml-key-order";

/// One conversion: its kind, its input, and the flags that name Functions.
struct Case {
    conversion: String,
    input: Vec<u8>,
    patch_and_transform: String,
    environment_configs: String,
    output: Option<String>,
}

/// `None` if the case is about the command line alone.
fn case(recording: &Recording, description: &Value) -> Option<Case> {
    if description.get("usage").is_some() {
        return None;
    }
    let mut words = description["command"].as_str()?.split(' ').skip(3);
    let mut case = Case {
        conversion: words.next()?.to_owned(),
        input: Vec::new(),
        patch_and_transform: biplane_convert::PATCH_AND_TRANSFORM.to_owned(),
        environment_configs: biplane_convert::ENVIRONMENT_CONFIGS.to_owned(),
        output: None,
    };
    let mut file = "-".to_owned();
    while let Some(word) = words.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (word, None),
        };
        let mut value = || value.or_else(|| words.next()).unwrap_or_default().to_owned();
        match flag {
            "--function-patch-and-transform-ref" => case.patch_and_transform = value(),
            "--function-environment-configs-ref" => case.environment_configs = value(),
            "-o" | "--output-file" => case.output = Some(value()),
            _ => word.clone_into(&mut file),
        }
    }
    let file = if file == "-" { description["stdin"].as_str()? } else { &file };
    case.input = recording.text(&format!("input/{file}"))?.as_bytes().to_vec();
    Some(case)
}

impl Case {
    fn run(&self) -> (i64, String, String) {
        let converted = match self.conversion.as_str() {
            "pipeline-composition" => {
                let functions = Functions {
                    patch_and_transform: &self.patch_and_transform,
                    environment_configs: &self.environment_configs,
                };
                biplane_convert::pipeline_composition(&self.input, functions)
            }
            "composition-environment" => {
                biplane_convert::composition_environment(&self.input, &self.environment_configs)
            }
            "deployment-runtime" => biplane_convert::deployment_runtime(&self.input, NOW).map(Some),
            other => panic!("{other}"),
        };
        match converted {
            Ok(Some(text)) => (0, text, String::new()),
            Ok(None) => (0, String::new(), "No changes needed.\n".to_owned()),
            Err(error) => (1, String::new(), format!("crossplane: error: {error:#}\n")),
        }
    }

    fn has_comments(&self) -> bool {
        let text = str::from_utf8(&self.input).unwrap();
        Written::read(text).is_some_and(|written| written.has_comments())
    }
}

/// PTC-1 to PTC-10, PTC-20, PTC-30 to PTC-32, CV-1 to CV-5, CNV-1 to CNV-3
#[test]
fn what_the_reference_printed_is_printed() {
    let mut compared = 0;
    for recording in Recording::load_area("convert") {
        let name = &recording.name;
        let description = parse_one("case.yaml", recording.text("case.yaml").unwrap()).unwrap();
        let Some(case) = case(&recording, &description.value) else { continue };
        let outcome = recording.json("outcome.json").unwrap();
        let stderr = outcome["stderr"].as_str().unwrap();
        if stderr.contains("Unable to open output file") {
            // The conversion itself does not fail.
            continue;
        }
        let exit = outcome["exit"].as_i64().unwrap();
        let file = case.output.as_ref().map(|file| format!("output/{file}"));
        let mut wanted = recording.text(file.as_deref().unwrap_or("stdout")).unwrap_or_default();
        if name.ends_with("-output-file-longer-there") {
            // The reference leaves the tail of the old file (CV-4).
            wanted = wanted.split("xxxx").next().unwrap_or_default();
        }
        if stderr == "No changes needed.\n" {
            wanted = "";
        }
        let wanted = wanted.replace("\"TIME\"", &format!("{NOW:?}"));
        let (our_exit, text, our_stderr) = case.run();
        assert_eq!((our_exit, our_stderr.as_str()), (exit, stderr), "{name}");
        if name.ends_with("-longer-there") {
            assert!(wanted.starts_with(&text), "{name}: {text}");
        } else if case.has_comments() || name == RANDOM_ORDER {
            // The reference drops comments and order. The data must be the same.
            let data = |text: &str| read_document(text.as_bytes()).unwrap();
            assert_eq!(data(&text), data(&wanted), "{name}");
        } else {
            assert_eq!(text, wanted, "{name}");
        }
        compared += 1;
    }
    assert!(compared > 190, "{compared}");
}
