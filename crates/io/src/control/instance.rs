//! The control socket of a running instance, which belongs to no element.

use super::endpoint::{Endpoint, MAX_PATH};
use super::input_quota::InputShare;
use super::protocol::{self, Command, SessionPolicy, UNSPECIFIED, message, messages, plain_name};
use super::remote::{RemoteReply, request_bytes};
use super::server::{CONTROL, Server, ServerEvent, ServerPolicy};
use castanet_element::control::{ControlContext, ControlWaker};
use castanet_element::error::ArgError;
use std::io;
use std::path::{Path, PathBuf};

/// Serves clients of Click's control protocol at a socket file. The caller answers reads and writes
/// of handlers that it has itself; all others are those of the router.
pub struct InstanceSocket(Server);

/// A command of a client, which waits for its answer.
pub struct InstanceRequest {
    client: usize,
    command: Command,
    /// The bytes of the command, which count until they are answered.
    share: InputShare,
}

/// The request that a client makes by its command, with the handler's name.
pub enum RequestKind<'a> {
    /// To read a handler, with a parameter.
    Read(&'a str, &'a [u8]),
    /// To write a handler.
    Write(&'a str, &'a [u8]),
    /// Whether there is a handler to read, or (`true`) to write.
    Check(&'a str, bool),
    /// Anything else.
    Other,
}

impl<'a> RequestKind<'a> {
    /// The request of a command.
    pub(super) fn of(command: &'a Command) -> RequestKind<'a> {
        match command {
            Command::Read(handler, param) => RequestKind::Read(plain_name(handler), param),
            Command::Write(handler, value) => RequestKind::Write(plain_name(handler), value),
            Command::CheckRead(handler) => RequestKind::Check(plain_name(handler), false),
            Command::CheckWrite(handler) => RequestKind::Check(plain_name(handler), true),
            _ => RequestKind::Other,
        }
    }

    /// The name of the handler.
    pub fn handler(&self) -> Option<&'a str> {
        match *self {
            RequestKind::Read(handler, _)
            | RequestKind::Write(handler, _)
            | RequestKind::Check(handler, _) => Some(handler),
            RequestKind::Other => None,
        }
    }
}

impl InstanceSocket {
    /// Listens at this path. Only the process's user can connect, and the members of `group`, by its
    /// number. `waker` is called for each request.
    ///
    /// # Errors
    /// The system's. `InvalidInput` if the path is too long for a socket.
    pub fn open(
        path: PathBuf,
        group: Option<u32>,
        waker: ControlWaker,
    ) -> io::Result<InstanceSocket> {
        InstanceSocket::check_path(&path)?;
        let policy = ServerPolicy { thread: "instance socket", ..CONTROL };
        let mut server = Server::open(&Endpoint::Restricted { path, group }, policy, waker)?;
        server.serve()?;
        Ok(InstanceSocket(server))
    }

    /// Checks that a socket can have this path.
    ///
    /// # Errors
    /// `InvalidInput` if it is too long.
    pub fn check_path(path: &Path) -> io::Result<()> {
        let (length, most) = (path.as_os_str().len(), MAX_PATH - 1);
        if length <= most {
            return Ok(());
        }
        let text = format!("the name of a socket may have {most} bytes, and this one has {length}");
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }

    /// Gives the socket another path of the same folder, in place of any file there.
    ///
    /// # Errors
    /// The system's.
    pub fn rename(&mut self, path: PathBuf) -> io::Result<()> {
        if let Some(before) = self.0.path.as_ref().filter(|before| **before != path) {
            std::fs::rename(before, &path)?;
        }
        self.0.path = Some(path);
        Ok(())
    }

    /// Returns the next request, if there is one; never waits.
    pub fn next(&self) -> Option<InstanceRequest> {
        loop {
            match self.0.next()? {
                ServerEvent::Command(client, command, share) => {
                    return Some(InstanceRequest { client, command, share });
                }
                ServerEvent::Log(_) => {}
            }
        }
    }

