//! Listening sockets, with Go's network names and addresses.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixSocket, UnixStream};

/// How many connections may wait to be accepted. The system reduces it to what it allows.
const BACKLOG: u32 = 65_535;
/// Only the owner may connect to a socket in the file system.
const SOCKET_MODE: u32 = 0o600;
/// How long a server may take to answer whether it is alive.
const PATIENCE: Duration = Duration::from_secs(1);

/// The type of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// TCP.
    #[default]
    Tcp,
    /// A Unix domain socket in the file system.
    Unix,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        })
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "tcp" | "tcp4" | "tcp6" => Ok(Self::Tcp),
            "unix" => Ok(Self::Unix),
            _ => Err(format!("unknown network {text}: expected tcp or unix")),
        }
    }
}

/// Why a socket could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another server listens on the socket in the file system.
    #[error("another server listens there")]
    InUse,
    /// The path of the socket is taken by something that is not a socket.
    #[error("{} exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
    /// The system refused it.
    #[error("{}", reason(.0))]
    System(#[from] io::Error),
}

/// Why a socket could not take the place of another.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// What is there could not be removed.
    #[error("{0}")]
    Remove(#[source] ListenError),
    /// The socket could not be made.
    #[error("{0}")]
    Listen(#[source] ListenError),
}

/// A socket that accepts connections.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Socket {
    pub(super) fn network(&self) -> Network {
        match self {
            Self::Tcp(_) => Network::Tcp,
            Self::Unix(_) => Network::Unix,
        }
    }
}

/// A socket that accepts connections, and its address.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    target: String,
    file: Option<SocketFile>,
}

impl Listener {
    /// Listens on an address in Go's format: `:9443` is every address of the machine. For a Unix
    /// socket it is a path. Only the owner may connect to the socket there. A socket that nobody
    /// listens on any more is replaced; any other file is not.
    pub async fn bind(network: Network, address: &str) -> Result<Self, ListenError> {
        match network {
            Network::Tcp => {
                let listener = bind_tcp(address).await?;
                let bound = listener.local_addr()?;
                let host = if bound.ip().is_unspecified() {
                    "localhost".to_owned()
                } else if bound.is_ipv6() {
                    format!("[{}]", bound.ip())
                } else {
                    bound.ip().to_string()
                };
                let target = format!("{host}:{}", bound.port());
                Ok(Self { socket: Socket::Tcp(listener), target, file: None })
            }
            Network::Unix => {
                let path = std::path::absolute(address)?;
                let (listener, file) = bind_unix(Path::new(address), &path).await?;
                let target = format!("unix://{}", path.display());
                Ok(Self { socket: Socket::Unix(listener), target, file: Some(file) })
            }
        }
    }

    /// Listens on a Unix socket with a mode. A socket that is there is replaced, even if somebody
    /// listens on it: sidecars do this, whose last process may not have ended yet.
    pub async fn replace(path: &Path, mode: u32) -> Result<Self, ReplaceError> {
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(ReplaceError::Remove(ListenError::NotASocket(path.to_owned())));
            }
            Ok(_) => std::fs::remove_file(path).map_err(|e| ReplaceError::Remove(e.into()))?,
            // If it cannot be seen, binding says why.
            Err(_) => {}
        }
        let bound = async {
            let absolute = std::path::absolute(path)?;
            let (listener, file) = bind_at(path, &absolute, mode)?;
            let target = format!("unix://{}", absolute.display());
            Ok(Self { socket: Socket::Unix(listener), target, file: Some(file) })
        };
        bound.await.map_err(|error: io::Error| ReplaceError::Listen(error.into()))
    }

    /// Returns the gRPC target of the listener.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the address that it is bound to, if it is a TCP socket.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Tcp(listener) => listener.local_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    /// Takes it apart. The socket's file is removed when it is dropped.
    pub(super) fn into_parts(self) -> (Socket, Option<SocketFile>) {
        (self.socket, self.file)
    }
}

