//! Tests of how the real programs fail when their port is taken. The retry in `ports` relies on it.

use std::net::{Ipv4Addr, TcpListener};

use super::*;
use crate::ports::is_about_port;

#[test]
fn a_server_that_lost_its_port_stops_and_says_so() {
    let tools = [Tool::Etcd, Tool::KubeApiserver];
    let binaries = provision(&Places::from_env().unwrap(), &tools, &mut say).unwrap();
    let (common, _) = Common::prepare(Options::default(), binaries).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    // Closes every connection at once, so that no probe waits for a response. The thread ends with
    // the test.
    std::thread::spawn(move || listener.incoming().for_each(drop));

    let error = etcd::start(&common, port, &mut |_| ()).unwrap_err();
    assert!(is_about_port(&error), "{error}");

    let place = Place { number: 1, port, etcd_port: port };
    let error = kube_apiserver::start(&common, place, &mut |_| ()).unwrap_err();
    assert!(is_about_port(&error), "{error}");
}
