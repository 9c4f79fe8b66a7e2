//! The address of this machine at which containers reach it, and as few others as possible.

use std::net::{IpAddr, Ipv4Addr, TcpListener};

use anyhow::{Result, bail};
use bollard::models::NetworkInspect;
use bollard::query_parameters::InspectNetworkOptions;

use super::Session;

/// The network of containers that ask for none. Docker's name for this machine leads to it.
const DEFAULT_NETWORK: &str = "bridge";

impl Session {
    /// The address at which containers on a network reach this machine. It is the address of the
    /// network's bridge, which is not reachable from other machines. Where the bridge is not on this
    /// machine, as with Docker Desktop, the engine forwards to the loopback address.
    pub async fn own_address(&self, network: &str) -> Result<IpAddr> {
        for network in [network, DEFAULT_NETWORK] {
            let inspect = self.docker().inspect_network(network, None::<InspectNetworkOptions>);
            let Ok(found) = inspect.await else { continue };
            if let Some(address) = gateways(&found).into_iter().find(|address| is_ours(*address)) {
                return Ok(address);
            }
        }
        if self.is_podman().await {
            bail!(
                "a render engine in a container of this Podman cannot reach functions on this machine, since its networks are not on it; run the functions in containers too (--no-builtin), or the engine as a program (--crossplane-binary)"
            );
        }
        Ok(Ipv4Addr::LOCALHOST.into())
    }
}

/// The addresses of a network's bridges.
fn gateways(network: &NetworkInspect) -> Vec<IpAddr> {
    let configs = network.ipam.as_ref().and_then(|ipam| ipam.config.as_ref());
    let gateways = configs.into_iter().flatten().filter_map(|config| config.gateway.as_ref());
    let addresses = gateways.filter_map(|gateway| gateway.parse::<IpAddr>().ok());
    addresses.filter(|address| address.is_ipv4() && !address.is_unspecified()).collect()
}

/// Whether this machine has the address.
fn is_ours(address: IpAddr) -> bool {
    TcpListener::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridge_of_a_network_has_its_gateway() {
        let network = |config: &str| {
            let network = format!(r#"{{"IPAM":{{"Config":{config}}}}}"#);
            gateways(&serde_json::from_str(&network).unwrap())
        };
        assert_eq!(network("null"), [] as [IpAddr; 0]);
        let both =
            r#"[{"Subnet":"172.18.0.0/16","Gateway":"172.18.0.1"},{"Gateway":"fd00::1"},{}]"#;
        assert_eq!(network(both), [IpAddr::from([172, 18, 0, 1])]);
        // It would be every address of the machine.
        assert_eq!(network(r#"[{"Gateway":"0.0.0.0"},{"Gateway":"x"}]"#), [] as [IpAddr; 0]);
    }

    #[test]
    fn an_address_is_ours_if_it_can_be_listened_on() {
        assert!(is_ours([127, 0, 0, 1].into()));
        // Reserved for documentation, so that no machine has it.
        assert!(!is_ours([192, 0, 2, 1].into()));
    }
}
