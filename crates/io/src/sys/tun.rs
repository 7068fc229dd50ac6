//! Queues of TUN and TAP devices.

use super::check;
use super::netif::c_name;
use crate::offload::VnetHeader;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use zerocopy::{FromBytes, IntoBytes};

/// One queue of a TUN or TAP device.
pub(crate) struct TunQueue {
    fd: OwnedFd,
}

/// The offloads that the kernel may leave to the program: partial checksums and TCP
/// and UDP super-frames.
const OFFLOADS: [libc::c_uint; 3] = [
    libc::TUN_F_CSUM
        | libc::TUN_F_TSO4
        | libc::TUN_F_TSO6
        | libc::TUN_F_TSO_ECN
        | libc::TUN_F_USO4
        | libc::TUN_F_USO6,
    // Kernels before 6.2 know no UDP segmentation here.
    libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN,
    0,
];

impl TunQueue {
    /// Opens a queue of the device `name`, which the kernel makes if it is not
    /// there; an empty name, or one with `%d`, lets the kernel number it.
    /// Returns the queue and the device's name.
    pub(crate) fn open(
        name: &str,
        kind: libc::c_int,
        multi_queue: bool,
    ) -> io::Result<(TunQueue, String)> {
        let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
        // SAFETY: the path is a C string.
        let fd = check(unsafe { libc::open(c"/dev/net/tun".as_ptr(), flags) })?;
        // SAFETY: the descriptor is new and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all bytes zero is a valid value of every member.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = c_name(name)?;
        let multi_queue_flag = if multi_queue { libc::IFF_MULTI_QUEUE } else { 0 };
        let flags = kind | libc::IFF_NO_PI | libc::IFF_VNET_HDR | multi_queue_flag;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: the request reads and writes one `ifreq`.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &mut request) })?;
        let size = size_of::<VnetHeader>() as libc::c_int;
        // SAFETY: the request reads one `int`.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETVNETHDRSZ, &size) })?;
        for offloads in OFFLOADS {
            let offloads = libc::c_ulong::from(offloads);
            // SAFETY: the request takes a number.
            if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, offloads) } == 0 {
                break;
            }
        }
        // SAFETY: the kernel ends the name with a zero byte.
        let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) };
        Ok((TunQueue { fd }, name.to_string_lossy().into_owned()))
    }

    /// Receives a packet into `buffer`, and what does not fit there into
    /// `rest`. Returns its virtio header and its length.
    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        rest: &mut [u8],
    ) -> io::Result<(VnetHeader, usize)> {
        let mut header = [0u8; size_of::<VnetHeader>()];
        let parts = [
            libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: header.len() },
            libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() },
            libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() },
        ];
        // SAFETY: the parts are live, writable and as long as stated.
        let received = unsafe { libc::readv(self.fd.as_raw_fd(), parts.as_ptr(), 3) };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        let header_value = VnetHeader::read_from_bytes(&header).unwrap_or_default();
        Ok((header_value, (received as usize).saturating_sub(header.len())))
    }

    /// Sends a packet.
    pub(crate) fn send(&self, header: VnetHeader, packet: &[u8]) -> io::Result<()> {
        let header = header.as_bytes();
        let parts = [
            libc::iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: header.len() },
            libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() },
        ];
        // SAFETY: the parts are live and as long as stated; the kernel only
        // reads them.
        let sent = unsafe { libc::writev(self.fd.as_raw_fd(), parts.as_ptr(), 2) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Whether the device is still there.
    pub(crate) fn is_attached(&self) -> bool {
        // SAFETY: all bytes zero is a valid value of every member.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // SAFETY: the request writes one `ifreq`.
        let asked = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TUNGETIFF, &mut request) };
        check(asked).is_ok()
    }

    /// The descriptor, for readiness.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
