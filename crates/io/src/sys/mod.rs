//! The kernel's device interfaces as safe calls: the one room of this crate that may use `unsafe`.

pub(crate) mod netif;
pub(crate) mod packet_socket;
pub(crate) mod rx_ring;
pub(crate) mod tcx;
pub(crate) mod tun;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

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
