//! What elements that talk by sockets have in common.

use super::device_slot::DeviceSlot;
use super::tx_queue::TxQueue;
use crate::device::Device;
use crate::socket::{SocketConfig, SocketDevice, errno_text};
use castanet_element::prelude::*;

/// How many packets may wait until the socket takes them.
const WAITING: usize = 1024;

/// Where packets that were received go, and why packets to be sent end.
#[derive(Fate)]
pub enum SocketExit {
    /// Packets that were received.
    Packet,
    /// Packets to be sent, while nobody is there to receive them.
    #[drop]
    NoPeer,
    /// Packets that the socket refused.
    #[drop]
    Refused,
    /// Packets that the socket had no room for.
    #[drop]
    Full,
}

/// The socket, and what waits for it.
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
    fn packets(&self) -> u64 {
        self.link.since(|it| it.received)
    }

    /// Packets sent since the last reset.
    #[read]
    fn sent(&self) -> u64 {
        self.link.since(|it| it.sent)
    }

    /// The port that the socket has on this machine; empty if it has none.
    #[read]
    fn port(&self) -> String {
        let port = self.link.get().and_then(SocketDevice::port);
        port.map_or_else(String::new, |port| port.to_string())
    }

    /// How packets come and go.
    #[read]
    fn device(&self) -> String {
        self.link.describe()
    }

    /// Says of an address whether it may come in, as `1.2.3.4 true`; that is how
    /// ALLOW and DENY take effect.
    #[write]
    fn judged(&mut self, verdict: &str) -> Result<(), ArgError> {
        let (address, may) = verdict.trim().split_once(' ').unwrap_or((verdict, ""));
        let (Ok(address), Ok(may)) = (address.parse(), may.trim().parse()) else {
            return Err(ArgError::new("syntax error").help("such as `1.2.3.4 true`"));
        };
        if let Some(link) = self.link.get_mut() {
            link.decide(address, may);
        }
        Ok(())
    }

    /// Starts the counts again from zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.link.reset();
        Ok(())
    }
}

/// How a socket is talked by.
pub(super) struct SocketCore {
    /// The element, as messages show it.
    pub(super) label: String,
    /// Its name.
    pub(super) name: String,
    pub(super) config: SocketConfig,
    /// Whether to tell of clients that come and go.
    pub(super) verbose: bool,
    /// Looks at what was received, and says whether it may go on.
    pub(super) fit: fn(&mut Packet) -> bool,
}

/// Makes an element of a type around a [`SocketCore`].
macro_rules! impl_socket_element {
    ($element:ident) => {
        impl Source for $element {
            type Local = crate::elements::socket_element::SocketState;
            type Fate = crate::elements::socket_element::SocketExit;

            fn can_take_state(&self, _: &$element) -> bool {
                false // it opens what its arguments name
            }

            fn init(&self, local: &mut Self::Local, cx: &mut Cx) -> Result<(), ArgError> {
                self.0.open(local, cx)
            }

            fn produce(&self, local: &mut Self::Local, n: usize, cx: &mut Cx) -> NextRun {
                self.0.receive(local, n, cx)
            }

            fn cleanup(&self, local: &mut Self::Local, cx: &mut Cx) {
                self.0.close(local, cx);
            }
        }

        impl PerBatch for $element {
            type On = on::Any;
            type Local = crate::elements::socket_element::SocketState;
            type Fate = crate::elements::socket_element::SocketExit;
            const SHARED: bool = true;

            fn batch(&self, local: &mut Self::Local, _: usize, batch: Batch, cx: &mut Cx) {
                self.0.send(local, batch, cx);
            }

            fn run_timer(&self, local: &mut Self::Local, cx: &mut Cx) {
                self.0.send(local, Batch::new(), cx);
            }

            fn held(&self, local: &Self::Local) -> usize {
                local.held()
            }
        }
    };
}
pub(super) use impl_socket_element;

impl SocketCore {
    pub(super) fn open(&self, local: &mut SocketState, cx: &mut Cx) -> Result<(), ArgError> {
        let link = SocketDevice::open(self.config.clone())
            .map_err(|(step, why)| ArgError::new(format!("{step}: {}", errno_text(why))))?;
        local.link.set(link);
        self.tell(local, cx);
        Ok(())
    }

    /// Emits what was received, as far as it may go on.
    pub(super) fn receive(&self, local: &mut SocketState, n: usize, cx: &mut Cx) -> NextRun {
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
        self.tell(local, cx);
        cx.count_received(batch.len());
        for mut packet in batch.drain() {
            let fate =
                if (self.fit)(&mut packet) { SocketExit::Packet } else { SocketExit::Refused };
            cx.emit(fate, packet);
        }
        next
    }

    /// Sends packets, and waits for a socket that is slow.
    pub(super) fn send(&self, local: &mut SocketState, mut batch: Batch, cx: &mut Cx) {
        let Some(link) = local.link.get_mut().filter(|link| link.has_peer()) else {
            cx.emit_batch(SocketExit::NoPeer, local.waiting.take());
            cx.emit_batch(SocketExit::NoPeer, batch);
            return;
        };
        let outcome = local.waiting.send(link, &mut batch, WAITING, true, cx);
        cx.count_consumed(outcome.sent);
        cx.count_dropped(SocketExit::Refused, outcome.refused);
        cx.emit_batch(SocketExit::Full, batch);
        if let Some(error) = outcome.error {
            cx.chatter(&format!("{}: {error}", self.label));
        }
        self.tell(local, cx);
    }

    /// Says what there is to say about connections.
    fn tell(&self, local: &mut SocketState, cx: &mut Cx) {
        let Some(link) = local.link.get_mut() else { return };
        for line in link.messages() {
            if self.verbose {
                cx.chatter(&format!("{}: {line}", self.label));
            }
        }
    }

    pub(super) fn close(&self, local: &mut SocketState, cx: &mut Cx) {
        cx.emit_batch(SocketExit::Full, local.waiting.take());
        local.link.close();
    }
}

impl SocketState {
    /// How many packets wait to be sent.
    pub(super) fn held(&self) -> usize {
        self.waiting.len()
    }
}

/// The arguments of a place that may be said in several ways, one by one.
pub(super) struct EndpointArgs<'a> {
    texts: std::slice::Iter<'a, String>,
    names: &'a Names,
}

impl<'a> EndpointArgs<'a> {
    pub(super) fn new(texts: &'a [String], names: &'a Names) -> EndpointArgs<'a> {
        EndpointArgs { texts: texts.iter(), names }
    }

    /// The next one, which must be there.
    pub(super) fn needed<T: FromArg>(&mut self, name: &str) -> Result<T, ArgError> {
        let missing = || ArgError::new("required argument missing").at(name);
        self.optional(name)?.ok_or_else(missing)
    }

    /// The next one, if it is there.
    pub(super) fn optional<T: FromArg>(&mut self, name: &str) -> Result<Option<T>, ArgError> {
        let text = self.texts.next();
        text.map(|text| T::from_arg(text, self.names).map_err(|e| e.at(name))).transpose()
    }

    /// There may be no more.
    pub(super) fn end(mut self) -> Result<(), ArgError> {
        match self.texts.next() {
            None => Ok(()),
            Some(_) => Err(ArgError::new("too many arguments")),
        }
    }
}
