//! Clients of a control socket: one thread listens to all, the control thread answers.

use super::listener::{Listener, Stream, adopt, listen};
use super::place::Place;
use super::protocol::{Command, GREETING, LONGEST, next};
use castanet_engine::router::Bell;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
/// The first client's.
const CLIENTS: usize = 2;

/// How long clients may take to fetch the last answers.
const FAREWELL: Duration = Duration::from_millis(200);
/// How often one who does not is looked at meanwhile.
const LOOKS: u32 = 40;

/// How many bytes of answers may wait for a client to fetch them; before it has
/// fetched some, no more of its commands are heeded.
const UNFETCHED: usize = 16 << 20;

/// What comes from clients.
pub(crate) enum Heard {
    /// A command that the client of this number waits for an answer to.
    Command(usize, Command),
    /// Something about clients.
    News(String),
}

/// What the listening thread is to do.
enum Order {
    Answer(usize, Vec<u8>),
    End,
}

/// A socket that clients may come to, until it is dropped.
pub(crate) struct Server {
    heard: Receiver<Heard>,
    orders: Sender<Order>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    /// To be removed in the end.
    path: Option<PathBuf>,
    /// The TCP port.
    pub(crate) port: Option<u16>,
}

impl Server {
    /// Listens; rings `bell` when something is heard.
    pub(crate) fn open(place: &Place, bell: Bell) -> io::Result<Server> {
        let mut listener = None;
        let mut given = None;
        match place {
            Place::Socket(fd) => given = Some(adopt(*fd)?),
            place => listener = Some(listen(place)?),
        }
        let poll = Poll::new()?;
        if let Some(listener) = &mut listener {
            poll.registry().register(listener.source(), LISTENER, Interest::READABLE)?;
        }
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (tell, heard) = channel();
        let (orders, todo) = channel();
        let port = listener.as_ref().and_then(Listener::port);
        let mut hall = Hall { poll, listener, clients: HashMap::new(), came: 0, tell, bell, todo };
        if let Some(stream) = given {
            hall.greet(stream, "");
        }
        let thread = std::thread::Builder::new().name("control socket".into());
        let thread = Some(thread.spawn(move || hall.run())?);
        let path = match place {
            Place::Unix(path) => Some(path.clone()),
            Place::Tcp { .. } | Place::Socket(_) => None,
        };
        Ok(Server { heard, orders, waker, thread, path, port })
    }

    /// What was heard, if anything.
    pub(crate) fn next(&self) -> Option<Heard> {
        self.heard.try_recv().ok()
    }

    /// Answers a client.
    pub(crate) fn answer(&self, client: usize, answer: Vec<u8>) {
        self.order(Order::Answer(client, answer));
    }

    fn order(&self, order: Order) {
        // The thread can only be gone after a panic; nobody waits then.
        _ = self.orders.send(order);
        _ = self.waker.wake();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.order(Order::End);
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
    input: Vec<u8>,
    output: Vec<u8>,
    /// It says nothing more.
    silent: bool,
    /// It hears nothing more.
    deaf: bool,
    /// It waits for the control thread.
    waits: bool,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stream.end();
    }
}

impl Client {
    /// Reads what there is; whether that was anything.
    fn read(&mut self) -> bool {
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => self.silent = true,
            Ok(count) => self.input.extend_from_slice(&piece[..count]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return false,
                ErrorKind::Interrupted => {}
                _ => (self.silent, self.deaf) = (true, true),
            },
        }
        true
    }

    /// Writes what it will take.
    fn write(&mut self) {
        let mut written = 0;
        while written < self.output.len() && !self.deaf {
            match self.stream.write(&self.output[written..]) {
                Ok(0) => self.deaf = true,
                Ok(count) => written += count,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted => {}
                    _ => self.deaf = true,
                },
            }
        }
        self.output.drain(..written);
    }

    fn is_done(&self) -> bool {
        let rest = self.waits || !self.input.is_empty() || !self.output.is_empty();
        self.deaf || self.silent && !rest
    }

    /// Goes on until it has to wait: for the client, or for what is to be
    /// asked on the control thread, which is the answer.
    fn go_on(&mut self) -> Option<Command> {
        loop {
            self.write();
            if self.waits || self.deaf || self.output.len() > UNFETCHED {
                return None;
            }
            match next(&mut self.input, self.silent) {
                Some(Command::Hear(answer)) => self.output.extend(answer),
                Some(Command::Leave(answer)) => {
                    self.output.extend(answer);
                    self.silent = true;
                    self.input.clear();
                }
                Some(command) => {
                    self.waits = true;
                    return Some(command);
                }
                None => {
                    debug_assert!(self.input.len() <= LONGEST);
                    if self.silent || !self.read() {
                        return None;
                    }
                }
            }
        }
    }
}

/// What the thread has.
struct Hall {
    poll: Poll,
    listener: Option<Listener>,
    clients: HashMap<usize, Client>,
    /// How many clients came.
    came: usize,
    tell: Sender<Heard>,
    bell: Bell,
    todo: Receiver<Order>,
}

impl Hall {
    fn run(&mut self) {
        let mut events = Events::with_capacity(64);
        loop {
            if let Err(error) = self.poll.poll(&mut events, None)
                && error.kind() != ErrorKind::Interrupted
            {
                return self.say(Heard::News(format!("poll: {error}")));
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.welcome(),
                    WAKER => {}
                    Token(client) => self.attend(client),
                }
            }
            while let Ok(order) = self.todo.try_recv() {
                match order {
                    Order::End => return self.part(),
                    Order::Answer(number, answer) => {
                        if let Some(client) = self.clients.get_mut(&number) {
                            client.waits = false;
                            client.output.extend(answer);
                        }
                        self.attend(number);
                    }
                }
            }
        }
    }

    fn say(&self, heard: Heard) {
        // Who is not there any more does not want to know.
        _ = self.tell.send(heard);
        self.bell.ring();
    }

    /// Lets in all who wait at the door.
    fn welcome(&mut self) {
        loop {
            let Some(listener) = &self.listener else { return };
            let (stream, from) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return self.say(Heard::News(format!("accept: {error}"))),
            };
            self.greet(stream, &from);
        }
    }

    /// Lets a client in.
    fn greet(&mut self, mut stream: Stream, from: &str) {
        let number = CLIENTS + self.came;
        self.came += 1;
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if let Err(error) = registry.register(stream.source(), Token(number), interest) {
            return self.say(Heard::News(format!("accept: {error}")));
        }
        let (input, output) = (Vec::new(), GREETING.to_vec());
        let (silent, deaf, waits) = (false, false, false);
        self.clients.insert(number, Client { stream, input, output, silent, deaf, waits });
        self.say(Heard::News(format!("opened connection {number}{from}")));
        self.attend(number);
    }

    /// Goes on with a client; what it wants is told.
    fn attend(&mut self, number: usize) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        let wanted = client.go_on();
        let done = client.is_done();
        if let Some(command) = wanted {
            self.say(Heard::Command(number, command));
        }
        if done {
            self.clients.remove(&number);
            self.say(Heard::News(format!("closed connection {number}")));
        }
    }

    /// Lets clients fetch the last answers, for a moment.
    fn part(&mut self) {
        for _ in 0..LOOKS {
            self.clients.values_mut().for_each(Client::write);
            self.clients.retain(|_, client| !client.deaf && !client.output.is_empty());
            if self.clients.is_empty() {
                return;
            }
            std::thread::sleep(FAREWELL / LOOKS);
        }
    }
}
