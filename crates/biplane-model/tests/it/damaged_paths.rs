//! Parses mutated paths. Each must be accepted or refused without a panic.

use biplane_model::fieldpath::{FieldPath, MergeOptions};
use biplane_model::{Map, Value};
use biplane_testkit::mutate;

fn document() -> Map<String, Value> {
    let text = r#"{"spec":{"items":[{"a":1},null,["b"]],"x.y":{"*":2.5}},"status":null}"#;
    serde_json::from_str(text).unwrap_or_default()
}

#[test]
fn damaged_paths_only_ever_err() {
    let corpus: [&[u8]; 5] = [
        b"spec.items[0].a",
        b"spec[x.y]['*']",
        b"spec.items[*][*]",
        b"status.a[3]b",
        b"\xc3\xa9[1024]",
    ];
    mutate("field paths", &corpus, 50_000, |bytes| {
        let Ok(path) = FieldPath::parse(&String::from_utf8_lossy(bytes)) else { return };
        let mut document = document();
        let _ = (path.get(&document).is_ok(), path.expand(&document).is_ok());
        for append_slice in [None, Some(true)] {
            let options = MergeOptions { keep_map_values: Some(true), append_slice };
            let _ = path.merge(&mut document, Value::from(vec![1]), Some(options));
        }
        if path.set(&mut document, Value::from(1.0)).is_ok() && !path.segments().is_empty() {
            assert_eq!(path.get(&document), Ok(&Value::from(1)));
        }
    });
}
