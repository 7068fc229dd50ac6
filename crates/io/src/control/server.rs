//! Socket server: one thread serves the clients; commands are answered by the control thread.

use super::endpoint::Endpoint;
use super::input::{Input, MAX_COMMAND};
use super::input_quota::{self, InputShare, Quota};
use super::listener::{DescriptorClaim, Listener, MAX_CLIENTS, Stream, claim_descriptor, listen};
use super::protocol::{Command, GREETING, TOO_BIG, UNSPECIFIED, message};
use castanet_element::control::ControlWaker;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
/// The first client's token; later clients count up from here.
const CLIENTS: usize = 2;

/// The policy of a server towards its clients.
#[derive(Clone, Copy)]
pub(crate) struct ServerPolicy {
    /// The name of its thread.
    pub(crate) thread: &'static str,
    /// The first line that a client receives.
    pub(crate) greeting: &'static [u8],
    /// Whether clients send commands. Otherwise the thread discards what they send, and disconnects
    /// a client that closes its side.
    pub(crate) takes_commands: bool,
    /// Whether a new client, where there are `MAX_CLIENTS`, replaces an idle one or receives the
    /// reason why it cannot. Otherwise the thread disconnects it.
    pub(crate) replaces_idle: bool,
    /// Time that clients have to read the last output when the server stops.
    pub(crate) close_timeout: Duration,
}

/// The server executes commands of its clients.
pub(crate) const CONTROL: ServerPolicy = ServerPolicy {
    thread: "control socket",
    greeting: GREETING,
    takes_commands: true,
    replaces_idle: true,
    close_timeout: Duration::from_millis(200),
};

/// All clients receive what a [`Broadcaster`] sends.
pub(crate) const BROADCAST: ServerPolicy = ServerPolicy {
    thread: "chatter socket",
    greeting: b"Click::ChatterSocket/1.0\r\n",
    takes_commands: false,
    replaces_idle: false,
    close_timeout: Duration::ZERO,
};

/// Interval at which a thread that stops writes again to clients with unread output.
const CLOSE_POLL: Duration = Duration::from_millis(5);

/// A client that has sent nothing for this long is disconnected if others need its place.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of bytes of one client's command that are always accepted, and the number for all
/// clients of all sockets together, commands that wait for the control thread included. A client
/// above its limit is not read from while the total is above the other. If answers of the control
/// thread would not lower the total enough, the client with the longest command may continue alone
/// for `FAVOUR_TIMEOUT`.
const CLIENT_INPUT_LIMIT: usize = 64 << 10;
const TOTAL_INPUT_LIMIT: usize = 4 * MAX_COMMAND;
const FAVOUR_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval at which the thread tries again to read from paused clients.
const PAUSE_POLL: Duration = Duration::from_millis(20);

/// The number of bytes of answers that may wait for a client. Above it, the thread does not read
/// the client's commands until the client has read some answers.
const CLIENT_OUTPUT_LIMIT: usize = 16 << 20;
/// The number of bytes of answers that may wait for all clients together. Above it, the client with
/// most of them is disconnected, except the one that was just answered.
const TOTAL_OUTPUT_LIMIT: usize = 128 << 20;
/// The thread disconnects a client of a [`Broadcaster`] with more unsent bytes than this.
const BROADCAST_LIMIT: usize = 500_000;

/// A message from the server's thread to the control thread.
pub(crate) enum ServerEvent {
    /// A command of the client of this number, which waits for the answer; its bytes count until
    /// the share is dropped.
    Command(usize, Command, InputShare),
    /// A line for the log.
    Log(String),
}

/// A message to the server's thread.
enum LoopCommand {
    /// An answer to the client of this number.
    Answer(usize, Vec<u8>),
    /// Text for all clients.
    Send(Vec<u8>),
    Stop,
}

/// Sends text to all clients of a [`Server`]; may be used on any thread.
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

/// A socket with clients; dropping it stops the thread and closes the socket.
pub(crate) struct Server {
    events: Receiver<ServerEvent>,
    broadcaster: Broadcaster,
    /// The state of the thread that serves clients, until [`Server::serve`] starts it.
    event_loop: Option<EventLoop>,
    thread: Option<JoinHandle<()>>,
    _claim: Option<DescriptorClaim>,
    /// The socket file, which is removed at the end.
    pub(crate) path: Option<PathBuf>,
    /// The TCP port on which the server listens.
    pub(crate) port: Option<u16>,
    /// The answer to a command that replaces the configuration, with the client's number. The
    /// client receives it when that is done, or when the server ends.
    pub(crate) deferred: Option<(usize, Command, Vec<u8>)>,
}

