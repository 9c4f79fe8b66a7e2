//! Compares the functions of Sprig with recordings of the original, and checks what cannot be
//! recorded: randomness, keys and certificates.

#![allow(clippy::unwrap_used)] // a failed unwrap fails the test

mod certificates;

use std::cell::Cell;
use std::io::{BufRead as _, BufReader};
use std::sync::LazyLock;

use biplane_template::budget::Limits;
use biplane_template::func::Host;
use biplane_template::value::Value;
use biplane_template::{Delimiters, Functions, MissingKey, Template, sprig};
use flate2::read::GzDecoder;
use serde_json::Value as Json;

/// A world at a fixed time, with numbers that only look random.
struct Fixed(Cell<u64>);

impl Fixed {
    fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }
}

impl Host for Fixed {
    fn now(&self) -> (i64, u32) {
        (1_700_000_000, 5)
    }

    fn random(&self, buffer: &mut [u8]) {
        for byte in buffer {
            // xorshift64*
            let mut state = self.0.get();
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            self.0.set(state);
            *byte = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8;
        }
    }

    fn resolve(&self, name: &str) -> Result<Vec<String>, String> {
        match name {
            "known.example" => Ok(vec!["192.0.2.1".to_owned()]),
            name => Err(format!("lookup {name}: no such host")),
        }
    }
}

fn run(text: &str, data: &Value, seed: u64) -> Result<Vec<u8>, String> {
    static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| Functions::new(sprig::functions()));
    let template = Template::parse("manifests", text, &FUNCTIONS, &Delimiters::default());
    let template = template.map_err(|error| error.to_string())?;
    let host = Fixed::new(seed);
    template
        .run(data, MissingKey::Default, &host, Limits::default())
        .map_err(|error| error.to_string())
}

fn render(text: &str) -> String {
    String::from_utf8(run(text, &Value::Nil, 1).unwrap()).unwrap()
}

fn fails(text: &str) -> String {
    let error = run(text, &Value::Nil, 1).unwrap_err();
    error.rsplit_once("error calling ").map_or(error.clone(), |(_, why)| why.to_owned())
}

/// The recorded results of one function, and ours where they differ.
fn differences(recording: impl std::io::Read) -> (usize, Vec<String>) {
    let data: Json = serde_json::from_str(include_str!("../data/sprig.json")).unwrap();
    let mut count = 0;
    let mut different = Vec::new();
    for line in BufReader::new(GzDecoder::new(recording)).lines() {
        let case: Json = serde_json::from_str(&line.unwrap()).unwrap();
        let text = case["t"].as_str().unwrap();
        let got = run(text, &Value::from_json(&data), 1);
        let wanted = match (&case["o"], &case["b"], &case["e"]) {
            (Json::String(output), ..) => Ok(output.clone().into_bytes()),
            // Bytes that are no text are recorded as base64.
            (_, Json::String(bytes), _) => {
                Ok(biplane_go::base64::decode(bytes.as_bytes()).unwrap())
            }
            (.., error) => Err(error.as_str().unwrap().to_owned()),
        };
        count += 1;
        if got != wanted {
            let show = |result: Result<Vec<u8>, String>| match result {
                Ok(output) => format!("{:?}", String::from_utf8_lossy(&output)),
                Err(error) => format!("error {error:?}"),
            };
            different.push(format!("{text}\n  want {}\n  got  {}", show(wanted), show(got)));
        }
    }
    (count, different)
}

#[test]
fn functions_do_what_the_original_does() {
    let (count, different) = differences(&include_bytes!("../data/sprig.jsonl.gz")[..]);
    assert!(count > 10_000, "the recording is there");
    let shown = different.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{} of {count} differ:\n{shown}", different.len());
}

#[test]
fn environment_variables_are_out_of_reach() {
    for name in ["env", "expandenv"] {
        let error = run(&format!("{{{{ {name} `HOME` }}}}"), &Value::Nil, 1).unwrap_err();
        assert_eq!(error, format!("template: manifests:1: function \"{name}\" not defined"));
    }
}

