//! Calls of a router in another process that wait for their answers.

use super::socket::{CallPacket, CallSocket, HEAD, MOST_ANSWER, MOST_REQUEST, PIECE};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The most calls that wait at a time.
const MOST_CALLS: usize = 16;

/// The end of a call.
#[derive(PartialEq, Eq, Debug)]
pub enum CallEnd {
    /// The process has sent these bytes, which may be anything.
    Answer(Vec<u8>),
    /// The answer has more than [`MOST_ANSWER`] bytes.
    TooLong,
    /// The connection has ended.
    Gone,
}

/// The reason why a call is not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallRefusal {
    /// The request has more than [`MOST_REQUEST`] bytes.
    TooLong,
    /// As many calls as may wait do so, or the process takes no further ones.
    Busy,
    /// The connection has ended.
    Gone,
}

impl fmt::Display for CallRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallRefusal::TooLong => write!(f, "takes requests of up to {MOST_REQUEST} bytes"),
            CallRefusal::Busy => f.write_str("does not answer: other requests wait already"),
            CallRefusal::Gone => f.write_str("takes no requests any more"),
        }
    }
}

/// Called with the end of a call, on the thread that takes the answers; it must not block.
type Recipient = Box<dyn FnOnce(CallEnd) + Send>;

/// A call that waits for its answer.
struct Call {
    number: u64,
    /// The time after which nothing waits for it any more.
    until: Instant,
    /// The pieces of its answer.
    answer: Vec<u8>,
    recipient: Recipient,
}

/// The calling side of a connection. One thread takes answers; any thread makes calls.
pub struct RemoteCalls {
    socket: CallSocket,
    waiting: Mutex<WaitingCalls>,
}

#[derive(Default)]
struct WaitingCalls {
    calls: Vec<Call>,
    next_number: u64,
    has_ended: bool,
}

impl RemoteCalls {
    /// A connection; also returns the end of the process that is called.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn pair() -> io::Result<(RemoteCalls, CallSocket)> {
        let (socket, theirs) = CallSocket::pair()?;
        Ok((RemoteCalls { socket, waiting: Mutex::default() }, theirs))
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingCalls> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request, without waiting. `recipient` is called with the answer; after `until`, perhaps
    /// not any more.
    ///
    /// # Errors
    /// The call is not made, and `recipient` is not called.
    pub fn call(
        &self,
        request: &[u8],
        until: Instant,
        recipient: impl FnOnce(CallEnd) + Send + 'static,
    ) -> Result<(), CallRefusal> {
        if request.len() > MOST_REQUEST {
            return Err(CallRefusal::TooLong);
        }
        let mut waiting = self.waiting();
        if waiting.has_ended {
            return Err(CallRefusal::Gone);
        }
        waiting.drop_late();
        if waiting.calls.len() >= MOST_CALLS {
            return Err(CallRefusal::Busy);
        }
        let number = waiting.next_number;
        let packet = CallPacket { number, is_last: true, bytes: request };
        let sent = self.socket.send(packet, SendFlags::DONTWAIT);
        sent.map_err(|error| CallRefusal::of(&error))?;
        waiting.next_number += 1;
        let recipient = Box::new(recipient);
        waiting.calls.push(Call { number, until, answer: Vec::new(), recipient });
        Ok(())
    }

    /// Takes a packet of the process, without waiting; returns whether the connection has not ended.
    /// Packets that are no piece of the answer to a call that waits are dropped.
    pub fn take(&self) -> bool {
        let mut room = [0; HEAD + PIECE];
        let len = match self.socket.receive(&mut room, RecvFlags::DONTWAIT) {
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return true;
            }
            // A packet without bytes looks as the end does, and no process of this program sends one.
            Ok(0) | Err(_) => {
                self.end();
                return false;
            }
            Ok(len) => len,
        };
        let ended = CallPacket::parse(&room[..len]).and_then(|packet| self.waiting().add(packet));
        if let Some((recipient, end)) = ended {
            recipient(end);
        }
        true
    }

    /// Forgets the calls for which nothing waits any more, with the pieces of their answers.
    pub fn drop_late(&self) {
        self.waiting().drop_late();
    }

    /// Ends all calls: there are no further answers.
    pub fn end(&self) {
        let mut waiting = self.waiting();
        waiting.has_ended = true;
        let calls = std::mem::take(&mut waiting.calls);
        drop(waiting);
        calls.into_iter().for_each(|call| (call.recipient)(CallEnd::Gone));
    }
}

impl CallRefusal {
    /// That of a request that cannot be sent.
    fn of(error: &io::Error) -> CallRefusal {
        match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected => {
                CallRefusal::Gone
            }
            _ if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) => {
                CallRefusal::TooLong
            }
            _ => CallRefusal::Busy,
        }
    }
}

impl WaitingCalls {
    fn drop_late(&mut self) {
        let now = Instant::now();
        self.calls.retain(|call| call.until > now);
    }