impl Server {
    /// Binds the address. If clients send commands, they are served only after [`Server::serve`],
    /// and the thread wakes the control thread by `control_waker` for each event.
    pub(crate) fn open(
        place: &Endpoint,
        policy: ServerPolicy,
        control_waker: ControlWaker,
    ) -> io::Result<Server> {
        let (mut listener, mut inherited, mut claim) = (None, None, None);
        match place {
            Endpoint::Socket(fd) => {
                let (stream, mine) = claim_descriptor(*fd)?;
                (inherited, claim) = (Some(stream), Some(mine));
            }
            place => listener = Some(listen(place)?),
        }
        let poll = Poll::new()?;
        if let Some(listener) = &mut listener {
            poll.registry().register(listener.source(), LISTENER, Interest::READABLE)?;
        }
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (events_tx, events) = channel();
        let (commands_tx, commands) = channel();
        let port = listener.as_ref().and_then(Listener::port);
        let (clients, accepted, favoured) = (HashMap::new(), 0, None);
        let event_loop = EventLoop {
            policy,
            poll,
            listener,
            inherited,
            clients,
            accepted,
            favoured,
            events_tx,
            control_waker,
            commands,
        };
        let path = match place {
            Endpoint::Unix(path) | Endpoint::Restricted { path, .. } => Some(path.clone()),
            Endpoint::Tcp { .. } | Endpoint::Socket(_) => None,
        };
        let server = Server {
            events,
            broadcaster: Broadcaster { commands_tx, waker },
            event_loop: Some(event_loop),
            thread: None,
            _claim: claim,
            path,
            port,
            deferred: None,
        };
        Ok(server)
    }

    /// Starts the thread that serves clients, unless it runs already.
    pub(crate) fn serve(&mut self) -> io::Result<()> {
        let Some(mut event_loop) = self.event_loop.take() else { return Ok(()) };
        let thread = std::thread::Builder::new().name(event_loop.policy.thread.into());
        self.thread = Some(thread.spawn(move || event_loop.run())?);
        Ok(())
    }

    /// Returns the next event, if there is one; never waits.
    pub(crate) fn next(&self) -> Option<ServerEvent> {
        self.events.try_recv().ok()
    }

    /// Sends an answer to a client.
    pub(crate) fn answer(&self, client: usize, answer: Vec<u8>) {
        // The thread is gone only after a panic; then no client waits.
        self.broadcaster.command(LoopCommand::Answer(client, answer));
    }

    /// A handle that sends text to the clients.
    pub(crate) fn broadcaster(&self) -> Broadcaster {
        self.broadcaster.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((client, _, answer)) = self.deferred.take() {
            self.answer(client, answer);
        }
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
    /// Whether the client sends commands; otherwise its bytes are discarded.
    takes_commands: bool,
    input: Input,
    /// The client's part of the input quota.
    share: InputShare,
    output: Vec<u8>,
    /// Number of bytes of `output` that are written.
    written: usize,
    /// The time of the last bytes from the client.
    last_read: Instant,
    /// The client sends nothing more.
    read_closed: bool,
    /// The client receives nothing more.
    write_closed: bool,
    /// The client waits for the control thread's answer.
    awaits_answer: bool,
    /// The thread does not read from the client because the commands of all clients are too long.
    read_paused: bool,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stream.end();
    }
}

impl Client {
    /// A client that is yet to receive the greeting.
    fn new(stream: Stream, policy: &ServerPolicy) -> Client {
        Client {
            stream,
            takes_commands: policy.takes_commands,
            input: Input::default(),
            share: InputShare::default(),
            output: policy.greeting.to_vec(),
            written: 0,
            last_read: Instant::now(),
            read_closed: false,
            write_closed: false,
            awaits_answer: false,
            read_paused: false,
        }
    }

