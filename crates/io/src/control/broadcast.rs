//! Sockets whose clients receive every line; one thread per socket serves them.

use super::endpoint::Endpoint;
use super::listener::{Listener, MAX_CLIENTS, Stream, listen};
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
/// The first client's token; later clients count up from here.
const CLIENTS: usize = 2;

/// The server disconnects a client with more unsent bytes than this.
const MAX_BACKLOG: usize = 500_000;

/// The first line that a client receives.
const GREETING: &[u8] = b"Click::ChatterSocket/1.0\r\n";

enum LoopCommand {
    Send(Vec<u8>),
    Stop,
}

/// Sends text to all clients of a [`BroadcastServer`]; may be used on any thread.
#[derive(Clone)]
pub(crate) struct Broadcaster {
    commands_tx: Sender<LoopCommand>,
    waker: Arc<Waker>,
}

impl Broadcaster {
    /// Sends this text to all clients; `false` if the server's thread has ended.
    pub(crate) fn send(&self, text: &str) -> bool {
        self.command(LoopCommand::Send(text.as_bytes().to_vec()))
    }

    fn command(&self, command: LoopCommand) -> bool {
        let is_open = self.commands_tx.send(command).is_ok();
        _ = self.waker.wake();
        is_open
    }
}

/// A socket whose clients receive every line; dropping it closes the socket.
pub(crate) struct BroadcastServer {
    broadcaster: Broadcaster,
    thread: Option<JoinHandle<()>>,
    path: Option<PathBuf>,
}

impl BroadcastServer {
    /// Listens for clients and starts the thread that serves them. With `greeting`, each client
    /// first receives a line that names the protocol.
    pub(crate) fn open(place: &Endpoint, greeting: bool) -> io::Result<BroadcastServer> {
        let mut listener = listen(place)?;
        let poll = Poll::new()?;
        poll.registry().register(listener.source(), LISTENER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (commands_tx, commands) = channel();
        let mut event_loop =
            EventLoop { poll, listener, clients: HashMap::new(), accepted: 0, greeting, commands };
        let thread = std::thread::Builder::new().name("chatter socket".into());
        let thread = Some(thread.spawn(move || event_loop.run())?);
        let path = match place {
            Endpoint::Unix(path) => Some(path.clone()),
            Endpoint::Tcp { .. } | Endpoint::Socket(_) => None,
        };
        Ok(BroadcastServer { broadcaster: Broadcaster { commands_tx, waker }, thread, path })
    }

    /// A handle that sends text to the clients.
    pub(crate) fn broadcaster(&self) -> Broadcaster {
        self.broadcaster.clone()
    }
}

impl Drop for BroadcastServer {
    fn drop(&mut self) {
        self.broadcaster.command(LoopCommand::Stop);
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
        if let Some(path) = &self.path {
            _ = std::fs::remove_file(path);
        }
    }
}

struct Client {
    stream: Stream,
    output: Vec<u8>,
}

impl Client {
    /// Writes as many bytes as the socket takes and discards the client's input. Returns whether
    /// the client is still connected.
    fn advance(&mut self) -> bool {
        let mut written = 0;
        while written < self.output.len() {
            match self.stream.write(&self.output[written..]) {
                Ok(0) => return false,
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.output.drain(..written);
        let mut discarded = [0; 4096];
        loop {
            match self.stream.read(&mut discarded) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}

/// The state of the thread that serves clients.
struct EventLoop {
    poll: Poll,
    listener: Listener,
    clients: HashMap<usize, Client>,
    accepted: usize,
    greeting: bool,
    commands: Receiver<LoopCommand>,
}

impl EventLoop {
    fn run(&mut self) {
        let mut events = Events::with_capacity(64);
        loop {
            if let Err(error) = self.poll.poll(&mut events, None)
                && error.kind() != ErrorKind::Interrupted
            {
                return;
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept_clients(),
                    WAKER => {}
                    Token(number) => self.serve_client(number),
                }
            }
            while let Ok(command) = self.commands.try_recv() {
                match command {
                    LoopCommand::Stop => return,
                    LoopCommand::Send(text) => self.send(&text),
                }
            }
        }
    }

    fn send(&mut self, text: &[u8]) {
        self.clients.retain(|_, client| {
            client.output.extend_from_slice(text);
            client.advance() && client.output.len() <= MAX_BACKLOG
        });
    }

    fn serve_client(&mut self, number: usize) {
        if self.clients.get_mut(&number).is_some_and(|client| !client.advance()) {
            self.clients.remove(&number);
        }
    }

    fn accept_clients(&mut self) {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // A client whose connection failed connects again.
                Err(_) => return,
            };
            if self.clients.len() >= MAX_CLIENTS {
                stream.end();
                continue;
            }
            let number = CLIENTS + self.accepted;
            self.accepted += 1;
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(stream.source(), Token(number), interest).is_err() {
                continue;
            }
            let output = if self.greeting { GREETING.to_vec() } else { Vec::new() };
            self.clients.insert(number, Client { stream, output });
            self.serve_client(number);
        }
    }
}
