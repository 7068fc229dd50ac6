//! A connection of two instances that have the same key: authenticated, encrypted, with forward secrecy.
//!
//! The connection is TCP with the Noise Protocol Framework, pattern `NNpsk0`: the key proves each side
//! to the other, and no recording can be read with a key that is found out later. A Noise message has its
//! length before it, in two bytes, the higher one first. The messages of the protocol are `postcard`, with their length in four bytes
//! before each, and go over any number of Noise messages.

use super::key::MigrationKey;
use crate::load::io_error_text;
use serde::Serialize;
use serde::de::DeserializeOwned;
use snow::{Builder, HandshakeState, TransportState};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The protocol of the handshake.
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Both sides mean the same protocol and its version.
const PROLOGUE: &[u8] = b"castanet tenant migration 1";
/// Bytes of a Noise message, and of the tag in it.
const NOISE_MESSAGE: usize = 65_535;
const TAG: usize = 16;
/// Bytes of a message.
const MOST: usize = 64 << 20;
/// Time in which a connection and its handshake are made.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time in which a message has to come, or to go.
const PATIENCE: Duration = Duration::from_secs(30);

/// The connection.
pub(super) struct SecureChannel {
    stream: TcpStream,
    noise: TransportState,
    /// Bytes that were sent and received.
    pub(super) bytes: u64,
    /// The bytes that have come of the next message.
    received: Vec<u8>,
}

impl SecureChannel {
    /// Connects to an instance that listens at an address such as `192.0.2.1:4790`.
    ///
    /// # Errors
    /// No instance is there, or it has another key.
    pub(super) fn connect(to: &str, key: &MigrationKey) -> Result<SecureChannel, String> {
        let wants = || format!("`{to}` is no address such as 192.0.2.1:4790");
        let addresses = to.to_socket_addrs().map_err(|_| wants())?;
        let mut failed = wants();
        for address in addresses {
            match TcpStream::connect_timeout(&address, HANDSHAKE) {
                Ok(stream) => return SecureChannel::initiate(stream, key),
                Err(error) => failed = format!("{to}: {}", io_error_text(&error)),
            }
        }
        Err(failed)
    }

    fn initiate(stream: TcpStream, key: &MigrationKey) -> Result<SecureChannel, String> {
        let other = "the other instance has another key, or is none of this version";
        let mut noise = handshake(key, |it| it.build_initiator())?;
        begin(&stream).map_err(|error| io_error_text(&error))?;
        let mut buffer = vec![0; NOISE_MESSAGE];
        let length = noise.write_message(&[], &mut buffer).map_err(|it| it.to_string())?;
        write_frame(&stream, &buffer[..length]).map_err(|error| io_error_text(&error))?;
        let answer = read_frame(&stream).map_err(|_| other.to_owned())?;
        noise.read_message(&answer, &mut buffer).map_err(|_| other.to_owned())?;
        SecureChannel::established(stream, noise)
    }

    /// Takes a connection of another instance.
    ///
    /// # Errors
    /// The other side has another key, or is none.
    pub(super) fn accept(stream: TcpStream, key: &MigrationKey) -> Result<SecureChannel, String> {
        let mut noise = handshake(key, |it| it.build_responder())?;
        begin(&stream).map_err(|error| io_error_text(&error))?;
        let mut buffer = vec![0; NOISE_MESSAGE];
        let first = read_frame(&stream).map_err(|error| io_error_text(&error))?;
        let wrong = |_| "it has another key, or is no instance of this version".to_owned();
        noise.read_message(&first, &mut buffer).map_err(wrong)?;
        let length = noise.write_message(&[], &mut buffer).map_err(|it| it.to_string())?;
        write_frame(&stream, &buffer[..length]).map_err(|error| io_error_text(&error))?;
        SecureChannel::established(stream, noise)
    }

