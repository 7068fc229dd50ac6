//! Clients of a control socket: one thread listens to all, the control thread answers.

use super::endpoint::Endpoint;
use super::input::{Input, LONGEST};
use super::input_quota::{self, InputShare, Quota};
use super::listener::{Adopted, Listener, MOST_CLIENTS, Stream, adopt, listen};
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
/// The first client's.
const CLIENTS: usize = 2;

/// How long clients may take to fetch the last answers.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);
/// How often one who does not is looked at meanwhile.
const CLOSE_POLLS: u32 = 40;

/// A client that has said nothing for so long makes room for another.
const IDLE: Duration = Duration::from_secs(60);

/// How many bytes of a client's commands may wait whatever others have sent, and how many bytes of
/// all clients of all sockets together, commands that wait for the control thread included. More is
/// not read before some of those are answered. If that would not help, the client with the longest
/// command may go on alone, for so long.
const OWN_INPUT: usize = 64 << 10;
const ALL_INPUT: usize = 4 * LONGEST;
const FAVOUR_TIME: Duration = Duration::from_secs(3);
/// How often a client that is not read from is looked at.
const PAUSE_POLL: Duration = Duration::from_millis(20);

/// How many bytes of answers may wait for a client to fetch them; before it has fetched some, no
/// more of its commands are heeded.
const OWN_OUTPUT: usize = 16 << 20;
/// How many may wait for all clients together: beyond, the one that lets most wait is let go, but
/// not the one that was just answered.
const ALL_OUTPUT: usize = 128 << 20;

/// What comes from clients.
pub(crate) enum ServerEvent {
    /// A command that the client of this number waits for an answer to; its bytes count while the
    /// share is there.
    Command(usize, Command, InputShare),
    /// Something about clients.
    Log(String),
}

/// What the listening thread is to do.
enum LoopCommand {
    Answer(usize, Vec<u8>),
    Stop,
}

/// A socket that clients may come to, until it is dropped.
pub(crate) struct Server {
    heard: Receiver<ServerEvent>,
    orders: Sender<LoopCommand>,
    waker: Arc<Waker>,
    /// The state of the thread that serves clients, until [`Server::serve`] starts it.
    event_loop: Option<EventLoop>,
    thread: Option<JoinHandle<()>>,
    _adopted: Option<Adopted>,
    /// To be removed in the end.
    path: Option<PathBuf>,
    /// The TCP port.
    pub(crate) port: Option<u16>,
}

impl Server {
    /// Takes the place, without a word to anybody before [`Server::serve`] is called; rings `bell`
    /// when something is heard.
    pub(crate) fn open(place: &Endpoint, bell: ControlWaker) -> io::Result<Server> {
        let (mut listener, mut inherited, mut adopted) = (None, None, None);
        match place {
            Endpoint::Socket(fd) => {
                let (stream, mine) = adopt(*fd)?;
                (inherited, adopted) = (Some(stream), Some(mine));
            }
            place => listener = Some(listen(place)?),
        }
        let poll = Poll::new()?;
        if let Some(listener) = &mut listener {
            poll.registry().register(listener.source(), LISTENER, Interest::READABLE)?;
        }
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (events_tx, heard) = channel();
        let (orders, commands) = channel();
        let port = listener.as_ref().and_then(Listener::port);
        let (clients, accepted, favoured) = (HashMap::new(), 0, None);
        let event_loop = EventLoop {
            poll,
            listener,
            inherited,
            clients,
            accepted,
            favoured,
            events_tx,
            bell,
            commands,
        };
        let path = match place {
            Endpoint::Unix(path) => Some(path.clone()),
            Endpoint::Tcp { .. } | Endpoint::Socket(_) => None,
        };
        let (event_loop, thread) = (Some(event_loop), None);
        Ok(Server { heard, orders, waker, event_loop, thread, _adopted: adopted, path, port })
    }

