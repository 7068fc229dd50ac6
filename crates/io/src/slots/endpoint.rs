//! This process's side of a slot channel: it waits for a peer, or connects to one, again and again.

use super::layout::Geometry;
use super::link::Link;
use crate::error::IoError;
use crate::socket::remove_stale;
use crate::sys::EpollSet;
use rustix::fs::{Mode, chmod};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The time between attempts to connect, and for which a peer that has left cannot come back: a
/// peer that connects and fails at once costs little.
const PAUSE: Duration = Duration::from_millis(100);

/// The place and the size of a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SlotOptions {
    /// The socket file, or the name of a channel whose connections the program passes.
    pub(crate) path: String,
    /// Whether this process connects to a peer, which has made the channel.
    pub(crate) is_client: bool,
    /// Whether the program passes connections ([`pass`]), in the place of a socket file.
    pub(crate) is_passed: bool,
    /// The size of the rings, if this process makes them.
    pub(crate) geometry: Geometry,
}

/// One side of a channel; elements of both directions share it.
pub(super) struct Endpoint {
    options: SlotOptions,
    /// Readable when a peer connects, rings or leaves; the same descriptor for all peers.
    events: EpollSet,
    listener: Option<UnixListener>,
    state: Mutex<EndpointState>,
}

/// The connection of an endpoint.
#[derive(Default)]
struct EndpointState {
    link: Option<Arc<Link>>,
    /// The socket of a client to which the peer has passed no memory yet.
    socket: Option<UnixStream>,
    /// The time before which nothing is tried.
    not_before: Option<Instant>,
    /// The error of the last attempt; the same is not reported twice.
    obstacle: String,
    /// Log lines about connections.
    messages: Vec<String>,
    connections: u64,
}

/// The endpoints of this process by their paths, and connections that were passed too early.
#[derive(Default)]
struct Endpoints {
    open: HashMap<String, Weak<Endpoint>>,
    passed: HashMap<String, UnixStream>,
}

static ENDPOINTS: LazyLock<Mutex<Endpoints>> = LazyLock::new(Mutex::default);

fn endpoints() -> MutexGuard<'static, Endpoints> {
    ENDPOINTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes this process's end of a connection to the channel `name`, whose elements say PASSED true:
/// to those that are there, or else to the first ones that come. The channel's earlier connection ends.
/// Called from any thread; packets flow when a worker looks at the channel the next time.
///
/// # Errors
/// There can be no memory for the rings.
pub fn pass(name: &str, socket: UnixStream) -> io::Result<()> {
    let mut all = endpoints();
    match all.open.get(name).and_then(Weak::upgrade) {
        Some(endpoint) => endpoint.take_passed(socket),
        None => {
            all.passed.insert(name.to_owned(), socket);
            Ok(())
        }
    }
}

/// Whether the connection that was passed to a channel has not ended, as far as its elements know.
pub fn is_connected(name: &str) -> bool {
    let all = endpoints();
    all.passed.contains_key(name)
        || all.open.get(name).and_then(Weak::upgrade).is_some_and(|it| it.is_connected())
}

/// The endpoint of these options, opened if this process has not done so.
pub(super) fn open(options: &SlotOptions) -> Result<Arc<Endpoint>, IoError> {
    let mut all = endpoints();
    all.open.retain(|_, endpoint| endpoint.strong_count() > 0);
    if let Some(open) = all.open.get(&options.path).and_then(Weak::upgrade) {
        if open.options != *options {
            let doing = format!("open slot channel {}", options.path);
            let why = "another element has opened it with other arguments".into();
            return Err(IoError::Unfit { doing, why });
        }
        return Ok(open);
    }
    let endpoint = Arc::new(Endpoint::new(options.clone())?);
    if let Some(socket) = all.passed.remove(&options.path).filter(|_| options.is_passed) {
        let doing = || format!("open slot channel {}", options.path);
        endpoint.take_passed(socket).map_err(|error| IoError::Os { doing: doing(), error })?;
    }
    all.open.insert(options.path.clone(), Arc::downgrade(&endpoint));
    Ok(endpoint)
}

impl Endpoint {
    /// An endpoint without a peer.
    pub(super) fn new(options: SlotOptions) -> Result<Endpoint, IoError> {
        let failed = |error: io::Error| {
            let doing = format!("open slot channel {}", options.path);
            match error.kind() {
                io::ErrorKind::PermissionDenied => IoError::Unfit {
                    doing,
                    why: "not permitted; its folder must be one that this user may write to".into(),
                },
                io::ErrorKind::AddrInUse => IoError::Busy { doing },
                _ => IoError::Os { doing, error },
            }
        };
        let listener = match options.is_client || options.is_passed {
            true => None,
            false => Some(listen(&options.path).map_err(failed)?),
        };
        let events = EpollSet::new(listener.iter().map(AsRawFd::as_raw_fd)).map_err(failed)?;
        Ok(Endpoint { events, listener, state: Mutex::default(), options })
    }

    fn state(&self) -> MutexGuard<'_, EndpointState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place and the size.
    pub(super) fn options(&self) -> &SlotOptions {
        &self.options
    }

    /// The descriptor that is readable when there may be something to do.
    pub(super) fn raw_fd(&self) -> RawFd {
        self.events.raw_fd()
    }

