//! The contents of the message by which a tenant's process learns its graph and its channels.

use super::Protection;
use castanet_io::control::remote::CallSocket;
use castanet_io::descriptors;
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// The bytes of the message that brings the descriptors.
const MESSAGE: &[u8] = b"castanet tenant 2";

/// The longest description, in bytes.
const LONGEST: u64 = 64 << 20;

/// A tenant's process, as its parent describes it to it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessDescription {
    /// The tenant's name.
    pub tenant: String,
    /// Its graph in the Click language, with ends of slot channels in the place of devices.
    pub graph: String,
    /// The names of its slot channels in that graph.
    pub channels: Vec<String>,
    /// Bytes of memory that it may use.
    pub memory: Option<u64>,
    /// Whether a control group limits its memory, so that the process need not limit its own.
    pub has_memory_cgroup: bool,
    /// Protections without which it must not run.
    pub require: Vec<Protection>,
    /// Milliseconds between two signs of life.
    pub interval: u64,
    /// Whether it tries what it must not be able to do, and ends, in the place of running the graph.
    pub probe: bool,
}

/// The most channels of a process: beside their ends, a message carries the description and the end of calls.
pub const MOST_CHANNELS: usize = descriptors::MOST - 2;

/// A description and the connections that came with it.
pub struct Inheritance {
    /// The description.
    pub description: ProcessDescription,
    /// This end of the connection by which handlers of the process are called.
    pub calls: CallSocket,
    /// This end of each channel, in the order of `channels`.
    pub connections: Vec<UnixStream>,
}

impl Inheritance {
    /// Sends a description and the child's ends of its channels.
    ///
    /// # Errors
    /// The process has gone, or there can be no memory file.
    pub fn send(&self, socket: &UnixStream) -> io::Result<()> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(rustix::fs::memfd_create("castanet-tenant", flags)?);
        file.write_all(&serde_json::to_vec(&self.description)?)?;
        file.rewind()?;
        let mut files = vec![file.as_fd(), self.calls.as_fd()];
        files.extend(self.connections.iter().map(AsFd::as_fd));
        descriptors::send(socket, MESSAGE, &files)
    }

    /// Receives them.
    ///
    /// # Errors
    /// The connection has ended, or brings something else.
    pub fn receive(socket: &UnixStream) -> io::Result<Inheritance> {
        let mut message = [0; MESSAGE.len()];
        let (len, files) = descriptors::receive(socket, &mut message, descriptors::MOST)?;
        let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
        let mut files = files.into_iter();
        let (true, Some(file), Some(calls)) =
            (message[..len] == *MESSAGE, files.next(), files.next())
        else {
            return Err(wrong("the parent has sent no description of a tenant"));
        };
        let mut text = Vec::new();
        File::from(file).take(LONGEST).read_to_end(&mut text)?;
        let description: ProcessDescription = serde_json::from_slice(&text)?;
        let connections: Vec<UnixStream> = files.map(UnixStream::from).collect();
        match connections.len() == description.channels.len() {
            true => Ok(Inheritance { description, calls: calls.into(), connections }),
            false => Err(wrong("there are not as many connections as channels")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_io::control::remote::RemoteCalls;
    use std::os::fd::OwnedFd;

    #[test]
    fn descriptions_cross_with_their_connections() {
        let (parent, child) = UnixStream::pair().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        let description = ProcessDescription {
            tenant: "red".into(),
            graph: "Idle -> Discard;".repeat(10_000),
            channels: vec!["eth1".into()],
            memory: Some(1 << 20),
            has_memory_cgroup: false,
            require: vec![Protection::Landlock],
            interval: 100,
            probe: false,
        };
        let (calls, their_calls) = RemoteCalls::pair().unwrap();
        let (description_sent, connections) = (description.clone(), vec![far]);
        let sent = Inheritance { description: description_sent, calls: their_calls, connections };
        sent.send(&parent).unwrap();
        let mut received = Inheritance::receive(&child).unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        calls.call(b"CHECKREAD list\r\n", until, |_| ()).unwrap();
        assert_eq!(received.calls.next_request().unwrap().unwrap().1, b"CHECKREAD list\r\n");
        assert_eq!(received.description, description);
        near.write_all(b"x").unwrap();
        let mut byte = [0];
        received.connections[0].read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
        let none: [std::os::fd::BorrowedFd<'_>; 0] = [];
        descriptors::send(&parent, MESSAGE, &none).unwrap();
        let error = Inheritance::receive(&child).err().unwrap();
        assert!(error.to_string().contains("no description"), "{error}");
        drop(OwnedFd::from(parent));
        assert!(Inheritance::receive(&child).is_err());
    }
}
