//! `AF_PACKET` sockets: opening, options, and sending and receiving by the burst.

use super::{check, set_option};
use crate::offload::{VlanTag, VnetHeader};
use crate::rx_finisher::FrameMeta;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use zerocopy::{FromBytes, IntoBytes};

/// How many packets one system call sends or receives.
pub(crate) const MAX_BATCH: usize = 64;

/// A packet socket on one interface.
pub(crate) struct PacketSocket {
    fd: OwnedFd,
    index: u32,
}

impl PacketSocket {
    /// Opens a socket that is not yet bound to an interface.
    pub(crate) fn open(index: u32) -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers are passed.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: the descriptor is new and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(PacketSocket { fd, index })
    }

    /// Sets a packet option that is a number.
    pub(crate) fn set(&self, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        set_option(self.fd.as_fd(), libc::SOL_PACKET, option, &value)
    }

    /// Sets the size of the send or receive buffer, beyond the system's limit
    /// where the process may.
    pub(crate) fn set_buffer(&self, send: bool, bytes: libc::c_int) -> io::Result<()> {
        let (force, plain) = if send {
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)
        } else {
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)
        };
        let fd = self.fd.as_fd();
        set_option(fd, libc::SOL_SOCKET, force, &bytes)
            .or_else(|_| set_option(fd, libc::SOL_SOCKET, plain, &bytes))
    }

    /// Asks the kernel for the time of each packet, with it.
    pub(crate) fn set_timestamps(&self) -> io::Result<()> {
        set_option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)
    }

    /// Has the interface take in frames for any address, until this closes.
    pub(crate) fn set_promiscuous(&self) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: self.index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Binds to the interface and shares its packets with the other sockets of
    /// a group, or begins one; answers its number.
    pub(crate) fn bind_in_fanout(
        &self,
        protocol: u16,
        group: Option<u16>,
        mode: u32,
    ) -> io::Result<u16> {
        let fanout = |request: u32| {
            set_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, &request)
        };
        let Some(group) = group else {
            self.bind(protocol)?;
            fanout((mode | libc::PACKET_FANOUT_FLAG_UNIQUEID) << 16)?;
            return self.fanout_group();
        };
        // Only bound sockets can join, and until it has joined it would get
        // what others get too.
        self.set_discard_all(true)?;
        self.bind(protocol)?;
        fanout(u32::from(group) | mode << 16)?;
        self.set_discard_all(false)?;
        Ok(group)
    }

    /// Sets the program by which the group's mode `PACKET_FANOUT_EBPF` chooses a socket.
    pub(crate) fn set_fanout_program(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let program = program.as_raw_fd();
        set_option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &program)
    }

    /// The number of the group that the socket has joined.
    fn fanout_group(&self) -> io::Result<u16> {
        let (mut answer, mut size) =
            (0 as libc::c_int, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the kernel writes at most `size` bytes into `answer`.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_FANOUT,
                std::ptr::from_mut(&mut answer).cast(),
                &mut size,
            )
        };
        check(result)?;
        Ok(answer as u16)
    }

    /// Whether to receive nothing, by a filter that takes no packet.
    fn set_discard_all(&self, discard: bool) -> io::Result<()> {
        if !discard {
            let level = libc::SOL_SOCKET;
            return set_option(self.fd.as_fd(), level, libc::SO_DETACH_FILTER, &(0 as libc::c_int));
        }
        // BPF_RET | BPF_K: the answer is how many bytes to keep.
        let mut code = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 };
        let filter = libc::sock_fprog { len: 1, filter: &raw mut code };
        set_option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
    }

    /// Binds to the interface; `protocol` zero receives nothing.
    pub(crate) fn bind(&self, protocol: u16) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::c_ushort,
            sll_protocol: protocol.to_be(),
            sll_ifindex: self.index as libc::c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` is a live structure of `size` bytes.
        let result =
            unsafe { libc::bind(self.fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) };
        check(result).map(drop)
    }

    /// How many packets the kernel had no room for since the last call.
    pub(crate) fn take_drops(&self) -> io::Result<u32> {
        // A ring of version 3 answers with one number more; zeroed, it serves both.
        let mut counts = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut size = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the kernel writes at most `size` bytes into `counts`.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                std::ptr::from_mut(&mut counts).cast(),
                &mut size,
            )
        };
        check(result)?;
        Ok(counts.tp_drops)
    }

    /// Takes the error that is pending on the socket, such as an interface
    /// that went down.
    pub(crate) fn take_error(&self) -> io::Result<()> {
        let mut error: libc::c_int = 0;
        let mut size = size_of_val(&error) as libc::socklen_t;
        // SAFETY: the kernel writes at most `size` bytes into `error`.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                std::ptr::from_mut(&mut error).cast(),
                &mut size,
            )
        };
        check(result)?;
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// The descriptor, for readiness.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Sends frames, each behind its virtio header, in as few calls as it
    /// takes, without waiting. Answers how many the kernel took; an error
    /// means that it took none, and is about the first frame.
    pub(crate) fn send<'a>(
        &self,
        frames: impl Iterator<Item = (VnetHeader, &'a [u8])>,
    ) -> io::Result<usize> {
        let mut headers = [VnetHeader::default(); MAX_BATCH];
        // SAFETY: both are plain C structures of numbers and pointers, for
        // which all bytes zero is a valid, empty value.
        let (mut parts, mut messages): ([[libc::iovec; 2]; MAX_BATCH], [libc::mmsghdr; MAX_BATCH]) =
            unsafe { std::mem::zeroed() };
        let mut count = 0;
        for ((header, frame), slot) in frames.zip(&mut headers) {
            *slot = header;
            parts[count] = [
                libc::iovec {
                    iov_base: slot.as_mut_bytes().as_mut_ptr().cast(),
                    iov_len: size_of::<VnetHeader>(),
                },
                libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() },
            ];
            count += 1;
        }
        for (message, parts) in messages.iter_mut().zip(&mut parts).take(count) {
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = 2;
        }
        let (fd, size) = (self.fd.as_raw_fd(), count as libc::c_uint);
        // SAFETY: the first `count` messages point to parts, headers and
        // frames that live until this returns; the kernel only reads them.
        let sent = unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), size, libc::MSG_DONTWAIT) };
        check(sent).map(|n| n as usize)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Room for the kernel's answer about one frame: a time and a tag.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct ControlBuffer([u8; 128]);

/// Receives a frame into `buffer`, and bytes that do not fit there into `rest`; bytes that fit into
/// neither are cut off.
pub(crate) fn receive_one(
    socket: &PacketSocket,
    buffer: &mut [u8],
    rest: &mut [u8],
) -> io::Result<FrameMeta> {
    let mut vnet = [0u8; size_of::<VnetHeader>()];
    let mut control = ControlBuffer([0; 128]);
    let mut parts = [
        libc::iovec { iov_base: vnet.as_mut_ptr().cast(), iov_len: vnet.len() },
        libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() },
        libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() },
    ];
    // SAFETY: plain C structures for which all bytes zero is valid.
    let (mut name, mut message): (libc::sockaddr_ll, libc::msghdr) = unsafe { std::mem::zeroed() };
    message.msg_name = std::ptr::from_mut(&mut name).cast();
    message.msg_namelen = size_of_val(&name) as libc::socklen_t;
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = size_of::<ControlBuffer>();
    // SAFETY: name, parts and control live until this returns, and the kernel
    // writes at most the lengths stated.
    let received = unsafe {
        libc::recvmsg(socket.fd.as_raw_fd(), &mut message, libc::MSG_DONTWAIT | libc::MSG_TRUNC)
    };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    let wire_len = (received as usize).saturating_sub(vnet.len());
    let mut meta = FrameMeta {
        wire_len,
        vnet: VnetHeader::read_from_bytes(&vnet).unwrap_or_default(),
        vlan: None,
        kind: name.sll_pkttype,
        time: 0,
    };
    read_control(&message, &mut meta);
    Ok(meta)
}

/// Reads the time and the tag from what came beside the frame.
fn read_control(message: &libc::msghdr, meta: &mut FrameMeta) {
    // SAFETY: `message` is as `recvmsg` left it, so its control part is a
    // well-formed list, and each item's data is as long as its type says.
    unsafe {
        let mut item = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = item.as_ref() {
            let data = libc::CMSG_DATA(item);
            match (header.cmsg_level, header.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    meta.time = time.tv_sec * 1_000_000_000 + time.tv_nsec;
                }
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    let aux = data.cast::<libc::tpacket_auxdata>().read_unaligned();
                    meta.vlan = vlan_tag(&aux);
                }
                _ => {}
            }
            item = libc::CMSG_NXTHDR(message, item);
        }
    }
}

/// The tag that the kernel moved out of the frame, if there was one.
fn vlan_tag(aux: &libc::tpacket_auxdata) -> Option<VlanTag> {
    let has = |flag: u32| aux.tp_status & flag != 0;
    has(libc::TP_STATUS_VLAN_VALID).then(|| VlanTag {
        tpid: if has(libc::TP_STATUS_VLAN_TPID_VALID) { aux.tp_vlan_tpid } else { 0x8100 },
        tci: aux.tp_vlan_tci,
    })
}
