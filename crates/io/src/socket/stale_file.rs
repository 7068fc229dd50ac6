//! Socket files that killed processes have left behind.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Returns whether `path` is a socket; symbolic links are not followed.
pub(crate) fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.file_type().is_socket())
}

/// Returns whether `path` is a socket that no process has open.
///
/// The check connects with `SOCK_SEQPACKET`, which no process here serves. The kernel refuses the
/// connection with `EPROTOTYPE` if a process has the socket open, and with `ECONNREFUSED` if none
/// has. The process does not notice the attempt.
fn is_stale(path: &Path) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let asked = || {
        let address = SocketAddrUnix::new(path)?;
        connect(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?, &address)
    };
    is_socket(path) && asked() == Err(Errno::CONNREFUSED)
}

/// Removes the socket at `path`, if there is one that no process has open. Several processes may do so at
/// the same time.
///
/// Another process may put its own socket in place of the stale one in between. So the file gets a name
/// of this process first, and its name back if it turns out to be in use.
///
/// # Errors
/// A stale socket cannot be removed.
pub(crate) fn remove_stale(path: &Path) -> io::Result<()> {
    if !is_stale(path) {
        return Ok(());
    }
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}", std::process::id()));
    let aside = PathBuf::from(aside);
    match std::fs::rename(path, &aside) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        result => result?,
    }
    if !is_stale(&aside) {
        // Not by another `rename`, which would replace a third one.
        _ = std::fs::hard_link(&aside, path);
    }
    std::fs::remove_file(&aside)
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

    #[test]
    fn one_of_many_that_remove_a_stale_socket_takes_its_place() {
        let path = std::env::temp_dir().join(format!("castanet-stale-{}", std::process::id()));
        for _ in 0..50 {
            drop(UnixListener::bind(&path).unwrap());
            let take = || {
                remove_stale(&path).unwrap();
                UnixListener::bind(&path).ok()
            };
            let taken = std::thread::scope(|scope| {
                let threads = [(); 2].map(|()| scope.spawn(take));
                threads.map(|thread| thread.join().unwrap())
            });
            assert_eq!(taken.iter().flatten().count(), 1);
            assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
            drop(taken);
            remove_stale(&path).unwrap();
        }
        assert!(!path.exists());
    }
}
