//! Clients of a control socket: one thread listens to all, the control thread answers.

use super::input::{Input, LONGEST};
use super::listener::{Listener, MOST_CLIENTS, Stream, adopt, listen};
use super::place::Place;
use super::protocol::{Command, GREETING, TOO_BIG, UNSPECIFIED, message};
use castanet_engine::router::Bell;
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
const FAREWELL: Duration = Duration::from_millis(200);
/// How often one who does not is looked at meanwhile.
const LOOKS: u32 = 40;

/// A client that has said nothing for so long makes room for another.
const IDLE: Duration = Duration::from_secs(60);

/// How many bytes of a client's commands may wait whatever others have sent, and how many bytes of
/// all clients together: what is more is refused.
const OWN_INPUT: usize = 64 << 10;
const ALL_INPUT: usize = 4 * LONGEST;

/// How many bytes of answers may wait for a client to fetch them; before it has fetched some, no
/// more of its commands are heeded.
const OWN_OUTPUT: usize = 16 << 20;
/// How many may wait for all clients together: beyond, the one that lets most wait is let go, but
/// not the one that was just answered.
const ALL_OUTPUT: usize = 128 << 20;

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
    input: Input,
    output: Vec<u8>,
    /// How much of the output is written.
    written: usize,
    /// When it last said something.
    heard: Instant,
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
            Ok(count) => {
                self.input.extend(&piece[..count]);
                self.heard = Instant::now();
            }
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
        while self.unfetched() > 0 && !self.deaf {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => self.deaf = true,
                Ok(count) => self.written += count,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::Interrupted => {}
                    _ => self.deaf = true,
                },
            }
        }
        self.output = Vec::new();
        self.written = 0;
    }

    /// Adds an answer.
    fn answer(&mut self, answer: Vec<u8>) {
        match self.unfetched() {
            0 => (self.output, self.written) = (answer, 0),
            _ => self.output.extend(answer),
        }
    }

    /// Answers, and hears nothing more.
    fn refuse(&mut self, answer: Vec<u8>) {
        self.answer(answer);
        self.silent = true;
        self.input.clear();
    }

    /// How many bytes of answers wait for it.
    fn unfetched(&self) -> usize {
        self.output.len() - self.written
    }

    fn is_done(&self) -> bool {
        let rest = self.waits || self.input.len() > 0 || self.unfetched() > 0;
        self.deaf || self.silent && !rest
    }

    /// Goes on until it has to wait: for the client, or for what is to be
    /// asked on the control thread, which is the answer. `others` is how much
    /// input of others waits.
    fn go_on(&mut self, others: usize) -> Option<Command> {
        loop {
            self.write();
            if self.waits || self.deaf || self.unfetched() > OWN_OUTPUT {
                return None;
            }
            match self.input.next(self.silent) {
                Some(Command::Hear(answer)) => self.answer(answer),
                Some(Command::Leave(answer)) => self.refuse(answer),
                Some(command) => {
                    self.waits = true;
                    return Some(command);
                }
                None if self.input.len() > OWN_INPUT && self.input.len() + others > ALL_INPUT => {
                    let text = "Command too long while those of other clients are";
                    self.refuse(message(TOO_BIG, text));
                }
                None if self.silent || !self.read() => return None,
                None => {}
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
                            client.answer(answer);
                        }
                        self.attend(number);
                        self.bound_output(number);
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

    /// Lets a client in, if there is room for it.
    fn greet(&mut self, mut stream: Stream, from: &str) {
        let number = CLIENTS + self.came;
        self.came += 1;
        let has_room = self.clients.len() < MOST_CLIENTS || self.forget_idle();
        if !has_room {
            let text = format!("Too many clients: there may be {MOST_CLIENTS}");
            // One that cannot be told finds out by the end.
            _ = stream.write(&[GREETING, &message(UNSPECIFIED, &text)].concat());
            stream.end();
            return self.say(Heard::News(format!("refused connection {number}{from}")));
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if let Err(error) = registry.register(stream.source(), Token(number), interest) {
            return self.say(Heard::News(format!("accept: {error}")));
        }
        let (input, output, written) = (Input::default(), GREETING.to_vec(), 0);
        let (silent, deaf, waits, heard) = (false, false, false, Instant::now());
        let client = Client { stream, input, output, written, heard, silent, deaf, waits };
        self.clients.insert(number, client);
        self.say(Heard::News(format!("opened connection {number}{from}")));
        self.attend(number);
    }

    /// Lets the client go that has said nothing for longest, if that is long enough; whether one
    /// went.
    fn forget_idle(&mut self) -> bool {
        let idle = self.clients.iter().filter(|(_, it)| !it.waits && it.heard.elapsed() > IDLE);
        let idle = idle.min_by_key(|(_, client)| client.heard).map(|(&number, _)| number);
        idle.is_some_and(|number| self.let_go(number, "it was idle and others came"))
    }

    /// Lets clients go that do not fetch their answers, while too much waits; not the one that was
    /// just answered.
    fn bound_output(&mut self, answered: usize) {
        while self.clients.values().map(Client::unfetched).sum::<usize>() > ALL_OUTPUT {
            let others = self.clients.iter().filter(|&(&number, _)| number != answered);
            let slowest = others.max_by_key(|(_, client)| client.unfetched());
            match slowest.filter(|(_, client)| client.unfetched() > 0) {
                Some((&number, _)) => self.let_go(number, "it did not fetch its answers"),
                None => return,
            };
        }
    }

    fn let_go(&mut self, number: usize, why: &str) -> bool {
        self.say(Heard::News(format!("closed connection {number}: {why}")));
        self.clients.remove(&number).is_some()
    }

    /// Goes on with a client; what it wants is told.
    fn attend(&mut self, number: usize) {
        let all: usize = self.clients.values().map(|client| client.input.len()).sum();
        let Some(client) = self.clients.get_mut(&number) else { return };
        let wanted = client.go_on(all - client.input.len());
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
            self.clients.retain(|_, client| !client.deaf && client.unfetched() > 0);
            if self.clients.is_empty() {
                return;
            }
            std::thread::sleep(FAREWELL / LOOKS);
        }
    }
}
