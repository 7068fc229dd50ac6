//! The kernel's device interfaces as safe calls: the one room of this crate that may use `unsafe`.

pub(crate) mod bpf;
pub(crate) mod dpdk;
pub(crate) mod ethtool;
pub(crate) mod fanout_table;
pub(crate) mod inherited_socket;
pub(crate) mod libpcap;
pub(crate) mod netif;
pub(crate) mod netlink;
pub(crate) mod packet_socket;
pub(crate) mod rx_ring;
pub(crate) mod shared_slots;
pub(crate) mod sockopt;
pub(crate) mod tcx;
pub(crate) mod tun;
pub(crate) mod xdp;
pub(crate) mod xsk;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// Turns the kernel's `-1` into the error it stands for.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Sets a socket option whose value is a plain C structure or number.
fn set_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is a live `T` of `size` bytes, which the kernel only reads.
    let result = unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size)
    };
    check(result).map(drop)
}

/// Does what fails as busy again for up to a second: the kernel lets go of
/// what was closed only a little later.
fn retry_while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        match attempt() {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

/// Whether there is something to read at a descriptor now.
pub(crate) fn is_readable(fd: RawFd) -> bool {
    let mut poll_fd = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: `poll_fd` is live, and one; a descriptor that is closed is none that is readable.
    let polled = check(unsafe { libc::poll(&mut poll_fd, 1, 0) });
    polled.is_ok_and(|ready| ready == 1) && poll_fd.revents & libc::POLLIN != 0
}

/// Descriptors as one, which is readable when any of them is.
pub(crate) struct EpollSet(OwnedFd);

impl EpollSet {
    /// Watches descriptors; one that is closed leaves by itself.
    pub(crate) fn new(fds: impl Iterator<Item = RawFd>) -> io::Result<EpollSet> {
        // SAFETY: no pointers are passed.
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and has no other owner.
        let set = EpollSet(unsafe { OwnedFd::from_raw_fd(epoll) });
        for fd in fds {
            set.add(fd)?;
        }
        Ok(set)
    }

    /// Watches one more.
    pub(crate) fn add(&self, fd: RawFd) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: `event` is live, and the kernel only reads it.
        check(unsafe { libc::epoll_ctl(self.raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })?;
        Ok(())
    }

    /// The descriptor that stands for all.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
