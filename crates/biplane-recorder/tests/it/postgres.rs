//! A PostgreSQL server of the tests alone. It ends with the process, however that ends.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use biplane_recorder::store::Location;
use biplane_testkit::certs::Certs;

/// The user that the server runs as if the tests run as root, which it refuses to be.
const NOBODY: u32 = 65534;

struct Server {
    folder: PathBuf,
    /// While it is open, the server runs.
    _alive: Mutex<ChildStdin>,
}

/// The folder of the programs of PostgreSQL.
fn programs() -> PathBuf {
    let mut folders: Vec<PathBuf> = Vec::new();
    for parent in ["/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt", "/usr/local/pgsql"] {
        let parent = Path::new(parent);
        folders.push(parent.join("bin"));
        let versions = std::fs::read_dir(parent).into_iter().flatten().flatten();
        let mut versions: Vec<PathBuf> =
            versions.map(|version| version.path().join("bin")).collect();
        versions.sort();
        folders.extend(versions.into_iter().rev());
    }
    #[allow(clippy::disallowed_methods)] // a test looks for a program as a shell does
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    let found = folders.into_iter().find(|folder| folder.join("initdb").exists());
    found.expect(
        "PostgreSQL is not installed: install the package `postgresql` of your distribution, or \
         run `cargo xtask test` as root on Debian, which does it",
    )
}

/// Makes a cluster, starts a server with some settings, and waits for the end of its input. Over a
/// network it is only reached with TLS.
const SCRIPT: &str = r#"
"$1/initdb" --pgdata="$2/data" --auth=trust --username=biplane --no-sync --no-locale \
    --encoding=UTF8 >"$2/initdb.log" 2>&1 || { cat "$2/initdb.log"; exit 1; }
printf 'local all all trust\nhostssl all all all trust\n' >"$2/data/pg_hba.conf"
programs=$1
folder=$2
port=$3
shift 3
"$programs/postgres" -D "$folder/data" -k "$folder" -c port="$port" -c shared_buffers=16MB \
    -c max_connections=50 -c autovacuum=off "$@" >"$folder/server.log" 2>&1 &
server=$!
until "$programs/pg_isready" -q -h "$folder" -p "$port"; do
    kill -0 $server 2>/dev/null || { cat "$folder/server.log"; exit 1; }
    sleep 0.1
done
echo ready
cat >/dev/null
kill -QUIT $server
wait $server
rm -rf "$folder"
"#;

/// The user that owns the files of a server.
fn owner() -> Option<u32> {
    nix::unistd::geteuid().is_root().then_some(NOBODY)
}

fn new_folder() -> PathBuf {
    // The script removes it.
    let folder = tempfile::Builder::new().prefix("pg").tempdir().unwrap().keep();
    std::os::unix::fs::chown(&folder, owner(), owner()).unwrap();
    folder
}

fn start(folder: PathBuf, port: u16, settings: &[String]) -> Server {
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT, "sh"]).arg(programs()).arg(&folder).arg(port.to_string());
    for setting in settings {
        command.args(["-c", setting]);
    }
    command.current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some(owner) = owner() {
        command.uid(owner).gid(owner);
    }
    // An interrupt of the tests is not for the server.
    command.process_group(0);
    #[allow(clippy::zombie_processes)] // it ends after this process
    let mut child = command.spawn().unwrap();
    let alive = child.stdin.take().unwrap();
    let mut said = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    while !said.ends_with("ready\n") {
        assert_ne!(output.read_line(&mut said).unwrap(), 0, "the server has ended: {said}");
    }
    Server { folder, _alive: Mutex::new(alive) }
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| start(new_folder(), 5432, &["listen_addresses=".to_owned()]))
}

/// A server that is reached over the network, with TLS alone.
pub(crate) struct TlsServer {
    pub(crate) port: u16,
    /// The certificate that vouches for it.
    pub(crate) ca: PathBuf,
    _server: Server,
    _certs: Certs,
}

impl TlsServer {
    pub(crate) fn start() -> Self {
        let certs = Certs::new(&["localhost"]);
        let folder = new_folder();
        for name in ["tls.crt", "tls.key"] {
            let file = folder.join(name);
            std::fs::copy(certs.server().join(name), &file).unwrap();
            // The server wants its key to be its own.
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
            std::os::unix::fs::chown(&file, owner(), owner()).unwrap();
        }
        // A port that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", folder.join("tls.crt").display()),
            format!("ssl_key_file={}", folder.join("tls.key").display()),
        ];
        let server = start(folder, port, &settings);
        let ca = certs.server().join("ca.crt");
        Self { port, ca, _server: server, _certs: certs }
    }
}

/// Where the server listens, without a database.
pub(crate) fn base() -> String {
    let host = server().folder.to_str().unwrap().replace('/', "%2F");
    format!("postgres://biplane@{host}")
}

/// Runs statements.
pub(crate) fn batch(location: &str, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(location, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        let _ = connection.await;
    });
}

/// A new database.
pub(crate) fn database() -> Location {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
    batch(&format!("{}/postgres", base()), &format!("CREATE DATABASE {name}"));
    Location::Server(format!("{}/{name}", base()))
}