/// Binds like Go: an empty host is every address, and `localhost` is resolved.
pub(crate) async fn bind_tcp(address: &str) -> io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':') else {
        let mut failure = io::Error::new(io::ErrorKind::InvalidInput, "there is no such address");
        for address in tokio::net::lookup_host(address).await? {
            match listen_at(address) {
                Ok(listener) => return Ok(listener),
                Err(error) => failure = error,
            }
        }
        return Err(failure);
    };
    let port = port.parse::<u16>().map_err(|_| io::Error::other("unknown port"))?;
    match listen_at((Ipv6Addr::UNSPECIFIED, port).into()) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            listen_at((Ipv4Addr::UNSPECIFIED, port).into())
        }
        bound => bound,
    }
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server can be started again while connections of the previous one linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn bind_unix(
    given: &Path,
    absolute: &Path,
) -> Result<(UnixListener, SocketFile), ListenError> {
    make_room(given).await?;
    Ok(bind_at(given, absolute, SOCKET_MODE)?)
}

fn bind_at(given: &Path, absolute: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    let socket = UnixSocket::new_stream()?;
    let mode = || std::fs::Permissions::from_mode(mode);
    // On Linux, the file gets the mode that the socket has before it is bound, so that there is no
    // moment in which others may connect. Other systems refuse this.
    if let Ok(unbound) = socket.as_fd().try_clone_to_owned() {
        let _ = std::fs::File::from(unbound).set_permissions(mode());
    }
    socket.bind(given)?;
    let file = SocketFile::new(absolute)?;
    std::fs::set_permissions(given, mode())?;
    Ok((socket.listen(BACKLOG)?, file))
}

/// Removes a socket that nobody listens on any more.
async fn make_room(path: &Path) -> Result<(), ListenError> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_owned()));
    }
    // A server that is alive but too busy does not refuse the connection.
    match tokio::time::timeout(PATIENCE, UnixStream::connect(path)).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Ok(std::fs::remove_file(path)?)
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => Err(ListenError::InUse),
    }
}

/// The file of a socket, which is removed when this is dropped, unless another server has replaced
/// it.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "bind: address already in use".to_owned(),
        io::ErrorKind::PermissionDenied => "bind: permission denied".to_owned(),
        io::ErrorKind::NotFound => "bind: no such file or directory".to_owned(),
        io::ErrorKind::AddrNotAvailable => "bind: cannot assign requested address".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn bind(path: &Path) -> Result<Listener, ListenError> {
        Listener::bind(Network::Unix, path.to_str().unwrap()).await
    }

    #[tokio::test]
    async fn only_the_owner_may_connect_to_a_socket_in_the_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _listener = bind(&path).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        // A standard listener leaves its file behind.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let first = bind(&path).await.unwrap();
        let refused = bind(&path).await.unwrap_err();
        assert_eq!(refused.to_string(), "another server listens there");
        // Another file took the place of the first one, so that it stays.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        drop(first);
        let refused = bind(&path).await.unwrap_err().to_string();
        assert_eq!(refused, format!("{} exists and is not a socket", path.display()));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_server_that_is_too_busy_to_answer_is_alive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let _busy = socket.listen(0).unwrap();
        // Its queue is full with this one.
        let _waiting = UnixStream::connect(&path).await.unwrap();
        assert!(matches!(bind(&path).await, Err(ListenError::InUse)));
    }

    /// More connections than the 128 of most servers wait, though nobody accepts them.
    #[tokio::test]
    async fn as_many_connections_wait_as_the_system_allows() {
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let waiting = allowed.trim().parse::<usize>().unwrap().min(200);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let _unix = bind(&path).await.unwrap();
        let tcp = Listener::bind(Network::Tcp, "127.0.0.1:0").await.unwrap();
        let address = tcp.tcp_address().unwrap();
        let (mut streams, mut sockets) = (Vec::new(), Vec::new());
        for _ in 0..waiting {
            sockets.push(UnixStream::connect(&path).await.unwrap());
            let connecting = tokio::net::TcpStream::connect(address);
            let connected = tokio::time::timeout(Duration::from_mins(1), connecting).await;
            streams.push(connected.expect("the queue is full").unwrap());
        }
    }
}
