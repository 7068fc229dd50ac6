//! Socket files that processes which were killed have left behind.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Whether there is a socket at `path`, not what a link leads to.
pub(crate) fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.file_type().is_socket())
}

/// Whether there is a socket that no process has.
///
/// The kernel refuses a connection of a kind that nobody here serves: by another word where a
/// process has the socket, which does not hear of it, so that it is no client of anybody's.
pub(crate) fn is_abandoned(path: &Path) -> bool {
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
    fn only_what_nobody_has_is_abandoned_and_nobody_hears_the_question() {
        let path = std::env::temp_dir().join(format!("castanet-left-{}", std::process::id()));
        assert!(!is_abandoned(&path));
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(!is_abandoned(&path));
        assert!(listener.accept().is_err());
        drop(listener);
        assert!(is_abandoned(&path));
        std::fs::remove_file(&path).unwrap();
        let socket = UnixDatagram::bind(&path).unwrap();
        assert!(!is_abandoned(&path));
        drop(socket);
        assert!(is_abandoned(&path));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(!is_abandoned(&path));
        std::fs::remove_file(&path).unwrap();
    }
}
