//! Click's control protocol, version 1.3: lines of commands, and what is answered.

use super::llrpc;
use castanet_engine::args::ArgError;
use castanet_engine::element::Desk;

/// What a client hears first.
pub(crate) const GREETING: &[u8] = b"Click::ControlSocket/1.3\r\n";

/// The most bytes of a command, its data included.
pub(crate) const LONGEST: usize = 16 << 20;

/// What a client wants.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// Call a read handler with these bytes as parameter.
    Read(String, Vec<u8>),
    /// Call a write handler with these bytes.
    Write(String, Vec<u8>),
    /// Call an LLRPC of this name with these bytes.
    Llrpc(String, Vec<u8>),
    /// Know whether there is such a handler to be read, or to be written.
    CheckRead(String),
    CheckWrite(String),
    /// Nothing but this answer.
    Hear(Vec<u8>),
    /// This answer, and an end.
    Leave(Vec<u8>),
}

// Codes of answers.
pub(super) const OK: u16 = 200;
pub(super) const SYNTAX: u16 = 500;
pub(super) const UNIMPLEMENTED: u16 = 501;
const NO_SUCH_ELEMENT: u16 = 510;
const NO_SUCH_HANDLER: u16 = 511;
const HANDLER_ERROR: u16 = 520;
const TOO_BIG: u16 = 521;
pub(super) const LLRPC_ERROR: u16 = 522;
pub(super) const PERMISSION: u16 = 530;
const UNSPECIFIED: u16 = 590;

const HELP: &[&str] = &[
    "Commands supported:",
    "READ handler [arg...]   call read handler, return DATA",
    "READDATA handler len    call read handler with len data bytes, return DATA",
    "READUNTIL handler term  call read handler, take data until term, return DATA",
    "WRITE handler [arg...]  call write handler",
    "WRITEDATA handler len   call write handler, pass len data bytes",
    "WRITEUNTIL handler term call write handler, take data until term",
    "CHECKREAD handler       check if read handler is valid",
    "CHECKWRITE handler      check if write handler is valid",
    "LLRPC elt#number [len]  call LLRPC, pass len data bytes, return DATA",
    "QUIT                    close connection",
];

/// Takes the next command off the beginning of `input`; none if it is not all
/// there, and more may come as the connection is not `closed`.
pub(crate) fn next(input: &mut Vec<u8>, closed: bool) -> Option<Command> {
    loop {
        let (line, behind) = match line_end(input) {
            Some((end, behind)) => (&input[..end], behind),
            None if input.len() > LONGEST => return Some(too_long(input)),
            None if closed && !input.is_empty() => (&input[..], input.len()),
            None => return None,
        };
        let line = String::from_utf8_lossy(line).into_owned();
        let (command, used) = match parse(&line, &input[behind..], closed) {
            Parsed::Nothing => (None, 0),
            Parsed::Command(command, used) => (Some(command), used),
            Parsed::Unfinished if input.len() > LONGEST => return Some(too_long(input)),
            Parsed::Unfinished => return None,
        };
        input.drain(..behind + used);
        if command.is_some() {
            return command;
        }
    }
}

/// Where the first line ends, and where what follows begins. Lines end with
/// CR, LF or both.
fn line_end(text: &[u8]) -> Option<(usize, usize)> {
    let end = text.iter().position(|&byte| byte == b'\r' || byte == b'\n')?;
    let both = text[end..].starts_with(b"\r\n");
    Some((end, end + 1 + usize::from(both)))
}

fn too_long(input: &mut Vec<u8>) -> Command {
    input.clear();
    Command::Leave(message(TOO_BIG, "Command too long"))
}

/// What a line is, with what follows it.
enum Parsed {
    Nothing,
    /// A command, and how much it takes of what follows.
    Command(Command, usize),
    /// More must follow.
    Unfinished,
}

impl From<Command> for Parsed {
    fn from(command: Command) -> Parsed {
        Parsed::Command(command, 0)
    }
}

/// An answer as all there is to it.
fn heard(code: u16, text: &str) -> Parsed {
    Command::Hear(message(code, text)).into()
}

