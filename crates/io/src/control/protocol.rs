//! Answers commands of Click's control protocol, version 1.3.

use castanet_element::control::ControlContext;
use castanet_element::error::ArgError;

/// The first line that a client receives.
pub(crate) const GREETING: &[u8] = b"Click::ControlSocket/1.3\r\n";

/// A command of a client.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// Call a read handler with these bytes as parameter.
    Read(String, Vec<u8>),
    /// Call a write handler with these bytes.
    Write(String, Vec<u8>),
    /// Call an LLRPC of this name with these bytes.
    Llrpc(String, Vec<u8>),
    /// Tell whether a handler of this name can be read, or written.
    CheckRead(String),
    CheckWrite(String),
    /// Send this answer.
    Reply(Vec<u8>),
    /// Send this answer and close the connection.
    Close(Vec<u8>),
}

impl Command {
    /// Returns the number of bytes of names and data.
    pub(super) fn len(&self) -> usize {
        match self {
            Command::Read(name, data) | Command::Write(name, data) | Command::Llrpc(name, data) => {
                name.len() + data.len()
            }
            Command::CheckRead(name) | Command::CheckWrite(name) => name.len(),
            Command::Reply(_) | Command::Close(_) => 0,
        }
    }
}

// Codes of answers.
pub(super) const OK: u16 = 200;
pub(super) const SYNTAX: u16 = 500;
pub(super) const UNIMPLEMENTED: u16 = 501;
const NO_SUCH_ELEMENT: u16 = 510;
const NO_SUCH_HANDLER: u16 = 511;
const HANDLER_ERROR: u16 = 520;
pub(super) const TOO_BIG: u16 = 521;
pub(super) const LLRPC_ERROR: u16 = 522;
const PERMISSION: u16 = 530;
pub(super) const UNSPECIFIED: u16 = 590;

/// A line of an answer.
pub(super) fn message(code: u16, text: &str) -> Vec<u8> {
    messages(code, &[text])
}

/// Lines of an answer; all but the last have a hyphen after the code.
pub(super) fn messages(code: u16, texts: &[impl AsRef<str>]) -> Vec<u8> {
    let mut answer = String::new();
    for (n, text) in texts.iter().enumerate() {
        let mark = if n + 1 < texts.len() { '-' } else { ' ' };
        answer += &format!("{code}{mark}{}\r\n", printable(text.as_ref()));
    }
    answer.into_bytes()
}

/// An answer of success, and the data that follow it.
pub(super) fn message_with_data(text: &str, data: &[u8]) -> Vec<u8> {
    let length = format!("DATA {}\r\n", data.len());
    [&message(OK, text), length.as_bytes(), data].concat()
}

/// Replaces control characters by their octal codes, so that the text stays one line.
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => printable += &format!("\\{:03o}", u32::from(c)),
            false => printable.push(c),
        }
    }
    printable
}

/// The restrictions under which a socket answers commands.
pub(crate) struct SessionPolicy<'a> {
    /// Handlers can only be read.
    pub(crate) read_only: bool,
    /// The element whose handlers are called in place of all others.
    pub(crate) proxy: Option<&'a str>,
    /// Answers reads of the control socket's own handlers. The caller of a handler cannot itself be
    /// called meanwhile.
    pub(crate) own: &'a dyn Fn(&str) -> Option<String>,
}

/// Executes a command and returns the answer.
pub(crate) fn answer(
    command: &Command,
    policy: &SessionPolicy<'_>,
    cx: &mut dyn ControlContext,
) -> Vec<u8> {
    let mut session = Session { policy, cx };
    let answer = match command {
        Command::Read(handler, param) => session.read(handler, param),
        Command::Write(handler, value) => session.write(handler, value),
        Command::Llrpc(name, data) => session.call(name, data),
        Command::CheckRead(handler) => session.check(handler, false),
        Command::CheckWrite(handler) => session.check(handler, true),
        Command::Reply(answer) | Command::Close(answer) => Ok(answer.clone()),
    };
    answer.unwrap_or_else(|answer| answer)
}

/// The name of a handler. Clients may write a global one without an element, or with element number 0.
pub(super) fn plain_name(handler: &str) -> &str {
    ["0.", "."].iter().find_map(|start| handler.strip_prefix(start)).unwrap_or(handler)
}

/// An answer; an error is the answer to a command that failed.
pub(super) type Answer = Result<Vec<u8>, Vec<u8>>;

/// A client's socket and the router, for one command.
pub(super) struct Session<'a> {
    pub(super) policy: &'a SessionPolicy<'a>,
    pub(super) cx: &'a mut dyn ControlContext,
}