    /// Begins to let clients in, unless that has been done.
    pub(crate) fn serve(&mut self) -> io::Result<()> {
        let Some(mut event_loop) = self.event_loop.take() else { return Ok(()) };
        let thread = std::thread::Builder::new().name("control socket".into());
        self.thread = Some(thread.spawn(move || event_loop.run())?);
        Ok(())
    }

    /// What was heard, if anything.
    pub(crate) fn next(&self) -> Option<ServerEvent> {
        self.heard.try_recv().ok()
    }

    /// Answers a client.
    pub(crate) fn answer(&self, client: usize, answer: Vec<u8>) {
        self.order(LoopCommand::Answer(client, answer));
    }

    fn order(&self, order: LoopCommand) {
        // The thread can only be gone after a panic; nobody waits then.
        _ = self.orders.send(order);
        _ = self.waker.wake();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.order(LoopCommand::Stop);
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
    input: Input,
    /// The bytes of its input.
    share: InputShare,
    output: Vec<u8>,
    /// How much of the output is written.
    written: usize,
    /// When it last said something.
    heard: Instant,
    /// It says nothing more.
    read_closed: bool,
    /// It hears nothing more.
    write_closed: bool,
    /// It waits for the control thread.
    awaits_answer: bool,
    /// It is not read from, for the commands of all clients are too long.
    read_paused: bool,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stream.end();
    }
}

impl Client {
    /// One that is to be greeted.
    fn new(stream: Stream) -> Client {
        Client {
            stream,
            input: Input::default(),
            share: InputShare::default(),
            output: GREETING.to_vec(),
            written: 0,
            heard: Instant::now(),
            read_closed: false,
            write_closed: false,
            awaits_answer: false,
            read_paused: false,
        }
    }

    /// Reads what there is; whether that was anything.
    fn read(&mut self) -> bool {
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => self.read_closed = true,
            Ok(count) => {
                self.input.extend(&piece[..count]);
                self.heard = Instant::now();
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return false,
                ErrorKind::Interrupted => {}
                _ => (self.read_closed, self.write_closed) = (true, true),
            },
        }
        true
    }

    /// Writes what it will take.
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

    /// Adds an answer.
    fn answer(&mut self, answer: Vec<u8>) {
        match self.pending_output() {
            0 => (self.output, self.written) = (answer, 0),
            _ => self.output.extend(answer),
        }
    }

    /// Answers, and hears nothing more.
    fn reject(&mut self, answer: Vec<u8>) {
        self.answer(answer);
        self.read_closed = true;
        self.input.clear();
        self.share.set(0);
    }

    /// How many bytes of answers wait for it.
    fn pending_output(&self) -> usize {
        self.output.len() - self.written
    }

    fn is_done(&self) -> bool {
        let rest = self.awaits_answer || self.input.len() > 0 || self.pending_output() > 0;
        self.write_closed || self.read_closed && !rest
    }

    /// Goes on until it has to wait: for the client, or for what is to be
    /// asked on the control thread, which is the answer. One that is `favoured` may
    /// say more whatever others have sent.
    fn advance(&mut self, favoured: bool) -> Option<Command> {
        self.read_paused = false;
        loop {
            self.write();
            if self.awaits_answer || self.write_closed || self.pending_output() > OWN_OUTPUT {
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
                    && input_quota::quota(ALL_INPUT) != Quota::Available =>
                {
                    self.read_paused = true;
                    return None;
                }
                None if self.read_closed || !self.read() => return None,
                None => {}
            }
        }
    }

    /// Whether it has said much of a command that is not all there.
    fn is_long(&self) -> bool {
        self.input.len() > OWN_INPUT
    }
}

/// What the thread has.
struct EventLoop {
    poll: Poll,
    listener: Option<Listener>,
    /// A client that was there before.
    inherited: Option<Stream>,
    clients: HashMap<usize, Client>,
    /// How many clients came.
    accepted: usize,
    /// The client that may go on while others are held, and since when.
    favoured: Option<(usize, Instant)>,
    events_tx: Sender<ServerEvent>,
    bell: ControlWaker,
    commands: Receiver<LoopCommand>,
}

