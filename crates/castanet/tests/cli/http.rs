//! A client that speaks HTTP word by word, to say wrong ones, too.

use crate::control::PATIENCE;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The answer to a request.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The line of the status, and the headers.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Asks for a page.
pub(crate) fn get(address: SocketAddr, path: &str, headers: &[&str]) -> Reply {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    ask(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n"),
    )
}

/// Sends a request, and receives until the other side closes.
pub(crate) fn ask(address: SocketAddr, request: &str) -> Reply {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {head}"));
    Reply { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// A connection whose reads end.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a body of JSON to a path.
pub(crate) fn post(address: SocketAddr, path: &str, headers: &[&str], body: &str) -> Reply {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    ask(
        address,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\
             {headers}\r\n{body}"
        ),
    )
}