impl Session<'_> {
    /// Returns the path of the handler with this name, or an error answer if there is none.
    pub(super) fn find(&mut self, handler: &str) -> Result<String, Vec<u8>> {
        let cx = &mut *self.cx;
        let name = plain_name(handler);
        if let Some(proxy) = self.policy.proxy {
            let path = format!("{proxy}.{name}");
            return match cx.exists(&path, false) || cx.exists(&path, true) {
                true => Ok(path),
                false => {
                    Err(message(NO_SUCH_HANDLER, &format!("No proxied handler named '{handler}'")))
                }
            };
        }
        let path = match name.split_once('.') {
            None => name.to_owned(),
            Some((element, own)) if cx.exists(&format!("{element}.name"), false) => {
                format!("{element}.{own}")
            }
            // Some global handlers have a point in their name.
            Some(_) if cx.exists(name, false) || cx.exists(name, true) => name.to_owned(),
            Some((element, own)) => {
                let number = element.parse::<usize>().ok().filter(|&number| number > 0);
                let list = cx.read("list").unwrap_or_default();
                // The first line is the number of elements.
                let Some(element) = number.and_then(|number| list.lines().nth(number)) else {
                    let text = format!("No element named '{element}'");
                    return Err(message(NO_SUCH_ELEMENT, &text));
                };
                format!("{element}.{own}")
            }
        };
        let visible = cx.exists(&path, false) && !cx.is_private(&path);
        match visible || cx.exists(&path, true) {
            true => Ok(path),
            false => Err(message(NO_SUCH_HANDLER, &format!("No handler named '{handler}'"))),
        }
    }

    fn read(&mut self, handler: &str, param: &[u8]) -> Answer {
        let path = self.find(handler)?;
        if !self.cx.exists(&path, false) {
            return Err(message(PERMISSION, &format!("Handler '{handler}' write-only")));
        }
        let param = String::from_utf8_lossy(param);
        let text = match (self.policy.own)(&path) {
            Some(text) => Ok(text),
            None => self.cx.read(format!("{path} {param}").trim_end()),
        };
        read_answer(handler, text)
    }

    fn write(&mut self, handler: &str, value: &[u8]) -> Answer {
        let path = self.find(handler)?;
        if !self.cx.exists(&path, true) {
            return Err(message(PERMISSION, &format!("Handler '{handler}' read-only")));
        }
        self.permit_writes(handler)?;
        let done = match std::str::from_utf8(value) {
            Ok(value) => self.cx.write(&path, value),
            Err(_) => Err(ArgError::new("the value is not UTF-8")),
        };
        write_answer(handler, done)
    }

    /// Checks that clients may do more than read.
    pub(super) fn permit_writes(&self, name: &str) -> Result<(), Vec<u8>> {
        match self.policy.read_only {
            true => Err(message(PERMISSION, &format!("Permission denied for '{name}'"))),
            false => Ok(()),
        }
    }

    fn check(&mut self, handler: &str, write: bool) -> Answer {
        let path = self.find(handler)?;
        let able = if write { "writable" } else { "readable" };
        if !self.cx.exists(&path, write) {
            return Err(message(NO_SUCH_HANDLER, &format!("Handler '{handler}' not {able}")));
        }
        if write {
            self.permit_writes(handler)?;
        }
        Ok(check_answer(handler, write))
    }
}

/// The answer that a handler exists.
pub(super) fn check_answer(handler: &str, write: bool) -> Vec<u8> {
    let kind = if write { "Write" } else { "Read" };
    message(OK, &format!("{kind} handler '{handler}' OK"))
}

/// The answer to a read of this handler.
pub(super) fn read_answer(handler: &str, text: Result<String, ArgError>) -> Answer {
    let text = text
        .map_err(|error| failed(UNSPECIFIED, &format!("Read handler '{handler}' error"), error))?;
    Ok(message_with_data(&format!("Read handler '{handler}' OK"), text.as_bytes()))
}

/// The answer to a write of this handler.
pub(super) fn write_answer(handler: &str, done: Result<(), ArgError>) -> Answer {
    match done {
        Ok(()) => Ok(message(OK, &format!("Write handler '{handler}' OK"))),
        Err(error) => Err(write_failed(handler, error)),
    }
}

/// The answer to a write that has replaced the configuration by one with elements that could not
/// start; `None` if all have started.
pub(crate) fn start_failed(command: &Command, errors: &str) -> Option<Vec<u8>> {
    let Command::Write(handler, _) = command else { return None };
    let error = ArgError::new(format!("the new configuration runs, but not all of it:\n{errors}"));
    (!errors.is_empty()).then(|| write_failed(handler, error))
}

fn write_failed(handler: &str, error: ArgError) -> Vec<u8> {
    failed(HANDLER_ERROR, &format!("Write handler '{handler}' error"), error)
}

fn failed(code: u16, what: &str, error: ArgError) -> Vec<u8> {
    let why = error.in_click_words().unwrap_or_default();
    let mut lines: Vec<&str> = why.lines().collect();
    let what = if lines.is_empty() { what.to_owned() } else { format!("{what}:") };
    lines.insert(0, &what);
    messages(code, &lines)
}