impl EventLoop {
    fn run(&mut self) {
        let mut events = Events::with_capacity(64);
        if let Some(stream) = self.inherited.take() {
            self.add_client(stream, "");
        }
        loop {
            let held = self.clients.values().any(|client| client.read_paused);
            if let Err(error) = self.poll.poll(&mut events, held.then_some(PAUSE_POLL))
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
            match held {
                true => self.serve_paused(),
                false => self.favoured = None,
            }
            while let Ok(order) = self.commands.try_recv() {
                match order {
                    LoopCommand::Stop => return self.drain_outputs(),
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

    fn report(&self, heard: ServerEvent) {
        // Who is not there any more does not want to know.
        _ = self.events_tx.send(heard);
        self.bell.wake();
    }

    /// Lets in all who wait at the door.
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

    /// Lets a client in, if there is room for it.
    fn add_client(&mut self, mut stream: Stream, from: &str) {
        let number = CLIENTS + self.accepted;
        self.accepted += 1;
        let has_room = self.clients.len() < MOST_CLIENTS || self.evict_idle();
        if !has_room {
            let text = format!("Too many clients: there may be {MOST_CLIENTS}");
            // One that cannot be told finds out by the end.
            _ = stream.write(&[GREETING, &message(UNSPECIFIED, &text)].concat());
            stream.end();
            return self.report(ServerEvent::Log(format!("refused connection {number}{from}")));
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if let Err(error) = registry.register(stream.source(), Token(number), interest) {
            return self.report(ServerEvent::Log(format!("accept: {error}")));
        }
        let client = Client::new(stream);
        self.clients.insert(number, client);
        self.report(ServerEvent::Log(format!("opened connection {number}{from}")));
        self.serve_client(number);
    }

    /// Lets the client go that has said nothing for longest, if that is long enough; whether one
    /// went.
    fn evict_idle(&mut self) -> bool {
        let is_idle =
            |it: &Client| !it.awaits_answer && !it.read_paused && it.heard.elapsed() > IDLE;
        let idle = self.clients.iter().filter(|(_, client)| is_idle(client));
        let idle = idle.min_by_key(|(_, client)| client.heard).map(|(&number, _)| number);
        idle.is_some_and(|number| self.disconnect(number, "it was idle and others came"))
    }

    /// Lets clients go that do not fetch their answers, while too much waits; not the one that was
    /// just answered.
    fn bound_output(&mut self, answered: usize) {
        while self.clients.values().map(Client::pending_output).sum::<usize>() > ALL_OUTPUT {
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

    /// Goes on with a client; what it wants is told.
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

    /// Goes on with clients that were not read from.
    fn serve_paused(&mut self) {
        self.choose_favoured();
        let held = self.clients.iter().filter(|(_, client)| client.read_paused);
        let held: Vec<usize> = held.map(|(&number, _)| number).collect();
        held.into_iter().for_each(|number| self.serve_client(number));
    }

    /// Chooses the client that may go on where none could otherwise, and refuses the command of one
    /// that was chosen and does not come to its end.
    fn choose_favoured(&mut self) {
        if input_quota::quota(ALL_INPUT) != Quota::Exhausted {
            self.favoured = None;
            return;
        }
        if let Some((number, since)) = self.favoured
            && let Some(client) = self.clients.get_mut(&number).filter(|client| client.is_long())
        {
            if since.elapsed() < FAVOUR_TIME {
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

    /// Lets clients fetch the last answers, for a moment.
    fn drain_outputs(&mut self) {
        for _ in 0..CLOSE_POLLS {
            self.clients.values_mut().for_each(Client::write);
            self.clients.retain(|_, client| !client.write_closed && client.pending_output() > 0);
            if self.clients.is_empty() {
                return;
            }
            std::thread::sleep(CLOSE_TIMEOUT / CLOSE_POLLS);
        }
    }
}