fn parse(line: &str, behind: &[u8], closed: bool) -> Parsed {
    let mut words = line.split_ascii_whitespace();
    let Some(first) = words.next() else { return Parsed::Nothing };
    let name = first.to_ascii_uppercase();
    let words: Vec<&str> = words.collect();
    match (name.as_str(), words.as_slice()) {
        ("READ" | "GET" | "WRITE" | "SET", [handler, rest @ ..]) => {
            let data = from_word(line, rest).as_bytes().to_vec();
            call(&name, handler, data).into()
        }
        ("READDATA" | "WRITEDATA" | "SETDATA", [handler, count]) => {
            with_data(&name, handler, count, behind, closed)
        }
        ("READUNTIL" | "WRITEUNTIL", [handler, rest @ ..]) => {
            until(&name, handler, from_word(line, rest), behind, closed)
        }
        ("CHECKREAD", [handler]) => Command::CheckRead((*handler).to_owned()).into(),
        ("CHECKWRITE", [handler]) => Command::CheckWrite((*handler).to_owned()).into(),
        ("LLRPC", [llrpc]) => Command::Llrpc((*llrpc).to_owned(), Vec::new()).into(),
        ("LLRPC", [llrpc, count]) => with_data("llrpc", llrpc, count, behind, closed),
        ("CLOSE" | "QUIT", rest) => {
            let wrong =
                if rest.is_empty() { Vec::new() } else { message(SYNTAX, "Bad command syntax") };
            Command::Leave([wrong, message(OK, "Goodbye!")].concat()).into()
        }
        ("HELP", _) => Command::Hear(messages(OK, HELP)).into(),
        (
            "READ" | "GET" | "WRITE" | "SET" | "READDATA" | "WRITEDATA" | "SETDATA" | "READUNTIL"
            | "WRITEUNTIL" | "CHECKREAD" | "CHECKWRITE" | "LLRPC",
            _,
        ) => heard(SYNTAX, "Wrong number of arguments"),
        _ => heard(UNIMPLEMENTED, &format!("Command '{name}' unimplemented")),
    }
}

/// The line from one of its words on, without blanks at its end.
fn from_word<'a>(line: &'a str, words: &[&str]) -> &'a str {
    let start =
        words.first().map_or(line.len(), |word| word.as_ptr().addr() - line.as_ptr().addr());
    line[start..].trim_end_matches(|c: char| c.is_ascii_whitespace())
}

fn call(name: &str, handler: &str, data: Vec<u8>) -> Command {
    match name {
        "llrpc" => Command::Llrpc(handler.to_owned(), data),
        name if name.starts_with(['R', 'G']) => Command::Read(handler.to_owned(), data),
        _ => Command::Write(handler.to_owned(), data),
    }
}

fn with_data(name: &str, handler: &str, count: &str, behind: &[u8], closed: bool) -> Parsed {
    let Ok(count) = count.parse::<usize>() else {
        return heard(SYNTAX, &format!("Syntax error in '{name}'"));
    };
    if count > LONGEST {
        let text = format!("Data too large for handler '{handler}'");
        return Command::Leave(message(TOO_BIG, &text)).into();
    }
    match behind.get(..count) {
        Some(data) => Parsed::Command(call(name, handler, data.to_vec()), count),
        None if closed => heard(SYNTAX, "Not enough data"),
        None => Parsed::Unfinished,
    }
}

/// Data up to a line that is `end`, but for blanks behind it.
fn until(name: &str, handler: &str, end: &str, behind: &[u8], closed: bool) -> Parsed {
    let mut at = 0;
    while let Some((len, next)) = line_end(&behind[at..]) {
        if behind[at..at + len].trim_ascii_end() == end.as_bytes() {
            return Parsed::Command(call(name, handler, behind[..at].to_vec()), at + next);
        }
        at += next;
    }
    match closed {
        true => heard(SYNTAX, "Not enough data"),
        false => Parsed::Unfinished,
    }
}

/// A line of an answer.
pub(super) fn message(code: u16, text: &str) -> Vec<u8> {
    messages(code, &[text])
}

/// Lines of an answer, of which all but the last have a hyphen behind the code.
fn messages(code: u16, texts: &[impl AsRef<str>]) -> Vec<u8> {
    let mut answer = String::new();
    for (n, text) in texts.iter().enumerate() {
        let mark = if n + 1 < texts.len() { '-' } else { ' ' };
        answer += &format!("{code}{mark}{}\r\n", printable(text.as_ref()));
    }
    answer.into_bytes()
}

