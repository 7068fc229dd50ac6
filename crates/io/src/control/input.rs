//! Parser of a client's commands: lines, and the data that follow some of them.
//!
//! Each byte is examined once, in however small pieces the client sends it.

use super::protocol::{Command, OK, SYNTAX, TOO_BIG, UNIMPLEMENTED, message, messages};

/// The longest command in bytes, its data included.
pub(crate) const MAX_COMMAND: usize = 16 << 20;
/// The capacity in bytes that an empty buffer keeps, and the longest line with a terminator for
/// data.
const SMALL_BUFFER: usize = 4096;

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

/// The bytes that a client has sent and that belong to no complete command yet.
#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    /// The number of bytes that have been searched for the end of a line.
    searched: usize,
    /// The offset at which the line that is being searched begins, after whole lines of data.
    start: usize,
    /// The command whose data come first, if its line has been consumed.
    head: Option<Head>,
    /// The previous line ended with CR: an LF that comes next belongs to it.
    after_cr: bool,
    /// The client has sent a valid command: it knows the protocol, so that an invalid line is a
    /// mistake.
    knows_protocol: bool,
}

/// A command without its data.
struct Head {
    name: String,
    handler: String,
    data: DataEnd,
}

/// The end of a command's data.
enum DataEnd {
    /// After this number of bytes.
    Count(usize),
    /// At a line with this text; blanks at the line's end do not count.
    Line(String),
}

/// A parsed line.
enum Line {
    Empty,
    Command(Command),
    /// A command whose data follow.
    Head(Head),
    /// Not a command; the server sends this answer.
    Invalid(Vec<u8>),
}

impl Input {
    /// Returns the number of bytes that belong to no complete command yet.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends bytes that the client has sent.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Discards all bytes of incomplete commands.
    pub(crate) fn clear(&mut self) {
        *self = Input { knows_protocol: self.knows_protocol, ..Input::default() };
    }

    /// Takes the next command; `None` if it is incomplete. With `closed`, the client sends no more
    /// bytes.
    pub(crate) fn next(&mut self, closed: bool) -> Option<Command> {
        loop {
            if let Some(head) = self.head.take() {
                match self.data(&head.data, closed) {
                    Some(data) => return Some(call(&head.name, head.handler, data)),
                    None if closed => {
                        // The data that did arrive are parsed as commands, as in Click.
                        (self.searched, self.start) = (0, 0);
                        return Some(Command::Reply(message(SYNTAX, "Not enough data")));
                    }
                    None => self.head = Some(head),
                }
            } else if let Some(line) = self.line(closed) {
                match self.parse(&line) {
                    Line::Empty => {}
                    Line::Head(head) => self.head = Some(head),
                    Line::Command(command) => return Some(command),
                    Line::Invalid(answer) => return Some(Command::Reply(answer)),
                }
                continue;
            }
            if self.bytes.len() > MAX_COMMAND {
                self.clear();
                return Some(Command::Close(message(TOO_BIG, "Command too long")));
            }
            return None;
        }
    }

    /// Takes the first line if it is complete. Lines end with CR, LF or both.
    fn line(&mut self, closed: bool) -> Option<String> {
        self.skip_lf();
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let (end, next) = match self.bytes[self.searched..].iter().position(is_end) {
            Some(found) => self.line_bounds(self.searched + found),
            None if closed && (1..=MAX_COMMAND).contains(&self.bytes.len()) => {
                (self.bytes.len(), self.bytes.len())
            }
            None => {
                self.searched = self.bytes.len();
                return None;
            }
        };
        let line = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
        self.take(next);
        Some(line)
    }

    /// Returns the end of the line that ends at `end`, and the beginning of the next one.
    fn line_bounds(&mut self, end: usize) -> (usize, usize) {
        let both = self.bytes[end..].starts_with(b"\r\n");
        let next = end + 1 + usize::from(both);
        self.after_cr = self.bytes[end] == b'\r' && next == self.bytes.len() && !both;
        (end, next)
    }

    /// Removes an LF from the front that belongs to the previous line.
    fn skip_lf(&mut self) {
        if let Some(&first) = self.bytes.first()
            && std::mem::take(&mut self.after_cr)
            && first == b'\n'
        {
            self.take(1);
        }
    }

    /// Removes bytes from the front.
    fn take(&mut self, count: usize) {
        self.bytes.drain(..count);
        if self.bytes.len() < SMALL_BUFFER {
            self.bytes.shrink_to(SMALL_BUFFER);
        }
        (self.searched, self.start) = (0, 0);
    }

