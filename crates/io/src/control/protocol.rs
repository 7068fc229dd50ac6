//! Answers commands of Click's control protocol, version 1.3.

use super::llrpc;
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
pub(super) const PERMISSION: u16 = 530;
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
    match command {
        Command::Read(handler, param) => read(handler, param, policy, cx),
        Command::Write(handler, value) => write(handler, value, policy, cx),
        Command::Llrpc(name, data) => llrpc::answer(name, data, policy, cx),
        Command::CheckRead(handler) => check(handler, false, policy, cx),
        Command::CheckWrite(handler) => check(handler, true, policy, cx),
        Command::Reply(answer) | Command::Close(answer) => answer.clone(),
    }
}

/// Returns the path of the handler with this name, or an error answer if there is none.
pub(super) fn find(
    handler: &str,
    policy: &SessionPolicy<'_>,
    cx: &mut dyn ControlContext,
) -> Result<String, Vec<u8>> {
    // Clients may write a global handler without an element, or with element number 0.
    let name = ["0.", "."].iter().find_map(|start| handler.strip_prefix(start)).unwrap_or(handler);
    if let Some(proxy) = policy.proxy {
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

fn read(
    handler: &str,
    param: &[u8],
    policy: &SessionPolicy<'_>,
    cx: &mut dyn ControlContext,
) -> Vec<u8> {
    let path = match find(handler, policy, cx) {
        Ok(path) => path,
        Err(answer) => return answer,
    };
    if !cx.exists(&path, false) {
        return message(PERMISSION, &format!("Handler '{handler}' write-only"));
    }
    let param = String::from_utf8_lossy(param);
    let text = match (policy.own)(&path) {
        Some(text) => Ok(text),
        None => cx.read(format!("{path} {param}").trim_end()),
    };
    match text {
        Ok(text) => {
            let head = message(OK, &format!("Read handler '{handler}' OK"));
            let data = format!("DATA {}\r\n{text}", text.len());
            [head, data.into_bytes()].concat()
        }
        Err(error) => failed(UNSPECIFIED, &format!("Read handler '{handler}' error"), error),
    }
}

fn write(
    handler: &str,
    value: &[u8],
    policy: &SessionPolicy<'_>,
    cx: &mut dyn ControlContext,
) -> Vec<u8> {
    let path = match find(handler, policy, cx) {
        Ok(path) => path,
        Err(answer) => return answer,
    };
    if !cx.exists(&path, true) {
        return message(PERMISSION, &format!("Handler '{handler}' read-only"));
    }
    if policy.read_only {
        return message(PERMISSION, &format!("Permission denied for '{handler}'"));
    }
    let done = match std::str::from_utf8(value) {
        Ok(value) => cx.write(&path, value),
        Err(_) => Err(ArgError::new("the value is not UTF-8")),
    };
    match done {
        Ok(()) => message(OK, &format!("Write handler '{handler}' OK")),
        Err(error) => failed(HANDLER_ERROR, &format!("Write handler '{handler}' error"), error),
    }
}

fn failed(code: u16, what: &str, error: ArgError) -> Vec<u8> {
    let why = error.in_click_words().unwrap_or_default();
    let mut lines: Vec<&str> = why.lines().collect();
    let what = if lines.is_empty() { what.to_owned() } else { format!("{what}:") };
    lines.insert(0, &what);
    messages(code, &lines)
}

fn check(
    handler: &str,
    write: bool,
    policy: &SessionPolicy<'_>,
    cx: &mut dyn ControlContext,
) -> Vec<u8> {
    let path = match find(handler, policy, cx) {
        Ok(path) => path,
        Err(answer) => return answer,
    };
    let (kind, able) = if write { ("Write", "writable") } else { ("Read", "readable") };
    if !cx.exists(&path, write) {
        return message(NO_SUCH_HANDLER, &format!("Handler '{handler}' not {able}"));
    }
    match write && policy.read_only {
        true => message(PERMISSION, &format!("Permission denied for '{handler}'")),
        false => message(OK, &format!("{kind} handler '{handler}' OK")),
    }
}
