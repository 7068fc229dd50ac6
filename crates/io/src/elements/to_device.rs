//! `ToDevice`: packets for a network interface to send.

use super::choice::{self, Chosen, Wish};
use super::method::Method;
use super::opened::Opened;
use super::sending::Waiting;
use crate::device::Device;
use castanet_engine::prelude::*;

/// Sends packets, link header included, on the network interface DEVNAME.
///
/// It takes packets pushed and pulled alike. Packets that the interface has no
/// room for wait, up to IQUEUE of them. The way they go is chosen as
/// `FromDevice` chooses, and the handler `device` says which and why: by
/// AF_XDP they go out in place, past the queueing discipline and `tcpdump`; by
/// packet socket each worker has its own. Where outputs are connected, packets
/// that were sent go to output 0 and packets that were refused to output 1.
///
/// ```text
/// FromDevice(eth0) -> Queue -> ToDevice(eth1);
/// FromDevice(eth1) -> ToDevice(eth0);
/// ```
#[derive(Element)]
#[element(args = Settings, ports = "1/0-2", processing = "a/h")]
pub struct ToDevice {
    settings: Settings,
    /// How many outputs are connected.
    outputs: usize,
}

/// What can be set.
#[derive(Args)]
pub struct Settings {
    /// The interface to send on.
    #[arg]
    devname: String,
    /// How many packets to pull at once, in Click; the engine's burst decides.
    #[arg(keyword, default = 1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    burst: u32,
    /// How packets are sent: by AF_XDP, or by `sendmmsg`.
    #[arg(keyword, default = Method::Best)]
    method: Method,
    /// How many packets may wait for room.
    #[arg(keyword, default = 1024)]
    iqueue: u32,
    /// Whether to pass by the interface's queueing discipline, and `tcpdump`.
    #[arg(keyword, default = false)]
    bypass_qdisc: bool,
    /// Whether to write a line about each packet that is refused.
    #[arg(keyword, default = false)]
    debug: bool,
}

impl Settings {
    fn wish(&self) -> Wish {
        Wish { method: self.method, receive: None, bypass_qdisc: self.bypass_qdisc }
    }
}

/// How packets would go, for `castanet explain`.
pub(super) fn foresee(config: &str, names: &Names) -> Option<String> {
    let settings = <Settings as Args>::parse(config, names).ok()?;
    Some(choice::foresee(&settings.devname, &settings.wish()))
}

/// Where packets go after the interface.
#[derive(Fate)]
pub enum Sent {
    /// Packets that were sent.
    #[optional]
    Sent,
    /// Packets that were refused.
    #[optional]
    Failed,
    /// Packets that the interface refused: too long, or the link is down.
    #[drop]
    Refused,
    /// Packets that found no place to wait.
    #[drop]
    Full,
    /// Packets for an interface that could not be opened.
    #[drop]
    Closed,
}

/// The open interface, and what waits for it.
#[derive(Default, Local)]
#[local(methods)]
pub struct Sending {
    device: Opened<Chosen>,
    waiting: Waiting,
    /// Whether opening failed on this worker.
    broken: bool,
}

#[handlers]
impl Sending {
    /// Packets sent since the last reset.
    #[read]
    fn count(&self) -> u64 {
        self.device.since(|it| it.sent)
    }

    /// Bytes sent since the last reset.
    #[read]
    fn byte_count(&self) -> u64 {
        self.device.since(|it| it.sent_bytes)
    }

    /// Packets that the interface refused.
    #[read]
    fn errors(&self) -> u64 {
        self.device.stats().tx_errors
    }

    /// How often there was no room to send.
    #[read]
    fn full(&self) -> u64 {
        self.device.stats().tx_full
    }

    /// How packets are sent, and why that way.
    #[read]
    fn device(&self) -> String {
        self.device.describe()
    }

    /// Starts `count` and `byte_count` again from zero.
    #[write]
    fn reset_counts(&mut self, _: &str) -> Result<(), ArgError> {
        self.device.reset();
        Ok(())
    }
}

impl Build for ToDevice {
    type Args = Settings;

    fn build(settings: Settings, setup: &Setup) -> Result<Self, ArgError> {
        Ok(ToDevice { settings, outputs: setup.outputs })
    }
}

impl PerBatch for ToDevice {
    type On = on::Any;
    type Local = Sending;
    type Fate = Sent;

    fn begin(&self, local: &mut Sending, cx: &mut Cx) -> Result<(), ArgError> {
        local.device.set(self.open(cx)?);
        Ok(())
    }

    fn batch(&self, local: &mut Sending, _: usize, batch: Batch, cx: &mut Cx) {
        // The home worker's socket was opened before anything ran; others
        // open theirs when the first packet comes by.
        if local.device.get().is_none() && !local.broken {
            match self.open(cx) {
                Ok(device) => local.device.set(device),
                Err(error) => {
                    local.broken = true;
                    self.report(&error, cx);
                }
            }
        }
        match self.outputs {
            0 => self.send(local, batch, cx),
            _ => self.send_each(local, batch, cx),
        }
    }

    fn wake(&self, local: &mut Sending, cx: &mut Cx) {
        self.send(local, Batch::new(), cx);
    }

    fn end(&self, local: &mut Sending, cx: &mut Cx) {
        self.send(local, Batch::new(), cx);
        cx.emit_batch(Sent::Full, local.waiting.take());
    }

    fn held(&self, local: &Sending) -> usize {
        local.waiting.len()
    }
}

impl ToDevice {
    fn open(&self, cx: &Cx) -> Result<Chosen, ArgError> {
        choice::open(&self.settings.devname, &self.settings.wish(), cx.pool())
    }

    fn send(&self, local: &mut Sending, batch: Batch, cx: &mut Cx) {
        let Some(device) = local.device.get_mut() else {
            cx.emit_batch(Sent::Closed, batch);
            return;
        };
        match local.waiting.send(device, batch, self.settings.iqueue as usize, cx) {
            Ok(outcome) => {
                cx.consumed(outcome.sent);
                cx.dropped(Sent::Refused, outcome.refused);
                cx.emit_batch(Sent::Full, outcome.surplus);
                if self.settings.debug && outcome.refused > 0 {
                    self.report(&format_args!("{} packets refused", outcome.refused), cx);
                }
            }
            Err(error) => self.report(&error, cx),
        }
    }

    /// Sends packets one by one, so that each can go on to where it belongs.
    fn send_each(&self, local: &mut Sending, mut batch: Batch, cx: &mut Cx) {
        let Some(device) = local.device.get_mut() else {
            cx.emit_batch(Sent::Closed, batch);
            return;
        };
        for mut packet in batch.drain() {
            let mut one = Batch::new();
            one.push(packet.share());
            let sent = device.transmit(&mut one).and_then(|n| device.flush().map(|()| n));
            let fate = if matches!(sent, Ok(1)) { Sent::Sent } else { Sent::Failed };
            drop(one);
            cx.emit(fate, packet);
        }
    }

    fn report(&self, what: &dyn std::fmt::Display, cx: &mut Cx) {
        cx.chatter(&format!("ToDevice({}): {what}", self.settings.devname));
    }
}
