//! Connects to functions by address, for callers that know where each function listens.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use biplane_function::Status;
use biplane_go::fmt::quote;

use crate::grpc::{GrpcRunner, Security, TargetError};
use crate::named::Named;
use crate::runner::{Call, FunctionRunner, RunError};
use crate::v1::{RunFunctionRequest, RunFunctionResponse};

/// How many connections are kept. Callers use a handful, and one that makes up addresses must not
/// use more and more memory.
const MAX_KEPT: usize = 256;

/// An address that cannot be one of a function.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to function {} at {}: {source}", quote(.function), quote(.address))]
pub struct ConnectError {
    /// The function's name.
    pub function: String,
    /// Its address.
    pub address: String,
    /// The reason.
    pub source: TargetError,
}

/// Connections without TLS, kept by address. A connection is made when it is first used.
#[derive(Clone, Default)]
pub struct Connections(Arc<Mutex<BTreeMap<String, Arc<dyn FunctionRunner>>>>);

impl Connections {
    /// Calls the function at an address through `runner`, without a connection.
    pub fn replace(&self, address: &str, runner: Arc<dyn FunctionRunner>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(address.to_owned(), runner);
    }

    /// Returns runners of functions, given as pairs of name and address. The first address of a
    /// name wins.
    pub fn named<'a>(
        &self,
        functions: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Named, ConnectError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut named = Named::default();
        for (function, address) in functions {
            if named.contains(function) {
                continue;
            }
            let runner = if let Some(runner) = kept.get(address) {
                runner.clone()
            } else {
                let runner = connect(address).map_err(|source| ConnectError {
                    function: function.to_owned(),
                    address: address.to_owned(),
                    source,
                })?;
                if kept.len() >= MAX_KEPT {
                    kept.clear();
                }
                kept.insert(address.to_owned(), runner.clone());
                runner
            };
            named.insert(function, runner);
        }
        Ok(named)
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(kept.keys()).finish()
    }
}

fn connect(address: &str) -> Result<Arc<dyn FunctionRunner>, TargetError> {
    if address.is_empty() {
        return Ok(Arc::new(WithoutAddress));
    }
    Ok(Arc::new(GrpcRunner::new(address, Security::Plaintext)?))
}

/// A function without an address. It is an error only when the function is called.
struct WithoutAddress;

#[async_trait]
impl FunctionRunner for WithoutAddress {
    async fn run(
        &self,
        _call: &Call,
        _request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        // Other clients report this after they have waited for an address.
        Err(RunError::Status(Status::deadline_exceeded(
            "latest balancer error: delegating_resolver: invalid target address \"\": missing address",
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_addresses_do_not_pile_up() {
        let connections = Connections::default();
        for port in 0..=MAX_KEPT {
            let address = format!("127.0.0.1:{}", 1024 + port);
            connections.named([("f", address.as_str())]).unwrap();
        }
        let kept = connections.0.lock().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(kept, [format!("127.0.0.1:{}", 1024 + MAX_KEPT)]);
    }

    #[test]
    fn one_address_is_one_connection_and_the_first_address_of_a_name_wins() {
        let connections = Connections::default();
        let named = connections.named([("f", ""), ("g", ""), ("f", "localhost:1")]).unwrap();
        assert!(named.contains("f") && named.contains("g"));
        assert_eq!(format!("{connections:?}"), r#"{""}"#);
    }

    #[test]
    fn an_address_that_is_none_is_named_with_its_function() {
        let error = Connections::default().named([("f", "dns:///")]).unwrap_err().to_string();
        let expected = r#"cannot connect to function "f" at "dns:///": "#;
        assert!(error.starts_with(expected), "{error}");
    }
}
