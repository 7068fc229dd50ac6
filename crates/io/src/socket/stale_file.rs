//! Socket files that killed processes have left behind.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Returns whether `path` is a socket; symbolic links are not followed.
pub(crate) fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.file_type().is_socket())
}

/// Returns whether `path` is a socket that no process has open.
///
/// The check connects with `SOCK_SEQPACKET`, which no process here serves. The kernel refuses the
/// connection with `EPROTOTYPE` if a process has the socket open, and with `ECONNREFUSED` if none
/// has. The process does not notice the attempt.
pub(crate) fn is_stale(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let asked = || {
        let address = SocketAddrUnix::new(path)?;
        connect(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?, &address)
    };
    is_socket(path) && asked() == Err(Errno::CONNREFUSED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixListener};

    #[test]
    fn only_sockets_without_a_process_are_stale_and_no_listener_notices() {
        let path = std::env::temp_dir().join(format!("castanet-left-{}", std::process::id()));
        assert!(!is_stale(&path));
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(!is_stale(&path));
        assert!(listener.accept().is_err());
        drop(listener);
        assert!(is_stale(&path));
        std::fs::remove_file(&path).unwrap();
        let socket = UnixDatagram::bind(&path).unwrap();
        assert!(!is_stale(&path));
        drop(socket);
        assert!(is_stale(&path));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(!is_stale(&path));
        std::fs::remove_file(&path).unwrap();
    }
}
