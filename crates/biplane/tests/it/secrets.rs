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