#[test]
fn the_host_tells_the_time_and_the_addresses() {
    assert_eq!(
        render("{{ now | date `2006-01-02T15:04:05.999999999` }}"),
        "2023-11-14T22:13:20.000000005"
    );
    assert_eq!(render("{{ date `2006` `no time` }}"), "2023");
    assert_eq!(render("{{ ago (dateModify `-90s` now) }} {{ ago `x` }}"), "1m30s 0s");
    assert_eq!(render("{{ durationRound (dateModify `-50h` now) }}"), "2d");
    assert_eq!(render("{{ getHostByName `known.example` }}"), "192.0.2.1");
    let error = fails("{{ getHostByName `unknown.example` }}");
    assert_eq!(error, "getHostByName: invalid argument to Intn");
}

#[test]
fn random_texts_have_their_shape_and_depend_on_the_seed_only() {
    let template = "{{ randAlphaNum 40 }} {{ randAlpha 40 }} {{ randNumeric 40 }} {{ uuidv4 }} \
                    {{ randBytes 9 }} {{ shuffle `abcdefghij` }} {{ randInt 5 9 }}";
    let text = |seed| String::from_utf8(run(template, &Value::Nil, seed).unwrap()).unwrap();
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
    let words: Vec<String> = text(7).split(' ').map(str::to_owned).collect();
    let all = |at: usize, kind: fn(&u8) -> bool| words[at].bytes().all(|byte| kind(&byte));
    assert!(words[..3].iter().all(|word| word.len() == 40));
    assert!(all(0, u8::is_ascii_alphanumeric) && all(1, u8::is_ascii_alphabetic));
    assert!(all(2, u8::is_ascii_digit));
    let uuid: uuid::Uuid = words[3].parse().unwrap();
    assert_eq!(uuid.get_version_num(), 4);
    assert_eq!(biplane_go::base64::decode(words[4].as_bytes()).unwrap().len(), 9);
    let mut letters: Vec<char> = words[5].chars().collect();
    letters.sort_unstable();
    assert_eq!(letters.into_iter().collect::<String>(), "abcdefghij");
    assert!(["5", "6", "7", "8"].contains(&words[6].as_str()));
    let ascii = run("{{ randAscii 200 }}", &Value::Nil, 3).unwrap();
    assert!(ascii.len() == 200 && ascii.iter().all(|byte| (b' '..=b'~').contains(byte)));
    assert_eq!(render("{{ randAlpha -1 }}{{ randAlpha 0 }}"), "");
    assert_eq!(fails("{{ randInt 3 3 }}"), "randInt: invalid argument to Intn");
    assert_eq!(
        fails("{{ randBytes -1 }}"),
        "randBytes: runtime error: makeslice: len out of range"
    );
}

#[test]
fn passwords_are_hashed_and_texts_encrypted_as_in_go() {
    // The hash is what Go's package makes of the salt that this host gives.
    let hash = render("{{ bcrypt `secret` }}");
    assert!(hash.starts_with("$2a$10$") && hash.len() == 60, "{hash}");
    assert!(bcrypt::verify("secret", &hash).unwrap());
    assert!(render("{{ htpasswd `me` `secret` }}").starts_with("me:$2a$10$"));
    assert_eq!(render("{{ htpasswd `a:b` `x` }}"), "invalid username: a:b");
    let long = "x".repeat(73);
    assert_eq!(
        render(&format!("{{{{ bcrypt `{long}` }}}}")),
        "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
    );
    assert_eq!(render("{{ encryptAES `key` `plain text` | decryptAES `key` }}"), "plain text");
    assert_eq!(render("{{ encryptAES `key` `` }}{{ decryptAES `key` `` }}"), "");
    // Encrypted by the original.
    for (password, encrypted, plain) in RECORDED_SECRETS {
        assert_eq!(render(&format!("{{{{ decryptAES `{password}` `{encrypted}` }}}}")), *plain);
    }
    for (encrypted, error) in [
        ("!", "illegal base64 data at input byte 0"),
        ("AAAA", "runtime error: slice bounds out of range [:16] with capacity 3"),
        ("AAAAAAAAAAAAAAAAAAAAAAAA", "crypto/cipher: input not full blocks"),
    ] {
        let error = format!("decryptAES: {error}");
        assert_eq!(fails(&format!("{{{{ decryptAES `k` `{encrypted}` }}}}")), error);
    }
}

