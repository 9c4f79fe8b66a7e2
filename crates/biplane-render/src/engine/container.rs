//! Runs an engine in a container, on the same network as the functions.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, anyhow};
use biplane_console::{Deadline, interrupt};
use biplane_proto::render::v1alpha1::{FunctionInput, RenderRequest, RenderResponse};
use biplane_runtime::Runners;
use biplane_runtime::docker::{Cancelled, Ran};
use biplane_runtime::engine::{IN_DOCKER, Image};
use prost::Message;

use super::foreign;

/// Renders with an image. Functions in this process are served where containers reach this machine;
/// others on this machine are reached through its name.
pub(super) async fn render(
    image: &Image,
    mut request: RenderRequest,
    runners: &Runners,
    deadline: Deadline,
) -> Result<RenderResponse> {
    let session = runners.session.clone().ok_or_else(|| anyhow!("there is no Docker engine"))?;
    let network = runners.network.as_deref().unwrap_or_default();
    let serves = runners.iter().any(|(_, running)| running.target.is_none());
    let listen = if serves {
        session.own_address(network).await.context(image.attempted)?
    } else {
        Ipv4Addr::LOCALHOST.into()
    };
    let listen = SocketAddr::new(listen, 0).to_string();
    let (functions, _served) = foreign::addresses(runners, &listen).await?;
    let host = session.host().await;
    let functions = functions.into_iter().map(|function| reachable(function, host));
    foreign::set_functions(&mut request, functions.collect());
    let request = request.encode_to_vec();
    let arguments = ["internal", "render"];
    let run = session.run(&image.reference, &arguments, &request, network, deadline.remaining());
    tokio::pin!(run);
    let ran = tokio::select! {
        ran = &mut run => ran,
        () = interrupt::requested(runners.interrupted.as_ref()) => {
            session.cancel(Cancelled::Interrupted);
            run.await
        }
        end = runners.first_end() => {
            session.cancel(Cancelled::Pointless);
            let _ = run.await;
            return Err(anyhow!(end).context(image.attempted));
        }
    };
    let Ran { code, stdout, stderr } = ran.map_err(|error| image.failed(error))?;
    let status = format!("container exited with status {code}");
    let code = i32::try_from(code).ok();
    foreign::answer(IN_DOCKER, code, &stdout, &stderr, &status).context(image.attempted)
}

/// The address of a function as seen from a container, which has another name for this machine.
fn reachable(function: FunctionInput, host: &str) -> FunctionInput {
    let host = format!("{host}:");
    let address = function.address.replacen("localhost:", &host, 1);
    let address = address.replacen("127.0.0.1:", &host, 1);
    FunctionInput { address, ..function }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENG-5, T-26
    #[test]
    fn functions_on_this_machine_are_reached_through_the_host() {
        for (address, want) in [
            ("localhost:9443", "host.docker.internal:9443"),
            ("127.0.0.1:32768", "host.docker.internal:32768"),
            ("dns:///127.0.0.1:7443", "dns:///host.docker.internal:7443"),
            ("dns:///localhost:7443", "dns:///host.docker.internal:7443"),
            ("fn:9443", "fn:9443"),
            ("172.18.0.1:9443", "172.18.0.1:9443"),
            ("0.0.0.0:9443", "0.0.0.0:9443"),
        ] {
            let function = FunctionInput { name: "fn".into(), address: address.into() };
            assert_eq!(reachable(function, "host.docker.internal").address, want);
        }
    }
}
