//! A proxy between the program and the Docker engine that delays requests and drops responses.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::daemon::Daemon;

/// What happens to the request that contains a text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// It waits until it is let through.
    Waits,
    /// It waits until another request contains this text.
    WaitsFor(&'static str),
    /// It is let through, and its response is dropped.
    StaysUnanswered,
}

/// A proxy between the program and the Docker engine.
pub(crate) struct Between {
    socket: PathBuf,
    met: Receiver<()>,
    let_through: Sender<()>,
    _folder: tempfile::TempDir,
}

impl Between {
    /// Waits for a request that contains a text.
    pub(crate) fn new(daemon: &Daemon, text: &'static str, fate: Fate) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let (meet, met) = channel();
        let (let_through, wait) = channel();
        let watch = Watch {
            text,
            fate,
            meet,
            let_through: let_through.clone(),
            wait: Arc::new(Mutex::new(wait)),
        };
        let engine = daemon.socket();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (client, server) = (stream.unwrap(), UnixStream::connect(&engine).unwrap());
                watch.clone().connect(client, server);
            }
        });
        Self { socket, met, let_through, _folder: folder }
    }

    /// For `DOCKER_HOST`.
    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Returns once the request, or its response, has arrived.
    pub(crate) fn meet(&self) {
        self.met.recv().unwrap();
    }

    pub(crate) fn let_through(&self) {
        self.let_through.send(()).unwrap();
    }
}

#[derive(Clone)]
struct Watch {
    text: &'static str,
    fate: Fate,
    meet: Sender<()>,
    let_through: Sender<()>,
    wait: Arc<Mutex<Receiver<()>>>,
}

impl Watch {
    fn connect(self, mut client: UnixStream, mut server: UnixStream) {
        let (mut answers, mut to_client) =
            (server.try_clone().unwrap(), client.try_clone().unwrap());
        let lost = Arc::new(AtomicBool::new(false));
        let (is_lost, meet) = (lost.clone(), self.meet.clone());
        thread::spawn(move || {
            each_part(&mut answers, |part| {
                if is_lost.load(Ordering::SeqCst) {
                    return meet.send(()).is_ok();
                }
                to_client.write_all(part).is_ok()
            });
            if !is_lost.load(Ordering::SeqCst) {
                let _ = to_client.shutdown(Shutdown::Write);
            }
        });
        thread::spawn(move || {
            each_part(&mut client, |part| {
                let has = |text: &str| part.windows(text.len()).any(|w| w == text.as_bytes());
                if let Fate::WaitsFor(text) = self.fate
                    && has(text)
                {
                    let _ = self.let_through.send(());
                }
                if has(self.text) {
                    if let Fate::StaysUnanswered = self.fate {
                        lost.store(true, Ordering::SeqCst);
                    } else {
                        let _ = self.meet.send(());
                        let _ = self.wait.lock().unwrap().recv();
                    }
                }
                server.write_all(part).is_ok()
            });
            let _ = server.shutdown(Shutdown::Write);
        });
    }
}

fn each_part(from: &mut impl Read, mut deal: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !deal(&buffer[..read]) {
            return;
        }
    }
}

/// Exposes the engine on a TCP port without certificates, and records the first lines of requests.
pub(crate) fn open_port(daemon: &Daemon) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let engine = daemon.socket();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let heard = lines.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (client, server) = (stream.unwrap(), UnixStream::connect(&engine).unwrap());
            pass(client, server, heard.clone());
        }
    });
    (format!("tcp://{address}"), lines)
}

fn pass(mut client: TcpStream, mut server: UnixStream, heard: Arc<Mutex<Vec<String>>>) {
    let (mut answers, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || {
        each_part(&mut answers, |part| to_client.write_all(part).is_ok());
        let _ = to_client.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        each_part(&mut client, |part| {
            let text = String::from_utf8_lossy(part);
            heard.lock().unwrap().extend(text.lines().next().map(ToOwned::to_owned));
            server.write_all(part).is_ok()
        });
        let _ = server.shutdown(Shutdown::Write);
    });
}
