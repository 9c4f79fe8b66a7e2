//! An example function: composes a ConfigMap that greets the person whom the composite resource
//! names.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use biplane_function::resource::DesiredComposed;
use biplane_function::serve::{self, Config};
use biplane_function::v1::{Ready, RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Object, PureFunction, Status, request, response};
use clap::Parser;
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

/// The function's input, which a step of a Composition sets.
#[derive(Debug, Deserialize)]
struct Input {
    salutation: String,
}

/// The function. State that it keeps between calls (a cache, a client) goes into this struct.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Greeting;

impl PureFunction for Greeting {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        // Starts from the desired state of earlier steps: a resource that is left out would be
        // deleted.
        let mut answer = response::to(&request, response::DEFAULT_TTL);

        let input: Input = match request::input(&request, "Greeting") {
            Ok(input) => input,
            Err(error) => {
                response::fatal(&mut answer, error);
                return Ok(answer);
            }
        };
        let composite = request::observed_composite(&request).resource;
        let whom = composite.str_at(&["spec", "whom"]);
        if whom.is_empty() {
            response::fatal(&mut answer, "spec.whom: nobody to greet");
            return Ok(answer);
        }
        let text = format!("{}, {whom}!", input.salutation);

        // In a new object, nothing can be in the way.
        let mut config_map = Object::new();
        config_map.set_at_or_ignore(&["apiVersion"], "v1");
        config_map.set_at_or_ignore(&["kind"], "ConfigMap");
        config_map.set_at_or_ignore(&["data", "text"], text.as_str());
        // A ConfigMap is ready as soon as it exists.
        let exists = request::observed_composed(&request).contains_key("greeting");
        let ready = if exists { Ready::True } else { Ready::False };
        let greeting = DesiredComposed { resource: config_map, ready };
        response::set_desired_composed(&mut answer, [("greeting".to_owned(), greeting)]);

        let mut composite = request::desired_composite(&request);
        if let Err(occupied) = composite.resource.set_at(&["status", "greeting"], text.as_str()) {
            response::fatal(&mut answer, occupied);
            return Ok(answer);
        }
        response::set_desired_composite(&mut answer, composite);

        response::normal(&mut answer, format!("greeted {whom}")).with_reason("Greeted");
        Ok(answer)
    }
}

/// The flags that control planes and `biplane render` pass to functions.
#[derive(Debug, Parser)]
struct Flags {
    /// Where to listen
    #[arg(long, default_value = ":9443")]
    address: String,
    /// Folder with tls.crt, tls.key and ca.crt
    #[arg(long, env = "TLS_SERVER_CERTS_DIR")]
    tls_certs_dir: Option<PathBuf>,
    /// Serve without certificates
    #[arg(long)]
    insecure: bool,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse();
    let config = Config {
        address: flags.address,
        certs_dir: flags.tls_certs_dir,
        insecure: flags.insecure,
        ..Config::default()
    };
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = async move {
        terminate.recv().await;
    };
    Ok(serve::start(Arc::new(Greeting), config, stop).await?.wait().await?)
}

#[cfg(test)]
mod tests {
    use biplane_function::{Value, json};
    use serde_json::json;

    use super::*;

    /// Runs the function. Request and response are JSON forms of the messages.
    fn run(request: Value) -> Value {
        let request = json::from_value(request).unwrap();
        json::to_value(&PureFunction::run(&Greeting, request).unwrap()).unwrap()
    }

    #[test]
    fn greets_in_a_config_map_and_in_the_status() {
        let answer = run(json!({
            "input": {"salutation": "Hello"},
            "observed": {"composite": {"resource": {"spec": {"whom": "Ada"}}}},
        }));
        assert_eq!(
            answer["desired"],
            json!({
                "composite": {"resource": {"status": {"greeting": "Hello, Ada!"}}},
                "resources": {"greeting": {
                    "resource": {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "data": {"text": "Hello, Ada!"},
                    },
                    "ready": "READY_FALSE",
                }},
            })
        );
        assert_eq!(answer["results"][0]["message"], "greeted Ada");
    }

    #[test]
    fn keeps_what_earlier_steps_want_and_is_ready_once_its_resource_exists() {
        let answer = run(json!({
            "input": {"salutation": "Hello"},
            "observed": {
                "composite": {"resource": {"spec": {"whom": "Ada"}}},
                "resources": {"greeting": {"resource": {"kind": "ConfigMap"}}},
            },
            "desired": {"resources": {"other": {"resource": {"kind": "Secret"}}}},
        }));
        let resources = &answer["desired"]["resources"];
        assert_eq!(resources["other"]["resource"]["kind"], "Secret");
        assert_eq!(resources["greeting"]["ready"], "READY_TRUE");
    }

    #[test]
    fn says_what_is_missing() {
        let message = |request| run(request)["results"][0].clone();
        let nobody = message(json!({"input": {"salutation": "Hello"}}));
        assert_eq!(nobody["severity"], "SEVERITY_FATAL");
        assert_eq!(nobody["message"], "spec.whom: nobody to greet");
        let no_input = message(json!({}));
        assert_eq!(no_input["severity"], "SEVERITY_FATAL");
        assert!(no_input["message"].as_str().unwrap().ends_with("missing field `salutation`"));
    }
}
