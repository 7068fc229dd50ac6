//! Requests to a router in another process, as that one sees them.

use crate::control::input::Input;
use crate::control::instance::RequestKind;
use crate::control::protocol::{self, Command, SYNTAX, SessionPolicy, message, plain_name};
use castanet_element::control::ControlContext;
use castanet_element::error::ArgError;

/// A request of the calling side.
pub struct RemoteRequest(Command);

impl RemoteRequest {
    /// The request of these bytes.
    pub fn parse(bytes: &[u8]) -> RemoteRequest {
        let mut input = Input::default();
        input.extend(bytes);
        let none = || Command::Reply(message(SYNTAX, "No command"));
        RemoteRequest(input.next(true).unwrap_or_else(none))
    }

    /// The request that it makes.
    pub fn kind(&self) -> RequestKind<'_> {
        RequestKind::of(&self.0)
    }

    /// The router's answer.
    pub fn answer(&self, cx: &mut dyn ControlContext) -> Vec<u8> {
        let policy = SessionPolicy { read_only: false, proxy: None, own: &|_| None };
        protocol::answer(&self.0, &policy, cx)
    }

    /// The answer to the read of a handler, with this value.
    pub fn answer_read(&self, text: Result<String, ArgError>) -> Vec<u8> {
        let handler = self.kind().handler().unwrap_or_default();
        protocol::read_answer(handler, text).unwrap_or_else(|answer| answer)
    }
}

/// The bytes by which a handler is read with a parameter.
pub fn read_request(handler: &str, param: &[u8]) -> Vec<u8> {
    with_data("READDATA", handler, param)
}

/// The bytes of a command with data.
fn with_data(name: &str, handler: &str, data: &[u8]) -> Vec<u8> {
    let line = format!("{name} {handler} {}\r\n", data.len());
    [line.as_bytes(), data].concat()
}

/// The bytes by which a command of a client is made, of another handler; `None` if it calls no handler, or if
/// the other side would understand the name as that of another one.
pub(crate) fn request_bytes(command: &Command, handler: &str) -> Option<Vec<u8>> {
    if plain_name(handler) != handler {
        return None;
    }
    Some(match command {
        Command::Read(_, param) => read_request(handler, param),
        Command::Write(_, value) => with_data("WRITEDATA", handler, value),
        Command::CheckRead(_) => format!("CHECKREAD {handler}\r\n").into_bytes(),
        Command::CheckWrite(_) => format!("CHECKWRITE {handler}\r\n").into_bytes(),
        Command::Llrpc(..) | Command::Reply(_) | Command::Close(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_cross_under_another_name() {
        let renamed = |command: &Command| {
            let bytes = request_bytes(command, "c.x").unwrap();
            RemoteRequest::parse(&bytes).0
        };
        let name = || "red/c.x".to_owned();
        let (own, data) = (|| "c.x".to_owned(), b"a\r\n\0b".to_vec());
        for (command, wanted) in [
            (Command::Read(name(), data.clone()), Command::Read(own(), data.clone())),
            (Command::Write(name(), data.clone()), Command::Write(own(), data)),
            (Command::CheckRead(name()), Command::CheckRead(own())),
            (Command::CheckWrite(name()), Command::CheckWrite(own())),
        ] {
            assert_eq!(renamed(&command), wanted);
        }
        assert_eq!(request_bytes(&Command::Llrpc(name(), Vec::new()), "c.x"), None);
        for another in ["0.stop", ".stop", "0.c.config", "..c.config"] {
            assert_eq!(request_bytes(&Command::Write(name(), Vec::new()), another), None);
        }
        assert!(matches!(RemoteRequest::parse(b"").0, Command::Reply(_)));
    }
}