/// What would break lines, in octal.
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

/// How a socket answers.
pub(crate) struct Manners<'a> {
    /// Handlers can only be read.
    pub(crate) read_only: bool,
    /// The element that answers for all others.
    pub(crate) proxy: Option<&'a str>,
    /// What the socket itself answers to readers, for who asks the desk cannot
    /// be asked by it.
    pub(crate) own: &'a dyn Fn(&str) -> Option<String>,
}

/// Does what a client wants; the answer.
pub(crate) fn answer(command: &Command, manners: &Manners<'_>, desk: &mut dyn Desk) -> Vec<u8> {
    match command {
        Command::Read(handler, param) => read(handler, param, manners, desk),
        Command::Write(handler, value) => write(handler, value, manners, desk),
        Command::Llrpc(name, data) => llrpc::answer(name, data, manners, desk),
        Command::CheckRead(handler) => check(handler, false, manners, desk),
        Command::CheckWrite(handler) => check(handler, true, manners, desk),
        Command::Hear(answer) | Command::Leave(answer) => answer.clone(),
    }
}

/// The handler that a client means, or why there is none.
pub(super) fn find(
    handler: &str,
    manners: &Manners<'_>,
    desk: &mut dyn Desk,
) -> Result<String, Vec<u8>> {
    // A global handler may have no element, or one of number 0.
    let name = ["0.", "."].iter().find_map(|start| handler.strip_prefix(start)).unwrap_or(handler);
    if let Some(proxy) = manners.proxy {
        let path = format!("{proxy}.{name}");
        return match desk.exists(&path, false) || desk.exists(&path, true) {
            true => Ok(path),
            false => {
                Err(message(NO_SUCH_HANDLER, &format!("No proxied handler named '{handler}'")))
            }
        };
    }
    let path = match name.split_once('.') {
        None => name.to_owned(),
        Some((element, own)) if desk.exists(&format!("{element}.name"), false) => {
            format!("{element}.{own}")
        }
        Some((element, own)) => {
            let number = element.parse::<usize>().ok().filter(|&number| number > 0);
            let list = desk.read("list").unwrap_or_default();
            // The first line says how many there are.
            let Some(element) = number.and_then(|number| list.lines().nth(number)) else {
                let text = format!("No element named '{element}'");
                return Err(message(NO_SUCH_ELEMENT, &text));
            };
            format!("{element}.{own}")
        }
    };
    let visible = desk.exists(&path, false) && !desk.is_private(&path);
    match visible || desk.exists(&path, true) {
        true => Ok(path),
        false => Err(message(NO_SUCH_HANDLER, &format!("No handler named '{handler}'"))),
    }
}

