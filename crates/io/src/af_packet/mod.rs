//! Interfaces by packet sockets: receives from `TPACKET_V3` rings, sends with `sendmmsg`.

mod flow_hash_code;
mod options;

pub use options::{Fanout, FanoutGroup, FanoutMode, Method, Options};

use crate::device::{Device, DeviceStats};
use crate::error::IoError;
use crate::interface::Interface;
use crate::offload::VnetHeader;
use crate::rx_buffer::RxBuffer;
use crate::rx_finisher::RxFinisher;
use crate::sys::packet_socket::{MAX_BATCH, PacketSocket, receive_one};
use crate::sys::rx_ring::{RingSize, RxRing};
use crate::sys::tcx::IngressBlock;
use crate::tx_batch;
use castanet_packet::{Batch, Pool};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};

/// 8 MiB of ring: some 40 ms of 64-byte packets at a million a second. A block
/// holds three of the largest super-frames. One millisecond is the least that
/// the kernel lets a block wait to be filled.
const RING: RingSize = RingSize { block: 256 << 10, blocks: 32, retire: 1 };

/// Bytes of packets that may wait in the kernel, to be sent or received
/// without a ring.
const SOCKET_BUFFER: libc::c_int = 8 << 20;

/// One queue of an interface, by a packet socket of its own.
pub struct AfPacket {
    interface: Interface,
    // Unmapped before the socket closes.
    receiver: Receiver,
    socket: PacketSocket,
    finisher: RxFinisher,
    kernel_drops: Cell<u64>,
    options: Options,
    /// Keeps packets from the kernel's own stack as long as it is there.
    ingress_block: Option<IngressBlock>,
}

/// The receive path.
enum Receiver {
    /// None: the socket only sends.
    None,
    /// Through a ring.
    Ring(RxRing),
    /// By one system call per frame.
    Socket(RxBuffer),
}

impl AfPacket {
    /// Opens the interface called `name`.
    pub fn open(name: &str, options: Options) -> Result<AfPacket, IoError> {
        let mut it = AfPacket::prepare(name, options)?;
        it.start()?;
        Ok(it)
    }

    /// As [`AfPacket::open`], but without the effects that others notice; see [`AfPacket::start`].
    pub fn prepare(name: &str, options: Options) -> Result<AfPacket, IoError> {
        let interface = Interface::find(name)?;
        let failed = |doing: &str| {
            let doing = format!("{doing} on {name}");
            move |error| IoError::raw(doing, error)
        };
        let socket = PacketSocket::open(interface.index).map_err(failed("open a packet socket"))?;
        configure(&socket, &options).map_err(failed("set up a packet socket"))?;
        let receiver = match options.method {
            Method::SendOnly => Receiver::None,
            Method::Ring => {
                let ring = RxRing::new(socket.as_fd(), RING);
                Receiver::Ring(ring.map_err(failed("map a TPACKET_V3 ring"))?)
            }
            Method::Socket => Receiver::Socket(RxBuffer::new()),
        };
        // Bound last: nothing arrives that the ring would miss.
        let protocol = match options.method {
            Method::SendOnly => 0,
            Method::Ring | Method::Socket => libc::ETH_P_ALL as u16,
        };
        match &options.fanout {
            None => socket.bind(protocol).map_err(failed("bind a packet socket"))?,
            Some(fanout) => {
                let join = |number| socket.bind_in_fanout(protocol, number, fanout.mode.number());
                let joined = fanout.group.join(fanout.queue.0, join);
                joined.map_err(failed("join a fanout group"))?;
                if fanout.mode == FanoutMode::Table {
                    let install = |program: BorrowedFd<'_>| socket.set_fanout_program(program);
                    let made = fanout.group.make_table(fanout.queue.1, install);
                    made.map_err(failed("make a redirection table"))?;
                }
            }
        }
        let finisher = RxFinisher::new(interface.link(), options.device);
        let kernel_drops = Cell::new(0);
        Ok(AfPacket {
            interface,
            receiver,
            socket,
            finisher,
            kernel_drops,
            options,
            ingress_block: None,
        })
    }

    /// Starts the effects that others notice: promiscuous mode, and the block of the kernel's own
    /// stack.
    pub fn start(&mut self) -> Result<(), IoError> {
        if self.options.promiscuous {
            let doing = || format!("set promiscuous mode on {}", self.interface.name);
            self.socket.set_promiscuous().map_err(|error| IoError::raw(doing(), error))?;
        }
        if self.options.exclusive {
            self.ingress_block = Some(block_kernel(&self.interface)?);
        }
        Ok(())
    }

