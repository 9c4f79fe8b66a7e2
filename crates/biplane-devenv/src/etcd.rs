//! Starts etcd.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::EnvError;
use crate::client::Client;
use crate::common::Common;
use crate::process::Server;
use crate::provision::Tool;

/// etcd answers within a second on an idle machine. With much data it takes longer.
const PATIENCE: Duration = Duration::from_mins(1);

/// Starts etcd on a port and waits until it is ready.
pub(crate) fn start(
    common: &Common,
    port: u16,
    report: &mut dyn FnMut(&str),
) -> Result<Server, EnvError> {
    let program = common.binaries.path(Tool::Etcd)?;
    let folder = &common.folder;
    let mut command = command(&program, &folder.join("etcd"), port, folder.is_kept());
    let mut server = Server::spawn("etcd", &mut command, folder.join("etcd.log"), &common.group)?;
    let client = Client::plain(port);
    server.wait_ready(|| client.probe("/health"), PATIENCE, report)?;
    Ok(server)
}

fn command(program: &Path, data: &Path, port: u16, safe: bool) -> Command {
    let client = format!("http://127.0.0.1:{port}");
    let mut command = Command::new(program);
    command
        .arg("--data-dir")
        .arg(data)
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", "http://127.0.0.1:0"])
        // Data that is removed with its owner need not survive a power failure.
        .arg(format!("--unsafe-no-fsync={}", !safe));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kept_data_is_written_safely() {
        let last = |safe| {
            let command = command(Path::new("etcd"), Path::new("data"), 1, safe);
            command.get_args().last().unwrap().to_owned()
        };
        assert_eq!(last(true), "--unsafe-no-fsync=false");
        assert_eq!(last(false), "--unsafe-no-fsync=true");
    }
}