    /// Takes a command's data if they are complete.
    fn data(&mut self, data_end: &DataEnd, closed: bool) -> Option<Vec<u8>> {
        self.skip_lf();
        match data_end {
            DataEnd::Count(count) => {
                let data = self.bytes.get(..*count)?.to_vec();
                self.take(*count);
                Some(data)
            }
            DataEnd::Line(end) => self.data_to(end.as_bytes(), closed),
        }
    }

    /// Takes data up to a line that is `end`.
    fn data_to(&mut self, end: &[u8], closed: bool) -> Option<Vec<u8>> {
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        loop {
            let Some(found) = self.bytes[self.searched..].iter().position(is_end) else {
                self.searched = self.bytes.len();
                return None;
            };
            self.searched += found;
            let (found, next) = self.line_bounds(self.searched);
            if self.bytes[self.start..found].trim_ascii_end() == end {
                let data = self.bytes[..self.start].to_vec();
                self.take(next);
                return Some(data);
            }
            if std::mem::take(&mut self.after_cr) && !closed {
                // The LF of this line end may still arrive.
                return None;
            }
            (self.searched, self.start) = (next, next);
        }
    }

    /// Parses a line. An invalid line before the first valid command closes the connection, as does
    /// a line of HTTP: a web page can make a browser send requests to any port of the machine.
    fn parse(&mut self, line: &str) -> Line {
        match parse(line) {
            Line::Invalid(answer) if !self.knows_protocol || is_http(line) => {
                Line::Command(Command::Close(answer))
            }
            Line::Empty => Line::Empty,
            _ if is_request(line) => {
                let text = "This is no HTTP server";
                Line::Command(Command::Close(message(UNIMPLEMENTED, text)))
            }
            parsed => {
                self.knows_protocol = true;
                parsed
            }
        }
    }
}

/// Returns whether a line is the first of an HTTP request, as `GET / HTTP/1.1`.
fn is_request(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace().skip(2);
    words.next().is_some_and(|word| word.starts_with("HTTP/")) && words.next().is_none()
}

/// Returns whether a line belongs to HTTP: a request or a header, as `Host: localhost`.
fn is_http(line: &str) -> bool {
    let name = line.split_once(':').map_or("", |(name, _)| name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    is_request(line) || !name.is_empty() && name.chars().all(is_name)
}

fn parse(line: &str) -> Line {
    let mut words = line.split_ascii_whitespace();
    let Some(first) = words.next() else { return Line::Empty };
    let name = first.to_ascii_uppercase();
    let words: Vec<&str> = words.collect();
    Line::Command(match (name.as_str(), words.as_slice()) {
        ("READ" | "GET" | "WRITE" | "SET", [handler, rest @ ..]) => {
            let data = from_word(line, rest).as_bytes().to_vec();
            call(&name, (*handler).to_owned(), data)
        }
        ("READDATA" | "WRITEDATA" | "SETDATA", [handler, count]) => {
            return with_data(&name, handler, count);
        }
        ("READUNTIL" | "WRITEUNTIL", _) if line.len() > SMALL_BUFFER => {
            Command::Close(message(TOO_BIG, "Terminator too long"))
        }
        ("READUNTIL" | "WRITEUNTIL", [handler, rest @ ..]) => {
            let data = DataEnd::Line(from_word(line, rest).to_owned());
            return Line::Head(Head { name, handler: (*handler).to_owned(), data });
        }
        ("CHECKREAD", [handler]) => Command::CheckRead((*handler).to_owned()),
        ("CHECKWRITE", [handler]) => Command::CheckWrite((*handler).to_owned()),
        ("LLRPC", [llrpc]) => Command::Llrpc((*llrpc).to_owned(), Vec::new()),
        ("LLRPC", [llrpc, count]) => return with_data("llrpc", llrpc, count),
        ("CLOSE" | "QUIT", rest) => {
            let wrong =
                if rest.is_empty() { Vec::new() } else { message(SYNTAX, "Bad command syntax") };
            Command::Close([wrong, message(OK, "Goodbye!")].concat())
        }
        ("HELP", _) => Command::Reply(messages(OK, HELP)),
        (
            "READ" | "GET" | "WRITE" | "SET" | "READDATA" | "WRITEDATA" | "SETDATA" | "READUNTIL"
            | "WRITEUNTIL" | "CHECKREAD" | "CHECKWRITE" | "LLRPC",
            _,
        ) => Command::Reply(message(SYNTAX, "Wrong number of arguments")),
        _ => {
            let text = format!("Command '{name}' unimplemented");
            return Line::Invalid(message(UNIMPLEMENTED, &text));
        }
    })
}

/// Returns the line from the first of these words on, without blanks at its end.
fn from_word<'a>(line: &'a str, words: &[&str]) -> &'a str {
    let start =
        words.first().map_or(line.len(), |word| word.as_ptr().addr() - line.as_ptr().addr());
    line[start..].trim_end_matches(|c: char| c.is_ascii_whitespace())
}