    /// Reads available bytes; returns `false` if there were none.
    fn read(&mut self) -> bool {
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => self.read_closed = true,
            Ok(count) if self.takes_commands => {
                self.input.extend(&piece[..count]);
                self.last_read = Instant::now();
            }
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return false,
                ErrorKind::Interrupted => {}
                _ => (self.read_closed, self.write_closed) = (true, true),
            },
        }
        true
    }

    /// Writes as many bytes of output as the socket takes.
    fn write(&mut self) {
        while self.pending_output() > 0 && !self.write_closed {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => self.write_closed = true,
                Ok(count) => self.written += count,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::Interrupted => {}
                    _ => self.write_closed = true,
                },
            }
        }
        self.output = Vec::new();
        self.written = 0;
    }

    /// Appends an answer to the output.
    fn answer(&mut self, answer: Vec<u8>) {
        if self.pending_output() == 0 {
            (self.output, self.written) = (answer, 0);
            return;
        }
        // Written bytes are removed now and then: no byte is moved more than once on average.
        if self.written > self.pending_output() {
            self.output.drain(..self.written);
            self.written = 0;
        }
        self.output.extend(answer);
    }

    /// Answers, and reads no more commands of this client.
    fn reject(&mut self, answer: Vec<u8>) {
        self.answer(answer);
        self.read_closed = true;
        self.input.clear();
        self.share.set(0);
    }

    /// Returns the number of bytes of answers that are yet to be written.
    fn pending_output(&self) -> usize {
        self.output.len() - self.written
    }

    fn is_done(&self) -> bool {
        let rest = self.awaits_answer || self.input.len() > 0 || self.pending_output() > 0;
        self.write_closed || self.read_closed && !(rest && self.takes_commands)
    }

    /// Reads and writes until it would block. Returns a command that the control thread has to
    /// answer. A `favoured` client may send more, however long the commands of others are.
    fn advance(&mut self, favoured: bool) -> Option<Command> {
        self.read_paused = false;
        loop {
            self.write();
            if self.awaits_answer
                || self.write_closed
                || self.pending_output() > CLIENT_OUTPUT_LIMIT
            {
                return None;
            }
            let next = self.input.next(self.read_closed);
            self.share.set(self.input.len());
            match next {
                Some(Command::Reply(answer)) => self.answer(answer),
                Some(Command::Close(answer)) => self.reject(answer),
                Some(command) => {
                    self.awaits_answer = true;
                    return Some(command);
                }
                None if !favoured
                    && self.is_long()
                    && input_quota::quota(TOTAL_INPUT_LIMIT) != Quota::Available =>
                {
                    self.read_paused = true;
                    return None;
                }
                None if self.read_closed || !self.read() => return None,
                None => {}
            }
        }
    }

    /// Returns whether the client's incomplete command is longer than is always accepted.
    fn is_long(&self) -> bool {
        self.input.len() > CLIENT_INPUT_LIMIT
    }
}

/// The state of the thread that serves clients.
struct EventLoop {
    policy: ServerPolicy,
    poll: Poll,
    listener: Option<Listener>,
    /// An inherited connection.
    inherited: Option<Stream>,
    clients: HashMap<usize, Client>,
    /// Number of clients that have connected.
    accepted: usize,
    /// The client that may continue while others are paused, and the time since when.
    favoured: Option<(usize, Instant)>,
    events_tx: Sender<ServerEvent>,
    control_waker: ControlWaker,
    commands: Receiver<LoopCommand>,
}