    /// The connection, if there is one; else tries to make one.
    pub(super) fn link(&self) -> Option<Arc<Link>> {
        let mut state = self.state();
        let can_connect = !self.options.is_passed || state.socket.is_some();
        if state.link.is_none()
            && can_connect
            && state.not_before.is_none_or(|it| it <= Instant::now())
            && let Err(error) = self.connect(&mut state)
        {
            self.report_obstacle(&mut state, &error);
        }
        state.link.clone()
    }

    /// Takes a connection that the program passes, in the place of an earlier one.
    fn take_passed(&self, socket: UnixStream) -> io::Result<()> {
        self.events.add(socket.as_raw_fd())?;
        let (path, geometry) = (&self.options.path, self.options.geometry);
        if self.options.is_client {
            self.state().socket = Some(socket);
            return Ok(());
        }
        let link = Arc::new(Link::create_awaited(socket, geometry)?);
        let mut state = self.state();
        if let Some(earlier) = state.link.take() {
            earlier.end();
        }
        state.not_before = None;
        state.connected(link, path);
        Ok(())
    }

    /// Whether there is a connection that has not ended.
    fn is_connected(&self) -> bool {
        let state = self.state();
        state.socket.is_some() || state.link.as_ref().is_some_and(|link| !link.has_ended())
    }

    /// Rejects peers that connect while there is one, at most one a call.
    pub(super) fn reject_others(&self) {
        if let Some(listener) = &self.listener
            && self.state().link.is_some()
        {
            _ = listener.accept();
        }
    }

    /// The time until the next attempt to connect; `None` if the descriptor will say when.
    pub(super) fn retry_in(&self) -> Option<Duration> {
        let state = self.state();
        if state.link.is_some() || self.options.is_passed {
            return None;
        }
        let left = state.not_before.map(|it| it.saturating_duration_since(Instant::now()));
        match left.filter(|it| !it.is_zero()) {
            Some(left) => Some(left),
            None => (self.options.is_client && state.socket.is_none()).then_some(PAUSE),
        }
    }

    /// Ends a connection for a reason, which is told.
    pub(super) fn end(&self, link: &Arc<Link>, why: &str) {
        let mut state = self.state();
        if link.end() {
            state.messages.push(format!("{}: {why}", self.options.path));
        }
        if state.link.as_ref().is_some_and(|it| Arc::ptr_eq(it, link)) {
            state.link = None;
            state.not_before = Some(Instant::now() + PAUSE);
        }
    }

    /// The log lines since the last call.
    pub(super) fn take_messages(&self) -> Vec<String> {
        std::mem::take(&mut self.state().messages)
    }

    /// Number of connections until now.
    pub(super) fn connections(&self) -> u64 {
        self.state().connections
    }

    fn connect(&self, state: &mut EndpointState) -> io::Result<()> {
        let link = match &self.listener {
            Some(listener) => {
                let (socket, _) = match listener.accept() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    accepted => accepted?,
                };
                Link::create(socket, self.options.geometry)?
            }
            None => {
                let socket = match state.socket.take() {
                    Some(socket) => socket,
                    None => {
                        let socket = connect(&self.options.path)?;
                        self.events.add(socket.as_raw_fd())?;
                        socket
                    }
                };
                match Link::join(socket) {
                    Ok(link) => link,
                    Err((socket, error)) if error.kind() == io::ErrorKind::WouldBlock => {
                        state.socket = Some(socket);
                        return Ok(());
                    }
                    Err((_, error)) => return Err(error),
                }
            }
        };
        if self.listener.is_some() {
            self.events.add(link.socket().as_raw_fd())?;
        }
        state.connected(Arc::new(link), &self.options.path);
        Ok(())
    }

    #[cold]
    fn report_obstacle(&self, state: &mut EndpointState, error: &io::Error) {
        state.not_before = Some(Instant::now() + PAUSE);
        // A peer that has not started yet is none to report.
        let awaited = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
        if awaited.contains(&error.kind()) {
            return;
        }
        let text = format!("{}: {error}", self.options.path);
        if text != state.obstacle {
            state.messages.push(text.clone());
            state.obstacle = text;
        }
    }
}

impl EndpointState {
    /// Keeps a connection that was made.
    fn connected(&mut self, link: Arc<Link>, path: &str) {
        self.link = Some(link);
        self.connections += 1;
        self.obstacle.clear();
        self.messages.push(format!("{path}: a peer is connected"));
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.listener.is_some() {
            _ = std::fs::remove_file(&self.options.path);
        }
    }
}

/// Makes a socket file for this user. Nobody can connect before its mode is set: it listens last.
fn listen(path: &str) -> io::Result<UnixListener> {
    remove_stale(path.as_ref())?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    let permit = || -> io::Result<()> {
        chmod(path, Mode::RUSR | Mode::WUSR)?;
        Ok(rustix::net::listen(&socket, 4)?)
    };
    permit().inspect_err(|_| _ = std::fs::remove_file(path))?;
    Ok(UnixListener::from(socket))
}

/// Connects to a peer's socket file, without waiting.
fn connect(path: &str) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) => Ok(UnixStream::from(socket)),
        // The peer's queue of connections is full.
        Err(Errno::AGAIN) => Err(io::ErrorKind::ConnectionRefused.into()),
        Err(error) => Err(error.into()),
    }
}