    /// Adds a piece to the answer of its call; returns the call's end, if this is it.
    fn add(&mut self, packet: CallPacket<'_>) -> Option<(Recipient, CallEnd)> {
        let at = self.calls.iter().position(|call| call.number == packet.number)?;
        let call = &mut self.calls[at];
        let is_too_long = call.answer.len() + packet.bytes.len() > MOST_ANSWER;
        if !is_too_long {
            call.answer.extend_from_slice(packet.bytes);
            if !packet.is_last {
                return None;
            }
        }
        let Call { answer, recipient, .. } = self.calls.swap_remove(at);
        let end = if is_too_long { CallEnd::TooLong } else { CallEnd::Answer(answer) };
        Some((recipient, end))
    }
}

impl Drop for RemoteCalls {
    fn drop(&mut self) {
        self.end();
    }
}

impl AsFd for RemoteCalls {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn call(calls: &RemoteCalls, request: &[u8]) -> Receiver<CallEnd> {
        let (sender, receiver) = channel();
        calls.call(request, later(), move |end| _ = sender.send(end)).unwrap();
        receiver
    }

    #[test]
    fn answers_find_their_calls_in_any_order_and_in_pieces() {
        let (calls, process) = RemoteCalls::pair().unwrap();
        let (first, second) = (call(&calls, b"one"), call(&calls, b"two"));
        let (one, request) = process.next_request().unwrap().unwrap();
        assert_eq!(request, b"one");
        let (two, _) = process.next_request().unwrap().unwrap();
        process.answer(two, b"2").unwrap();
        // An answer to a call that was not made, one of no call, and a second one to the same.
        process.answer(two + 1, b"early").unwrap();
        process.answer(two, b"again").unwrap();
        let long = vec![b'1'; 3 * PIECE + 1];
        process.answer(one, &long).unwrap();
        for _ in 0..7 {
            assert!(calls.take());
        }
        assert_eq!(second.try_recv().unwrap(), CallEnd::Answer(b"2".to_vec()));
        assert_eq!(first.try_recv().unwrap(), CallEnd::Answer(long));
        // The number of the early answer is now that of a call, which has none yet.
        let third = call(&calls, b"three");
        assert!(calls.take() && third.try_recv().is_err());
        drop(process);
        assert!(!calls.take());
        assert_eq!(third.try_recv().unwrap(), CallEnd::Gone);
        assert_eq!(calls.call(b"", later(), |_| ()), Err(CallRefusal::Gone));
    }

    #[test]
    fn endless_answers_end() {
        let (calls, process) = RemoteCalls::pair().unwrap();
        let endless = call(&calls, b"");
        let piece = CallPacket { number: 0, is_last: false, bytes: &[b'x'; PIECE] };
        for _ in 0..=MOST_ANSWER / PIECE {
            process.send(piece, SendFlags::empty()).unwrap();
            assert!(calls.take());
        }
        assert_eq!(endless.try_recv().unwrap(), CallEnd::TooLong);
        // An honest process says so itself.
        let long = call(&calls, b"");
        process.answer(1, &vec![0; MOST_ANSWER + 1]).unwrap();
        assert!(calls.take());
        let CallEnd::Answer(text) = long.try_recv().unwrap() else { panic!() };
        assert_eq!(text, b"590 the answer has 1048577 bytes, of 1048576 allowed\r\n");
    }

    #[test]
    fn a_process_that_takes_nothing_costs_few_calls() {
        let (calls, process) = RemoteCalls::pair().unwrap();
        let _waiting: Vec<_> = (0..MOST_CALLS).map(|_| call(&calls, b"x")).collect();
        assert_eq!(calls.call(b"x", later(), |_| ()), Err(CallRefusal::Busy));
        let too_long = vec![0; MOST_REQUEST + 1];
        assert_eq!(calls.call(&too_long, later(), |_| ()), Err(CallRefusal::TooLong));
        // Calls for which nothing waits any more make room, until the socket is full.
        let (calls, over) = (RemoteCalls::pair().unwrap(), Instant::now());
        let request = vec![0; MOST_REQUEST];
        let made = (0..1000).take_while(|_| calls.0.call(&request, over, |_| ()).is_ok()).count();
        assert!((1..100).contains(&made), "{made}");
        drop(process);
    }

    #[test]
    fn garbage_ends_no_call() {
        let (calls, process) = RemoteCalls::pair().unwrap();
        let waits = call(&calls, b"x");
        let raw = |bytes: &[u8]| rustix::net::send(&process, bytes, SendFlags::empty()).unwrap();
        for garbage in [b"x".as_slice(), &[0; HEAD - 1], &[2; HEAD], &[7; 2 * PIECE]] {
            raw(garbage);
            assert!(calls.take());
        }
        assert!(waits.try_recv().is_err());
        process.answer(0, b"y").unwrap();
        assert!(calls.take());
        assert_eq!(waits.try_recv().unwrap(), CallEnd::Answer(b"y".to_vec()));
        raw(b"");
        assert!(!calls.take());
    }
}
