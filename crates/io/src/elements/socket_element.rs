//! The state and functions of elements that send and receive by sockets.

use super::device_slot::DeviceSlot;
use super::duplex::DuplexDevice;
use super::metrics;
use super::tx_queue::{Room, TxQueue};
use crate::device::Device;
use crate::socket::{SocketConfig, SocketDevice, errno_text};
use castanet_element::prelude::*;

/// The packets that may wait until the socket takes them; the worker blocks while more do.
const ROOM: Room = Room { limit: 1024, blocking: true };

/// The exit of received packets, and the reasons to drop packets to be sent.
#[derive(Fate)]
pub enum SocketExit {
    /// Packets that were received.
    Packet,
    /// Packets to be sent while the socket has no peer.
    #[drop]
    NoPeer,
    /// Packets that the socket refused, as those that are too long for a datagram.
    #[drop]
    Refused,
    /// Packets that the socket had no room for. Send at a lower rate, or raise SNDBUF.
    #[drop]
    Full,
}

/// The open socket, and the packets that wait for it.
#[derive(Default, Local)]
#[local(methods)]
pub struct SocketState {
    link: DeviceSlot<SocketDevice>,
    waiting: TxQueue,
}

#[handlers]
impl SocketState {
    /// Packets received since the last reset.
    #[read]
    #[metric(metrics::RECEIVED_PACKETS)]
    fn packets(&self) -> u64 {
        self.link.since(|it| it.received)
    }

    /// Packets sent since the last reset.
    #[read]
    #[metric(metrics::SENT_PACKETS)]
    fn sent(&self) -> u64 {
        self.link.since(|it| it.sent)
    }

    /// The socket's local port; empty if it has none.
    #[read]
    fn port(&self) -> String {
        let port = self.link.get().and_then(SocketDevice::port);
        port.map_or_else(String::new, |port| port.to_string())
    }

    /// A description of the socket.
    #[read]
    fn device(&self) -> String {
        self.link.describe()
    }

    /// Accepts or rejects an address, as `1.2.3.4 true`; the gate of ALLOW and DENY writes
    /// this handler.
    #[write]
    fn judged(&mut self, verdict: &str) -> Result<(), ArgError> {
        let (address, is_allowed) = verdict.trim().split_once(' ').unwrap_or((verdict, ""));
        let (Ok(address), Ok(is_allowed)) = (address.parse(), is_allowed.trim().parse()) else {
            return Err(ArgError::new("syntax error").help("such as `1.2.3.4 true`"));
        };
        if let Some(link) = self.link.get_mut() {
            link.decide(address, is_allowed);
        }
        Ok(())
    }

    /// Resets the counts to zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.link.reset();
        Ok(())
    }
}

/// The configuration of an element's socket.
pub struct SocketCore {
    /// The name and class of the element, for messages.
    pub(super) label: String,
    /// The name of the element.
    pub(super) name: String,
    pub(super) config: SocketConfig,
    /// Whether to write a line about each client that connects or disconnects.
    pub(super) verbose: bool,
    /// Checks a received packet; whether it may be emitted.
    pub(super) fit: fn(&mut Packet) -> bool,
}

impl DuplexDevice for SocketCore {
    type State = SocketState;
    type Exit = SocketExit;
    const SHARED: bool = true;

    fn open(&self, local: &mut SocketState, cx: &mut Cx) -> Result<(), ArgError> {
        let link = SocketDevice::open(self.config.clone())
            .map_err(|(step, why)| ArgError::new(format!("{step}: {}", errno_text(why))))?;
        local.link.set(link);
        self.report_clients(local, cx);
        Ok(())
    }

    /// Emits up to `n` received packets; drops those that `fit` rejects.
    fn receive(&self, local: &mut SocketState, n: usize, cx: &mut Cx) -> NextRun {
        let Some(link) = local.link.get_mut() else { return NextRun::Done };
        let mut batch = Batch::new();
        if let Err(error) = link.receive(cx.pool(), &mut batch, n) {
            cx.chatter(&format!("{}: {error}", self.label));
        }
        for address in link.queries() {
            cx.call(&format!("{}.judge", self.name), &address.to_string());
        }
        let next = match (batch.is_empty(), link.fd()) {
            (false, _) => NextRun::Again,
            (true, Some(fd)) => NextRun::Readable(fd),
            (true, None) => NextRun::Done,
        };
        self.report_clients(local, cx);
        cx.count_received(batch.len());
        for mut packet in batch.drain() {
            let fate =
                if (self.fit)(&mut packet) { SocketExit::Packet } else { SocketExit::Refused };
            cx.emit(fate, packet);
        }
        next
    }

    /// Sends packets; the worker blocks while a slow socket has no room.
    fn send(&self, local: &mut SocketState, batch: Batch, cx: &mut Cx) {
        let Some(link) = local.link.get_mut().filter(|link| link.has_peer()) else {
            local.waiting.discard(SocketExit::NoPeer, cx);
            cx.emit_batch(SocketExit::NoPeer, batch);
            return;
        };
        let exits = (SocketExit::Refused, SocketExit::Full);
        let outcome = local.waiting.send(link, batch, ROOM, exits, cx);
        if let Some(error) = outcome.error {
            cx.chatter(&format!("{}: {error}", self.label));
        }
        self.report_clients(local, cx);
    }

    fn held(local: &SocketState) -> usize {
        local.waiting.len()
    }

    fn close(&self, local: &mut SocketState, cx: &mut Cx) {
        local.waiting.discard(SocketExit::Full, cx);
        local.link.close();
    }
}

impl SocketCore {
    /// Writes lines about clients that have connected or disconnected.
    fn report_clients(&self, local: &mut SocketState, cx: &mut Cx) {
        let Some(link) = local.link.get_mut() else { return };
        for line in link.messages() {
            if self.verbose {
                cx.chatter(&format!("{}: {line}", self.label));
            }
        }
    }
}

/// The arguments of a socket's addresses, one by one.
pub(super) struct EndpointArgs<'a> {
    texts: std::slice::Iter<'a, String>,
    /// Values that are given by keyword.
    keywords: Vec<(&'static str, &'a str)>,
    names: &'a Names,
}

impl<'a> EndpointArgs<'a> {
    pub(super) fn new(texts: &'a [String], names: &'a Names) -> EndpointArgs<'a> {
        EndpointArgs { texts: texts.iter(), keywords: Vec::new(), names }
    }

    /// Takes a value by keyword, which has no place then.
    pub(super) fn keyword(mut self, name: &'static str, value: Option<&'a String>) -> Self {
        self.keywords.extend(value.map(|value| (name, value.as_str())));
        self
    }

    /// The value of a keyword, or the next argument; one of them is required.
    pub(super) fn needed<T: FromArg>(&mut self, name: &str) -> Result<T, ArgError> {
        let missing = || ArgError::new("required argument missing").at(name);
        self.optional(name)?.ok_or_else(missing)
    }

    /// The value of a keyword, or the next argument, if there is one.
    pub(super) fn optional<T: FromArg>(&mut self, name: &str) -> Result<Option<T>, ArgError> {
        let keyword = self.keywords.iter().find(|(keyword, _)| *keyword == name);
        let text = keyword.map(|(_, value)| *value);
        let text = text.or_else(|| self.texts.next().map(String::as_str));
        text.map(|text| T::from_arg(text, self.names).map_err(|e| e.at(name))).transpose()
    }

    /// Checks that there are no more arguments.
    pub(super) fn end(mut self) -> Result<(), ArgError> {
        match self.texts.next() {
            None => Ok(()),
            Some(_) => Err(ArgError::new("too many arguments")),
        }
    }
}
