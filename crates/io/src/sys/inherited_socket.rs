//! Descriptors that the process has inherited from its parent, and that its children do not inherit.

use super::check;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// A second descriptor for the connection that has this number; an error if
/// nothing, or something else, has.
pub(crate) fn stream_socket(fd: RawFd) -> io::Result<OwnedFd> {
    let (mut kind, mut size) = (0 as libc::c_int, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: `kind` is a live `int` of `size` bytes, and `size` is live too; a number that is
    // no descriptor is refused by the kernel.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_TYPE,
            std::ptr::from_mut(&mut kind).cast(),
            &mut size,
        )
    };
    check(result)?;
    if kind != libc::SOCK_STREAM {
        return Err(io::Error::from_raw_os_error(libc::EPROTOTYPE));
    }
    // SAFETY: the number is open, as was just checked, and it was inherited for the user
    // who names it here, so that no other code of the process closes it.
    let inherited = unsafe { BorrowedFd::borrow_raw(fd) };
    inherited.try_clone_to_owned()
}

/// Has all descriptors from number `first` on closed when another program is run.
pub(crate) fn close_on_exec_from(first: libc::c_uint) -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
    // SAFETY: the call takes numbers only; with this flag it closes nothing in this program.
    let result = unsafe { libc::close_range(first, libc::c_uint::MAX, flags) };
    check(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    #[test]
    fn only_stream_sockets_are_duplicated() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut duplicate = UnixStream::from(stream_socket(near.as_raw_fd()).unwrap());
        duplicate.write_all(b"hello").unwrap();
        let mut bytes = [0; 5];
        far.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"hello");
        let error = |fd| stream_socket(fd).unwrap_err().raw_os_error();
        let datagrams = UnixDatagram::unbound().unwrap();
        assert_eq!(error(datagrams.as_raw_fd()), Some(libc::EPROTOTYPE));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(error(file.as_raw_fd()), Some(libc::ENOTSOCK));
        assert_eq!(error(100_000), Some(libc::EBADF));
        assert_eq!(error(-1), Some(libc::EBADF));
    }
}