fn call(name: &str, handler: String, data: Vec<u8>) -> Command {
    match name {
        "llrpc" => Command::Llrpc(handler, data),
        name if name.starts_with(['R', 'G']) => Command::Read(handler, data),
        _ => Command::Write(handler, data),
    }
}

fn with_data(name: &str, handler: &str, count: &str) -> Line {
    let Ok(count) = count.parse::<usize>() else {
        let text = format!("Syntax error in '{name}'");
        return Line::Command(Command::Reply(message(SYNTAX, &text)));
    };
    if count > MAX_COMMAND {
        let text = format!("Data too large for handler '{handler}'");
        return Line::Command(Command::Close(message(TOO_BIG, &text)));
    }
    let (name, handler) = (name.to_owned(), handler.to_owned());
    Line::Head(Head { name, handler, data: DataEnd::Count(count) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands of a text, and the bytes that are left.
    fn all(text: &[u8], closed: bool) -> (Vec<Command>, Vec<u8>) {
        let mut input = Input::default();
        input.extend(text);
        let mut commands = Vec::new();
        while let Some(command) = input.next(closed) {
            commands.push(command);
        }
        (commands, input.bytes)
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
        // Single bytes give the same commands.
        assert_eq!(by_bytes(text), expected);
    }

    /// All commands of a text that arrives byte by byte.
    fn by_bytes(text: &[u8]) -> Vec<Command> {
        let (mut input, mut commands) = (Input::default(), Vec::new());
        for byte in text {
            input.extend(&[*byte]);
            commands.extend(input.next(false));
        }
        commands
    }

    #[test]
    fn lines_may_be_cut_between_their_two_ends() {
        let text = b"WRITEDATA a.b 2\r\n12READUNTIL c.d\r\nx\r\n\r\ny\r\nread e\r\n";
        let expected = [write("a.b", "12"), read("c.d", "x\r\n")];
        assert_eq!(all(text, false).0[..2], expected);
        assert_eq!(by_bytes(text)[..2], expected);
    }

    /// If the parser searched all earlier bytes again for each piece, this would take hours.
    #[test]
    fn long_commands_may_come_in_small_pieces() {
        for (begin, piece) in [
            ("", &[b'x'; 64]),
            ("READUNTIL a.b END\n", &[b'x'; 64]),
            ("READUNTIL a.b END\n", &[b'\n'; 64]),
            ("WRITEDATA a.b 16000000\n", &[b'x'; 64]),
        ] {
            let mut input = Input::default();
            input.extend(begin.as_bytes());
            for _ in 0..16_000_000 / 64 - 1 {
                input.extend(piece);
                assert_eq!(input.next(false), None);
            }
        }
    }

    #[test]
    fn lines_of_http_end_the_connection() {
        let left = |text: &str| {
            let (mut commands, rest) = all(text.as_bytes(), false);
            assert!(matches!(commands.pop(), Some(Command::Close(_))), "{text}");
            (commands.len(), rest.len() < text.len())
        };
        assert_eq!(left("POST / HTTP/1.1\r\n"), (0, true));
        assert_eq!(left("GET /c.count HTTP/1.1\r\n"), (0, true));
        assert_eq!(left("{\"a\": 1}\n"), (0, true));
        // A client that has sent a valid command is not disconnected at once.
        assert_eq!(left("read c\nraed d\nread e\nHost: localhost\n"), (3, true));
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
    fn bad_commands_get_an_error_answer() {
        let said = |text: &str| match all(text.as_bytes(), true).0.remove(0) {
            Command::Reply(answer) | Command::Close(answer) => String::from_utf8(answer).unwrap(),
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
        let large = format!("writedata a {}\n", MAX_COMMAND + 1);
        assert_eq!(said(&large), "521 Data too large for handler 'a'\r\n");
        assert_eq!(said(&"x".repeat(MAX_COMMAND + 1)), "521 Command too long\r\n");
        assert_eq!(String::from_utf8(message(520, "a\tb\u{1}")).unwrap(), "520 a\\011b\\001\r\n");
    }
}