    /// The fanout group that the socket has joined, if that has a table.
    pub(crate) fn table_group(&self) -> Option<&FanoutGroup> {
        let fanout = self.options.fanout.as_ref()?;
        (fanout.mode == FanoutMode::Table).then_some(&fanout.group)
    }

    /// The interface as it was when opened.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }
}

/// Sets the options that must be set before the socket is bound.
fn configure(socket: &PacketSocket, options: &Options) -> io::Result<()> {
    socket.set(libc::PACKET_VNET_HDR, 1)?;
    socket.set_buffer(true, SOCKET_BUFFER)?;
    if options.bypass_qdisc {
        socket.set(libc::PACKET_QDISC_BYPASS, 1)?;
    }
    if options.method != Method::SendOnly && !options.outbound {
        // Linux 4.20. Before that, what goes out is recognised by its type.
        drop(socket.set(libc::PACKET_IGNORE_OUTGOING, 1));
    }
    if options.method == Method::Socket {
        socket.set(libc::PACKET_AUXDATA, 1)?;
        socket.set_timestamps()?;
        socket.set_buffer(false, SOCKET_BUFFER)?;
    }
    Ok(())
}

/// Keeps the kernel's own stack from what the interface receives.
fn block_kernel(interface: &Interface) -> Result<IngressBlock, IoError> {
    let doing = format!("keep the kernel from packets of {}", interface.name);
    IngressBlock::new(interface.index).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => {
            IoError::Unsupported { doing, hint: "it takes Linux 6.6 or later with BPF" }
        }
        _ => IoError::new(doing, error),
    })
}

impl Device for AfPacket {
    fn receive(&mut self, pool: &Pool, batch: &mut Batch, max: usize) -> io::Result<usize> {
        let mut count = self.finisher.take_overflow(batch, max);
        let outbound = self.options.outbound;
        let wanted = |kind: u8| outbound || kind != libc::PACKET_OUTGOING;
        while count < max {
            match &mut self.receiver {
                Receiver::None => return Ok(0),
                Receiver::Ring(ring) => {
                    let Some((frame, meta)) = ring.next() else { break };
                    if wanted(meta.kind) {
                        count += self.finisher.copy(pool, frame, &meta, batch, max - count);
                    }
                }
                Receiver::Socket(rx_buffer) => {
                    let socket = &self.socket;
                    let received = rx_buffer.receive(pool, |buffer, rest| {
                        let meta = receive_one(socket, buffer, rest)?;
                        Ok((meta, meta.wire_len))
                    });
                    match received {
                        Ok((frame, meta)) if wanted(meta.kind) => {
                            let left = max - count;
                            count += frame.finish(&mut self.finisher, pool, &meta, batch, left);
                        }
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(error) if is_link_down(&error) => break,
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        if count == 0 {
            // An error pending on the socket would keep its descriptor ready
            // for ever; that the link went down is no reason to stop, as it
            // goes on by itself when the link is up again.
            self.socket.take_error().or_else(|e| if is_link_down(&e) { Ok(()) } else { Err(e) })?;
        }
        Ok(count)
    }

    fn transmit(&mut self, batch: &mut Batch) -> io::Result<usize> {
        let socket = &self.socket;
        let sent = tx_batch::transmit(batch, &mut self.finisher.stats, |packets| {
            let packets = packets.iter().take(MAX_BATCH);
            socket.send(packets.map(|packet| (VnetHeader::default(), packet.bytes())))
        });
        Ok(sent)
    }

    fn fd(&self) -> Option<RawFd> {
        Some(self.socket.raw_fd())
    }

    fn no_frame(&self) -> u64 {
        self.finisher.stats.no_frame
    }

    fn stats(&self) -> DeviceStats {
        // The kernel's own count starts again whenever it is read.
        if let Ok(drops) = self.socket.take_drops() {
            self.kernel_drops.set(self.kernel_drops.get() + u64::from(drops));
        }
        DeviceStats { kernel_drops: self.kernel_drops.get(), ..self.finisher.stats }
    }

    fn describe(&self) -> String {
        let Interface { name, up, .. } = &self.interface;
        let method = match self.receiver {
            Receiver::None => "sends with sendmmsg".to_owned(),
            Receiver::Ring(_) => format!(
                "receives from a TPACKET_V3 ring of {} blocks of {} KiB, sends with sendmmsg",
                RING.blocks,
                RING.block >> 10
            ),
            Receiver::Socket(_) => "receives with recvmsg, sends with sendmmsg".to_owned(),
        };
        let qdisc = if self.options.bypass_qdisc { " past the queueing discipline" } else { "" };
        let down = if *up { "" } else { " (the interface is down)" };
        format!("{name}: packet socket, works with any driver; {method}{qdisc}{down}")
    }
}

/// Whether an error only says that the interface is down.
fn is_link_down(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO))
}
