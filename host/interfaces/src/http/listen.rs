//! The listeners of a host: the home's socket (SPEC CONF-4), and a TCP port if the owner asks for one (SPEC API-1).
//!
//! Only the process that holds the home's lock listens, so a socket that is already there belonged to a host that died,
//! and is replaced in one step. Others on the machine are kept out three times: the home is 0700, the socket 0600, and
//! the kernel says who is at the other end of each connection.

use std::fs::{self, File, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::{Home, Host};
use base::{Refusal, RefusalCode};
use consent::Claim;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::attached::Attachments;
use super::port::TcpPort;
use super::same_origin::HostNames;
use super::slots::{Slots, SocketLimits, raise_descriptors};
use super::{ApiState, Channel, Lifetime, connections, router};

/// Bytes of a socket's path that every Unix takes (`sun_path` has 104 to 108, with a final NUL).
const PATH_BYTES: usize = 103;
/// Time for requests to end once the host closes. Those that wait for something end at once.
const GRACE: Duration = Duration::from_secs(2);
/// The pause after a connection could not be accepted.
const RETRY: Duration = Duration::from_millis(100);

/// A source of connections.
pub(super) trait Listener {
    /// A connection, readable and writable.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection. Cancelling it loses none.
    fn accept(&self) -> impl Future<Output = Self::Stream> + Send;
}

/// A host that is served.
pub struct Server {
    api: ApiState,
    socket: PathBuf,
    serving: Vec<JoinHandle<()>>,
}

impl Server {
    /// Serves `host` on the socket of its home. The host holds the home's lock, as every open host does.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn start(host: Host, home: &Home, lifetime: Lifetime) -> Result<Self, Refusal> {
        let socket = home.socket();
        let listener = bind(&socket).map_err(|error| {
            let reason = format!("cannot listen on `{}`: {error}", socket.display());
            Refusal::new(RefusalCode::Failed, reason).with_remedy("use a home on a local file system: `--home DIR`")
        })?;
        let api = ApiState {
            host,
            channel: Channel::Socket,
            lifetime,
            attached: Attachments::new(),
            page: Arc::default(),
            meters: Arc::default(),
            closing: CancellationToken::new(),
            shutdown: CancellationToken::new(),
            mcp: None,
        };
        let serving = vec![serve(OwnersOnly::new(listener), api.clone())];
        Ok(Self { api, socket, serving })
    }

    /// Serves the host on a TCP port too, and returns the address in use.
    ///
    /// # Errors
    /// If the address is not one of the loopback interface and remote access is not allowed, or the port is taken.
    pub async fn listen(&mut self, port: TcpPort) -> Result<SocketAddr, Refusal> {
        let listener = port.bind().await?;
        let bound = listener.local_addr().map_err(|error| port.failed(&error))?;
        if bound.ip().is_loopback() {
            // The first port is where the page is, should there be several.
            self.api.page.set(format!("http://{bound}")).ok();
        }
        let names = if port.allow_remote { HostNames::Any } else { HostNames::Loopback };
        self.serving.push(serve(listener, ApiState { channel: Channel::Network(names), ..self.api.clone() }));
        Ok(bound)
    }

    /// A link to the page at `address` that signs one browser in.
    ///
    /// # Errors
    /// If the claim is not the owner's.
    pub async fn sign_in_link(&self, address: &str, claim: Claim) -> Result<String, Refusal> {
        let code = self.api.host.consent.make_link(claim).await?;
        Ok(format!("{address}/sign-in?code={}", code.expose()))
    }

    /// Waits until a client asks the host to end.
    pub async fn asked_to_end(&self) {
        self.api.shutdown.cancelled().await;
    }

    /// Waits until the state takes no more commits, and says why. Nothing is acknowledged from then on.
    pub async fn storage_lost(&self) -> Refusal {
        self.api.host.storage_lost().await
    }

    /// How many requests of others depend on this host.
    #[must_use]
    pub fn attached(&self) -> usize {
        self.api.attached.count()
    }

    /// Waits until no request depends on this host.
    pub async fn nobody_attached(&self) {
        self.api.attached.nobody().await;
    }

    /// Closes the socket, ends the host, then the remaining connections. Runs that go on stay resumable.
    pub async fn stop(self) {
        // First of all, so that who comes now waits for the next host instead of asking this one.
        if let Err(error) = fs::remove_file(&self.socket) {
            tracing::debug!(%error, "the socket was already gone");
        }
        // Ends the drivers of runs, and with them the streams of those who watch.
        self.api.host.shutdown().await;
        self.api.closing.cancel();
        let deadline = tokio::time::Instant::now() + GRACE;
        for serving in self.serving {
            let abort = serving.abort_handle();
            match tokio::time::timeout_at(deadline, serving).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "serving a listener failed"),
                Err(_) => abort.abort(),
            }
        }
    }
}

