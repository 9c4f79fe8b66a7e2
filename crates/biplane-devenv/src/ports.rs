//! Finds ports of the loopback address for servers that cannot choose one themselves.

use std::net::{Ipv4Addr, TcpListener};

use crate::EnvError;
use crate::certificates::random;

/// Outgoing connections and servers that ask the system for a port get one from a range of their
/// own, on Linux from 32768 on, elsewhere higher. A port below it stays free while its server
/// restarts.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A port that is found free can be taken before the server binds it; then another one is tried.
const ATTEMPTS: usize = 5;

/// How often a taken port is replaced by another candidate before a server has tried it.
const CANDIDATES: usize = 100;

/// The error message of Go's programs when a port is in use.
const PORT_IS_TAKEN: &str = "address already in use";

/// Starts a server on a free port. `wanted` is tried first.
pub(crate) fn with_port<T>(
    wanted: Option<u16>,
    mut start: impl FnMut(u16) -> Result<T, EnvError>,
) -> Result<T, EnvError> {
    let mut attempt = 1;
    let mut port = match wanted.filter(|&port| is_free(port)) {
        Some(port) => port,
        None => free_port()?,
    };
    loop {
        match start(port) {
            Err(error) if is_about_port(&error) && attempt < ATTEMPTS => {
                attempt += 1;
                port = free_port()?;
            }
            outcome => return outcome,
        }
    }
}

/// Whether a server stopped because its port is in use.
pub(crate) fn is_about_port(error: &EnvError) -> bool {
    matches!(error, EnvError::Stopped { log, .. } if log.contains(PORT_IS_TAKEN))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn free_port() -> Result<u16, EnvError> {
    for _ in 0..CANDIDATES {
        let port = RANGE.start + u16::from_le_bytes(random()?) % (RANGE.end - RANGE.start);
        if is_free(port) {
            return Ok(port);
        }
    }
    Err(EnvError::io("find a free port")(std::io::ErrorKind::AddrInUse.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(port: u16) -> EnvError {
        let log = format!("listen tcp 127.0.0.1:{port}: bind: {PORT_IS_TAKEN}");
        EnvError::Stopped { program: "etcd", status: "exit status: 1".into(), log }
    }

    #[test]
    fn a_server_that_lost_its_port_gets_another_one() {
        let mut tried = Vec::new();
        let port = with_port(None, |port| {
            tried.push(port);
            if tried.len() < 3 { Err(taken(port)) } else { Ok(port) }
        });
        assert_eq!(tried.len(), 3);
        assert_eq!(port.unwrap(), tried[2]);
        assert!(tried.iter().all(|port| RANGE.contains(port)), "{tried:?}");
    }

    #[test]
    fn a_server_that_stopped_for_another_reason_is_not_started_again() {
        let mut times = 0;
        let outcome: Result<(), _> = with_port(None, |_| {
            times += 1;
            let log = "unknown flag: --fast".to_owned();
            Err(EnvError::Stopped { program: "etcd", status: "exit status: 1".into(), log })
        });
        assert!(outcome.is_err());
        assert_eq!(times, 1);
    }

    #[test]
    fn the_wanted_port_is_used_if_it_is_free() {
        let wanted = free_port().unwrap();
        let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let busy = (busy.local_addr().unwrap().port(), busy);
        assert_eq!(with_port(Some(wanted), Ok).unwrap(), wanted);
        assert_ne!(with_port(Some(busy.0), Ok).unwrap(), busy.0);
    }
}