    fn established(stream: TcpStream, noise: HandshakeState) -> Result<SecureChannel, String> {
        let noise = noise.into_transport_mode().map_err(|error| error.to_string())?;
        let limited = stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        limited.map_err(|error| io_error_text(&error))?;
        Ok(SecureChannel { stream, noise, bytes: 0, received: Vec::new() })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The connection is broken, or takes nothing for half a minute.
    pub(super) fn send<T: Serialize>(&mut self, message: &T) -> Result<(), String> {
        let body = postcard::to_allocvec(message).map_err(|error| error.to_string())?;
        let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MOST);
        let length = length.ok_or("a message is too long")?;
        let mut plain = length.to_be_bytes().to_vec();
        plain.extend(body);
        let mut sealed = vec![0; NOISE_MESSAGE];
        for part in plain.chunks(NOISE_MESSAGE - TAG) {
            let length = self.noise.write_message(part, &mut sealed);
            let length = length.map_err(|error| error.to_string())?;
            self.bytes += length as u64;
            write_frame(&self.stream, &sealed[..length]).map_err(|error| broken(&error))?;
        }
        Ok(())
    }

    /// Receives a message.
    ///
    /// # Errors
    /// The connection is broken, nothing comes for half a minute, or what comes is no message.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        let mut plain = vec![0; NOISE_MESSAGE];
        loop {
            if let Some((head, rest)) = self.received.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*head) as usize;
                if length > MOST {
                    return Err("a message is too long".to_owned());
                }
                if let Some(body) = rest.get(..length) {
                    let message = postcard::from_bytes(body)
                        .map_err(|_| "the other instance is of another version".to_owned());
                    self.received.drain(..4 + length);
                    return message;
                }
            }
            let sealed = read_frame(&self.stream).map_err(|error| broken(&error))?;
            self.bytes += sealed.len() as u64;
            let length = self.noise.read_message(&sealed, &mut plain);
            let length = length.map_err(|_| "the connection was tampered with".to_owned())?;
            self.received.extend(&plain[..length]);
        }
    }
}

fn handshake(
    key: &MigrationKey,
    build: impl FnOnce(Builder<'_>) -> Result<HandshakeState, snow::Error>,
) -> Result<HandshakeState, String> {
    let made = PATTERN
        .parse()
        .and_then(|pattern| build(Builder::new(pattern).prologue(PROLOGUE)?.psk(0, key.bytes())?));
    made.map_err(|error| error.to_string())
}

fn begin(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(HANDSHAKE))?;
    stream.set_write_timeout(Some(HANDSHAKE))
}

fn write_frame(mut stream: &TcpStream, frame: &[u8]) -> io::Result<()> {
    // No frame is longer than a Noise message.
    let length = u16::try_from(frame.len()).map_err(|_| ErrorKind::InvalidInput)?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(frame);
    stream.write_all(&bytes)
}

fn read_frame(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}

/// Words about a connection that cannot go on.
fn broken(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "the other instance has closed the connection".to_owned(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("the other instance did nothing for {} s", PATIENCE.as_secs())
        }
        _ => io_error_text(error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // In a test it is an assertion.
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn key(name: &str) -> MigrationKey {
        let path = std::env::temp_dir().join(format!("castanet-{name}-{}", std::process::id()));
        _ = std::fs::remove_file(&path);
        MigrationKey::make(&path).unwrap();
        let key = MigrationKey::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        key
    }

    #[test]
    fn messages_longer_than_a_noise_message_come_whole() {
        let (listener, key) = (TcpListener::bind("127.0.0.1:0").unwrap(), key("channel"));
        let (to, theirs) = (listener.local_addr().unwrap().to_string(), key.clone());
        let other = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut channel = SecureChannel::accept(stream, &theirs).unwrap();
            let words: Vec<String> = channel.receive().unwrap();
            let second: u32 = channel.receive().unwrap();
            channel.send(&(words.len() as u32 + second)).unwrap();
        });
        let mut channel = SecureChannel::connect(&to, &key).unwrap();
        channel.send(&vec!["a word".to_owned(); 30_000]).unwrap();
        channel.send(&12u32).unwrap();
        assert_eq!(channel.receive::<u32>().unwrap(), 30_012);
        other.join().unwrap();
    }

    #[test]
    fn another_key_opens_nothing() {
        let (listener, ours, theirs) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), key("ours"), key("theirs"));
        let to = listener.local_addr().unwrap().to_string();
        let other = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            SecureChannel::accept(stream, &theirs).err()
        });
        let error = SecureChannel::connect(&to, &ours).err().unwrap();
        assert!(error.contains("another key"), "{error}");
        assert!(other.join().unwrap().unwrap().contains("another key"));
    }
}
