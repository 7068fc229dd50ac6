//! Descriptors that a process passes to another: over a Unix socket (`SCM_RIGHTS`), or not at all.

use crate::sys::inherited_socket;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The most descriptors that one message carries, as the kernel limits them.
pub const MOST: usize = 253;

/// Has programs that this process runs from now on inherit standard input, output and error only.
///
/// # Errors
/// The kernel refuses it.
pub fn keep_from_programs() -> io::Result<()> {
    inherited_socket::close_on_exec_from(3)
}

/// Sends one message with these descriptors, which stay open here.
///
/// # Errors
/// The peer has gone, its buffer is full, or there are more than [`MOST`] descriptors.
pub fn send(socket: &UnixStream, message: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::NOSIGNAL;
    rustix::net::sendmsg(socket, &[IoSlice::new(message)], &mut control, flags)?;
    Ok(())
}

/// Receives one message, without waiting, and at most `most` descriptors with it; returns the number of
/// its bytes, 0 at the end of the connection. Further descriptors are closed.
///
/// # Errors
/// There is no message (`WouldBlock`), or the connection is broken.
pub fn receive(
    socket: &UnixStream,
    message: &mut [u8],
    most: usize,
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST))];
    let len = space.len().min(cmsg_space!(ScmRights(most)));
    let mut control = RecvAncillaryBuffer::new(&mut space[..len]);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let mut parts = [IoSliceMut::new(message)];
    let received = rustix::net::recvmsg(socket, &mut parts, &mut control, flags)?;
    let mut files = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(all) = part {
            files.extend(all.take(most - files.len()));
        }
    }
    Ok((received.bytes, files))
}