/// A password, a text encrypted with it, and the text.
const RECORDED_SECRETS: &[(&str, &str, &str)] = &[
    ("key", "9WgPkYMRRcpWz2EufMl2dY2Q06CyF7A56/HvWeKi434=", "plain text"),
    (
        "a password that is longer than thirty-two bytes",
        "gsLCyVeAdaSQ3NX+kXSVR+UKEw8BoZzW09u9xtzkvIvsvBNDiWHVBElSHhrh7ow4",
        "0123456789abcdef",
    ),
    ("", "yqu2wfMYr07KHSesBmxZTYvxo3Oo/pUbqwCUzfXi/zA=", "é日"),
];

#[test]
fn nothing_is_made_that_the_budget_does_not_cover() {
    for template in [
        "{{ repeat 2147483647 `abc` }}",
        "{{ indent 2147483647 `abc` }}",
        "{{ nindent 300000000 `a` }}",
        "{{ until 2147483647 }}",
        "{{ untilStep 0 2147483647 1 }}",
        "{{ seq 2147483647 }}",
        "{{ seq 0 1 9223372036854775806 }}",
        "{{ randAlphaNum 2147483647 }}",
        "{{ randBytes 2147483647 }}",
        "{{ repeat 20000 `a` | replace `` (repeat 20000 `b`) }}",
        "{{ regexReplaceAll `a` (repeat 20000 `a`) (repeat 20000 `b`) }}",
        "{{ join (repeat 200000 `a`) (until 20000) }}",
        "{{ wrapWith 1 (repeat 200000 `a`) (repeat 20000 `b`) }}",
    ] {
        let error = run(template, &Value::Nil, 1).unwrap_err();
        assert!(error.contains("the template "), "{template}: {error}");
    }
    assert_eq!(
        fails("{{ repeat 9223372036854775807 `ab` }}"),
        "repeat: strings: Repeat output length overflow"
    );
}

#[test]
fn values_that_contain_themselves_end() {
    let cycle = "{{ $d := dict }}{{ $_ := set $d `self` $d }}";
    assert_eq!(render(&format!("{cycle}{{{{ toJson $d }}}}")), "");
    let error = fails(&format!("{cycle}{{{{ mustToJson $d }}}}"));
    let wanted = "json: unsupported value: encountered a cycle via map[string]interface {}";
    assert_eq!(error, format!("mustToJson: {wanted}"));
    let deep = "{{ $l := list }}{{ range until 600 }}{{ $l = list $l }}{{ end }}";
    let error = fails(&format!("{deep}{{{{ toJson $l }}}}"));
    assert_eq!(error, "toJson: cannot encode values that nest more than 500 deep");
    for call in ["deepCopy $d", "deepEqual $d (dict `self` $d)", "merge $d (dict `self` $d)"] {
        let _ = run(&format!("{cycle}{{{{ $_ := {call} }}}}"), &Value::Nil, 1);
    }
}

#[test]
fn hidden_fields_are_known_but_out_of_reach() {
    for (template, error) in [
        (
            "{{ (toDate `2006` `2020`).wall }}",
            "wall is an unexported field of struct type time.Time",
        ),
        (
            "{{ (semver `1.2.3`).major }}",
            "major is an unexported field of struct type *semver.Version",
        ),
    ] {
        let got = run(template, &Value::Nil, 1).unwrap_err();
        assert!(got.ends_with(error), "{got}");
    }
    assert_eq!(
        render("{{ printf `%d` (semver `1.2.3`).IncPatch }}"),
        "{1 2 4 %!d(string=) %!d(string=) %!d(string=1.2.4)}"
    );
}