impl EventLoop {
    fn run(&mut self) {
        let mut events = Events::with_capacity(64);
        if let Some(stream) = self.inherited.take() {
            self.add_client(stream, "");
        }
        loop {
            let is_paused = self.clients.values().any(|client| client.read_paused);
            if let Err(error) = self.poll.poll(&mut events, is_paused.then_some(PAUSE_POLL))
                && error.kind() != ErrorKind::Interrupted
            {
                return self.report(ServerEvent::Log(format!("poll: {error}")));
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept_clients(),
                    WAKER => {}
                    Token(client) => self.serve_client(client),
                }
            }
            match is_paused {
                true => self.serve_paused(),
                false => self.favoured = None,
            }
            while let Ok(command) = self.commands.try_recv() {
                match command {
                    LoopCommand::Stop => return self.drain_outputs(),
                    LoopCommand::Send(text) => self.send(&text),
                    LoopCommand::Answer(number, answer) => {
                        if let Some(client) = self.clients.get_mut(&number) {
                            client.awaits_answer = false;
                            client.answer(answer);
                        }
                        self.serve_client(number);
                        self.bound_output(number);
                    }
                }
            }
        }
    }

    /// Sends an event to the control thread, if the server has some for it.
    fn report(&self, event: ServerEvent) {
        if !self.policy.takes_commands {
            return;
        }
        // The control thread may have stopped already.
        _ = self.events_tx.send(event);
        self.control_waker.wake();
    }

    /// Sends text to all clients, and disconnects those that are too far behind.
    fn send(&mut self, text: &[u8]) {
        self.clients.retain(|_, client| {
            client.answer(text.to_vec());
            client.advance(false);
            !client.is_done() && client.pending_output() <= BROADCAST_LIMIT
        });
    }

    /// Accepts all clients that wait.
    fn accept_clients(&mut self) {
        loop {
            let Some(listener) = &self.listener else { return };
            let (stream, from) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return self.report(ServerEvent::Log(format!("accept: {error}"))),
            };
            self.add_client(stream, &from);
        }
    }

    /// Adds a client, if there is room for it.
    fn add_client(&mut self, mut stream: Stream, from: &str) {
        let number = CLIENTS + self.accepted;
        self.accepted += 1;
        let replaces_idle = self.policy.replaces_idle;
        let has_room = self.clients.len() < MAX_CLIENTS || replaces_idle && self.evict_idle();
        if !has_room {
            if replaces_idle {
                let text = format!("Too many clients: there may be {MAX_CLIENTS}");
                let answer = [self.policy.greeting, &message(UNSPECIFIED, &text)].concat();
                // If this fails, the client sees the connection end.
                _ = stream.write(&answer);
            }
            stream.end();
            return self.report(ServerEvent::Log(format!("refused connection {number}{from}")));
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if let Err(error) = registry.register(stream.source(), Token(number), interest) {
            return self.report(ServerEvent::Log(format!("accept: {error}")));
        }
        self.clients.insert(number, Client::new(stream, &self.policy));
        self.report(ServerEvent::Log(format!("opened connection {number}{from}")));
        self.serve_client(number);
    }

    /// Disconnects the client that has been silent longest, if it has been for `IDLE_TIMEOUT`.
    /// Returns whether it disconnected one.
    fn evict_idle(&mut self) -> bool {
        let is_idle = |it: &Client| {
            !it.awaits_answer && !it.read_paused && it.last_read.elapsed() > IDLE_TIMEOUT
        };
        let idle = self.clients.iter().filter(|(_, client)| is_idle(client));
        let idle = idle.min_by_key(|(_, client)| client.last_read).map(|(&number, _)| number);
        idle.is_some_and(|number| self.disconnect(number, "it was idle and others came"))
    }

    /// Disconnects clients with unread answers while too many bytes wait, except the client that
    /// was just answered.
    fn bound_output(&mut self, answered: usize) {
        while self.clients.values().map(Client::pending_output).sum::<usize>() > TOTAL_OUTPUT_LIMIT
        {
            let others = self.clients.iter().filter(|&(&number, _)| number != answered);
            let slowest = others.max_by_key(|(_, client)| client.pending_output());
            match slowest.filter(|(_, client)| client.pending_output() > 0) {
                Some((&number, _)) => self.disconnect(number, "it did not fetch its answers"),
                None => return,
            };
        }
    }

    fn disconnect(&mut self, number: usize, why: &str) -> bool {
        self.report(ServerEvent::Log(format!("closed connection {number}: {why}")));
        self.clients.remove(&number).is_some()
    }

    /// Reads from and writes to a client; passes its command to the control thread.
    fn serve_client(&mut self, number: usize) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        let wanted = client.advance(self.favoured.is_some_and(|(favoured, _)| favoured == number));
        let done = client.is_done();
        if let Some(command) = wanted {
            let share = InputShare::in_progress(command.len());
            self.report(ServerEvent::Command(number, command, share));
        }
        if done {
            self.clients.remove(&number);
            self.report(ServerEvent::Log(format!("closed connection {number}")));
        }
    }

    /// Tries again to read from paused clients.
    fn serve_paused(&mut self) {
        self.choose_favoured();
        let is_paused = self.clients.iter().filter(|(_, client)| client.read_paused);
        let is_paused: Vec<usize> = is_paused.map(|(&number, _)| number).collect();
        is_paused.into_iter().for_each(|number| self.serve_client(number));
    }

    /// Chooses the client that may continue if no other can. Rejects the command of a chosen client
    /// that is still incomplete after `FAVOUR_TIMEOUT`.
    fn choose_favoured(&mut self) {
        if input_quota::quota(TOTAL_INPUT_LIMIT) != Quota::Exhausted {
            self.favoured = None;
            return;
        }
        if let Some((number, since)) = self.favoured
            && let Some(client) = self.clients.get_mut(&number).filter(|client| client.is_long())
        {
            if since.elapsed() < FAVOUR_TIMEOUT {
                return;
            }
            let text = "Command too long while those of other clients are";
            client.reject(message(TOO_BIG, text));
            self.serve_client(number);
        }
        let long =
            self.clients.iter().filter(|(_, client)| client.is_long() && !client.awaits_answer);
        let longest = long.max_by_key(|(_, client)| client.input.len());
        self.favoured = longest.map(|(&number, _)| (number, Instant::now()));
    }

    /// Gives clients time to read the last answers.
    fn drain_outputs(&mut self) {
        let end = Instant::now() + self.policy.close_timeout;
        while Instant::now() < end {
            self.clients.values_mut().for_each(Client::write);
            self.clients.retain(|_, client| !client.write_closed && client.pending_output() > 0);
            if self.clients.is_empty() {
                return;
            }
            std::thread::sleep(CLOSE_POLL);
        }
    }
}
