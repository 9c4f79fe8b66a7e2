//! Tests secrets for functions: they are read like in Crossplane, and never shown.

use biplane::environment::Environment;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse, credentials};
use biplane_function::{PureFunction, Registry};
use tonic::Status;

use crate::mistakes::{COMPOSITION, XR, render};
use crate::support::{Folder, run_in};

/// Errors show the location, but none of the content.
#[test]
fn a_file_of_secrets_is_complained_about_without_being_shown() {
    let attempted = "cannot load secrets from \"DIR/s.yaml\": ";
    let manifest = "cannot parse YAML secret manifest: ";
    let json = "error unmarshaling JSON: while decoding JSON: ";
    let yaml = "error converting YAML to JSON: yaml: ";
    let start = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n";
    for (text, error) in [
        (
            "data:\n  password: hunter2!\n",
            format!(
                "{manifest}{json}illegal base64 data at input byte 7\n--> DIR/s.yaml, document 1, line 6, column 13: data.password is not base64"
            ),
        ),
        (
            "data: hunter2!\n",
            format!(
                "{manifest}{json}json: cannot unmarshal string into Go struct field Secret.data of type map[string][]uint8\n--> DIR/s.yaml, document 1, line 5, column 7: data must be an object but is a string"
            ),
        ),
        (
            "data:\n  password: [hunter2!]\n",
            format!(
                "{manifest}{json}json: cannot unmarshal array into Go struct field Secret.data of type []uint8\n--> DIR/s.yaml, document 1, line 6, column 13: data.password must be a string in base64 but is a list"
            ),
        ),
        (
            "data:\n  password: hunter2: more\n",
            format!(
                "{manifest}{yaml}line 6: mapping values are not allowed in this context\n--> DIR/s.yaml, document 1, line 6, column 20"
            ),
        ),
        (
            "data:\n  password: \"hunter2\n",
            format!(
                "{manifest}{yaml}line 7: found unexpected end of stream\n--> DIR/s.yaml, document 1, line 6, column 13"
            ),
        ),
        (
            "data:\n  password: !!int hunter2\n",
            format!(
                "{manifest}{yaml}cannot decode as a !!int\n--> DIR/s.yaml, document 1, line 6, column 13"
            ),
        ),
        (
            "data:\n  password: *hunter2\n",
            format!(
                "{manifest}{yaml}unknown anchor referenced\n--> DIR/s.yaml, document 1, line 6, column 13"
            ),
        ),
        (
            "--- hunter2\n",
            "cannot parse YAML stream: invalid Yaml document separator\n--> DIR/s.yaml, document 2, line 5, column 1".to_owned(),
        ),
        (
            "---\n- hunter2\n",
            format!(
                "{manifest}{json}json: cannot unmarshal array into Go value of type v1.Secret\n--> DIR/s.yaml, document 2, line 6, column 1: expected an object but found a list"
            ),
        ),
    ] {
        let ran = render(
            &[("s.yaml", &format!("{start}{text}"))],
            &["--function-credentials=DIR/s.yaml"],
        );
        let said = ran.stderr.replace("\n                ", "\n");
        assert!(!said.contains("hunter2"), "{said}");
        assert_eq!(said, format!("biplane: error: {attempted}{error}\n"), "{text}");
        assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{text}");
    }
}

