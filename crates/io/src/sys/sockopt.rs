//! Options of sockets that no safe crate sets.

use super::set_option;
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Has a raw socket take packets with their own IPv4 headers.
pub(crate) fn include_ip_header(fd: impl AsFd) -> Result<(), Errno> {
    set_option(fd.as_fd(), libc::IPPROTO_IP, libc::IP_HDRINCL, &(1 as libc::c_int))
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}