    /// Has the router answer a request, at once. Where the request replaces the configuration, the
    /// answer comes back, and the caller sends it by [`InstanceSocket::answer_deferred`] when the new
    /// configuration runs.
    pub fn pass(
        &self,
        request: InstanceRequest,
        cx: &mut dyn ControlContext,
    ) -> Option<DeferredAnswer> {
        let InstanceRequest { client, command, share } = request;
        let policy = SessionPolicy { read_only: false, proxy: None, own: &|_| None };
        let answer = protocol::answer(&command, &policy, cx);
        drop(share);
        if cx.is_replaced() {
            return Some(DeferredAnswer { client, command, answer });
        }
        self.0.answer(client, answer);
        None
    }

    /// Answers the read of a handler.
    pub fn answer_read(&self, request: InstanceRequest, text: Result<String, ArgError>) {
        let InstanceRequest { client, command, .. } = request;
        let Command::Read(handler, _) = &command else { return };
        let answer = protocol::read_answer(handler, text);
        self.0.answer(client, answer.unwrap_or_else(|answer| answer));
    }

    /// Answers that the handler of a check exists.
    pub fn answer_check(&self, request: InstanceRequest) {
        let answer = match &request.command {
            Command::CheckRead(handler) => protocol::check_answer(handler, false),
            Command::CheckWrite(handler) => protocol::check_answer(handler, true),
            _ => return,
        };
        self.0.answer(request.client, answer);
    }

    /// Answers the write of a handler.
    pub fn answer_write(&self, request: InstanceRequest, done: Result<(), ArgError>) {
        let answer = request.deferred(done);
        self.0.answer(answer.client, answer.answer);
    }

    /// Answers as a router in another process has done.
    ///
    /// # Errors
    /// The reply is none to such a request.
    pub fn answer_remote(
        &self,
        request: InstanceRequest,
        reply: RemoteReply,
    ) -> Result<(), InstanceRequest> {
        match (&request.command, reply) {
            (Command::Read(..), RemoteReply::Value(text)) => self.answer_read(request, Ok(text)),
            (Command::Write(..), RemoteReply::Success) => self.answer_write(request, Ok(())),
            (Command::CheckRead(_) | Command::CheckWrite(_), RemoteReply::Success) => {
                self.answer_check(request);
            }
            (_, RemoteReply::Failure { code, lines }) => {
                self.0.answer(request.client, messages(code, &lines));
            }
            _ => return Err(request),
        }
        Ok(())
    }

    /// Answers that a request failed, and why.
    pub fn answer_failure(&self, request: InstanceRequest, error: ArgError) {
        match &request.command {
            Command::Read(..) => self.answer_read(request, Err(error)),
            Command::Write(..) => self.answer_write(request, Err(error)),
            _ => {
                let why = error.in_click_words().unwrap_or_default();
                self.0.answer(request.client, message(UNSPECIFIED, &why));
            }
        }
    }

    /// Sends an answer after the configuration was replaced; `errors` are those of elements that
    /// could not start.
    pub fn answer_deferred(&self, deferred: DeferredAnswer, errors: &str) {
        let DeferredAnswer { client, command, answer } = deferred;
        let failed = protocol::start_failed(&command, errors);
        self.0.answer(client, failed.unwrap_or(answer));
    }
}

/// An answer that waits until the new configuration runs.
pub struct DeferredAnswer {
    client: usize,
    command: Command,
    answer: Vec<u8>,
}

impl InstanceRequest {
    /// The request.
    pub fn kind(&self) -> RequestKind<'_> {
        RequestKind::of(&self.command)
    }

    /// The bytes by which a router in another process is asked for the same of the handler of this name;
    /// `None` if the request is about no handler.
    pub fn remote_bytes(&self, handler: &str) -> Option<Vec<u8>> {
        request_bytes(&self.command, handler)
    }

    /// The answer to a write, to be sent later.
    pub fn deferred(self, done: Result<(), ArgError>) -> DeferredAnswer {
        let handler = match &self.command {
            Command::Write(handler, _) => handler.as_str(),
            _ => "",
        };
        let answer = protocol::write_answer(handler, done).unwrap_or_else(|answer| answer);
        DeferredAnswer { client: self.client, command: self.command, answer }
    }
}