fn serve(listener: impl Listener + Send + Sync + 'static, api: ApiState) -> JoinHandle<()> {
    let closing = api.closing.clone();
    let slots = Slots::new(SocketLimits::fitting(raise_descriptors()));
    let kind = match api.channel {
        Channel::Socket => "socket",
        Channel::Network(_) => "port",
    };
    api.meters.add_listener(kind, slots.clone());
    tokio::spawn(connections::serve(listener, router(api), slots, closing))
}

/// Makes the socket beside its place and moves it there: it is never reachable with other permissions, and one left by
/// a dead host is replaced at once.
fn bind(socket: &Path) -> io::Result<UnixListener> {
    let fresh = socket.with_extension("sock.new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    #[expect(clippy::disallowed_methods, reason = "the socket of the home")]
    let listener = UnixListener::bind(address(&fresh)?.path())?;
    fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
    fs::rename(&fresh, socket)?;
    Ok(listener)
}

/// A path of a socket that the kernel takes.
#[derive(Debug)]
pub(crate) struct Address {
    path: PathBuf,
    /// Keeps the descriptor in the path open.
    _directory: Option<File>,
}

impl Address {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Socket addresses hold about a hundred bytes, homes may lie deeper: a longer path goes by a descriptor of its
/// directory, where the system has those as files.
pub(crate) fn address(socket: &Path) -> io::Result<Address> {
    if socket.as_os_str().len() <= PATH_BYTES {
        return Ok(Address { path: socket.to_owned(), _directory: None });
    }
    let too_long =
        || io::Error::new(io::ErrorKind::InvalidInput, format!("the path is longer than {PATH_BYTES} bytes"));
    let (parent, name) = socket.parent().zip(socket.file_name()).ok_or_else(too_long)?;
    if !Path::new("/proc/self/fd").is_dir() {
        return Err(too_long());
    }
    let directory = File::open(parent)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name);
    Ok(Address { path, _directory: Some(directory) })
}

/// Accepts connections of the owner and of root.
#[derive(Debug)]
pub(super) struct OwnersOnly {
    listener: UnixListener,
    owner: u32,
}

impl OwnersOnly {
    /// For the user that this process runs as.
    pub(super) fn new(listener: UnixListener) -> Self {
        Self { listener, owner: rustix::process::geteuid().as_raw() }
    }
}

impl Listener for OwnersOnly {
    type Stream = UnixStream;

    async fn accept(&self) -> UnixStream {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    wait_for_descriptors(&error).await;
                    continue;
                }
            };
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == self.owner || peer.uid() == 0 => return stream,
                Ok(peer) => tracing::warn!(uid = peer.uid(), "refused a connection of another user"),
                Err(error) => tracing::warn!(%error, "refused a connection: peer credentials unavailable"),
            }
        }
    }
}

/// Descriptors may have run out: some become free as connections end.
pub(super) async fn wait_for_descriptors(error: &io::Error) {
    tracing::warn!(%error, "cannot accept a connection");
    tokio::time::sleep(RETRY).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_dead_hosts_socket_is_replaced_and_only_the_owner_may_use_it() {
        let home = tempfile::tempdir().unwrap();
        let socket = home.path().join("host.sock");
        drop(bind(&socket).unwrap());
        assert!(UnixStream::connect(&socket).await.is_err());
        let listener = bind(&socket).unwrap();
        assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        let _client = UnixStream::connect(&socket).await.unwrap();
        listener.accept().await.unwrap();
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_deep_home_has_a_socket_too() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("d".repeat(120)).join("e".repeat(120));
        fs::create_dir_all(&deep).unwrap();
        let socket = deep.join("host.sock");
        let listener = bind(&socket).unwrap();
        let _client = UnixStream::connect(address(&socket).unwrap().path()).await.unwrap();
        listener.accept().await.unwrap();
    }

    #[tokio::test]
    async fn connections_of_others_are_dropped() {
        let home = tempfile::tempdir().unwrap();
        let socket = home.path().join("host.sock");
        let own = rustix::process::geteuid().as_raw();
        let accepts = async |owner: u32| {
            let listener = OwnersOnly { listener: bind(&socket).unwrap(), owner };
            let _client = UnixStream::connect(&socket).await.unwrap();
            tokio::time::timeout(Duration::from_millis(100), listener.accept()).await.is_ok()
        };
        assert!(accepts(own).await);
        // Root is always let in, so only another user's test can see the refusal.
        assert_eq!(accepts(own.wrapping_add(1)).await, own == 0);
    }
}