/// Whichever flag names the file.
#[test]
fn a_document_that_is_a_secret_is_never_shown() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n";
    let broken = [
        format!("{secret}data:\n  password: hunter2: more\n"),
        format!("{secret}data:\n  password: !!int hunter2\n"),
        format!("kind: A\n---\n{secret}data:\n  password: \"hunter2\n"),
        "{\"kind\": \"Secret\", \"data\": {\"password\": hunter2}}}\n".to_owned(),
        "kind: List\nitems:\n- kind: Secret\n  data: {password: hunter2: more}\n".to_owned(),
        // Its kind is missing.
        "apiVersion: v1\nmetadata: {name: s}\ndata: {password: hunter2}\n".to_owned(),
        // It is there twice.
        format!(
            "{secret}data: {{a: hunter2}}\n---\n{{kind: Secret, apiVersion: v1, metadata: {{name: s}}, data: {{a: hunter2b}}}}\n"
        ),
    ];
    let flags = [
        &["-o=DIR/s.yaml"][..],
        &["-e=DIR/s.yaml"],
        &["--required-resources=DIR/s.yaml"],
        &["--function-credentials=DIR/s.yaml"],
        &["--xrd=DIR/s.yaml"],
        &["--until-stable", "--compositions=DIR/s.yaml"],
        &["--context-files=k=DIR/s.yaml"],
    ];
    for text in &broken {
        let mut failures = 0;
        for flags in flags {
            let ran = render(&[("s.yaml", text)], flags);
            assert!(!ran.stderr.contains("hunter2"), "{flags:?}: {}", ran.stderr);
            failures += u8::from(ran.exit != 0);
        }
        assert!(failures > 0, "{text}");
        for name in ["xr.yaml", "composition.yaml", "functions.yaml"] {
            let ran = render(&[(name, text)], &[]);
            assert!(!ran.stderr.contains("hunter2"), "{name}: {}", ran.stderr);
            assert_ne!(ran.exit, 0, "{name}: {text}");
        }
        let ran = render(&[("s/s.json", text)], &["-s=DIR/s"]);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
        assert_ne!(ran.exit, 0, "{text}");
        let operation = [("operation.yaml", text.as_str())];
        let ran =
            crate::support::run_on(&operation, &["operation", "render", "DIR/operation.yaml"]);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
        assert_ne!(ran.exit, 0);
    }
}

/// Context may hold anything.
#[test]
fn context_is_complained_about_without_being_shown() {
    let attempted = "cannot parse context data: cannot unmarshal context value for key \"k\": ";
    let problem = "error converting YAML to JSON: yaml: ";
    for (text, error) in [
        (
            "token: hunter2: more",
            "mapping values are not allowed in this context\n--> FROM, document 1, line 1, column 15",
        ),
        ("*hunter2", "unknown anchor referenced\n--> FROM, document 1, line 1, column 1"),
        ("!!int hunter2", "cannot decode as a !!int\n--> FROM, document 1, line 1, column 1"),
    ] {
        let value = format!("--context-values=k={text}");
        for (flag, from) in [(value.as_str(), "k"), ("--context-files=k=DIR/k.yaml", "DIR/k.yaml")]
        {
            let ran = render(&[("k.yaml", text)], &[flag]);
            let said = ran.stderr.replace("\n                ", "\n");
            let error = error.replace("FROM", from);
            assert_eq!(said, format!("biplane: error: {attempted}{problem}{error}\n"), "{text}");
        }
    }
}

/// A function that returns the secrets that it receives.
struct Gossip;

impl PureFunction for Gossip {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut response = RunFunctionResponse::default();
        for (name, given) in request.credentials {
            let Some(credentials::Source::CredentialData(data)) = given.source else { continue };
            for (key, value) in data.data {
                let message = format!("{name}.{key} is {}", String::from_utf8_lossy(&value));
                response.results.push(biplane_function::v1::Result {
                    severity: biplane_function::v1::Severity::Normal.into(),
                    message,
                    ..Default::default()
                });
            }
        }
        Ok(response)
    }
}

/// As written by `base64`, and with trailing bits that are ignored.
#[test]
fn base64_may_have_line_breaks_and_odd_ends() {
    let secret = "apiVersion: v1
kind: Secret
metadata: {name: s, namespace: n}
data:
  broken: |
    YWJj
    ZGVm
  odd: YR==
";
    let composition = COMPOSITION.replace("function-auto-ready", "function-gossip")
        + "    credentials:\n    - name: c\n      source: Secret\n      secretRef: {name: s, namespace: n}\n";
    let folder = Folder::new();
    let [xr, composition, secret] =
        [("xr.yaml", XR), ("composition.yaml", &composition), ("s.yaml", secret)]
            .map(|(name, text)| folder.write(name, text));
    let environment = Environment {
        own: Registry::default().with("function-gossip", Gossip),
        ..Environment::default()
    };
    let credentials = format!("--function-credentials={secret}");
    for format in ["v1", "json"] {
        let format = format!("--output-format={format}");
        let line = ["render", &xr, &composition, &credentials, "-r", &format];
        let ran = run_in(&line, "", &environment);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
        for message in ["c.broken is abcdef", "c.odd is a"] {
            assert!(ran.stdout.contains(message), "{}", ran.stdout);
        }
    }
}