fn read(handler: &str, param: &[u8], manners: &Manners<'_>, desk: &mut dyn Desk) -> Vec<u8> {
    let path = match find(handler, manners, desk) {
        Ok(path) => path,
        Err(answer) => return answer,
    };
    if !desk.exists(&path, false) {
        return message(PERMISSION, &format!("Handler '{handler}' write-only"));
    }
    let param = String::from_utf8_lossy(param);
    let text = match (manners.own)(&path) {
        Some(text) => Ok(text),
        None => desk.read(format!("{path} {param}").trim_end()),
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

fn write(handler: &str, value: &[u8], manners: &Manners<'_>, desk: &mut dyn Desk) -> Vec<u8> {
    let path = match find(handler, manners, desk) {
        Ok(path) => path,
        Err(answer) => return answer,
    };
    if !desk.exists(&path, true) {
        return message(PERMISSION, &format!("Handler '{handler}' read-only"));
    }
    if manners.read_only {
        return message(PERMISSION, &format!("Permission denied for '{handler}'"));
    }
    let done = match std::str::from_utf8(value) {
        Ok(value) => desk.write(&path, value),
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

fn check(handler: &str, write: bool, manners: &Manners<'_>, desk: &mut dyn Desk) -> Vec<u8> {
    let path = match find(handler, manners, desk) {
        Ok(path) => path,
        Err(answer) => return answer,
    };
    let (kind, able) = if write { ("Write", "writable") } else { ("Read", "readable") };
    if !desk.exists(&path, write) {
        return message(NO_SUCH_HANDLER, &format!("Handler '{handler}' not {able}"));
    }
    match write && manners.read_only {
        true => message(PERMISSION, &format!("Permission denied for '{handler}'")),
        false => message(OK, &format!("{kind} handler '{handler}' OK")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands of a text.
    fn all(text: &[u8], closed: bool) -> (Vec<Command>, Vec<u8>) {
        let mut input = text.to_vec();
        let mut commands = Vec::new();
        while let Some(command) = next(&mut input, closed) {
            commands.push(command);
        }
        (commands, input)
    }

    fn read(handler: &str, param: &str) -> Command {
        Command::Read(handler.into(), param.into())
    }

    fn write(handler: &str, value: &str) -> Command {
        Command::Write(handler.into(), value.into())
    }

    #[test]
    fn lines_end_in_three_ways_and_words_are_apart_by_blanks() {
        let (commands, rest) =
            all(b"read c.count\r\n\r\nGET  q.x  a  b \nwrite s.y\rREAD c", false);
        assert_eq!(commands, [read("c.count", ""), read("q.x", "a  b"), write("s.y", "")]);
        assert_eq!(rest, b"READ c");
        assert_eq!(all(&rest, true).0, [read("c", "")]);
    }

    #[test]
    fn data_follows_by_length_or_up_to_a_line() {
        let text = b"WRITEDATA a.b 7\r\n1\r\n2\n34read c\nREADUNTIL d.e END x\n1 \n\nEND x  \nWRITEUNTIL f\na\n\nREAD g\n";
        let (commands, rest) = all(text, false);
        let expected = [
            write("a.b", "1\r\n2\n34"),
            read("c", ""),
            read("d.e", "1 \n\n"),
            write("f", "a\n"),
            read("g", ""),
        ];
        assert_eq!(commands, expected);
        assert!(rest.is_empty());
        // Byte by byte it is the same.
        let (mut input, mut commands) = (Vec::new(), Vec::new());
        for byte in text {
            input.push(*byte);
            commands.extend(next(&mut input, false));
        }
        assert_eq!(commands, expected);
    }

    #[test]
    fn low_level_calls_have_data_too() {
        let (commands, rest) = all(b"llrpc a#C0044003 4\n1\n23LLRPC b#2\nread c\n", false);
        let call = |name: &str, data: &[u8]| Command::Llrpc(name.into(), data.into());
        let expected = [call("a#C0044003", b"1\n23"), call("b#2", b""), read("c", "")];
        assert_eq!(commands, expected);
        assert!(rest.is_empty());
    }

    #[test]
    fn what_is_wrong_is_answered() {
        let said = |text: &str| match all(text.as_bytes(), true).0.remove(0) {
            Command::Hear(answer) | Command::Leave(answer) => String::from_utf8(answer).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(said("read\n"), "500 Wrong number of arguments\r\n");
        assert_eq!(said("checkread a b\n"), "500 Wrong number of arguments\r\n");
        assert_eq!(said("writedata a b\n"), "500 Syntax error in 'WRITEDATA'\r\n");
        assert_eq!(said("writedata a 7\n123"), "500 Not enough data\r\n");
        assert_eq!(said("readuntil a b\nc\n"), "500 Not enough data\r\n");
        assert_eq!(said("frob\n"), "501 Command 'FROB' unimplemented\r\n");
        assert_eq!(said("llrpc\n"), "500 Wrong number of arguments\r\n");
        assert_eq!(said("llrpc a#1 b\n"), "500 Syntax error in 'llrpc'\r\n");
        assert_eq!(said("llrpc a#1 4\n12"), "500 Not enough data\r\n");
        assert_eq!(said("quit\n"), "200 Goodbye!\r\n");
        assert_eq!(said("quit now\n"), "500 Bad command syntax\r\n200 Goodbye!\r\n");
        assert!(said("help\n").starts_with("200-Commands supported:\r\n200-READ handler"));
        assert!(said("help\n").ends_with("\r\n200 QUIT                    close connection\r\n"));
        let large = format!("writedata a {}\n", LONGEST + 1);
        assert_eq!(said(&large), "521 Data too large for handler 'a'\r\n");
        assert_eq!(said(&"x".repeat(LONGEST + 1)), "521 Command too long\r\n");
        assert_eq!(String::from_utf8(message(520, "a\tb\u{1}")).unwrap(), "520 a\\011b\\001\r\n");
    }
}
